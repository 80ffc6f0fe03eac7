"""Whether devices of a class, or one device, can be had now, who has them, and what keeps them from being given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from json import dumps as quoted
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.capacity import NOTHING, CapacityShortage, shortage
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.taints import BLOCKING_EFFECTS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.drivers.drivers_on_nodes import joined, named_in
from kubectl_dra.drivers.health import NodeDriver
from kubectl_dra.drivers.refused_claims import PartOfNode, any_of_whole_nodes, parts_of_node, published_on
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.causes.known_defects import upgrade_fix
from kubectl_dra.explain.causes.selectors import not_compiling
from kubectl_dra.explain.devices.alike_devices import CapacityRoom
from kubectl_dra.explain.devices.device_state import DeviceState, identifying
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, Remedy
from kubectl_dra.explain.driver_refusals import judged_by_start, mendings
from kubectl_dra.explain.driver_repair import MAX_COMMANDS, ending_taints, remedy, uncordoning
from kubectl_dra.explain.pending_alike import not_running_with
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import Stake, Unread, unread_of, unread_of_share, unread_of_start
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.usage.choices import UNUSED, ClaimState
from kubectl_dra.usage.claim_use import ClaimUse, claim_uses
from kubectl_dra.usage.largest_request import LargestRequest, RequestTrials, largest_request, room_left, whole_refused


class ClassNow(Struct, frozen=True):
    """What a request for a class could get now.

    ``largest`` is None where devices can be shared: how much is left then depends on what is asked for. ``room`` is
    what is left of their capacities, the scarcest first; ``unnamed`` is what a request that names no amount lacks on
    the device with most of that, where no device serves it. ``idle`` are the unused claims that hold devices of it,
    ``broken`` the drivers that the class names and that are not well.
    ``unsure`` is what was not read, and tells whether a pod starts with what it gets.
    ``fix`` makes devices of it to be had, ``next`` shows more; None where nothing is known to.
    ``refused``: the driver refuses the largest request, which is for a part of a node. ``whole``: it gives all devices
    of a node or none, and the largest request is for all of them. ``cordoned`` are the nodes that take no new pods
    among those with free devices. ``node_taints`` are on those that have some, where each of them has one that keeps
    pods away. ``flaw``: a selector of the class does not compile.
    """

    name: str
    verdict: Verdict
    inventory: Inventory
    largest: LargestRequest | None
    room: tuple[CapacityRoom, ...] = ()
    unnamed: CapacityShortage | None = None
    idle: tuple[ClaimUse, ...] = ()
    broken: tuple[NodeDriver, ...] = ()
    refused: PartOfNode | None = None
    whole: bool = False
    cordoned: tuple[str, ...] = ()
    unsure: tuple[Unread, ...] = ()
    node_taints: tuple[str, ...] = ()
    flaw: Finding | None = None
    fix: Remedy | None = None
    next: NextStep | None = None

    @property
    def exit_code(self) -> int:
        """That of the verdict."""
        return self.verdict.exit_code

    @property
    def free(self) -> int:
        """The number of free devices."""
        return self.inventory.states().get(DeviceState.FREE, 0)

    @property
    def unserved(self) -> tuple[DeviceRow, ...]:
        """The devices that the scheduler gives, and that no pod can work with."""
        return tuple(row for row in self.inventory.rows if row.unserved)


_SELECTED: Final = "whether a class selects it is unknown"


class DeviceNow(Struct, frozen=True):
    """What a request could do with a device now; ``uses`` are the claims that hold it.

    ``cordoned`` is its node where that takes no new pods, ``selected``: a class selects it, or may.
    ``whole`` is how many devices its node has, where its driver gives a claim all of them or none. ``unsure`` is what
    was not read, and tells whether a request can have it and its pod starts. ``blockers`` are devices that use up its
    counters, by name, with the claims that hold them. ``stuck`` is the answer about a claim that holds it where each of
    these is stuck or held for nobody. ``largest`` is what no plain request gets because of defects of the scheduler's
    allocator, but one with this ``selector`` does. ``fix`` makes it to be had, ``next`` shows more; None where nothing
    is known to.
    """

    verdict: Verdict
    row: DeviceRow
    uses: tuple[ClaimUse, ...] = ()
    cordoned: str = ""
    selected: bool = True
    whole: int = 0
    unsure: tuple[Words, ...] = ()
    blockers: tuple[tuple[str, ClaimUse], ...] = ()
    stuck: Diagnosis | None = None
    largest: LargestRequest | None = None
    selector: str = ""
    fix: Remedy | None = None
    next: NextStep | None = None

    @property
    def exit_code(self) -> int:
        """0 if a request can get some of it, or a claim holds it for a pod that needs it; 1 if not, 3 if unknown."""
        return 1 if self.stuck is not None and self.verdict is Verdict.ALLOCATED else self.verdict.exit_code


def class_now(name: str, inventory: Inventory, snapshot: Snapshot, scheduler: Scheduler) -> ClassNow:
    """What a request for a class could get; ``inventory`` has its devices and no others."""
    rows, states = inventory.rows, inventory.states()
    trials = RequestTrials(snapshot, scheduler)
    largest = largest_request(name, rows, trials) if rows else LargestRequest(0)
    room = room_left(name, rows, trials) if largest is None else ()
    open_ = [row for row in rows if row.has_room and any(node in trials.nodes for node in row.nodes)]
    unnamed = _unnamed(open_, room, scheduler)
    verdict = Verdict.UNSCHEDULABLE
    if largest.count if largest is not None else open_:
        verdict = Verdict.SCHEDULABLE
    elif DeviceState.UNKNOWN in states or inventory.unread or (largest is not None and largest.at_least):
        verdict = Verdict.UNDETERMINED
    held = {id(claim) for row in rows for claim in row.holders}
    idle = (use for use in _uses(snapshot) if use.state in UNUSED and id(use.claim) in held)
    drivers = {row.id.driver for row in rows} | set(named_in(snapshot.classes[name].selectors))
    nodes = {row.slice.scope.node_name for row in rows}
    # What a driver publishes on a node shows that the class asks for something else.
    broken = tuple(
        row
        for row in joined(snapshot).rows
        if row.driver in drivers and row.ails and (row.node in nodes if rows else not row.devices)
    )
    refused = _refused(rows, largest, snapshot) if largest is not None else None
    whole = refused is None and any_of_whole_nodes({row.id.driver for row in rows if row.state is DeviceState.FREE})
    verdict = verdict if refused is None else Verdict.UNSCHEDULABLE
    unsure = unread_of_start(snapshot) if verdict is Verdict.SCHEDULABLE else ()
    if verdict is Verdict.SCHEDULABLE and largest is None:
        unsure = (*unread_of_share(snapshot), *unsure)
    verdict = Verdict.UNDETERMINED if unsure else verdict
    given = (node for row in rows if row.has_room for node in row.nodes)
    cordoned = tuple(dict.fromkeys(node for node in given if node in snapshot.nodes and node not in trials.nodes))
    now = ClassNow(
        name, verdict, inventory, largest, room, unnamed, tuple(idle), broken, refused, whole, cordoned, unsure=unsure
    )
    flaw = _flaw(name, snapshot, scheduler) if not rows else None
    now = replace(now, node_taints=tuple(_node_taints(open_, snapshot)), flaw=flaw)
    return replace(now, fix=_fix_of_class(now, snapshot, scheduler), next=_next_of_class(now, snapshot))


def _node_taints(rows: Iterable[DeviceRow], snapshot: Snapshot) -> Sequence[str]:
    """The taints that keep pods from the nodes of these devices; none where some node has none."""
    names = dict.fromkeys(node for row in rows for node in row.nodes if node in snapshot.nodes)
    taints = [
        [str(taint) for taint in snapshot.nodes[name].spec.taints if taint.effect in BLOCKING_EFFECTS] for name in names
    ]
    return list(dict.fromkeys(taint for own in taints for taint in own)) if all(taints) else ()


def _flaw(name: str, snapshot: Snapshot, scheduler: Scheduler) -> Finding | None:
    """Finding that a selector of a class does not compile; None if all do."""
    selectors = scheduler.cycle(snapshot).selectors
    owner = Subject("DeviceClass", ObjectName("DeviceClass", name))
    for index, expression in enumerate(snapshot.classes[name].selectors):
        if expression is not None:
            field = say("selectors[{index}]", index=index)
            found = not_compiling(selectors.program(expression), field, owner, expression)
            if found is not None:
                return found
    return None


def _fix_of_class(now: ClassNow, snapshot: Snapshot, scheduler: Scheduler) -> Remedy | None:
    """Changes that make devices of a class available: of what keeps all of them, else of unused claims."""
    if now.flaw is not None:
        return now.flaw.remedy or Remedy(now.flaw.kind.fix)
    if now.largest is not None and now.largest.defects:
        return _past_defects(
            now.largest, _helping(now.inventory.rows, (now.name,), RequestTrials(snapshot, scheduler))[1]
        )
    if now.verdict is Verdict.UNSCHEDULABLE and now.cordoned:
        return uncordoning(now.cordoned[0])
    if unused := [use for use in now.idle if use.state is ClaimState.UNUSED]:
        return _deleting(unused)
    if now.verdict is not Verdict.UNSCHEDULABLE or now.refused is not None:
        return None
    if now.broken and not now.free:
        return _repairing(now.broken[0], snapshot)
    return next((fix for row in now.inventory.rows if (fix := _mended(row, snapshot)) is not None), None)


def _next_of_class(now: ClassNow, snapshot: Snapshot) -> NextStep | None:
    """The driver at fault, or who has the devices; where the class selects nothing, what its driver publishes."""
    if now.verdict is not Verdict.UNSCHEDULABLE:
        return None
    if now.broken and not now.free:
        return NextStep(Look.EXPLAIN_DRIVER, now.broken[0].driver, kind=now.broken[0].node)
    if now.flaw is not None:
        return NextStep(Look.AS_WRITTEN, now.name, kind="deviceclass")
    if not now.inventory.rows:
        published = {row.driver for row in joined(snapshot).rows}
        named = (name for name in named_in(snapshot.classes[now.name].selectors) if name in published)
        return next((NextStep(Look.EXPLAIN_DRIVER, name) for name in named), None)
    return next((step for row in now.inventory.rows if (step := _look(row, ())) is not None), None)


def _deleting(unused: Sequence[ClaimUse]) -> Remedy:
    """Ends claims that no pod uses."""
    text = (
        "Delete unused {count:claim|claims} {names:some 3}, if no pod is going to use {count:it|them}: that frees "
        "{held:device}."
    )
    held = len({result.device for use in unused for result in use.results})
    words = say(text, count=len(unused), names=[use.claim.key for use in unused], held=held)
    owned = (use.claim.metadata for use in unused[:MAX_COMMANDS])
    return Remedy(words, commands=tuple(deleting("resourceclaim", meta.name, meta.namespace) for meta in owned))


def _repairing(driver: NodeDriver, snapshot: Snapshot) -> Remedy | None:
    """What mends a driver that is broken; None where only the answer about the pod that waits for it says that."""
    return remedy(driver, mendings((driver,), snapshot))


def _mended(row: DeviceRow, snapshot: Snapshot) -> Remedy | None:
    """What ends what keeps a device from requests: its driver on its node, where that is broken, or its taints."""
    if row.state in (DeviceState.UNUSABLE, DeviceState.UNSERVED):
        driver = joined(snapshot).of(row.id.driver, row.slice.scope.node_name)
        return _repairing(driver, snapshot) if driver is not None and driver.state.broken else None
    if row.state is not DeviceState.TAINTED:
        return None
    rules = sorted({taint.rule for taint in row.taints if taint.rule})
    return ending_taints(rules, {(row.id.driver, taint.key) for taint in row.taints})


def _look(row: DeviceRow, blockers: Sequence[tuple[str, ClaimUse]]) -> NextStep | None:
    """The claim that holds a device or what blocks it, who has tainted it, or its driver, says more."""
    holders = [*row.holders, *(use.claim for _, use in blockers)]
    if holders:
        return NextStep(Look.CLAIM_HOLDER, holders[0].metadata.name, holders[0].metadata.namespace)
    if row.state is DeviceState.TAINTED and any(taint.rule for taint in row.taints):
        return NextStep(Look.TAINTS)
    if row.state in (DeviceState.TAINTED, DeviceState.UNUSABLE, DeviceState.UNSERVED):
        return NextStep(Look.EXPLAIN_DRIVER, row.id.driver, kind=row.slice.scope.node_name)
    return None


def _unnamed(rows: Sequence[DeviceRow], room: Sequence[CapacityRoom], scheduler: Scheduler) -> CapacityShortage | None:
    """What a request that names no amount lacks on the device with most left, if no device serves it."""
    fractional = scheduler.features.fractional_capacity
    shorts = {row.id: shortage(row.device, None, row.consumed, NOTHING, fractional=fractional) for row in rows}
    if not room or room[0].on not in shorts or not all(shorts.values()):
        return None
    return shorts[room[0].on]


def _refused(rows: Sequence[DeviceRow], largest: LargestRequest, snapshot: Snapshot) -> PartOfNode | None:
    """Whether the driver of what is free on the node of the largest request gives no part of a node."""
    free = (("", row.id) for row in rows if row.state is DeviceState.FREE and row.nodes == (largest.node,))
    return next(parts_of_node(free, largest.node, snapshot.slices), None)


def device_now(row: DeviceRow, snapshot: Snapshot, settings: Settings) -> DeviceNow:
    """What a request could do with a device."""
    held = {id(claim) for claim in row.holders}
    uses = tuple(use for use in _uses(snapshot) if id(use.claim) in held) if held else ()
    only = snapshot.nodes.get(row.nodes[0]) if len(row.nodes) == 1 else None
    cordoned = only.name if only is not None and only.unschedulable else ""
    selected = bool(row.classes) or snapshot.is_gap("DeviceClass")
    node = row.slice.scope.node_name
    whole = published_on(node, row.id.driver, snapshot.slices) if any_of_whole_nodes((row.id.driver,)) else 0
    verdict = _verdict(row, cordoned, selected)
    unsure: tuple[Words, ...] = ()
    if verdict is Verdict.SCHEDULABLE:
        selecting = () if row.classes else unread_of((Stake("DeviceClass", "", _SELECTED),), snapshot)
        taking = unread_of_share(snapshot) if row.state is DeviceState.SHARED else ()
        unsure = (*selecting, *taking, *unread_of_start(snapshot))
    verdict = Verdict.UNDETERMINED if unsure else verdict
    blockers = tuple(_blockers(row, snapshot)) if row.state is DeviceState.BLOCKED else ()
    now = DeviceNow(verdict, row, uses, cordoned, selected, whole, unsure, blockers, next=_look(row, blockers))
    if verdict is Verdict.SCHEDULABLE and row.state is DeviceState.FREE:
        return _despite_defects(now, snapshot, settings.scheduler)
    if verdict is not Verdict.ALLOCATED:
        keeps = bool(cordoned) and selected and row.has_room
        return replace(now, fix=uncordoning(cordoned) if keeps else _mended(row, snapshot))
    answers = [_about_holder(claim, snapshot, settings) for claim in row.holders]
    if answers and all(answer.exit_code == 1 for answer in answers):
        finding = answers[0].findings[0]
        return replace(now, stuck=answers[0], fix=finding.remedy or Remedy(finding.kind.fix))
    if unclear := tuple(why for answer in answers for why in answer.unclear):
        return replace(now, verdict=Verdict.UNDETERMINED, unsure=unclear)
    return now


def _about_holder(claim: ResourceClaim, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The answer about a claim that holds a device, as ``explain`` of the claim gives it."""
    pod = not_running_with(claim, snapshot)
    question = about_pod(pod, snapshot, exists=True) if pod is not None else about_claim(claim)
    return judged_by_start(diagnose(question, snapshot, replace(settings, with_ways=False)))


