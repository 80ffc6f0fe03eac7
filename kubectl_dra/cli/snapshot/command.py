"""``kubectl dra snapshot``: what explain needs from a cluster, in one file."""

from __future__ import annotations

HELP = """Save what the other commands read from a cluster in one file, for --snapshot.

\b
Examples:
  # save the cluster of the current context
  kubectl dra snapshot -o cluster.json
  # look at it later, or somewhere else
  kubectl dra explain pod/train-0 -n ml --snapshot cluster.json
  # for a bug report, with a private mapping of original to replacement names
  kubectl dra snapshot -o report.yaml --anonymize --names names.json
  # anonymize what was saved before
  kubectl dra snapshot --snapshot saved/ -o report.json --anonymize
  # into a pipe
  kubectl dra snapshot -o - | gzip > cluster.json.gz

Holds ResourceSlices, DeviceClasses, ResourceClaims, ResourceClaimTemplates, DeviceTaintRules, Pods, Nodes,
Namespaces, ResourceQuotas, and Events of pods and claims; never Secrets or ConfigMaps. Pods are reduced to what
affects devices: no images, commands, arguments, environment, volumes or annotations. The file records what could not
be read, so that explain has the same gaps with it. The cluster is never changed.

--anonymize prepares it for a bug report, and explain still gives the same answers: only words of Kubernetes and of
known hardware stay, with amounts, times and small numbers. All other names, values, words of messages and literals of
selectors are replaced, UUIDs, serial numbers and addresses too. Look at the file before you publish it.

\b
Exit codes:
  0  written
  2  error: usage, input, connection; nothing is written
"""
