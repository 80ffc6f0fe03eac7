"""The pod has ended, is being deleted, or would be evicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.behaviour import TOLERATIONS_NOT_COPIED
from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.meta import EVICTION_REASON
from kubectl_dra.api.pods import MAKES_AGAIN, Pod, owner_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.claim_relation import ClaimRelation, claims_of, relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting, kubectl
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.known_defects import with_defect
from kubectl_dra.explain.causes.on_node import (
    ANSWER,
    containers_ended,
    drivers_of,
    end_by_force,
    node_troubles,
    rejected,
    rejection,
    waits_for_driver,
)
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.clock import GIVEN, Clock
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.stages import with_rule
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, known_defect, nodes_named, say, subject

if TYPE_CHECKING:
    from kubectl_dra.explain.eviction import Eviction

EVICTED = CauseKind(code="evicted-by-taint", family=Family.NODE, look=Look.TAINTED_DEVICES, ends_pod=True)
FINISHED = CauseKind(code="pod-finished", family=Family.POD, look=Look.POD, ends_pod=True)
DELETING = CauseKind(code="pod-being-deleted", family=Family.POD, look=Look.POD, ends_pod=True)


def _ended(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    if pod is None:
        return
    condition = pod.condition("DisruptionTarget")
    if condition.status == "True" and condition.reason == EVICTION_REASON:
        stuck = None
        if pod.metadata.deletion_timestamp and not pod.finished:
            stuck = waits_for_driver(pod, context.question.existing_claims, context.snapshot)
        if stuck is not None:
            yield _with_its_pod(stuck, pod, context.snapshot, _held(pod, context.question.existing_claims))
        yield _evicted(pod, condition.message or condition.reason, context.question.existing_claims, context.snapshot)
    elif rejected(pod):
        yield with_defect(rejection(pod), pod, context.snapshot)
    elif pod.finished:
        yield _finished(pod, context.question.existing_claims)
    elif pod.metadata.deletion_timestamp and not pod.node_name:
        yield _deleting(pod)


def _finished(pod: Pod, claims: Sequence[ResourceClaim]) -> Finding:
    facts = [Evidence(subject("Pod", pod), "status.phase", pod.phase)]
    for claim in claims:
        if claim.allocation is not None and relation_of(claim, pod).listed:
            own = subject("ResourceClaim", claim)
            said = "lists it still: kube-controller-manager removes that, and takes the devices back, within seconds"
            facts.append(Evidence(own, "status.reservedFor", said))
    if pod.phase == "Succeeded":
        change: Words = "Nothing needs to be done: it has finished its work. To run it again, create a new pod."
    else:
        owner = owner_of(pod)
        text = "Find out why it failed; to run it again, create a new pod."
        if owner is not None and owner.kind in MAKES_AGAIN:
            text = "Find out why it failed; {owner} creates the next one."
        change = say(text, owner=str(owner))
    summary = say("{pod} has ended ({phase})", pod="the pod", phase=pod.phase)
    if pod.metadata.deletion_timestamp and (names := pod.metadata.finalizers):
        facts.extend(_deletion(pod))
        text = "{pod} has ended ({phase}) and was deleted, and is kept by finalizers: {names:some}"
        summary = say(text, pod="the pod", phase=pod.phase, names=names)
        return Finding(FINISHED, summary, tuple(facts), _kept_by_finalizers(pod))
    return Finding(FINISHED, summary, tuple(facts), Remedy(change))


def _kept_by_finalizers(pod: Pod) -> Remedy:
    """Whoever set a finalizer has work to do before the pod goes: it is not removed by hand for that alone."""
    names = pod.metadata.finalizers
    text = (
        "See which controller has to remove {names:some}, and why it has not. Remove {count:it|them} by hand only if "
        "that controller is gone for good: then nobody does what {count:it is|they are} for."
    )
    written = ("-o", "yaml")
    look = kubectl("get", kind="pod", name=pod.metadata.name, namespace=pod.metadata.namespace, more=written)
    return Remedy(say(text, names=names, count=len(names)), commands=(look,))


def _deletion(pod: Pod) -> Iterator[Evidence]:
    own = subject("Pod", pod)
    yield Evidence(own, "metadata.deletionTimestamp", pod.metadata.deletion_timestamp)
    if pod.metadata.finalizers:
        yield Evidence(own, "metadata.finalizers", say("{names}", names=pod.metadata.finalizers))


def _deleting(pod: Pod) -> Finding:
    summary = say("{pod} is being deleted, so the scheduler skips it", pod="the pod")
    remedy = _kept_by_finalizers(pod) if pod.metadata.finalizers else Remedy("Create a new pod: this one goes away.")
    return Finding(DELETING, summary, tuple(_deletion(pod)), remedy)


def _terminating(analysis: Analysis) -> Iterator[Finding]:
    """The pod has its devices until it is gone, and its node decides when."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None:
        return
    held = _held(pod, analysis.allocated)
    if not held:
        return
    if (stuck := waits_for_driver(pod, analysis.allocated, snapshot)) is not None:
        yield _with_its_pod(stuck, pod, snapshot, held)
        return
    facts = (*_deletion(pod), *node_not_ready(pod, snapshot))
    text = "it has {devices:some} until the kubelet of node {node} has ended the pod"
    summary = say(text, devices=held, node=ObjectName("Node", pod.node_name))
    age, remedy = Clock(snapshot).age(pod.metadata.deletion_timestamp), who_ends(pod, snapshot)
    finding = Finding(DELETING, summary, facts, remedy, state="is being deleted", normal=age < GIVEN)
    yield _waiting_for_driver(finding, pod, snapshot, held) if age >= ANSWER else finding


