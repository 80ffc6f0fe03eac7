"""No driver publishes such devices, or only where the pod cannot run, or as the scheduler does not use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import OPTIONAL_OPERATIONS, Node
from kubectl_dra.cluster.workload_pods import made_by
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.node_filters import FEATURES, kind_on
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import UnderWay, all_under_way
from kubectl_dra.explain.devices.device_state import Unpublished, unpublished
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.funnel.device_view import DeviceView
from kubectl_dra.explain.funnel.request_funnel import BINDING, PARTITIONS
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.funnel.stages import GROUPS_GATE, FeatureOff, counted
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, by_name, named, nodes_named, say, subject
from kubectl_dra.explain.remedies import node_rules
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME
from kubectl_dra.text import nearest

NO_SLICES = CauseKind(code="driver-publishes-nothing", family=Family.POOLS, look=Look.DAEMON_SETS)


def _published(blocked: Blocked) -> Iterator[Finding]:
    drivers = blocked.view.drivers()
    if drivers:
        listed = [say("{name} ({count:device})", name=name, count=count) for name, count in sorted(drivers.items())]
        summary = say("no eligible node sees any device for {where}", where=blocked.where)
        yield Finding(NO_SLICES, summary, (Evidence("ResourceSlices", "drivers", say("{listed}", listed=listed)),))
        return
    from kubectl_dra.drivers.drivers_on_nodes import named_in
    from kubectl_dra.explain.driver_repair import turn_on

    driver = next(named_in(blocked.funnel.device_class.selectors), "")
    off = turn_on(driver or blocked.spec.device_class, blocked.view.nodes, drivers)
    evidence = (Evidence("ResourceSlices", "number of devices", 0), *empty_slices(blocked.view))
    if lost := _was_there(blocked, driver):
        yield _away(lost, evidence)
        return
    if (booting := _booting(blocked)) is not None:
        text = "Wait: the {count:node is|nodes are} up since {seconds:second}, and a driver starts after its node."
        fix = say(text, count=len(blocked.view.nodes), seconds=booting.seconds)
        yield Finding(NO_SLICES, "no driver publishes any device yet", evidence, Remedy(fix), under_way=booting)
        return
    facts = (*evidence, *(off.evidence if off else ()))
    remedy = Remedy(off.fix) if off else None
    yield Finding(NO_SLICES, "no driver publishes any device in this cluster", facts, remedy)


def _booting(blocked: Blocked) -> UnderWay | None:
    """The wait for drivers where every node has just been made, so that none can have published; else None."""
    created = (("the driver", node.metadata.creation_timestamp) for node in blocked.view.nodes)
    return all_under_way(created, blocked.analysis.snapshot)


def _was_there(blocked: Blocked, driver: str) -> list[Unpublished]:
    """Devices of the driver (of any, where none is named) that claims hold though it publishes nothing there."""
    groups = unpublished(blocked.analysis.snapshot)
    return [group for group in groups if group.silent and driver in ("", group.driver)]


def _away(lost: Sequence[Unpublished], evidence: Sequence[Evidence]) -> Finding:
    """The driver was there, for claims hold devices of it, and publishes nothing now."""
    driver = lost[0].driver
    nodes = [ObjectName("Node", group.node) for group in lost if group.node]
    words = {"driver": driver, "nodes": nodes, "count": sum(len(group.devices) for group in lost)}
    text = "driver {driver} publishes nothing any more, though {count:device} of it {count:is|are} held"
    change = (
        "Start driver {driver}, or look at its pods and their logs: its ResourceSlices come back with it. A kubelet "
        "deletes them 30 s after a driver is gone, and for up to a minute when it starts itself."
    )
    if nodes:
        text += " on {nodes:some}"
        change = change.replace("{driver},", "{driver} on {nodes:some},", 1)
    held = [
        Evidence(subject("ResourceClaim", claim), "status.allocation", say("{devices:some 3}", devices=claim.devices))
        for group in lost
        for claim in group.claims[:3]
        if claim.allocation is not None
    ]
    return Finding(NO_SLICES, say(text, **words), (*evidence, *held[:5]), Remedy(say(change, **words)))


def of_class(blocked: Blocked) -> Finding | None:
    """The driver of the request's class publishes nothing; None if it does."""
    from kubectl_dra.drivers.drivers_on_nodes import named_in

    device_class = blocked.funnel.device_class
    drivers = blocked.view.drivers()
    for expression in device_class.selectors:
        driver = next(named_in((expression,)), "")
        if not driver or driver in drivers:
            continue
        from kubectl_dra.explain.driver_repair import turn_on

        off = turn_on(driver, blocked.view.nodes, drivers)
        if lost := _was_there(blocked, driver):
            return _away(lost, (Evidence("ResourceSlices", say("with spec.driver {driver}", driver=driver), 0),))
        text = "driver {driver} publishes no devices (class {name} wants it; drivers here: {drivers: else none})"
        selector = say("{text:flat}", text=expression or "")
        facts = (
            Evidence(by_name("DeviceClass", device_class.name), "spec.selectors", selector),
            Evidence("ResourceSlices", say("with spec.driver {driver}", driver=driver), 0),
            *empty_slices(blocked.view, driver),
            *_device_plugins(blocked.view, driver),
            *(off.evidence if off else ()),
        )
        summary = say(text, driver=driver, name=device_class.name, drivers=sorted(drivers))
        return Finding(NO_SLICES, summary, facts, Remedy(off.fix) if off else _installing(driver, blocked))
    return None


