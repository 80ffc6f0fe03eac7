"""``kubectl dra lsp``: findings, meanings and proposals in an editor."""

from __future__ import annotations

HELP = """Serve an editor over the Language Server Protocol, on standard input and output.

\b
Examples:
  # what the editor starts
  kubectl dra lsp
  # for a cluster of 1.36, and the devices of a saved one
  kubectl dra lsp --kubernetes-version 1.36 --snapshot cluster.json.gz

The editor starts it and shows what lint finds while you type, what a field, an attribute, a function or a
device class means, what may stand at the cursor, and the fixes of lint and migrate. With --snapshot or
--live, attributes and values are those of your own devices, with how many have them.

It needs pygls: pip install 'kubectl-dra[lsp]'. How to set up editors is in the documentation.

\b
Exit codes:
  0  the editor ended it
  2  error: usage, pygls is missing, a file that cannot be read, a cluster that does not answer
"""
