"""How results look: text for people, JSON for machines. Knows results, never computes them."""
