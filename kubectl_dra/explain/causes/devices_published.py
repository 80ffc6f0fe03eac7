"""No driver publishes such devices, or only in a form that the scheduler does not use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.nodes import OPTIONAL_OPERATIONS
from kubectl_dra.explain.causes.nodes import FEATURES
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.request_funnel import BINDING, PARTITIONS
from kubectl_dra.explain.funnel.stages import GROUPS_GATE, FeatureOff
from kubectl_dra.explain.phrase import ObjectName, Subject, nodes_named, say
from kubectl_dra.explain.scene.view import View

NO_SLICES = CauseKind(code="driver-publishes-nothing", family=Family.POOLS, look=Look.SLICES)
_DRIVER_TERM: Final = re.compile(r"""device\.driver\s*==\s*(["'])(?P<driver>[^"']+)\1""")
"""The term of a class's selector that names the driver."""


def _published(blocked: Blocked) -> Iterator[Finding]:
    drivers = blocked.view.drivers()
    if drivers:
        listed = [say("{name} ({count:device})", name=name, count=count) for name, count in sorted(drivers.items())]
        summary = say("no eligible node sees any device for {where}", where=blocked.where)
        yield Finding(NO_SLICES, summary, (Evidence("ResourceSlices", "drivers", say("{listed}", listed=listed)),))
        return
    from kubectl_dra.explain.remedies.candidates import part_off

    named = _DRIVER_TERM.search(" ".join(text or "" for text in blocked.funnel.device_class.selectors))
    off = part_off(named["driver"] if named else blocked.spec.device_class, blocked.view.nodes, drivers)
    evidence = (Evidence("ResourceSlices", "number of devices", 0), *empty_slices(blocked.view))
    yield Finding(
        NO_SLICES,
        "no driver publishes any device in this cluster",
        (*evidence, *(off.evidence if off else ())),
        Remedy(off.fix) if off else None,
    )


def of_class(blocked: Blocked) -> Finding | None:
    """The driver of the request's class publishes nothing; None if it does."""
    device_class = blocked.funnel.device_class
    drivers = blocked.view.drivers()
    for expression in device_class.selectors:
        wanted = _DRIVER_TERM.search(expression or "")
        if wanted is None or wanted["driver"] in drivers:
            continue
        driver = wanted["driver"]
        from kubectl_dra.explain.remedies.candidates import part_off

        off = part_off(driver, blocked.view.nodes, drivers)
        text = "driver {driver} publishes no devices (class {name} wants it; drivers here: {drivers: else none})"
        selector = say("{text:flat}", text=expression or "")
        return Finding(
            NO_SLICES,
            say(text, driver=driver, name=device_class.name, drivers=sorted(drivers)),
            (
                Evidence(
                    Subject("DeviceClass", ObjectName("DeviceClass", device_class.name)), "spec.selectors", selector
                ),
                Evidence("ResourceSlices", say("with spec.driver {driver}", driver=driver), 0),
                *empty_slices(blocked.view, driver),
                *_device_plugins(blocked.view, driver),
                *(off.evidence if off else ()),
            ),
            Remedy(off.fix) if off else None,
        )
    return None


def empty_slices(view: View, driver: str = "") -> Iterator[Evidence]:
    """Slices (of one driver) that publish nothing: the driver runs there and finds no device."""
    for entry in view.cycle.index.slices:
        if not entry.devices and not entry.shared_counters and driver in ("", entry.driver):
            where = say("none, for {scope}", scope=str(entry.scope))
            yield Evidence(Subject("ResourceSlice", ObjectName("ResourceSlice", entry.name)), "spec.devices", where)


def _device_plugins(view: View, driver: str) -> Iterator[Evidence]:
    """Extended resources of the driver's vendor that device plugins offer on nodes."""
    nodes: dict[str, list[str]] = {}
    for node in view.nodes:
        for resource in node.allocatable:
            domain = resource.partition("/")[0]
            if "/" in resource and driver.endswith(domain):
                nodes.setdefault(resource, []).append(node.name)
    for resource, names in nodes.items():
        value = say("{resource}: served by a device plugin, not by DRA", resource=resource)
        yield Evidence(say("nodes {names:some}", names=nodes_named(names)), "status.allocatable", value)


# The devices use a feature that is off.

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


FINDERS = (
    Finder(When.STAGE, _published, of="published"),
    Finder(When.STAGE, _binding, of="binding"),
    Finder(When.STAGE, _operations, of="operations"),
)