def _held(pod: Pod, claims: Sequence[ResourceClaim]) -> list[DeviceID]:
    """The devices that a pod has until it is gone."""
    return [device for claim in claims if relation_of(claim, pod) is ClaimRelation.ENDING for device in claim.devices]


def _with_its_pod(finding: Finding, pod: Pod, snapshot: Snapshot, held: Sequence[DeviceID]) -> Finding:
    """The finding that a driver keeps a pod, with what is wrong with the driver's own pod, if that is known."""
    from kubectl_dra.explain.driver_words import next_look
    from kubectl_dra.explain.node_driver import on_node, without_driver

    away = without_driver(pod, snapshot, held)
    if away is None:
        rows = on_node(snapshot, sorted({device.driver for device in held}), pod.node_name)
        logs = next((row for row in rows if row.pod is not None), None)
        return replace(finding, next=next_look(logs)) if logs is not None else finding
    row, said = away
    node = say("on node {node}", node=ObjectName("Node", pod.node_name))
    fact = Evidence(Subject("driver", row.driver), node, said)
    return replace(finding, evidence=(fact, *finding.evidence), next=next_look(row))


def _waiting_for_driver(finding: Finding, pod: Pod, snapshot: Snapshot, held: Sequence[DeviceID]) -> Finding:
    """The finding, or that the pod cannot end because a driver is away that has to release its devices."""
    from kubectl_dra.explain.driver_words import next_look
    from kubectl_dra.explain.node_driver import without_driver

    away = None if any(node_not_ready(pod, snapshot)) else without_driver(pod, snapshot, held)
    if away is None:
        return finding
    row, said = away
    node = ObjectName("Node", pod.node_name)
    words = {"driver": row.driver, "node": node, "said": said, "devices": held, "count": len(held)}
    summary = say("it has {devices:some} until driver {driver} has released {count:it|them}, and {said}", **words)
    text = (
        "Start driver {driver} on node {node}: the kubelet ends the pod only after it has released the "
        "{count:device|devices}."
    )
    if row.pod is None:
        text += " If it runs outside of pods, look at its log there."
    change = say(text, **words)
    return replace(
        finding,
        summary=summary,
        evidence=(Evidence(Subject("driver", row.driver), say("on node {node}", node=node), said), *finding.evidence),
        remedy=Remedy(change),
        next=next_look(row),
    )


