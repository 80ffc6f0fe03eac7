"""From requests of device plugins to claims."""
