"""The devices use a feature that is off."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_dra.api.nodes import OPTIONAL_OPERATIONS
from kubectl_dra.explain.causes.filters_refuse import FEATURES
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.request_funnel import BINDING, PARTITIONS
from kubectl_dra.explain.funnel.stages import GROUPS_GATE, FeatureOff
from kubectl_dra.explain.phrase import say

NEEDS_FEATURE = CauseKind(code="device-needs-feature", family=Family.POOLS, look=Look.SLICES)


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


def of_reason(blocked: Blocked, off: FeatureOff) -> Finding:
    """Devices are skipped because of the gate that a reason names."""
    return finding(blocked, off.gate, **_FEATURES[off.gate])


def _operations(blocked: Blocked) -> Iterator[Finding]:
    off = blocked.reason
    if isinstance(off, FeatureOff):
        yield of_reason(blocked, off)
        return
    text = "{lost:device} for {where} {lost:is|are} refused: {reason}"
    fix = "Run a kubelet of 1.37 or later with the feature gate {gate} on there, or publish without skipNodeOperations."
    yield Finding(
        FEATURES,
        say(text, lost=len(blocked.lost), where=blocked.where, reason=off),
        blocked.by_device("skipNodeOperations"),
        Remedy(say(fix, gate=OPTIONAL_OPERATIONS)),
    )


def _binding(blocked: Blocked) -> Iterator[Finding]:
    yield finding(blocked, BINDING, binding_conditions=True)


_ALPHA = {"experimental": True, "stable": False, "any_pool_order": False}
_FEATURES = {
    PARTITIONS: {"partitionable_devices": True},
    GROUPS_GATE: {"compatibility_groups": True, "ignores_groups": False, **_ALPHA},
    OPTIONAL_OPERATIONS: {"node_operations": True, **_ALPHA},
}

FINDERS = (Finder(When.STAGE, _binding, of="binding"), Finder(When.STAGE, _operations, of="operations"))
