"""The devices use a feature that is off."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.request_funnel import BINDING
from kubectl_dra.explain.phrase import say

NEEDS_FEATURE = CauseKind(
    code="device-needs-feature",
    title="The devices use a feature that is off",
    why="The scheduler passes over devices that need a feature gate which is off: binding conditions, shared "
    "counters, or node selection per device.",
    fix="Turn the feature gate on in kube-apiserver and kube-scheduler, or let the driver publish without it.",
    seen_as="cannot allocate all claims",
    normal="On clusters that turn features off, or are too old for the driver.",
    confirm=(
        confirm.GATE,
        confirm.Check(
            "Devices with `bindingConditions`, `consumesCounters`, or a node of their own (`perDeviceNodeSelection`).",
            confirm.SLICES_OF_DRIVER,
        ),
    ),
    family=Family.POOLS,
    look=Look.SLICES,
)


def finding(blocked: Blocked, gate: str, **features: bool) -> Finding:
    """Devices are skipped because a gate is off. ``features`` are those of the allocator."""
    proof = blocked.world.with_features(replace(blocked.view.cycle.features, **features)).proof()
    text = "{lost:device} for {where} {lost:is|are} passed over: the feature {gate} is off"
    return Finding(
        NEEDS_FEATURE,
        say(text, lost=len(blocked.lost), where=blocked.where, gate=gate),
        blocked.by_device("device"),
        Remedy(say("Turn the feature gate {gate} on in kube-apiserver and kube-scheduler.", gate=gate), proof),
    )


def _binding(blocked: Blocked) -> Iterator[Finding]:
    yield finding(blocked, BINDING, binding_conditions=True)


FINDERS = (Finder(When.STAGE, _binding, of="binding"),)
