"""Device taints: which devices, the rules that taint them, which pods are affected, and waiting until devices
are free.
"""
