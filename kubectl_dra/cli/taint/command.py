"""``kubectl dra taint``: takes devices out of service, and says who is affected."""

from __future__ import annotations

HELP = """Taint devices: keep new pods off them (NoSchedule), or also evict the pods that use them (NoExecute).

\b
Examples:
  # what would happen
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoExecute --dry-run=client
  # no new pods on one GPU, with the reason
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoSchedule --reason "ECC errors" --ticket OPS-42
  # an hour for pods to end by themselves, then evict; wait until it is free
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoExecute --drain --grace 1h --wait=2h
  # by UUID, for four hours
  kubectl dra taint --uuid GPU-8f3c1d52-6a0b-4f27-9c3e-51d7e0b4a96f maintenance:NoSchedule --expires 4h
  # every taint of the cluster
  kubectl dra taint --list
  # back into service (the same as kubectl dra untaint)
  kubectl dra taint gpu-node-1/gpu-0 maintenance-

DEVICE is DRIVER/POOL/DEVICE, or any unambiguous end of it (NODE/DEVICE, DEVICE). Flags can select devices instead; the
command resolves them to names, shows them, and asks for confirmation if there are several.

Each device gets its own DeviceTaintRule, which selects nothing else; ResourceSlices are never changed. Before writing
anything, the command shows the blast radius: who uses the devices, who can no longer be placed, and what is left.

\b
Effects:
  None        only informs
  NoSchedule  keeps new pods off; running pods stay
  NoExecute   deletes pods that use the device and do not tolerate it;
              PodDisruptionBudgets are not consulted. The rule first gets
              the effect None, to compare the server's own answer with the
              prediction.

--wait reports what happens to each pod, and ends when no claim holds the devices. Claims with admin access hold nothing
and are not waited for. After an interruption or time-out, run the same command again to continue.

\b
Exit codes:
  0    done, or nothing had to be done
  1    refused (another taint exists, or not confirmed), or --wait timed out
  2    error: usage, no such device, permission, DeviceTaintRules not served
  3    --list: there may be taints that could not be read; --dry-run: whom the taint hits is unknown
  130  interrupted: what was written stays
"""
