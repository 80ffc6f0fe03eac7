"""API servers, kubeconfigs and plugins that mean harm: every command ends in time, with one clean sentence."""
