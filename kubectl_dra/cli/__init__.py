"""What a person types: a folder per command, and beside them what several commands share."""
