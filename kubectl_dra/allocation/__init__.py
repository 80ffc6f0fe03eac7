"""The scheduler's allocation decision: which devices a pod's claims get on a node, and why not."""