class Keeper(NamedTuple):
    """The driver that keeps a pod which is being deleted: what is known of it, and who has to do what."""

    fact: Evidence
    summary: Phrase
    step: Phrase


def kept_by_driver(pod: Pod, snapshot: Snapshot) -> Keeper | None:
    """The driver that has not released the devices of a pod; None where nothing says that it is a driver."""
    from kubectl_dra.explain.node_driver import without_driver

    claims = claims_of(pod, snapshot)
    held, node = _held(pod, claims), ObjectName("Node", pod.node_name)
    late = containers_ended(pod) or Clock(snapshot).age(pod.metadata.deletion_timestamp) >= ANSWER
    if not held or not late or any(node_not_ready(pod, snapshot)):
        return None
    away = without_driver(pod, snapshot, held)
    if away is not None:
        row, said = away
        driver = row.driver
        return Keeper(
            Evidence(Subject("driver", driver), say("on node {node}", node=node), said),
            say("until driver {driver}, which is away, has released its devices", driver=driver),
            say("start driver {driver} on node {node}, which has to release its devices", driver=driver, node=node),
        )
    stuck = waits_for_driver(pod, claims, snapshot)
    if stuck is None:
        return None
    drivers, look = (
        drivers_of(claims),
        "read the log of driver {drivers:some} on node {node}, which does not release its devices",
    )
    return Keeper(
        stuck.evidence[-1],
        say("until driver {drivers:some} on node {node} has released its devices", drivers=drivers, node=node),
        say(look, drivers=drivers, node=node),
    )


def node_not_ready(pod: Pod, snapshot: Snapshot) -> Iterator[Evidence]:
    """That the pod's node does not answer, or is gone."""
    node = snapshot.nodes.get(pod.node_name)
    if node is not None and node.ready is False:
        yield from node_troubles(node)
    elif snapshot.lacks_node(pod.node_name):
        yield Evidence("the cluster", "has no node of this name any more", pod.node_name)


def who_ends(pod: Pod, snapshot: Snapshot) -> Remedy:
    """Who has to do what so that a pod that is being deleted gives its devices back."""
    since = pod.metadata.deletion_timestamp
    claims = claims_of(pod, snapshot)
    drivers = drivers_of(claims)
    if (finding := waits_for_driver(pod, claims, snapshot)) is not None and finding.remedy is not None:
        return finding.remedy
    if any(node_not_ready(pod, snapshot)):
        return end_by_force(pod, snapshot)
    if pod.metadata.finalizers:
        return _kept_by_finalizers(pod)
    if Clock(snapshot).age(since) >= GIVEN:
        text = "Find out why the kubelet of node {node} has not ended pod {pod}: its grace period ended at {since}."
        if drivers:
            text += " Either a container does not stop, or driver {drivers:some} does not give its devices back."
    elif Clock(snapshot).age(since):
        text = (
            "Wait: the grace period of pod {pod} ended at {since}; the kubelet of node {node} takes a few seconds more."
        )
    else:
        text = "Wait: the kubelet of node {node} ends pod {pod} by {since}."
    words = {"drivers": drivers, "pod": pod.key, "node": ObjectName("Node", pod.node_name), "since": since}
    return Remedy(say(text, **words))


