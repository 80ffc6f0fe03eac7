"""The Score plugins of kube-scheduler's default profile: which of the nodes that pass all filters wins."""