def _installing(driver: str, blocked: Blocked) -> Remedy | None:
    """Where to install a driver that runs nowhere; None where it may run."""
    from kubectl_dra.drivers.drivers_on_nodes import joined
    from kubectl_dra.explain.driver_repair import repair

    rows = joined(blocked.analysis.snapshot).rows
    row = next((row for row in rows if row.driver == driver and row.wanted_by), None)
    return Remedy(repair(row)) if row is not None else None


def empty_slices(view: DeviceView, driver: str = "") -> Iterator[Evidence]:
    """Slices (of one driver) that publish nothing: the driver runs there and finds no device."""
    for slice_ in view.cycle.index.slices:
        if not slice_.devices and not slice_.shared_counters and driver in ("", slice_.driver):
            where = say("none, for {scope}", scope=str(slice_.scope))
            yield Evidence(by_name("ResourceSlice", slice_.name), "spec.devices", where)


def _device_plugins(view: DeviceView, driver: str) -> Iterator[Evidence]:
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


def needs_feature(blocked: Blocked, gate: str) -> Finding:
    """Devices are skipped because a gate is off."""
    proof = blocked.what_if.with_features(replace(blocked.view.cycle.features, **_FEATURES[gate])).proof()
    text = "{lost:device} for {where} {lost:is|are} skipped: the feature {gate} is off"
    change = say("Turn the feature gate {gate} on in kube-apiserver and kube-scheduler.", gate=gate)
    return Finding(NEEDS_FEATURE, blocked.say(text, gate=gate), blocked.by_device("device"), Remedy(change, proof))


def _operations(blocked: Blocked) -> Iterator[Finding]:
    off = blocked.reason
    if isinstance(off, FeatureOff):
        yield needs_feature(blocked, off.gate)
        return
    text = "{lost:device} for {where} {lost:is|are} refused: {reason}"
    fix = "Run a kubelet of 1.37 or later there with the feature gate {gate}, or publish without skipNodeOperations."
    remedy = Remedy(say(fix, gate=OPTIONAL_OPERATIONS))
    yield Finding(FEATURES, blocked.say(text, reason=off), blocked.by_device("skipNodeOperations"), remedy)


_ALPHA = {"experimental": True, "stable": False, "any_pool_order": False}
_FEATURES = {
    BINDING: {"binding_conditions": True},
    PARTITIONS: {"partitionable_devices": True},
    GROUPS_GATE: {"compatibility_groups": True, "ignores_groups": False, **_ALPHA},
    OPTIONAL_OPERATIONS: {"node_operations": True, **_ALPHA},
}


MAX_REASONS = 4
MAX_SAID = 3

NOT_FOR_NODE = CauseKind(code="no-devices-on-eligible-nodes", family=Family.POOLS, look=Look.NODES)
OLD_SLICES = CauseKind(code="slice-form-outdated", family=Family.RELEASE, fixed_at=Look.VERSION)


