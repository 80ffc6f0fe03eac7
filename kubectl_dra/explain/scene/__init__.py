"""What a question is answered in: the cluster as the scheduler would see it for this pod."""
