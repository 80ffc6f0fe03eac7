"""``kubectl dra taint``: takes devices out of service, and says who is hit."""

from __future__ import annotations

HELP = """Taint devices: keep new pods off them (NoSchedule), or end the pods that use them as well (NoExecute).

DEVICE is DRIVER/POOL/DEVICE, or as much of its end as is unambiguous (NODE/DEVICE, DEVICE). Instead of names, flags
select devices; they are resolved to names, shown, and confirmed when there are several.

For each device a DeviceTaintRule is made, which selects nothing else; ResourceSlices are never changed. Before
anything is written the blast radius is shown: who uses the devices, who cannot be placed any more, what is left.

\b
Effects:
  None        informs only
  NoSchedule  keeps new pods off; those that run stay
  NoExecute   deletes pods that use the device and do not tolerate it;
              PodDisruptionBudgets are not consulted. The rule is made with
              effect None first, and the server's own answer compared with
              the prediction.

--wait says what becomes of each pod, and ends when no claim holds the devices; claims with admin access hold nothing
and are not waited for. Interrupted or timed out, the same command again goes on from there.

\b
Examples:
  # what would happen
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoExecute --dry-run=client
  # no new pods on one GPU; say why
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoSchedule --reason "ECC errors" --ticket OPS-42
  # an hour for pods to end by themselves, then evict; wait until it is free
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoExecute --drain --grace 1h --wait=2h
  # by UUID, for four hours
  kubectl dra taint --uuid GPU-8f3c1d52-6a0b-4f27-9c3e-51d7e0b4a96f maintenance:NoSchedule --expires 4h
  # every taint of the cluster
  kubectl dra taint --list
  # back into service (the same as kubectl dra untaint)
  kubectl dra taint gpu-node-1/gpu-0 maintenance-

\b
Exit codes:
  0    done, or nothing had to be done
  1    refused (another taint is there, or not confirmed), or --wait timed out
  2    error: usage, no such device, permission, DeviceTaintRules not served
  130  interrupted: what was written stays
"""
