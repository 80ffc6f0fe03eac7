"""Devices of KubeVirt's virtual machines that come from claims: what KubeVirt refuses, and what its releases get wrong.

From ``pkg/dra/admitter`` and ``pkg/virt-controller/services/renderresources.go`` of KubeVirt 1.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.claim_requests import REFERENCES
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.text import nearest, some

KINDS: Final = ("VirtualMachine", "VirtualMachineInstance")


class VirtualDevice(NamedTuple):
    """A device of a virtual machine that names a claim: its place, the place and the value of what it names."""

    path: FieldPath
    name: str
    claim: str
    request: str


def _spec_path(context: Context) -> FieldPath:
    return ("spec",) if context.item.kind == "VirtualMachineInstance" else ("spec", "template", "spec")


def _devices(context: Context) -> Iterator[VirtualDevice]:
    """GPUs, host devices and networks that come from claims."""
    root = _spec_path(context)
    spec = value_at(context.raw, root) or {}
    for field in ("gpus", "hostDevices"):
        for index, device in enumerate(items(spec, "domain", "devices", field)):
            if device.get("claimName") or device.get("requestName"):
                yield _device((*root, "domain", "devices", field, index), device, device)
    for index, network in enumerate(items(spec, "networks")):
        if isinstance(source := network.get("resourceClaim"), dict):
            yield _device((*root, "networks", index, "resourceClaim"), network, source)


def _device(path: FieldPath, named: Mapping[str, Any], source: Mapping[str, Any]) -> VirtualDevice:
    return VirtualDevice(
        path, str(named.get("name") or ""), str(source.get("claimName") or ""), str(source.get("requestName") or "")
    )


class VirtualMachineDevices(
    Rule, code="DRA413", name="virtual-machine-devices", severity="error", kinds=KINDS, scope="set"
):
    """Devices of a virtual machine that KubeVirt refuses, or whose request the claim does not have."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        root = _spec_path(context)
        entries = items(value_at(context.raw, root) or {}, "resourceClaims")
        names = [str(pod_claim.get("name") or "") for pod_claim in entries]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield self.finding((*root, "resourceClaims", index, "name"), f"claim {name} is listed twice")
        pairs: set[tuple[str, str]] = set()
        for device in _devices(context):
            if not device.claim:
                yield self.finding(device.path, f"{device.name} has a requestName and no claimName")
                continue
            if device.claim not in names:
                near = nearest(device.claim, names, 1)
                yield self.finding(
                    (*device.path, "claimName"),
                    f"{device.name} uses claim {device.claim}, which is not in resourceClaims",
                    fix=f"Did you mean {near[0]}?"
                    if near
                    else "List it in resourceClaims, with a claim or a template.",
                )
                continue
            if not device.request:
                yield self.finding(device.path, f"{device.name} names claim {device.claim} and no requestName")
                continue
            pair = device.claim, device.request
            if pair in pairs:
                yield self.finding(
                    (*device.path, "requestName"),
                    f"request {device.request} of claim {device.claim} is that of another device already",
                    fix="Give each device a request of its own.",
                )
            pairs.add(pair)
            known = _requests(context, entries[names.index(device.claim)])
            if known and device.request not in known:
                near = nearest(device.request, known, 1)
                yield self.finding(
                    (*device.path, "requestName"),
                    f"claim {device.claim} has no request {device.request}; it has {some(known)}",
                    fix=f"Did you mean {near[0]}?" if near else None,
                )


def _requests(context: Context, pod_claim: Mapping[str, Any]) -> list[str]:
    """The requests of what an entry of ``resourceClaims`` names, if that is given; else none."""
    for field, kind in REFERENCES.items():
        if target := pod_claim.get(field):
            given = context.nearest(kind, str(target))
            return [str(request.get("name") or "") for request in given[0].requests] if given else []
    return []


class ClaimOfSeveralVirtualDevices(
    Rule, code="DRA414", name="claim-of-several-virtual-devices", severity="warning", kinds=KINDS
):
    """Several devices of a virtual machine from one claim."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        users: dict[str, list[VirtualDevice]] = {}
        for device in _devices(context):
            users.setdefault(device.claim, []).append(device)
        for claim, devices in users.items():
            if claim and len(devices) > 1:
                names = some([device.name for device in devices])
                yield self.finding(
                    devices[1].path,
                    f"{names} come from the one claim {claim}: KubeVirt before 1.9 makes an invalid pod of it, or "
                    "leaves out all but the first",
                    fix="Update KubeVirt to 1.9, or give each device a claim of its own: one entry of resourceClaims "
                    "for each.",
                )


RULES = (VirtualMachineDevices, ClaimOfSeveralVirtualDevices)
