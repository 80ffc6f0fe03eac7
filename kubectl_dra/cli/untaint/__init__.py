"""``kubectl dra untaint``."""
