"""Which devices are left for one request, step by step, and where the others went."""
