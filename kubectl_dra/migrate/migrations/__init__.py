"""The migrations: one file each, found by ``registry``."""
