"""``kubectl dra lint``."""