def _node(blocked: Blocked) -> Iterator[Finding]:
    reasons = counted(blocked.reasons)[:MAX_REASONS]
    if reasons and isinstance(off := reasons[0][0], FeatureOff):
        yield needs_feature(blocked, off.gate)
    elif all(item.slice.shared_counters for item in blocked.lost):
        yield _old_form(blocked)
    else:
        yield _none_on_its_node(blocked) or _out_of_reach(blocked)


def _none_on_its_node(blocked: Blocked) -> Finding | None:
    """That a pod is for a single node, as one of a DaemonSet, for which no device is published; None of others."""
    from kubectl_dra.drivers.daemons import node_of
    from kubectl_dra.explain.remedies.claim_edits import place_to_edit

    pod = blocked.analysis.pod
    name = node_of(pod) if pod is not None else ""
    if pod is None or not name or blocked.left or [node.name for node in blocked.view.nodes] != [name]:
        return None
    nodes = blocked.analysis.snapshot.nodes
    homes = sorted({item.slice.scope.node_name for item in blocked.lost} & nodes.keys())
    if not homes:
        return None
    words = {"node": ObjectName("Node", name), "homes": nodes_named(homes), "where": blocked.where}
    text = "the pod is for node {node} only, for which no device is published; {lost:device} for {where} {lost:is|are} "
    summary = say(text + "on {homes:some 2}", lost=len(blocked.lost), **words)
    evidence = (
        Evidence(say("node {node}", **words), "published devices", 0),
        Evidence(say("{homes:some}", **words), "published devices", len(blocked.lost)),
    )
    maker = made_by(pod)
    if maker is None or maker.kind != "DaemonSet":
        fix = say("Let the pod name a node that has such devices: {place}.", place=place_to_edit(pod, "affinity"))
        return Finding(NOT_FOR_NODE, summary, evidence, Remedy(fix))
    label = next(_only_on(homes, nodes), None)
    text = "Let it make no pod there: label the nodes that have such devices, and write the label into {place}. "
    if label is not None:
        text = "Let it make no pod there: add {key}: {value} to {place}, which only nodes with such devices have. "
    key, value = label or ("", "")
    place = place_to_edit(pod, "nodeSelector")
    look = NextStep(Look.LABELS_OF_NODES)
    fix = say(text + "Or get the devices of {node} published.", key=key, value=value, place=place, **words)
    return Finding(NOT_FOR_NODE, summary, evidence, Remedy(fix, no_pod_there=True), next=look)


