"""The command line: a folder per command, and what several commands share."""
