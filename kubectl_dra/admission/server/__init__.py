"""What the API server of Kubernetes would say about manifests, computed offline.

As on the server, decoding errors (HTTP 400) come before validation errors (422) and hide them.
"""
