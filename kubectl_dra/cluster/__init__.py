"""The cluster's state: an immutable Snapshot, read from files or from a live cluster."""
