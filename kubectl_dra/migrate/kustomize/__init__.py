"""Kustomizations around migrated files: only the migration may change what they build."""
