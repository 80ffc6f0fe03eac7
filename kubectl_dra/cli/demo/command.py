"""``kubectl dra demo``: plays the examples."""

from __future__ import annotations

HELP = """Play an example: a saved cluster with a pod that hangs, the command, and its answer. It needs no cluster.

\b
Examples:
  # what there is
  kubectl dra demo
  # play one
  kubectl dra demo no-device-matches
  # where its files are, to change them and ask again
  kubectl dra demo no-device-matches --path

Without a name it lists the examples.

\b
Exit codes:
  0  listed or played, whatever the example's own exit code is
  2  error: usage, or an example that does not exist
"""
