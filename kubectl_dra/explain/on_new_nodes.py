"""What holds of an answer because of nodes that are only supposed: why they do not help, and on what it rests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple, TypeGuard

from msgspec.structs import replace

from kubectl_dra.api.claims import devices_of
from kubectl_dra.api.pod_resources import Amounts, add, pod_requests
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import CauseKind, Family
from kubectl_dra.explain.causes.driver_unhealthy import UNHEALTHY
from kubectl_dra.explain.causes.more_nodes import NO_SCALE_UP
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.node_reasons import Refused
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.outcomes import NoHelp
from kubectl_dra.explain.phrase import Joined, Phrase, Words, nodes_named, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.question.with_node_flag import Addition
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.inter_pod_affinity import AffinityNotMet
from kubectl_dra.scheduling.node_copy import is_like
from kubectl_dra.scheduling.pod_topology_spread import NoDomain
from kubectl_dra.scheduling.reasons import Reason

_OF_A_NODE: Final = frozenset((Family.REQUEST, Family.POOLS, Family.DEVICES, Family.NODE_FILTERS))
"""The families of causes that one node may have and another not."""
_PUBLISHES_NOTHING: Final = (DriverState.SILENT, DriverState.PART_OFF)


class Narrowed(NamedTuple):
    """A cluster without the new nodes of which a label that the pod asks for is not known, and ``note`` says that."""

    snapshot: Snapshot
    settings: Settings
    note: Words


def narrowed(diagnosis: Diagnosis, snapshot: Snapshot, settings: Settings) -> Narrowed | None:
    """The nodes among which the pod certainly fits on some; None where all that fit are certain, or none is."""
    unknown = [addition for addition in settings.new_nodes if addition.around.unknown]
    left_out = {name for name in settings.added for addition in unknown if is_like(name, addition.like)}
    fitting = left_out.intersection(diagnosis.fitting)
    if diagnosis.verdict is not Verdict.SCHEDULABLE or not fitting or left_out.issuperset(diagnosis.fitting):
        return None
    return Narrowed(
        snapshot.with_only(snapshot.nodes.keys() - left_out),
        replace(
            settings,
            new_nodes=tuple(addition for addition in settings.new_nodes if addition.like not in left_out),
            added=settings.added - left_out,
        ),
        say(
            "{nodes:some 2} would fit as well with label {labels:some 3}, which is not known; add {typed:some 3} if it "
            "is there",
            nodes=nodes_named(sorted(fitting)),
            labels=_unknown_labels(unknown),
            typed=[f"label:{label}" for label in _unknown_labels(unknown)],
        ),
    )


def _unknown_labels(added: Sequence[Addition]) -> list[str]:
    return list(dict.fromkeys(f"{key}={value}" for addition in added for key, value in addition.around.unknown))


def with_new_nodes(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """The diagnosis with what the new nodes make of it."""
    if not settings.added or settings.node:
        return diagnosis
    if diagnosis.verdict is Verdict.UNSCHEDULABLE:
        return _refusal(diagnosis, question, snapshot, settings)
    # What was asked about comes first.
    placements = sorted(diagnosis.placements, key=lambda place: place.node not in settings.added)
    diagnosis = replace(diagnosis, placements=tuple(placements))
    if diagnosis.verdict is Verdict.SCHEDULABLE and settings.added.issuperset(diagnosis.fitting):
        return _resting_on_them(diagnosis, question, snapshot, settings)
    return diagnosis


def _refusal(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """With why the new nodes do not help, if that is known."""
    first = next(iter(diagnosis.findings), None)
    alone = diagnose(question, snapshot.with_only(settings.added), settings)
    there = next((finding for finding in alone.findings if finding.kind is not NO_SCALE_UP), None)
    barred = kept_off(diagnosis, settings.added)
    if there is not None and not barred and (open_pools := _open_pools(settings.new_nodes, there.kind)):
        return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=open_pools)
    if barred and (keys := _domains_unknown(barred, settings.new_nodes)):
        text = "which label {keys:some 3} {node} has is not known; add {typed:some 3}"
        typed = [f"label:{key}=VALUE" for key in keys]
        unclear = say(text, keys=keys, node=settings.new_nodes[0].like, typed=typed)
        return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=(unclear,))
    if first is None or there is None or _same(there.summary, first.summary):
        return diagnosis
    if there.kind.family not in _OF_A_NODE or not _of_nodes(first.kind):
        return diagnosis
    why_not = next((note.reason for note in diagnosis.notes if isinstance(note, NoHelp)), None)
    notes = tuple(note for note in diagnosis.notes if not isinstance(note, NoHelp))
    if there.kind is first.kind and there.kind.family is Family.POOLS:
        return replace(diagnosis, notes=notes)
    nodes, why, text = nodes_named(sorted(settings.added)), there.summary, "on {nodes:some 2}, {why}"
    if barred:
        why, text = barred[0], "{nodes:some 2} would not take the pod: {why}"
    elif why_not is not None and there.kind.family is Family.POOLS:
        # What drivers publish elsewhere is not there where the new nodes are alone.
        why = why_not
    return replace(diagnosis, on_new_nodes=say(text, nodes=nodes, why=why), notes=notes)


def kept_off(diagnosis: Diagnosis, nodes: Set[str]) -> list[Words]:
    """Why the pod may not run on these nodes, whatever devices they have; empty if it may on some."""
    groups = [group for group in diagnosis.nodes if not nodes.isdisjoint(group.nodes)]
    barred = all(group.outcome == "not-eligible" for group in groups)
    return [group.reason for group in groups] if barred else []


def _domains_unknown(barred: Sequence[Words], added: Sequence[Addition]) -> list[str]:
    """The labels without which nodes in words are refused, where the pod's affinity or spread reads them."""
    if any(addition.words is None for addition in added):
        return []
    lacking = (why.reason for why in barred if isinstance(why, Refused))
    keys = (reason.key for reason in lacking if isinstance(reason, NoDomain) or _in_no_domain(reason))
    return sorted(set(keys))


