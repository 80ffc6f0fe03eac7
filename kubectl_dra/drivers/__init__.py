"""The drivers on nodes: what each publishes, the pod in which it runs, and how that fares."""
