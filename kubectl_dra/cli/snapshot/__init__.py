"""``kubectl dra snapshot``."""
