"""``kubectl dra fit``."""
