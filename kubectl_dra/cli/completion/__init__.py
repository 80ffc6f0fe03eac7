"""Completion of the command line: one protocol, asked by kubectl and by the scripts of four shells."""
