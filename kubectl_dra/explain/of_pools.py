"""Causes in what is published, and where: no slices, unusable pools, nodes that are out of reach, features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kubectl_dra.allocation.extended import amount_of
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.explain.blocked import MAX_EVIDENCE, Blocked, Surroundings, by_device, most_common
from kubectl_dra.explain.causes import pools, release
from kubectl_dra.explain.diagnosis import Cause, CauseKind, Evidence
from kubectl_dra.explain.funnel.request_funnel import BINDING, PARTITIONS
from kubectl_dra.explain.remedies import way_in
from kubectl_dra.explain.remedies.vendor_part_off import DRIVER_TERM, part_off
from kubectl_dra.explain.scene.view import View
from kubectl_dra.wording import amount, are, join, some


def published(around: Surroundings, blocked: Blocked) -> Cause:
    kind = pools.NO_SLICES
    drivers = around.view.drivers()
    if not drivers:
        evidence = (Evidence("ResourceSlices", "number of devices", "0"), *empty_slices(around.view))
        named = DRIVER_TERM.search(" ".join(text or "" for text in blocked.located.funnel.device_class.selectors))
        off = part_off(named["driver"] if named else blocked.spec.device_class, around.view.nodes, drivers)
        return Cause(
            kind,
            "no driver publishes any device in this cluster",
            (*evidence, *(off.evidence if off else ())),
            off.fix if off else kind.fix,
        )
    listed = ", ".join(f"{driver} ({amount(count)})" for driver, count in sorted(drivers.items()))
    return Cause(
        kind,
        f"no eligible node sees any device for {blocked.located.where}",
        (Evidence("ResourceSlices", "drivers", listed),),
        kind.fix,
    )


def binding(around: Surroundings, blocked: Blocked) -> Cause:
    return needs_feature(around, blocked, BINDING, binding_conditions=True)


def node(around: Surroundings, blocked: Blocked) -> Cause:
    kind = pools.NOT_FOR_NODE
    reasons = Counter(blocked.reasons).most_common(4)
    if reasons and reasons[0][0].endswith(f"{PARTITIONS} is off"):
        return needs_feature(around, blocked, PARTITIONS, partitionable_devices=True)
    if all(item.slice.shared_counters for item in blocked.lost):
        return _old_form(blocked)
    first = reasons[0][0] if reasons else "no node sees them"
    away = "on nodes where the pod cannot run" if reasons else "out of reach"
    proof = around.whatif.on_other_nodes() if way_in.can_end(first) else None
    evidence: list[Evidence] = []
    for reason, count in reasons:
        nodes = sorted({node for node, why in around.view.ineligible.items() if why == reason})
        evidence.append(Evidence(f"nodes {some(nodes)}" if nodes else "devices", reason, amount(count)))
    barred = sorted({node for node, why in around.view.ineligible.items() if why == first})
    fix = way_in.fix(first, barred) if barred and (proof or not way_in.can_end(first)) else kind.fix
    return Cause(
        kind,
        f"{amount(len(blocked.lost))} for {blocked.located.where} {are(len(blocked.lost))} {away}: {first}",
        tuple(evidence),
        fix,
        str(proof) if proof else "",
    )


def _old_form(blocked: Blocked) -> Cause:
    kind = release.OLD_SLICES
    names = sorted({item.slice.name for item in blocked.lost})
    return Cause(
        kind,
        f"{amount(len(blocked.lost))} for {blocked.located.where} {are(len(blocked.lost))} passed over: "
        "their slices hold counters as well",
        tuple(Evidence(f"ResourceSlice {name}", "spec", "devices and sharedCounters") for name in names[:MAX_EVIDENCE]),
        kind.fix,
    )


def pool(around: Surroundings, blocked: Blocked) -> Cause:
    seen = sorted({item.slice.pool for item in blocked.lost})
    known = [found for pool_id in seen if (found := around.view.pool_seen.get(pool_id))]
    evidence = [
        Evidence(
            f"pool {entry.id}",
            f"slices of generation {entry.generation}",
            f"{entry.found} exist, spec.pool.resourceSliceCount says {entry.expected}",
        )
        for entry in known
        if entry.incomplete
    ]
    evidence += [Evidence(f"pool {entry.id}", "problem", entry.invalid) for entry in known if entry.invalid]
    evidence.extend(line for entry in known if (line := _disagreement(entry)))
    kind: CauseKind = pools.OBSOLETE
    if any(entry.incomplete for entry in known):
        kind = pools.INCOMPLETE
    elif known:
        kind = pools.INVALID
    reason = most_common(blocked.reasons)
    return Cause(
        kind,
        f"{amount(len(blocked.lost))} on {some(blocked.nodes) or 'no node'} cannot be used for "
        f"{blocked.located.where}: {reason}",
        tuple(evidence[:MAX_EVIDENCE]),
        kind.fix,
    )


def needs_feature(around: Surroundings, blocked: Blocked, gate: str, **features: bool) -> Cause:
    kind = pools.NEEDS_FEATURE
    proof = around.whatif.with_features(replace(around.view.cycle.features, **features))
    count = len(blocked.lost)
    return Cause(
        kind,
        f"{amount(count)} for {blocked.located.where} {are(count)} passed over: the feature {gate} is off",
        by_device(blocked, "device"),
        f"Turn the feature gate {gate} on in kube-apiserver and kube-scheduler.",
        str(proof) if proof else "",
    )


def empty_slices(view: View, driver: str = "") -> Iterator[Evidence]:
    """Slices (of one driver) that publish nothing: the driver runs there, and finds no device."""
    for entry in view.cycle.index.slices:
        if not entry.devices and not entry.shared_counters and driver in ("", entry.driver):
            yield Evidence(f"ResourceSlice {entry.name}", "spec.devices", f"none, for {entry.scope}")


def device_plugins(view: View, driver: str) -> Iterator[Evidence]:
    """Extended resources of the driver's vendor that nodes offer by a device plugin."""
    nodes: dict[str, list[str]] = {}
    for node in view.nodes:
        for resource in node.allocatable:
            domain = resource.partition("/")[0]
            if "/" in resource and driver.endswith(domain):
                nodes.setdefault(resource, []).append(node.name)
    for resource, names in nodes.items():
        yield Evidence(
            f"nodes {some(names)}", "status.allocatable", f"{resource}: served by a device plugin, not by DRA"
        )


def handed_out_twice(view: View, names: Sequence[str]) -> Iterator[str]:
    """Notes about nodes whose devices a device plugin and a driver both offer, as far as the names tell."""
    for name in names:
        drivers = sorted({item.id.driver for item in view.on_node(name)})
        for resource, value in view.node_by_name[name].allocatable.items():
            domain, slash, _ = resource.partition("/")
            for driver in drivers:
                if slash and driver.endswith(domain) and amount_of(value):
                    yield (
                        f"{name} offers {resource} by a device plugin and devices of {driver} by DRA: the same device "
                        "may be handed out twice"
                    )


def _disagreement(pool: Pool) -> Evidence | None:
    """What the slices of a pool announce, where they do not announce the same number of slices."""
    counts = {entry.name: entry.slice_count for entry in (*pool.slices, *pool.other_slices)}
    if len(set(counts.values())) < 2:
        return None
    said = join(f"{name}: {count}" for name, count in sorted(counts.items()))
    return Evidence(f"pool {pool.id}", "slices disagree on spec.pool.resourceSliceCount", said)
