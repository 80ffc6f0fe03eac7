"""What would help: changes, proved by running the allocation again with them."""
