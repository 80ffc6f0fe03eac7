"""``kubectl dra version``: which version this is, and which Kubernetes it models."""

from __future__ import annotations

HELP = """Print the versions of kubectl-dra, Python and the server, and what is known about each Kubernetes release.

\b
Examples:
  # the versions, with the server's
  kubectl dra version
  # what is known about each release of Kubernetes, without asking the server
  kubectl dra version --client --full
  # for a script: only the version of kubectl-dra
  kubectl dra --version
  # is a gate on by default in the server's release?
  kubectl dra version -o json

The server is asked once, for at most three seconds (--request-timeout); a missing answer is not an error.
--client asks no server.

\b
Exit codes:
  0  printed
  2  error: usage
"""
