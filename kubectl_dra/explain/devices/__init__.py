"""Every published device, its place and its state."""
