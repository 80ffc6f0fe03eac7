"""Kustomizations around migrated files: their builds may change only by the migration."""
