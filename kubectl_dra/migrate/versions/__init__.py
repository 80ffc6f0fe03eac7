"""Objects of resource.k8s.io in another API version."""
