"""Where state comes from: an immutable Snapshot, read from files or from a live cluster."""
