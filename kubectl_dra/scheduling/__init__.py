"""kube-scheduler's default profile restated: one file per plugin, the chain of them, preemption, and its message."""
