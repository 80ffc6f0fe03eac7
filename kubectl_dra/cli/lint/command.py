"""``kubectl dra lint``: what is wrong in manifests."""

from __future__ import annotations

HELP = """Find what the API server would reject in manifests, and what it accepts but fails later.

\b
Examples:
  # everything below a directory
  kubectl dra lint manifests/
  # what a chart renders
  helm template CHART | kubectl dra lint -
  # a kustomization
  kubectl dra lint -k overlays/prod
  # review the fixes, then make them
  kubectl dra lint --diff manifests/
  kubectl dra lint --fix manifests/
  # for code scanning
  kubectl dra lint -o sarif manifests/ > lint.sarif
  # against the devices that exist
  kubectl dra lint --live manifests/
  # before an upgrade: what changes for manifests, or for all that a cluster has
  kubectl dra lint --from 1.35 --kubernetes-version 1.37 manifests/
  kubectl dra lint --from 1.35 --kubernetes-version 1.37 --live
  # what is rule DRA112?
  kubectl dra lint --rule DRA112

Reads files, directories, standard input (-) and kustomizations (-k). Needs no cluster, and reads one
only with --live. A status is judged as the driver that writes it would be.

\b
Exit codes:
  0  clean
  1  findings (--fail-on says from which severity), or --diff shows a change
  2  error: usage, nothing to read, a defect
  3  undetermined: nothing was found, but not everything of the cluster that rules compare with could be read
"""
