"""``kubectl dra claims``."""
