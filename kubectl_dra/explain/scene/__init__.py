"""The scene of a question: the cluster as the scheduler would see it for this pod."""
