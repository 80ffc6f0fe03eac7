"""What rules find out about an object: its requests, its selectors, what the API server says about it."""
