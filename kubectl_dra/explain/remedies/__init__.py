"""What would help: changes, each proved by a whole attempt of the scheduler with it."""
