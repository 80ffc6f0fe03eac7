"""The scheduler's decision, restated: which devices a pod's claims get on a node, and why not."""
