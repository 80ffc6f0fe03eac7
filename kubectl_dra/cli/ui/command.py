"""``kubectl dra ui``: the fleet, what is pending, claims and devices on one screen."""

from __future__ import annotations

HELP = """Look around on one screen: the fleet, what is pending and why, claims, devices and who holds them.

\b
Examples:
  # the cluster of the current context, as it changes
  kubectl dra ui
  # claims and pods of one namespace
  kubectl dra ui -n ml
  # a saved cluster, to look only
  kubectl dra ui --snapshot cluster.json.gz

Keys: 1 to 4 choose a table, Enter opens what is under the cursor, / filters, ? shows all keys, q ends. On a pod or
claim Enter shows what explain says of it, and w asks what would be if something were different. On a device it shows
who holds it; t taints the device and u takes the taint back, each after it has said whom that hits and you have agreed.

The live cluster is watched. Nothing is written but what taint and untaint write. It needs a terminal of any size and
no colours (NO_COLOR is honoured), and textual: pip install 'kubectl-dra[ui]'.

\b
Exit codes:
  0    you ended it
  2    error: usage, no terminal, textual is missing, input, connection
  130  interrupted
"""
