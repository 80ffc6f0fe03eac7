"""Why the API server refuses, or would refuse, to create a pod's claims: quotas, admin access, its own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_dra.allocation.extended import IMPLICIT_PREFIX
from kubectl_dra.api.claims import ALL, MAX_RESULTS, ResourceClaim
from kubectl_dra.api.classes import DeviceClass
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.explain.causes import pod as causes
from kubectl_dra.explain.diagnosis import Cause, Evidence

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
OLD_ADMIN_LABEL = "resource.k8s.io/admin-access"
"""What Kubernetes 1.33 called the label; later releases ignore this one."""
CLAIM_COUNT = "count/resourceclaims.resource.k8s.io"
CLASS_DEVICES = ".deviceclass.resource.k8s.io/devices"
_ZERO = Quantity.parse("0")


def denied(pod: Pod, entry: str, event: Event) -> Cause:
    """The cause behind an event that says that a claim could not be created."""
    kind = causes.CREATION_DENIED
    if "exceeded quota" in event.message:
        kind = causes.QUOTA
    elif "admin access" in event.message:
        kind = causes.ADMIN_NAMESPACE
    why = event.message.rpartition("is forbidden: ")[2]
    return Cause(
        kind,
        f'the claim for entry "{entry}" cannot be created: {why}',
        (Evidence(f"Event on Pod {pod.key}", event.reason, event.message),),
        kind.fix,
    )


def refusals(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Cause]:
    """What stands against creating these claims, all of one namespace, as far as the snapshot tells."""
    for claim in claims:
        if any(spec.admin_access for entry in claim.requests for spec in entry.alternatives()):
            yield from _admin(claim, snapshot)
    if claims:
        yield from _quotas(claims, snapshot)


def _admin(claim: ResourceClaim, snapshot: Snapshot) -> Iterator[Cause]:
    namespace = snapshot.namespaces.get(claim.metadata.namespace)
    if namespace is None or namespace.labels.get(ADMIN_LABEL) == "true":
        return
    has = namespace.labels.get(ADMIN_LABEL, "not set")
    if OLD_ADMIN_LABEL in namespace.labels:
        has += f" ({OLD_ADMIN_LABEL} is, which only 1.33 looks at)"
    yield Cause(
        causes.ADMIN_NAMESPACE,
        f"claim {claim.key} asks for admin access, which namespace {namespace.name} does not allow",
        (Evidence(f"Namespace {namespace.name}", f"label {ADMIN_LABEL}", has),),
        f"An administrator may allow it: kubectl label namespace {namespace.name} {ADMIN_LABEL}=true",
        claim=claim.key,
    )


def _quotas(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Cause]:
    namespace = claims[0].metadata.namespace
    wanted = needs(claims, snapshot.classes)
    for quota in snapshot.quotas:
        if quota.metadata.namespace != namespace:
            continue
        for key, hard in quota.hard.items():
            need = wanted.get(key)
            if not need:
                continue
            used = _amount(quota.used.get(key, "0"))
            if used + Quantity.of(need) <= _amount(hard):
                continue
            yield Cause(
                causes.QUOTA,
                f"ResourceQuota {quota.metadata.key} allows {hard} of {key}: {used} used, {need} more needed",
                (
                    Evidence(f"ResourceQuota {quota.metadata.key}", f"status.used {key}", f"{used} of {hard}"),
                    Evidence(f"claims {', '.join(claim.key for claim in claims)}", "count as", str(need)),
                ),
                causes.QUOTA.fix,
            )


def needs(claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> dict[str, int]:
    """What the claims count as, by quota key. All counts as 32 devices, a list as its largest amount per class.

    Devices of a class with an extended resource name count as that resource too (KEP-5004).
    """
    out = {CLAIM_COUNT: len(claims)}
    for claim in claims:
        for entry in claim.requests:
            largest: dict[str, int] = {}
            for spec in entry.alternatives():
                amount = MAX_RESULTS if spec.allocation_mode == ALL else spec.count
                largest[spec.device_class] = max(amount, largest.get(spec.device_class, 0))
            for name, amount in largest.items():
                for key in _keys(name, classes):
                    out[key] = out.get(key, 0) + amount
    return out


def _keys(name: str, classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """The quota keys under which devices of a class count."""
    yield f"{name}{CLASS_DEVICES}"
    extended = classes[name].extended_resource_name if name in classes else ""
    if extended:
        yield f"requests.{IMPLICIT_PREFIX}{name}"
        yield f"requests.{extended}"


def _amount(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError:
        return _ZERO
