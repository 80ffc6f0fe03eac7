"""Mutated clusters, manifests and selectors run through every command: nothing fails, hangs or escapes."""
