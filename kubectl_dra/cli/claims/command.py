"""``kubectl dra claims``: which claim has which devices, for whom, and what it waits for."""

from __future__ import annotations

HELP = """List claims with their devices, node, pods, owner and age, and what each waits for.

\b
Examples:
  # every claim of the cluster
  kubectl dra claims
  # those of a namespace
  kubectl dra claims -n ml
  # devices that are held and not used
  kubectl dra claims --state unused --state ended
  # with drivers, pools and classes, from saved objects
  kubectl dra claims -o wide --snapshot cluster.json

Reads the live cluster, or a snapshot with --snapshot. Never writes. Without -n, claims of all namespaces are listed.

\b
States:
  pending      a pod waits for its devices
  no-pod       no pod names it, so nothing is allocated for it
  binding      its devices are chosen; a driver prepares them before the pod is bound
  unused       it holds devices, and is reserved for nobody
  starting     it holds devices for a pod that does not run yet
  in-use       a pod that runs uses its devices
  reserved     it holds devices for a consumer that was not read
  ended        it holds devices for pods that have ended or do not exist any more
  terminating  the claim, or the last pod that uses it, is being deleted
  unknown      nothing is allocated for it, and whether a pod waits for it could not be read

\b
Exit codes:
  0  claims are listed
  1  there is none, or the cluster has no DRA
  2  error: usage, input, connection
  3  undetermined: claims, or the pods that use them, could not be read
"""
