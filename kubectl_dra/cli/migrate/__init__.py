"""``kubectl dra migrate``."""
