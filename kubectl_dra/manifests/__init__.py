"""Manifests: YAML or JSON text to objects, read as kubectl reads it, with exact positions."""
