"""``kubectl dra devices``: every device, where it is, and who holds it."""

from __future__ import annotations

HELP = """List every device that drivers publish: where it is, which classes select it, and who holds it.

\b
Examples:
  # every device of the cluster
  kubectl dra devices
  # what is free on a node, with attributes and capacity
  kubectl dra devices gpu-1 --free -o wide
  # how many of each class are free, most first
  kubectl dra devices --by class --sort free
  # what a namespace holds
  kubectl dra devices -n ml
  # devices that a request with this selector could get
  kubectl dra devices --class gpu.nvidia.com --selector \
'device.attributes["gpu.nvidia.com"].productName.contains("H100")'
  # which devices are tainted, and by whom, from saved objects
  kubectl dra devices --tainted -o wide --snapshot cluster.json
  # names for a script: DRIVER/POOL/DEVICE, one per line
  kubectl dra devices --driver gpu.nvidia.com -o name
  # the fleet as a picture, in one file
  kubectl dra devices -o html > devices.html

Reads the live cluster, or a snapshot with --snapshot. Never writes. Alike devices of a node share a row; on large
clusters, nodes with alike devices do too. --full shows each device in a row of its own. Selections combine: a device
must match all of them. Repeat a flag to list alternatives.

\b
States, the first that applies:
  unusable  its pool is incomplete, invalid or obsolete, or no node sees it
  held      a claim holds all of it
  shared    claims hold shares of it; more can, up to its capacity
  blocked   other devices use up the counters that it needs
  tainted   only requests that tolerate its taints can get it
  unknown   nothing is known against it, but not all claims, nodes or taint rules could be read
  free      none of the above

\b
Exit codes:
  0  devices are listed
  1  no device matches, or the cluster has no DRA
  2  error: usage, a name that does not exist, input, connection
  3  undetermined: slices, or what --free, --tainted, --class or -n ask for, could not be read
"""
