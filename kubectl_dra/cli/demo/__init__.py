"""``kubectl dra demo``."""
