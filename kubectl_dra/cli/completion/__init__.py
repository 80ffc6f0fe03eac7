"""Completion of the command line: one protocol, used by kubectl and by the scripts of four shells."""
