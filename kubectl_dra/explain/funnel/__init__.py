"""Which devices are left for one request, step after step, and where the others went."""
