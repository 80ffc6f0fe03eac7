"""What reports say in JSON of objects, devices and taints: one shape for each, in all commands.

A key in the singular is one object (``claim``, ``pod``, ``owner``), its plural a list of them, and a number is called
``deviceCount``. Nodes have no namespace: ``node`` is a name, ``nodes`` are names. In ``summary`` nouns are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.drivers.refused_claims import GateLacking, OfSeveralPods, Refusal
from kubectl_dra.explain.driver_refusals import refused
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.phrase import by_key
from kubectl_dra.report.json_output import filled
from kubectl_dra.report.phrases import written

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Gap


def assumed_json(release: str, source: str, gates: Sequence[str]) -> dict[str, Any]:
    """The Kubernetes that an answer assumes."""
    return {"kubernetesVersion": release, "source": source, "featureGates": [*gates]}


def device_json(device: DeviceID) -> dict[str, str]:
    """A device."""
    return {"driver": device.driver, "pool": device.pool, "device": device.device}


def given_json(claims: Iterable[ResourceClaim]) -> list[dict[str, Any]]:
    """The devices of claims, each with its claim and request, and of a shared one how much of it."""
    return [
        {
            "claim": key_json(claim.key),
            "request": result.request,
            **device_json(result.device),
            **filled(consumedCapacity={name: str(amount) for name, amount in result.consumed_capacity.items()}),
        }
        for claim in claims
        for result in claim.results
    ]


def pool_json(pool: PoolID) -> dict[str, str]:
    """A pool."""
    return {"driver": pool.driver, "name": pool.name}


def object_json(namespace: str, name: str, kind: str = "") -> dict[str, str]:
    """An object; ``kind`` where the key does not say it."""
    return {**filled(kind=kind), "namespace": namespace, "name": name}


def key_json(key: str) -> dict[str, str]:
    """An object from ``namespace/name``."""
    name = by_key("", key)
    return {"namespace": name.namespace, "name": name.name}


def owner_json(kind: str, name: str) -> dict[str, str]:
    """The owner of an object, in the same namespace."""
    return {"kind": kind, "name": name}


def taint_json(taint: DeviceTaint) -> dict[str, str]:
    """A taint of a device."""
    return {"key": taint.key, **filled(value=taint.value), "effect": taint.effect}


def refusal_json(refusal: Refusal) -> dict[str, Any]:
    """A claim that its driver refuses on a node, and why."""
    why: dict[str, Any]
    if isinstance(refusal, GateLacking):
        why = {"reason": "gate-off", "gate": refusal.gate.name, "needing": refusal.needing}
        why |= filled(deviceClass=refusal.device_class)
    elif isinstance(refusal, OfSeveralPods):
        why = {"reason": "several-pods", "otherPods": [*map(key_json, refusal.others)]}
    else:
        why = {"reason": "part-of-node", "deviceCount": refusal.got, "ofDevices": refusal.of}
    where = {"claim": key_json(refusal.claim), "driver": refusal.driver, "node": refusal.node}
    return {**where, **why, "text": written(refused([refusal]))}


def not_starting_json(where: NotStarting) -> dict[str, str]:
    """A node on which pods do not start, and why: the state of the driver there."""
    driver = where.driver
    return {"node": where.node, "driver": driver.driver, "state": driver.state.value, "text": written(where.why)}


def gap_json(gap: Gap) -> dict[str, Any]:
    """A kind that was not read whole: why, and the permission that is missing."""
    permission = gap.permission._asdict() if gap.permission is not None else None
    more = filled(namespace=gap.namespace, readNamespace=gap.read_in, detail=gap.detail, permission=permission)
    return {"kind": gap.kind, "reason": gap.reason, **more}
