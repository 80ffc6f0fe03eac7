"""``kubectl dra top``: how full the cluster is, and who fills it."""

from __future__ import annotations

HELP = """Count devices by node, class, namespace, owner or claim: how many are free, held, held and unused.

\b
Examples:
  # the nodes, with the fullest first
  kubectl dra top
  # the classes, and the largest request that still fits on one node
  kubectl dra top classes
  # who holds devices that nobody uses
  kubectl dra top owners --sort unused
  # on a terminal, redrawn every five seconds
  kubectl dra top namespaces --watch
  # for the textfile collector of Prometheus' node exporter
  kubectl dra top -o metrics > dra.prom

Reads the live cluster, or a snapshot with --snapshot. Never writes. A device counts as unused if it is held by a claim
that is reserved for nobody, or for pods that have ended. By class, it also shows the largest request that one node
can still serve: free devices spread over many nodes are no use to a pod that needs several.

\b
Exit codes:
  0  counted
  1  there is nothing to count, or the cluster has no DRA
  2  error: usage, input, connection
  3  undetermined: something that counts could not be read
"""