def _in_no_domain(reason: Reason) -> TypeGuard[AffinityNotMet]:
    return isinstance(reason, AffinityNotMet) and reason.value is None


def _open_pools(added: Sequence[Addition], kind: CauseKind) -> tuple[Words, ...]:
    """The pools of which nobody knows whether what is missing of them would be enough; empty if that is no matter."""
    lacking = kind.family in (Family.REQUEST, Family.POOLS, Family.DEVICES)
    return tuple(pool.words for addition in added if lacking for pool in addition.incomplete)


def _same(one: Words, other: Words) -> bool:
    """Whether two sentences differ in numbers at most: the nodes that are there have more devices."""
    if not (isinstance(one, Phrase) and isinstance(other, Phrase)):
        return one == other
    pairs = zip(one.values, other.values, strict=False)
    return one.template == other.template and all(a == b or isinstance(a[1], int) for a, b in pairs)


def _of_nodes(kind: CauseKind) -> bool:
    return kind.family in _OF_A_NODE or kind is NO_SCALE_UP


def _resting_on_them(diagnosis: Diagnosis, question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """A yes that holds on new nodes alone: with its conditions, or no yes where their driver is broken everywhere."""
    drivers = sorted({device.driver for place in diagnosis.placements for device in devices_of(place.claims)})
    for driver in drivers:
        if broken := broken_everywhere(driver, snapshot):
            without = replace(settings, new_nodes=(), added=frozenset())
            before = diagnose(question, snapshot.real, without)
            if broken[0].state in _PUBLISHES_NOTHING and any(
                finding.kind is UNHEALTHY for finding in before.findings[:1]
            ):
                text = "a new node is no exception: {driver} publishes no devices on any node"
                return replace(before, notes=(say(text, driver=driver), *before.notes))
            if broken[0].state.starts_no_pod:
                idle = tuple(NotStarting(name, broken[0]) for name in diagnosis.fitting)
                return replace(diagnosis, not_starting=idle)
    if labels := _unknown_labels(settings.new_nodes):
        text = "whether {node} has label {labels:some 3} is not known; add {typed:some 3} if it has"
        node = settings.new_nodes[0].like
        unclear = say(text, node=node, labels=labels, typed=[f"label:{label}" for label in labels])
        return replace(diagnosis, verdict=Verdict.UNDETERMINED, unclear=(unclear,))
    pods = [question.pod] if question.pod is not None else []
    return replace(diagnosis, provided=conditions(pods, [pods], drivers, settings.new_nodes, snapshot))


def broken_everywhere(driver: str, snapshot: Snapshot) -> list[NodeDriver]:
    """The driver on the nodes that are there, where it is broken on each of them."""
    rows = [row for row in joined(snapshot).rows if row.driver == driver and row.node]
    rows = [row for row in rows if row.state is not DriverState.NODE_DOWN]
    bad = [row for row in rows if row.state.starts_no_pod or row.state in _PUBLISHES_NOTHING]
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
    for label in _unknown_labels(added):
        yield say("whether a new node has label {label} is not known: it is taken to have it", label=label)
    for driver in drivers_of(added):
        if broken := broken_everywhere(driver, snapshot):
            text = "driver {driver} is taken to work on a new node, though it does not on {nodes:some 2}"
            yield say(text, driver=driver, nodes=nodes_named([row.node for row in broken]))


def conditions(
    pods: Sequence[Pod],
    taken: Sequence[Sequence[Pod]],
    drivers: Iterable[str],
    added: Sequence[Addition],
    snapshot: Snapshot,
    each: str = "",
) -> Words:
    """What a yes supposes of new nodes that nothing shows; empty if nothing.

    ``taken`` are the pods that each of the nodes takes, ``each`` stands for the nodes.
    """
    whole: list[Words] = [
        say("driver {driver} is installed, which nothing here shows", driver=driver)
        for driver in not_seen(drivers, snapshot)
    ]
    described = [addition for addition in added if addition.words is not None]
    if pods and described:
        machines = all(addition.words.machine for addition in described if addition.words is not None)
        wanted: list[Words] = [] if machines else list(_room(taken))
        tolerate_all = all(
            any(one.operator == "Exists" and not one.key for one in pod.spec.tolerations) for pod in pods
        )
        if not tolerate_all and not all(addition.around.likes for addition in described):
            wanted.append("no taint")
        wanted += [say("label {label}", label=label) for label in _unknown_labels(described)]
        if wanted:
            *others, last = wanted
            what = Joined((Joined(tuple(others), ", "), last), " and ") if others else last
            whole.append(say("{node} has {what}", node=each or described[0].like, what=what))
    return Joined(tuple(whole), ", and ") if whole else ""


def _tolerates_all(pod: Pod) -> bool:
    return any(toleration.operator == "Exists" and not toleration.key for toleration in pod.spec.tolerations)


def _room(taken: Sequence[Sequence[Pod]]) -> Iterator[Words]:
    """The CPUs and memory that the pods of one node ask for: the most of any node."""
    totals = [_total(pods) for pods in taken]
    most = {name: max(total[name] for total in totals if name in total) for total in totals for name in total}
    if most:
        pods = max(map(len, taken))
        text = "room for the pod ({amounts:some})" if pods == 1 else "room for {pods:pod} ({amounts:some})"
        yield say(text, pods=pods, amounts=[f"{name} {most[name]}" for name in sorted(most)])


def _total(pods: Sequence[Pod]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        add(total, pod_requests(pod))
    return {name: total[name] for name in ("cpu", "memory") if name in total}
