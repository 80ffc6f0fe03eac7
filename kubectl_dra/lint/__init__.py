"""What is wrong, or will be, with manifests of Dynamic Resource Allocation."""
