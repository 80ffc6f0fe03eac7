"""``kubectl dra lsp``."""
