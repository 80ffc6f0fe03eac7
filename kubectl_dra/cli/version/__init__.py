"""``kubectl dra version``."""
