"""Kustomizations around migrated files: what they build has to change by the migration, and by nothing else."""
