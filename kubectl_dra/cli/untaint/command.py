"""``kubectl dra untaint``: takes devices back into service."""

from __future__ import annotations

HELP = """Remove the DeviceTaintRules that kubectl dra taint made for devices.

\b
Examples:
  kubectl dra untaint gpu-node-1/gpu-0
  kubectl dra untaint gpu-node-1/gpu-0 maintenance- --wait=1m
  # what would be removed, for a saved cluster
  kubectl dra untaint --node gpu-node-1 --dry-run=client --snapshot cluster.json
  # every rule that has expired
  kubectl dra untaint --expired

DEVICE and the flags that select devices are the same as for kubectl dra taint. Without KEY-, all rules for the devices
are removed. --overwrite also removes rules that others made for exactly these devices; broader rules are never
removed, and only the driver can remove taints in its ResourceSlices. Remaining taints are listed with their owners.

\b
Exit codes:
  0    done; with --expired also when nothing has expired
  1    there was nothing to remove, not confirmed, or --wait timed out
  2    error: usage, no such device, permission, DeviceTaintRules not served
  3    --snapshot: which rules there are is not in the files
  130  interrupted: what was removed stays removed
"""
