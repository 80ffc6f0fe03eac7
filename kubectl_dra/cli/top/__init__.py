"""``kubectl dra top``."""
