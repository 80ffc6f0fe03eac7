"""``kubectl dra untaint``: takes devices back into service."""

from __future__ import annotations

HELP = """Remove the DeviceTaintRules that kubectl dra taint made for devices.

DEVICE and the flags that select devices are those of kubectl dra taint. Without KEY- all of them are removed. Rules
that others made for exactly these devices are removed with --overwrite only, rules that select more never; taints
that a driver sets in its ResourceSlice are the driver's to remove. What stays is said, and whose it is.

\b
Examples:
  kubectl dra untaint gpu-node-1/gpu-0
  kubectl dra untaint gpu-node-1/gpu-0 maintenance- --wait=1m
  # what would be removed of a saved cluster
  kubectl dra untaint --node gpu-node-1 --dry-run=client --snapshot cluster.json
  # every rule whose time is over
  kubectl dra untaint --expired

\b
Exit codes:
  0    done; with --expired also when nothing has expired
  1    there was nothing to remove, not confirmed, or --wait timed out
  2    error: usage, no such device, permission, DeviceTaintRules not served
  130  interrupted: what was removed stays removed
"""
