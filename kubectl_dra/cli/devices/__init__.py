"""``kubectl dra devices``."""
