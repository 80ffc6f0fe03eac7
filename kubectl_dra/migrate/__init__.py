"""Edits manifests: from device plugins and older DRA versions to ResourceClaims of v1."""
