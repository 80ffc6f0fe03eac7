"""What the API server adds to a new pod, and why it refuses it, before any scheduler sees it."""
