"""What holds of an answer because of what is only supposed: why new nodes do not help, and on what it rests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import devices_of
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.pod_resources import Amounts, add, pod_requests
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.errors import DraError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import CauseKind, Family
from kubectl_dra.explain.causes.driver_unhealthy import UNHEALTHY
from kubectl_dra.explain.causes.extended_resources import GATE_OFF, UNBACKED
from kubectl_dra.explain.causes.node_filters import IN_USE, VOLUME_IN_USE
from kubectl_dra.explain.causes.scale_up import NO_SCALE_UP
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.outcomes import NewNodesNoMatter, NoHelp
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Words, nodes_named, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.new_nodes import FLAG
from kubectl_dra.explain.question.node_around import AskedLabel
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.question.what_if_flag import WITH_NODE
from kubectl_dra.explain.question.with_node_flag import Addition, new_additions, with_nodes
from kubectl_dra.explain.rivals import with_rivals
from kubectl_dra.explain.settings import Settings
from kubectl_dra.text import some

_OF_A_NODE: Final = frozenset((Family.REQUEST, Family.POOLS, Family.DEVICES, Family.NODE_FILTERS))
"""The families of causes that one node may have and another not."""


class Narrowed(NamedTuple):
    """A cluster without the new nodes that fit only under a condition, and ``note`` says under which."""

    snapshot: Snapshot
    settings: Settings
    note: Words


def narrowed(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Narrowed | None:
    """The nodes among which the pod certainly fits on some; None where all that fit are certain, or none is."""
    if diagnosis.verdict is not Verdict.SCHEDULABLE or settings.node:
        return None
    unknown = [addition for addition in settings.new_nodes if addition.around.unknown]
    # Where no node is certain, one of which only the room is not known comes before one that may lack a label.
    doubtful = [each for each in settings.new_nodes if _condition(each, diagnosis, question, snapshot)]
    for left_out in ([*unknown, *(each for each in doubtful if each not in unknown)], unknown):
        names = {name for name in settings.added for addition in left_out if addition.has(name)}
        if names.intersection(diagnosis.fitting) and not names.issuperset(diagnosis.fitting):
            fitting = [name for name in diagnosis.fitting if name in names]
            return Narrowed(
                snapshot.with_only(snapshot.nodes.keys() - names),
                replace(
                    settings,
                    new_nodes=tuple(addition for addition in settings.new_nodes if addition not in left_out),
                    added=settings.added - names,
                ),
                _as_well(fitting, left_out, diagnosis, question, snapshot),
            )
    return None


def _as_well(
    fitting: Sequence[str], left_out: Sequence[Addition], diagnosis: Diagnosis, question: Question, snapshot: Snapshot
) -> Words:
    """That nodes would fit as well, and under which condition."""
    if labels := unknown_labels(left_out):
        return say(
            "{nodes:some 2} would fit as well with label {labels:some 3}, which is not known; add {typed:some 3} if it "
            "is there",
            nodes=nodes_named(sorted(fitting)),
            labels=[label.said for label in labels],
            typed=[label.typed for label in labels],
        )
    its = (_condition(addition, diagnosis, question, snapshot) for addition in left_out)
    text = "{nodes:some 2} would fit as well, if {condition}"
    return say(text, nodes=nodes_named(sorted(fitting)), condition=Joined(tuple(filter(None, its)), ", and "))


def _condition(addition: Addition, diagnosis: Diagnosis, question: Question, snapshot: Snapshot) -> Words:
    """What a yes on these nodes supposes; empty if nothing, or the pod does not fit there."""
    pods = [question.pod] if question.pod is not None else []
    taken = {name: pods for name in diagnosis.fitting if name in snapshot.supposed and addition.has(name)}
    if not taken:
        return ""
    there = [place for place in diagnosis.placements if place.node in taken] or diagnosis.placements
    drivers = sorted({device.driver for place in there for device in devices_of(place.claims)})
    return conditions(taken, drivers, [addition], snapshot)


def with_new_nodes(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The diagnosis with what the new nodes make of it."""
    if not any(change.kind == WITH_NODE for change in diagnosis.supposed):
        return diagnosis
    if question.pod is not None and question.pod.node_name:
        note = NewNodesNoMatter("a new node changes nothing: the pod has its node")
        return replace(diagnosis, notes=(note, *diagnosis.notes))
    if settings.node:
        rests = diagnosis.verdict is Verdict.SCHEDULABLE and settings.node in settings.added
        return _resting_on_them(diagnosis, question, snapshot, settings) if rests else diagnosis
    if diagnosis.verdict is Verdict.UNSCHEDULABLE:
        refused = _refusal(diagnosis, question, snapshot, settings)
        if diagnosis.nodes:
            return refused
        note = NewNodesNoMatter(_before_nodes(diagnosis, question, snapshot, settings))
        return replace(refused, notes=(note, *refused.notes))
    # What was asked about comes first.
    placements = sorted(diagnosis.placements, key=lambda place: place.node not in settings.added)
    diagnosis = replace(diagnosis, placements=tuple(placements))
    if diagnosis.verdict is not Verdict.SCHEDULABLE:
        return diagnosis
    if settings.added.issuperset(diagnosis.fitting):
        return _resting_on_them(diagnosis, question, snapshot, settings)
    if all(change.kind == WITH_NODE for change in diagnosis.supposed):
        without = _without_them(settings)
        before = with_rivals(diagnose(question, snapshot.real, without), question, snapshot.real, without)
        if before.verdict is Verdict.SCHEDULABLE and not (before.not_starting or before.refused):
            there = tuple(name for name in diagnosis.fitting if name not in settings.added)
            return replace(diagnosis, fits_already=before.fitting or there)
    return diagnosis


