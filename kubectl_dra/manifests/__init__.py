"""Manifests: YAML or JSON text to objects, read like kubectl does, with exact positions."""
