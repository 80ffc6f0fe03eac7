"""The closed catalogue of causes: one module per family, each cause with a stable code."""
