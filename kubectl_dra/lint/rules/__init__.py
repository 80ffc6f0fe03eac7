"""The rules, one module per family."""
