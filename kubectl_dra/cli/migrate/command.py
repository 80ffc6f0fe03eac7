"""``kubectl dra migrate``: from device plugins and older DRA versions to ResourceClaims."""

from __future__ import annotations

HELP = """Rewrite manifests from device plugins and older DRA versions to ResourceClaims of v1.

\b
Examples:
  # the plan, and the diff
  kubectl dra migrate manifests/
  kubectl dra migrate --diff manifests/
  # in CI: exit code 1 if anything is left to migrate
  kubectl dra migrate --check manifests/
  # in place, or file by file
  kubectl dra migrate --write manifests/
  kubectl dra migrate --interactive manifests/
  # what a chart renders
  helm template CHART | kubectl dra migrate - -o yaml > migrated.yaml
  # for a cluster that serves v1beta1 only
  kubectl dra migrate --to v1beta1 --diff manifests/
  # what in the cluster still uses device plugins, and which namespaces are ready
  kubectl dra migrate --live -A
  # where the migrated pods could run, and on how many nodes before
  kubectl dra migrate manifests/ --live
  # the rollout in phases, as files to review
  kubectl dra migrate plan --live -A --output-dir rollout
  # the way back, from claims that migrate created
  kubectl dra migrate --reverse --diff manifests/
  # what is MIG301?
  kubectl dra migrate --code MIG301

Reads files, directories, standard input (-) and kustomizations (-k), and prints what it would change and why.
Writes only with --write or --output-dir. Everything else in the files stays, byte for byte. What cannot
be changed safely is refused, with what to do by hand.

\b
Exit codes:
  0  nothing to do, or everything is done
  1  something would change, was refused, or needs --unsafe
  2  error: usage, nothing to read, a file that cannot be written
"""
