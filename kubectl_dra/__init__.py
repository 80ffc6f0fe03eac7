"""kubectl-dra: a kubectl plugin for Kubernetes Dynamic Resource Allocation (resource.k8s.io)."""

__version__ = "0.1.0"