def _despite_defects(now: DeviceNow, snapshot: Snapshot, scheduler: Scheduler) -> DeviceNow:
    """Of a free device that defects of the scheduler keep from plain requests: whether a selector helps."""
    row, trials = now.row, RequestTrials(snapshot, scheduler)
    found = [largest_request(name, (row,), trials) for name in row.classes]
    largest = next((request for request in found if request is not None and request.defects), None)
    if largest is None and found and all(whole := [whole_refused(name, row, trials) for name in row.classes]):
        refused = LargestRequest(0).refused(whole[0], scheduler)
        step = NextStep(Look.EXPLAIN_CLASS, row.classes[0])
        fix = Remedy(upgrade_fix(whole[0]))
        return replace(now, verdict=Verdict.UNSCHEDULABLE, largest=refused, fix=fix, next=step)
    if largest is None or not all(request is not None and request.defects for request in found):
        return now
    name, selector = _helping((row,), row.classes, trials)
    verdict = now.verdict if selector else Verdict.UNSCHEDULABLE
    fix, step = _past_defects(largest, selector), NextStep(Look.EXPLAIN_CLASS, name)
    return replace(now, verdict=verdict, largest=largest, selector=selector, fix=fix, next=step)


def _past_defects(largest: LargestRequest, selector: str) -> Remedy:
    """What gets devices that defects of the scheduler keep from plain requests."""
    upgrade = upgrade_fix(largest.defects)
    if not selector:
        return Remedy(upgrade)
    return Remedy(
        say("Ask for one with selector {selector}, which gets it now. {upgrade}", selector=selector, upgrade=upgrade)
    )


