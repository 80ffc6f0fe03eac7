"""What the API server adds to a new pod, and why it refuses it, before the scheduler sees it."""
