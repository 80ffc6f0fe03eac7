"""kube-scheduler's default profile: one file per plugin, their chain, preemption, and the scheduler's message."""
