"""Finds what is or will be wrong with manifests of Dynamic Resource Allocation."""