def _before_nodes(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Words:
    """What is to be said of new nodes where no node is looked at."""
    unserved = {
        str(dict(finding.summary.values)["resource"])
        for finding in diagnosis.findings
        if finding.kind in (UNBACKED, GATE_OFF) and isinstance(finding.summary, Phrase)
    }
    if not unserved:
        return "a new node changes nothing: no node is looked at before that is mended"
    count, nodes, resources = len(settings.added), nodes_named(sorted(settings.added)), sorted(unserved)
    text = "{nodes:some 2} {count:has|have} no {resources:some}"
    none = say(text, nodes=nodes, count=count, resources=resources)
    typed = f"{resources[0]}={pod_requests(question.pod)[resources[0]]}" if question.pod is not None else ""
    if len(unserved) > 1 or not _fits_on(typed, question, snapshot.real, _without_them(settings)):
        return say("{none} either", none=none)
    return say("{none}; a node that has it would do: {flag} {typed}", none=none, flag=FLAG, typed=typed)


def _fits_on(typed: str, question: Question, snapshot: Snapshot, settings: Settings) -> bool:
    """Whether the pod fits with new nodes as the flag would describe them."""
    try:
        added = new_additions([typed], [question], snapshot, settings.scheduler)
    except DraError:
        return False
    after = with_nodes(snapshot, added, settings.scheduler)
    names = frozenset(after.nodes.keys() - snapshot.nodes.keys())
    return diagnose(question, after, replace(settings, new_nodes=tuple(added), added=names)).verdict is (
        Verdict.SCHEDULABLE
    )


def _without_them(settings: Settings) -> Settings:
    return replace(settings, new_nodes=(), added=frozenset())


def _refusal(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """With why the new nodes do not help, if that is known."""
    first = next(iter(diagnosis.findings), None)
    alone = diagnose(question, snapshot.with_only(settings.added), settings)
    there = next((finding for finding in alone.findings if finding.kind is not NO_SCALE_UP), None)
    barred = kept_off(diagnosis, settings.added)
    if there is not None and not barred and (open_pools := _open_pools(settings.new_nodes, there.kind)):
        return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=open_pools)
    if first is not None and (first.kind is IN_USE or (first.kind is VOLUME_IN_USE and _all_barred(diagnosis, barred))):
        others = (note for note in diagnosis.notes if not isinstance(note, NoHelp))
        return replace(diagnosis, notes=(NewNodesNoMatter("no new node helps: that is so on whatever node"), *others))
    if first is not None and alone.verdict is Verdict.SCHEDULABLE:
        text = "{nodes:some 2} would take the pod if there were no others"
        on_new = say(text, nodes=nodes_named(sorted(settings.added)))
        return replace(diagnosis, on_new_nodes=on_new, on_old_nodes=first.summary)
    if first is None or there is None:
        return diagnosis
    if there.kind is first.kind is UNHEALTHY and (why := _told_of(diagnosis, settings.added)):
        # Of what the driver does on a node that is there.
        on_new = say("on {nodes:some 2}, {why}", nodes=nodes_named(sorted(settings.added)), why=why)
        return replace(diagnosis, on_new_nodes=on_new, on_old_nodes=first.summary)
    if _same(there.summary, first.summary):
        return diagnosis
    if there.kind.family not in _OF_A_NODE or not (first.kind.family in _OF_A_NODE or first.kind is NO_SCALE_UP):
        return diagnosis
    why_not = next((note.reason for note in diagnosis.notes if isinstance(note, NoHelp)), None)
    notes = tuple(note for note in diagnosis.notes if not isinstance(note, NoHelp))
    if there.kind is first.kind and there.kind.family is Family.POOLS:
        return replace(diagnosis, notes=notes)
    before = diagnose(question, snapshot.real, _without_them(settings))
    old = next(iter(before.findings), None) if before.verdict is Verdict.UNSCHEDULABLE else None
    elsewhere = old.summary if old is not None else first.summary
    if _same(there.summary, elsewhere, snapshot.nodes.keys()) or _all_barred(diagnosis, barred):
        elsewhere = "the same"
    why, text = there.summary, "on {nodes:some 2}, {why}"
    if barred:
        why, text = barred[0], "{nodes:some 2} would not take the pod: {why}"
    elif why_not is not None and there.kind.family is Family.POOLS:
        # What drivers publish elsewhere is not there where the new nodes are alone.
        why = why_not
    on_new = say(text, nodes=nodes_named(sorted(settings.added)), why=why)
    return replace(diagnosis, on_new_nodes=on_new, on_old_nodes=elsewhere, notes=notes)


def _all_barred(diagnosis: Diagnosis, barred: Sequence[Words]) -> bool:
    """Whether what keeps the pod off the new nodes keeps it off all."""
    return bool(barred) and all(
        group.outcome == "not-eligible" and group.reason == barred[0] for group in diagnosis.nodes
    )


def _told_of(diagnosis: Diagnosis, nodes: Set[str]) -> Words:
    """What is said of the first of these nodes; empty if nothing."""
    return next((group.reason for group in diagnosis.nodes if not nodes.isdisjoint(group.nodes)), "")


def kept_off(diagnosis: Diagnosis, nodes: Set[str]) -> list[Words]:
    """Why the pod may not run on these nodes, whatever devices they have; empty if it may on some."""
    groups = [group for group in diagnosis.nodes if not nodes.isdisjoint(group.nodes)]
    barred = all(group.outcome == "not-eligible" for group in groups)
    return [group.reason for group in groups] if barred else []


def _open_pools(added: Sequence[Addition], kind: CauseKind) -> tuple[Words, ...]:
    """The pools of which nobody knows whether what is missing of them would be enough; empty if that is no matter."""
    lacking = kind.family in (Family.REQUEST, Family.POOLS, Family.DEVICES)
    return tuple(note for addition in added if lacking for note in addition.incomplete)


def _same(one: Words, other: Words, nodes: Collection[str] = ()) -> bool:
    """Whether two sentences differ in numbers at most, as there are more devices on the nodes that are there; or in
    which of the ``nodes`` they name.
    """
    if not (isinstance(one, Phrase) and isinstance(other, Phrase)):
        return one == other
    pairs = zip(one.values, other.values, strict=False)
    return one.template == other.template and all(
        a == b or isinstance(a[1], int) or _alike(a[1], b[1], nodes) for a, b in pairs
    )


def _alike(one: object, other: object, nodes: Collection[str]) -> bool:
    """Whether two values of a sentence name nothing but nodes or devices, or are such sentences."""
    if isinstance(one, DeviceID) and isinstance(other, DeviceID):
        return bool(nodes)
    if isinstance(one, Phrase) and isinstance(other, Phrase):
        return bool(nodes) and _same(one, other, nodes)
    return _name_nodes(one, nodes) and _name_nodes(other, nodes)


def _name_nodes(value: object, nodes: Collection[str]) -> bool:
    """Whether a value of a sentence is nothing but nodes."""
    several = value if isinstance(value, tuple) else (value,)
    return bool(several) and all(str(each.name if isinstance(each, ObjectName) else each) in nodes for each in several)


def _resting_on_them(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """A yes that holds on new nodes alone: with its conditions, or no yes where their driver is broken everywhere."""
    drivers = sorted({device.driver for place in diagnosis.placements for device in devices_of(place.claims)})
    for driver in drivers:
        if broken := broken_everywhere(driver, snapshot):
            before = diagnose(question, snapshot.real, _without_them(settings))
            if broken[0].state in PUBLISHES_NOTHING and any(
                finding.kind is UNHEALTHY for finding in before.findings[:1]
            ):
                text = "a new node is no exception: {driver} publishes no devices on any node"
                return replace(before, notes=(say(text, driver=driver), *before.notes))
            if broken[0].state.starts_no_pod:
                idle = tuple(NotStarting(name, broken[0]) for name in diagnosis.fitting)
                return replace(diagnosis, not_starting=idle)
    there = [addition for addition in settings.new_nodes if any(map(addition.has, diagnosis.fitting))]
    if labels := unknown_labels(there):
        unclear = _not_known(labels, there[0].like)
        return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=(unclear,))
    its = [_condition(addition, diagnosis, question, snapshot) for addition in there]
    # One of them is enough.
    provided = Joined(tuple(dict.fromkeys(its)), ", or ") if all(its) and its else ""
    return replace(diagnosis, provided=provided)


def _not_known(labels: Sequence[AskedLabel], node: str) -> Words:
    """That what a pod asks of a new node's labels is open, and what to add to the flag."""
    typed = [label.typed for label in labels]
    if all(label.wanted is None for label in labels):
        text = "which label {keys:some 3} {node} has is not known; add {typed:some 3}"
        return say(text, keys=[label.key for label in labels], node=node, typed=typed)
    text = "whether {node} has label {labels:some 3} is not known; add {typed:some 3} if it has"
    return say(text, node=node, labels=[label.said for label in labels], typed=typed)


# What a yes supposes of nodes that are not there yet, as far as nothing shows it.

_FOR_PODS: Final = 80
"""So many percent of a machine's CPUs and memory are for pods at least. Of small ones GKE and AKS reserve up to 17
percent of the memory (1 + 0.8 + 0.8 of the first 16 GiB, and what is kept free), and pods of each node come to that.
"""
PUBLISHES_NOTHING = (DriverState.SILENT, DriverState.PART_OFF)


def unknown_labels(added: Sequence[Addition]) -> list[AskedLabel]:
    """The labels that pods ask for and of which nobody knows whether these nodes have them."""
    return list({asked.said: asked for addition in added for asked in addition.around.unknown}.values())


def broken_everywhere(driver: str, snapshot: Snapshot) -> list[NodeDriver]:
    """The driver on the nodes that are there, where it is broken on each of them."""
    rows = [row for row in joined(snapshot).rows if row.driver == driver and row.node]
    rows = [row for row in rows if row.state is not DriverState.NODE_DOWN]
    bad = [row for row in rows if row.state.starts_no_pod or row.state in PUBLISHES_NOTHING]
    return bad if len(bad) == len(rows) else []


def not_seen(drivers: Iterable[str], snapshot: Snapshot) -> Iterator[str]:
    """Those of the drivers that neither publish devices nor have pods on nodes that are there."""
    there = {row.driver for row in joined(snapshot).rows if not row.wanted_by}
    yield from (driver for driver in drivers if driver not in there)


def drivers_of(added: Sequence[Addition]) -> list[str]:
    """The drivers of devices of new nodes that are not like others."""
    return sorted({slice_.driver for addition in added for copy in addition.nodes for slice_ in copy.slices})


def doubts(added: Sequence[Addition], snapshot: Snapshot) -> Iterator[Phrase]:
    """What is supposed of new nodes though nothing shows it, or much speaks against it."""
    for driver in not_seen(drivers_of(added), snapshot):
        yield say("driver {driver} is taken to be installed, which nothing here shows", driver=driver)
    for label in unknown_labels(added):
        text = "whether a new node has label {label} is not known: it is taken to have it; add {typed} if it has"
        yield say(text, label=label.said, typed=label.typed)
    for driver in drivers_of(added):
        if broken := broken_everywhere(driver, snapshot):
            text = "driver {driver} is taken to work on a new node, though it does not on {nodes:some 2}"
            yield say(text, driver=driver, nodes=nodes_named([row.node for row in broken]))


def conditions(
    taken: Mapping[str, Sequence[Pod]],
    drivers: Iterable[str],
    added: Sequence[Addition],
    snapshot: Snapshot,
    each: str = "",
) -> Words:
    """What a yes supposes of new nodes that nothing shows; empty if nothing.

    ``taken`` are the new nodes that count, each with the pods that it takes; ``each`` stands for the nodes.
    """
    whole: list[Words] = [
        say("driver {driver} is installed, which nothing here shows", driver=driver)
        for driver in not_seen(drivers, snapshot)
    ]
    for addition in added:
        own = {name: pods for name, pods in taken.items() if addition.has(name)}
        if wanted := list(_wanted(addition, list(own.values()))):
            *others, last = wanted
            what = Joined((Joined(tuple(others), ", "), last), " and ") if others else last
            which = each or ("each of {nodes:some 2}" if len(own) > 1 else "{nodes:some 2}")
            whole.append(say(f"{which} has {{what}}", nodes=nodes_named(sorted(own)), what=what))
    return Joined(tuple(dict.fromkeys(whole)), ", and ") if whole else ""


def _wanted(addition: Addition, taken: Sequence[Sequence[Pod]]) -> Iterator[Words]:
    """What nodes must have, or must not, for the pods that each of them takes."""
    pods = [pod for own in taken for pod in own]
    yield from _room(addition, taken)
    taints_known = addition.words is None or bool(addition.around.likes)
    if not taints_known and not all(map(_tolerates_all, pods)):
        yield "no taint"
    if pods:
        yield from (say("label {label}", label=label.said) for label in unknown_labels([addition]))
        without = {each.key: _refused(each) for each in addition.around.without}
        yield from (say("no label {label}", label=label) for label in without.values())


def _refused(requirement: Requirement) -> str:
    """The labels that a node must not have, by a requirement that it meets without."""
    key, values = requirement.key, requirement.values
    if not values:
        return key
    return f"{key}={values[0]}" if len(values) == 1 else f"{key} of {some(values)}"


def _tolerates_all(pod: Pod) -> bool:
    return any(toleration.operator == "Exists" and not toleration.key for toleration in pod.spec.tolerations)


def _room(addition: Addition, taken: Sequence[Sequence[Pod]]) -> Iterator[Words]:
    """The CPUs and memory that the pods of one node ask for, the most of any node, where they may not be there."""
    totals = [_total(pods) for pods in taken if pods]
    most = {name: max(total[name] for total in totals if name in total) for total in totals for name in total}
    if most and not _certain(addition, most):
        pods = max(map(len, taken))
        text = "room for the pod ({amounts:some})" if pods == 1 else "room for {pods:pod} ({amounts:some})"
        yield say(text, pods=pods, amounts=[f"{name} {most[name]}" for name in sorted(most)])


def _certain(addition: Addition, most: Amounts) -> bool:
    """Whether nodes have so much for pods, whatever their system takes."""
    if not addition.room_known:
        return False
    machine = addition.words.machine if addition.words is not None else None
    room = machine.room if machine is not None else {}
    return all(most[name] * 100 <= Quantity.parse(whole) * _FOR_PODS for name, whole in room.items() if name in most)


def _total(pods: Sequence[Pod]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        add(total, pod_requests(pod))
    return {name: total[name] for name in ("cpu", "memory") if name in total}


def unless_unexplained(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The diagnosis with what is supposed, undetermined where the scheduler's word on the pod as it is stays a riddle.

    Args:
        diagnosis: the pod would fit with what is supposed.
        question: about the pod without that.
        snapshot: the cluster without that.
        settings: of the diagnosis.
    """
    if question.pod is None or question.pod.node_name or not question.exists:
        return diagnosis
    as_it_is = replace(settings, supposed=(), new_nodes=(), added=frozenset(), ended=(), freed={}, with_ways=False)
    if settings.node in settings.added:
        as_it_is = replace(as_it_is, node="")
    now = diagnose(question, snapshot, as_it_is)
    contrary = next((finding for finding in now.findings if finding.contrary), None)
    if now.verdict is not Verdict.UNDETERMINED or contrary is None:
        return diagnosis
    text = "it would fit, but it seems to fit without the change as well, and {contrary}"
    unclear = (say(text, contrary=contrary.summary),)
    return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=unclear, next=now.next)