def _evicted(pod: Pod, said: str, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Finding:
    from kubectl_dra.explain.eviction import EFFECT, DeviceTaints

    change: Words = EVICTED.fix
    evidence = [Evidence(subject("Pod", pod), "condition DisruptionTarget", said)]
    first: Words = ""
    ended = ""
    # That the pod is evicted shows that the gates are on.
    taints = DeviceTaints(snapshot, Features(taint_rules=True))
    for claim in claims:
        for result in claim.results:
            for taint in (taint for taint in taints.of(result.device) if taint.effect == EFFECT):
                shown = with_rule(taint) if taint.rule else say("{taint} (set by the driver)", taint=str(taint))
                evidence.append(Evidence(Subject("device", result.device), "taint", shown))
                first = first or say("device {device} has taint {taint}", device=result.device, taint=shown)
                fact, better = _tolerations(claim, result, taint)
                evidence.append(fact)
                if better is not None:
                    change, ended = better, ""
                elif taint.rule and change is EVICTED.fix:
                    change, ended = _end_of_rule(taint.rule, snapshot), taint.rule
                if taint.rule and (spread := _spread(taint.rule, snapshot)) is not None and spread not in evidence:
                    evidence.insert(1, spread)
    remedy = Remedy(change, commands=(deleting("devicetaintrule", ended),) if ended else ())
    if pod.node_name and not pod.finished:
        return Finding(
            EVICTED, first or said, tuple(evidence), remedy, state="is being evicted because of a device taint"
        )
    verb, why = "was" if pod.finished else "is being", say(": {first}", first=first) if first else ""
    summary = say("{pod} {verb} evicted because of a device taint{why}", pod="the pod", verb=verb, why=why)
    return Finding(EVICTED, summary, tuple(evidence), remedy)


def _selected(rule: str, snapshot: Snapshot) -> tuple[int, int]:
    """How many devices the rule selects, and how many there are."""
    devices = {(*slice_.pool, name) for slice_ in snapshot.slices for name in slice_.names}
    rules = [each for each in snapshot.taint_rules if each.metadata.name == rule]
    return sum(any(rule.selects(*device) for rule in rules) for device in devices), len(devices)


def _spread(rule: str, snapshot: Snapshot) -> Evidence | None:
    """A rule that selects more than people mean."""
    selected, total = _selected(rule, snapshot)
    if selected < total:
        return None
    own = Subject("DeviceTaintRule", ObjectName("DeviceTaintRule", rule))
    return Evidence(own, "spec.deviceSelector", say("selects every device of the cluster ({total:,})", total=total))


def _end_of_rule(rule: str, snapshot: Snapshot) -> Phrase:
    """What to do about a rule: how far it goes decides what becomes of the next pod."""
    selected, total = _selected(rule, snapshot)
    text = (
        "End the maintenance: delete DeviceTaintRule {rule}. Until then a new pod gets other devices; one "
        "that may stay has to tolerate the taint with effect: NoExecute."
    )
    if selected == total:
        text = (
            "DeviceTaintRule {rule} selects every device of the cluster ({total:,}), so no other devices are left for "
            "a new pod. Delete it, or name driver, pool and device in its "
            "deviceSelector."
        )
    return say(text, rule=rule, total=total)


def _tolerations(claim: ResourceClaim, result: DeviceResult, taint: DeviceTaint) -> tuple[Evidence, Phrase | None]:
    """Which tolerations of the allocation cover the taint, and what to do if they do not protect the pod."""
    covering = [toleration for toleration in result.tolerations if toleration.tolerates(taint)]
    shown: Words = say(
        "{tolerations: else none}",
        tolerations=[
            say("{key} effect {effect}", key=toleration.key or "*", effect=toleration.effect or "not set")
            for toleration in covering
        ],
    )
    better = None
    if not covering and (late := _tolerated_in_spec(claim, result, taint)):
        shown = say("none, though request {request} tolerates it: the scheduler did not copy that", request=late)
        better = say(
            "Make a new claim and pod: only tolerations in the allocation protect. If the new allocation lacks them "
            "too, upgrade the scheduler: it is {defect}.",
            defect=known_defect(TOLERATIONS_NOT_COPIED.reference, *TOLERATIONS_NOT_COPIED.fixes),
        )
    if covering and not any(toleration.effect == "NoExecute" for toleration in covering):
        better = say("Write effect: NoExecute into the toleration: without an effect it does not protect.")
    field = say("tolerations of {device} that cover it", device=result.device)
    return Evidence(subject("ResourceClaim", claim), field, shown), better


def _tolerated_in_spec(claim: ResourceClaim, result: DeviceResult, taint: DeviceTaint) -> str:
    """The name of the result's request if that tolerates the taint for good although the allocation does not."""
    for request in claim.requests:
        for spec in request.alternatives():
            if request.result_name(spec) == result.request and any(
                toleration.effect == "NoExecute" and toleration.tolerates(taint) for toleration in spec.tolerations
            ):
                return result.request
    return ""


# The pod fits, and would be evicted as soon as it has its node: its toleration lets it be placed, not stay.

MAX_NODES = 3
AT_ONCE = CauseKind(
    code="evicted-at-once",
    family=Family.DEVICES,
    look=Look.TAINTED_DEVICES,
    fixed_at=Look.TAINTED_DEVICES,
    never_binds=True,
    state="would be scheduled and evicted at once",
)


def _at_once(analysis: Analysis) -> Iterator[Finding]:
    evicted = {name: eviction for name, eviction in analysis.evictions.items() if not eviction.seconds}
    if not evicted:
        return
    from kubectl_dra.explain.outcomes import certain_choice

    winners = certain_choice(analysis) if evicted.keys() < set(analysis.takers) else tuple(evicted)
    if winners and evicted.keys() >= set(winners):
        yield _finding({name: evicted[name] for name in winners})


def _finding(evicted: Mapping[str, Eviction]) -> Finding:
    first = next(iter(evicted.values()))
    names = {"device": first.result.device, "taint": with_rule(first.taint), "request": first.result.request}
    facts = [
        Evidence(Subject("device", eviction.result.device), "taint", with_rule(eviction.taint))
        for eviction in list(evicted.values())[:MAX_NODES]
    ]
    return Finding(
        AT_ONCE,
        say("device {device} has taint {taint}, and {why}", why=_why(first), **names),
        (*facts, Evidence(say("request {request}", **names), "tolerations that count there", _counting(first))),
        Remedy(say("{fix}", fix=AT_ONCE.fix)),
        request=first.result.request,
        device=first.result.device,
    )


def _why(eviction: Eviction) -> Words:
    names = {"request": eviction.result.request, "time": eviction.taint.time_added}
    if eviction.tolerated:
        return say("request {request} tolerated that only until {time}", **names)
    if any(
        toleration.effect == "NoExecute" and toleration.tolerates(eviction.taint)
        for toleration in eviction.result.tolerations
    ):
        return say("request {request} tolerates that for zero seconds", **names)
    if any(toleration.tolerates(eviction.taint) for toleration in eviction.result.tolerations):
        return say("the toleration of request {request} has no effect, which does not protect the pod", **names)
    return say("no toleration in the allocation of request {request} protects the pod", **names)


def _counting(eviction: Eviction) -> Words:
    """The tolerations that protect: those of effect NoExecute that cover the taint."""
    counting = [toleration for toleration in eviction.result.tolerations if toleration.effect == "NoExecute"]
    shown = [
        say("{key} for {seconds:second}", key=toleration.key or "*", seconds=toleration.seconds or 0)
        for toleration in counting
        if toleration.tolerates(eviction.taint)
    ]
    return say("{shown: else none}", shown=shown)


def eviction_notes(analysis: Analysis) -> Iterator[Phrase]:
    """Where and when the pod would be evicted, if that is not the answer already."""
    later: dict[int, list[str]] = {}
    for name, eviction in analysis.evictions.items():
        later.setdefault(eviction.seconds, []).append(name)
    for seconds, nodes in sorted(later.items()):
        eviction = analysis.evictions[nodes[0]]
        values = {"nodes": nodes_named(nodes), "device": eviction.result.device, "taint": with_rule(eviction.taint)}
        when: Words = say("after {seconds:second}", seconds=seconds) if seconds else "at once"
        text = "on {nodes:some} the pod would be evicted {when}: device {device} has taint {taint}"
        yield say(text, when=when, **values)


FINDERS = (
    Finder(When.QUESTION, _ended, 10),
    Finder(When.PLACED, _terminating, -10),
    Finder(When.FITS, _at_once, 40),
)
