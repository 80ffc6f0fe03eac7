"""``kubectl dra explain``: why a pod or claim is pending."""

from __future__ import annotations

HELP = """Explain why a pod or claim gets no devices, by running the scheduler's steps locally.

\b
Examples:
  # what is pending, and why?
  kubectl dra explain
  # why is this pod pending? (train-0 also works, unless a claim has that name)
  kubectl dra explain pod/train-0 -n ml
  # the same, on saved objects (kubectl get ... -o json)
  kubectl dra explain pod/train-0 -n ml --snapshot cluster.json
  # would this manifest be scheduled?
  kubectl dra explain -f pod.yaml
  # every device and why it is refused
  kubectl dra explain claim/gpus -n ml --devices
  # could it get two devices?
  kubectl dra explain pod/train-0 -n ml --what-if count=2
  # with your scheduler's own profiles
  kubectl dra explain pod/train-0 -n ml --scheduler-config scheduler.yaml
  # every pending claim of the cluster in one table
  kubectl dra explain -A
  # each part of the selectors on one device
  kubectl dra explain claim/gpus -n ml --trace gpu-node-1/gpu-0
  # what a cause means, how to see it with kubectl, and when it is normal
  kubectl dra explain --cause devices-held
  # one page with the fleet as a picture, to attach to a ticket
  kubectl dra explain pod/train-0 -n ml -o html > train-0.html

Reads the live cluster, or a snapshot with --snapshot. Never writes.

\b
Exit codes:
  0  allocated, or can be allocated
  1  cannot be allocated; or the pod has its devices, but does not start, has an unhealthy one or is being deleted; or
     the claim holds devices for nobody who needs them; or the cluster has no DRA
  2  error: usage, input, connection
  3  undetermined: a deciding fact could not be seen or is not modelled, a controller is still at it, or other pending
     pods come first and leave no devices

\b
A kind of which saved files have no object counts as unread, unless kubectl dra snapshot wrote them or --complete says
that the cluster has none. examples/rbac/read.yaml allows what a live cluster is read for.
"""
