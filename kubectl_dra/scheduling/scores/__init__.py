"""The Score plugins of kube-scheduler's default profile, which choose among the nodes that pass all filters."""
