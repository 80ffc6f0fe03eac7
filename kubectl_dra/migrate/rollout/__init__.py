"""A cluster that still uses device plugins: what does, and a plan for the way to DRA."""
