"""``kubectl dra explain``."""
