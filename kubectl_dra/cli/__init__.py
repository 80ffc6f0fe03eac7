"""What a person types: one module per command, from options to a report and an exit code."""