def _only_on(homes: Sequence[str], nodes: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """The labels that all of some nodes have, and no other one."""
    common = set.intersection(*(set(nodes[name].labels.items()) for name in homes))
    others = {label for name, node in nodes.items() if name not in homes for label in node.labels.items()}
    yield from sorted((key, value) for key, value in common - others if key != HOSTNAME)


def _out_of_reach(blocked: Blocked) -> Finding:
    """The devices by the reason that keeps the pod off their nodes; the first reason that can be removed counts."""
    reasons = counted(blocked.reasons)
    barred = {
        reason: sorted(node for node, why in blocked.view.ineligible.items() if why == reason) for reason, _ in reasons
    }
    evidence: list[Evidence] = []
    for reason, count in reasons[:MAX_REASONS]:
        text = "node {nodes}" if len(barred[reason]) == 1 else "nodes {nodes:some}"
        about = say(text, nodes=nodes_named(barred[reason])) if barred[reason] else "devices"
        evidence.append(Evidence(about, reason, say("{count:device}", count=count)))
    free = not any(blocked.funnel.holders_of(item.id) for item in blocked.lost)
    remedy = node_rules.best(((reason, barred[reason]) for reason, _ in reasons[:MAX_REASONS]), blocked.what_if)
    first = reasons[0][0] if reasons else say("no node sees them")
    nodes = barred.get(first, ())
    kind = kind_on(blocked.analysis.pod_outcome, nodes[0]) if nodes else None
    space = blocked.analysis.question.namespace
    look = NextStep(kind.look, namespace=space) if kind is not None else node_rules.look_at(first, nodes)
    text = "{lost:free device}" if free else "{lost:device}"
    text += " for {where} {lost:is|are} " + ("on nodes where the pod cannot run" if reasons else "out of reach")
    summary = blocked.say(text + ": {reasons}", reasons=_each(reasons) if reasons else first)
    return Finding(NOT_FOR_NODE, summary, tuple(evidence), remedy or Remedy((kind or NOT_FOR_NODE).fix), next=look)


def _each(reasons: Sequence[tuple[Words, int]]) -> Words:
    """The reasons, each with its number of devices; a single one without, because it covers all."""
    if len(reasons) == 1:
        return reasons[0][0]
    said = [say("{reason} ({count:device})", reason=reason, count=count) for reason, count in reasons[:MAX_SAID]]
    more = len(reasons) - len(said)
    return say("{said} and {more:more reason}" if more else "{said}", said=said, more=more)


def _old_form(blocked: Blocked) -> Finding:
    """The driver publishes counters and devices in one slice, which only 1.34 can read."""
    names = sorted({item.slice.name for item in blocked.lost})
    text = "{lost:device} for {where} {lost:is|are} skipped: their slices hold counters as well"
    facts = [Evidence(by_name("ResourceSlice", name), "spec", "devices and sharedCounters") for name in names]
    return Finding(OLD_SLICES, blocked.say(text), tuple(facts[:MAX_EVIDENCE]))


# A DeviceClass that a request names and that does not exist.

CLASS_MISSING = CauseKind(code="class-missing", family=Family.REQUEST, look=Look.CLASSES)


def _class_missing(analysis: Analysis) -> Iterator[Finding]:
    if analysis.snapshot.missing("DeviceClass"):
        return
    for claim in analysis.claims:
        for request in claim.requests:
            for spec in request.alternatives():
                if spec.device_class and spec.device_class not in analysis.view.cycle.classes:
                    yield _class_not_there(analysis, claim, request.result_name(spec), spec.device_class)


def _class_not_there(analysis: Analysis, claim: ResourceClaim, name: str, wanted: str) -> Finding:
    known = list(analysis.view.cycle.classes)
    near = nearest(wanted, known)
    text = "; did you mean {near:or}?" if near else "; classes here: {known:some 6 else none}"
    hint = say(text, near=near, known=sorted(known))
    field = say('request "{name}" deviceClassName', name=name)
    evidence: tuple[Evidence, ...] = (Evidence(Subject("claim", named("ResourceClaim", claim)), field, wanted),)
    from kubectl_dra.explain.driver_repair import turn_on

    off = turn_on(wanted, analysis.snapshot.nodes.values(), analysis.view.drivers())
    remedy = None
    if near:
        remedy = Remedy(say(_correct(analysis, claim), near=near, first=near[0], wanted=wanted))
    elif off is not None:
        evidence = (*off.evidence, *evidence)
        remedy = Remedy(say("{fix} The chart brings the class.", fix=off.fix))
        if off.nodes:
            hint = say(", although nodes {nodes:some} have GPUs", nodes=nodes_named(off.nodes))
    summary = say("DeviceClass {wanted} does not exist{hint}", wanted=wanted, hint=hint)
    return Finding(CLASS_MISSING, summary, evidence, remedy, claim=claim.key, request=name)


def _correct(analysis: Analysis, claim: ResourceClaim) -> str:
    """Where to write another class: claims and templates cannot be changed."""
    from_template = any(claim_entry.template and claim_entry.claim is claim for claim_entry in analysis.question.claims)
    where = "a new template, and name that template in the pod" if from_template else "a new claim"
    if not analysis.question.exists:
        where = "the manifest"
    return f"Write deviceClassName: {{first}} in {where}, or install the driver that brings {{wanted}}."


FINDERS = (
    Finder(When.STAGE, _published, of=StageName.PUBLISHED),
    Finder(When.STAGE, lambda blocked: (needs_feature(blocked, BINDING),), of=StageName.BINDING),
    Finder(When.STAGE, _operations, of=StageName.OPERATIONS),
    Finder(When.STAGE, _node, of=StageName.NODE),
    Finder(When.SCENE, _class_missing, 50),
)