def _helping(rows: Iterable[DeviceRow], names: Sequence[str], trials: RequestTrials) -> tuple[str, str]:
    """A class and a selector with which a request gets a free device of these; an empty selector for none."""
    tried: set[tuple[str, str, str]] = set()
    for row in rows:
        for name in names if row.state is DeviceState.FREE else ():
            for by in _selectors(row):
                asked = {(node, name, by) for node in row.nodes if node in trials.nodes} - tried
                if any(trials.on(node, name, 1, selector=by).certain for node, _, _ in asked):
                    return name, by
                tried |= asked
    return names[0], ""


def _selectors(row: DeviceRow) -> Iterator[str]:
    """Selectors that admit a device by one of the attributes that say what it is."""
    for name in identifying(row.device.attributes):
        domain, _, short = name.rpartition("/")
        value = row.device.attributes[name].get("string")
        if isinstance(value, str):
            yield f"device.attributes[{quoted(domain or row.id.driver)}].{short} == {quoted(value)}"


def _blockers(row: DeviceRow, snapshot: Snapshot) -> Iterator[tuple[str, ClaimUse]]:
    """The devices that draw on counters which a device needs, and the claims that hold them."""
    needed = {consumption.counter_set for consumption in row.device.consumes_counters}
    drawing = {
        name
        for slice_ in snapshot.slices
        if slice_.pool == row.slice.pool
        for device, name in zip(slice_.devices, slice_.names, strict=True)
        if any(consumption.counter_set in needed for consumption in device.consumes_counters)
    }
    for use in _uses(snapshot):
        for result in use.results:
            if result.device[:2] == row.id[:2] and result.device.device in drawing:
                yield result.device.device, use


def _verdict(row: DeviceRow, cordoned: str, selected: bool) -> Verdict:
    if row.state is DeviceState.UNKNOWN:
        return Verdict.UNDETERMINED
    if row.has_room and selected and not cordoned:
        return Verdict.SCHEDULABLE
    return Verdict.ALLOCATED if row.state in (DeviceState.HELD, DeviceState.SHARED) else Verdict.UNSCHEDULABLE


def _uses(snapshot: Snapshot) -> Sequence[ClaimUse]:
    return claim_uses(snapshot).items if snapshot.missing("ResourceClaim") is None else ()
