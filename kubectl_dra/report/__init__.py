"""Results as text for people and JSON for machines. Knows results, never computes them."""
