"""The pod has ended, was deleted before it had a node, or is or would be evicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.behaviour import TOLERATIONS_NOT_COPIED
from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.meta import EVICTION_REASON
from kubectl_dra.api.pods import Pod, replaced_by
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.known_defects import with_defect
from kubectl_dra.explain.causes.on_node import rejected, rejection
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.causes.terminating import DELETING, deletion, devices_of, ending_of, kept_by_finalizers
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import (
    Phrase,
    Subject,
    Words,
    by_name,
    known_defect,
    nodes_named,
    say,
    subject,
    with_owner,
)

if TYPE_CHECKING:
    from kubectl_dra.explain.eviction import Eviction

EVICTED = CauseKind(code="evicted-by-taint", family=Family.NODE, look=Look.TAINTED_DEVICES, ends_pod=True)
FINISHED = CauseKind(code="pod-finished", family=Family.POD, look=Look.POD, ends_pod=True)


def _ended(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    if pod is None:
        return
    condition = pod.condition("DisruptionTarget")
    if condition.status == "True" and condition.reason == EVICTION_REASON:
        ending = None
        if pod.metadata.deletion_timestamp and devices_of(pod, context.question.existing_claims):
            ending = ending_of(pod, context.snapshot, context.question.existing_claims).finding
            if ending.kind is not DELETING:
                yield ending
        yield _evicted(pod, condition.message or condition.reason, context.question.existing_claims, context.snapshot)
        if ending is not None and ending.kind is DELETING and not ending.normal:
            yield ending
    elif rejected(pod):
        yield with_defect(rejection(pod), pod, context.snapshot)
    elif pod.finished:
        yield _finished(pod, context.question.existing_claims)
    elif pod.metadata.deletion_timestamp and not pod.node_name:
        summary = say("{pod} is being deleted, so the scheduler skips it", pod="the pod")
        away = Remedy("Create a new pod: this one goes away.")
        remedy = kept_by_finalizers(pod) if pod.metadata.finalizers else away
        yield Finding(DELETING, summary, tuple(deletion(pod)), remedy)


def _finished(pod: Pod, claims: Sequence[ResourceClaim]) -> Finding:
    facts = [Evidence(subject("Pod", pod), "status.phase", pod.phase)]
    for claim in claims:
        if claim.allocation is not None and relation_of(claim, pod).listed:
            own = subject("ResourceClaim", claim)
            said = "still lists it: kube-controller-manager removes it and frees the devices within seconds"
            facts.append(Evidence(own, "status.reservedFor", said))
    if pod.phase == "Succeeded":
        change: Words = "Nothing needs to be done: it has finished its work. To run it again, create a new pod."
    else:
        owner = replaced_by(pod)
        text = "Find out why it failed; to run it again, create a new pod."
        if owner is not None:
            text = "Find out why it failed; {owner} creates the next one."
        change = say(text, owner=str(owner))
    summary = say("{pod} has ended ({phase})", pod="the pod", phase=pod.phase)
    if pod.metadata.deletion_timestamp and (names := pod.metadata.finalizers):
        facts.extend(deletion(pod))
        text = "{pod} has ended ({phase}) and was deleted, and is kept by finalizers: {names:some}"
        summary = say(text, pod="the pod", phase=pod.phase, names=names)
        return Finding(FINISHED, summary, tuple(facts), kept_by_finalizers(pod))
    return Finding(FINISHED, summary, tuple(facts), Remedy(change))


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
                shown = with_owner(taint)
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
        state = "is being evicted because of a device taint"
        return Finding(EVICTED, first or said, tuple(evidence), remedy, state=state)
    verb, why = "was" if pod.finished else "is being", say(": {first}", first=first) if first else ""
    summary = say("{pod} {verb} evicted because of a device taint{why}", pod="the pod", verb=verb, why=why)
    return Finding(EVICTED, summary, tuple(evidence), remedy)


def _selected(rule: str, snapshot: Snapshot) -> tuple[int, int]:
    """Number of devices that the rule selects, and number of devices in all."""
    devices = {(*slice_.pool, name) for slice_ in snapshot.slices for name in slice_.names}
    rules = [taint_rule for taint_rule in snapshot.taint_rules if taint_rule.metadata.name == rule]
    return sum(any(rule.selects(*device) for rule in rules) for device in devices), len(devices)


def _spread(rule: str, snapshot: Snapshot) -> Evidence | None:
    """A rule that selects more than people mean."""
    selected, total = _selected(rule, snapshot)
    if selected < total:
        return None
    own = by_name("DeviceTaintRule", rule)
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
    pairs = ((toleration.key or "*", toleration.effect or "not set") for toleration in covering)
    listed = [say("{key} effect {effect}", key=key, effect=effect) for key, effect in pairs]
    shown = say("{tolerations: else none}", tolerations=listed)
    better = None
    if not covering and (late := _tolerated_in_spec(claim, result, taint)):
        shown = say("none, though request {request} tolerates it: the scheduler did not copy that", request=late)
        better = say(
            "Create a new claim and pod: only tolerations in the allocation protect. If the new allocation lacks them "
            "too, upgrade the scheduler: it is {defect}.",
            defect=known_defect(TOLERATIONS_NOT_COPIED.reference, *TOLERATIONS_NOT_COPIED.fixes),
        )
    if covering and not any(toleration.effect == "NoExecute" for toleration in covering):
        better = say("Set effect: NoExecute in the toleration: without an effect it does not protect the pod.")
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
    names = {"device": first.result.device, "taint": with_owner(first.taint), "request": first.result.request}
    facts = [
        Evidence(Subject("device", eviction.result.device), "taint", with_owner(eviction.taint))
        for eviction in list(evicted.values())[:MAX_NODES]
    ]
    facts.append(Evidence(say("request {request}", **names), "tolerations that count there", _counting(first)))
    summary = say("device {device} has taint {taint}, and {why}", why=_why(first), **names)
    request, device = first.result.request, first.result.device
    return Finding(AT_ONCE, summary, tuple(facts), Remedy(AT_ONCE.fix), request=request, device=device)


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
        values = {"nodes": nodes_named(nodes), "device": eviction.result.device, "taint": with_owner(eviction.taint)}
        when: Words = say("after {seconds:second}", seconds=seconds) if seconds else "at once"
        text = "on {nodes:some} the pod would be evicted {when}: device {device} has taint {taint}"
        yield say(text, when=when, **values)


FINDERS = (
    Finder(When.QUESTION, _ended, 10),
    Finder(When.FITS, _at_once, 40),
)
