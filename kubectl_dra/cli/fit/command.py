"""``kubectl dra fit``: how many pods of a workload fit."""

from __future__ import annotations

HELP = """Say how many pods of a workload fit, where, and what stops the next one.

\b
Examples:
  # do all replicas fit?
  kubectl dra fit -f deployment.yaml
  # would twenty?
  kubectl dra fit -f deployment.yaml --replicas 20
  # how many fit at most, on saved objects (kubectl get ... -o json)?
  kubectl dra fit -f job.yaml --max --snapshot cluster.json
  # everything about the first pod that does not fit
  kubectl dra fit -f deployment.yaml --explain
  # which pod goes where, for a script
  kubectl dra fit -f jobset.yaml -o json

Places the pods one after the other as the scheduler would, device by device, and tries which change of the cluster
makes room for more. Reads the live cluster, or a snapshot with --snapshot. Never writes.

\b
Exit codes:
  0  all pods fit (with --max: at least one replica does)
  1  not all fit, or the cluster has no DRA
  2  error: usage, input, connection
  3  undetermined: something that decides could not be seen or is not modelled
"""
