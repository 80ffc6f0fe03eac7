"""Device taints: which devices, the rules that taint them, who is hit, and waiting until they are free."""
