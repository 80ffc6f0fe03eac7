"""Converts objects of resource.k8s.io to another API version."""
