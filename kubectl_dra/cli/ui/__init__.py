"""``kubectl dra ui``."""
