"""What rules need to know about an object: its requests, its selectors, the API server's verdict on it."""
