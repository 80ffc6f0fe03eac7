"""An autoscaler has looked at the pod, or is asked for its nodes ahead: they come, do not, or bring no devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.api.neighbour_kinds import NodeClaim
from kubectl_dra.api.pods import Pod, PodCondition
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import parse
from kubectl_dra.command import CommandLine, as_written, kubectl
from kubectl_dra.data.clouds import cloud_of
from kubectl_dra.data.messages import CLUSTER_AUTOSCALER, COMING, DRIVER, KARPENTER, LATER, UNKNOWN, all_understood
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.from_zero import PATIENCE, deciding_sign, scales_from_zero
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Subject, Words, named, nodes_named, say, subject
from kubectl_dra.neighbours.autoscalers import (
    NODE_CLAIM,
    NODE_POOL,
    PROVISION_MINUTES,
    PROVISIONING,
    STATUS_MAP,
    GroupStatus,
    ProvisioningState,
    RequestStage,
    ScaleSign,
    consumed,
    groups,
    node_claim_of,
    request_of,
    state_of_request,
    unready_pools,
)

NODE_COMING = CauseKind(
    code="node-coming", family=Family.POD, look=Look.POD, state="waits for a node that is on its way"
)
NEW_NODE_SILENT = CauseKind(code="new-node-without-devices", family=Family.POD, look=Look.DRIVERS)
NO_SCALE_UP = CauseKind(code="no-scale-up", family=Family.POD, look=Look.POD, instead=True)
_WAITS: Final = "waits for the devices of a new node"
_MAX_REASONS: Final = 3
_MAX_GROUPS: Final = 3
_MANY_CLAIMS: Final = 3
"""So many nodes for one pod are no coincidence."""


def _more_nodes(analysis: Analysis) -> Iterator[Finding]:
    pod = analysis.pod
    if pod is None or pod.node_name or not analysis.question.exists:
        return
    sign = deciding_sign(analysis)
    if sign is None:
        return
    if sign.outcome == COMING and sign.node_claim:
        yield from _claimed(analysis, sign)
    elif sign.outcome == COMING and sign.who == KARPENTER:
        yield _expected_elsewhere(analysis, sign)
    elif sign.outcome == COMING:
        yield from _asked(analysis, sign)
    else:
        yield _none(analysis, sign)


def _expected_elsewhere(analysis: Analysis, sign: ScaleSign) -> Finding:
    """Karpenter has chosen a node that is there, and so makes none."""
    text = "Karpenter made no new node for the pod{at}: it expects the pod to fit on an existing node ({said})"
    at = say(" at {time}", time=sign.event.last) if sign.event.last else ""
    fix = "See what keeps the pod off that node: Karpenter makes another one only when it counts that one as full."
    summary = say(text, at=at, said=sign.event.message)
    return Finding(NO_SCALE_UP, summary, (_event(analysis, sign),), Remedy(fix))


# A node was asked for.


def _claimed(analysis: Analysis, sign: ScaleSign) -> Iterator[Finding]:
    """Karpenter has named the NodeClaim that the pod waits for: how far it is."""
    snapshot = analysis.snapshot
    claim = node_claim_of(sign, snapshot)
    if claim is None:
        if snapshot.is_gap(NODE_CLAIM):
            yield from _asked(analysis, sign)
            return
        text = "NodeClaim {name}, which Karpenter had chosen for the pod, does not exist any more"
        fix = "The NodeClaim's events and Karpenter's log say why it is gone: usually the cloud had no such machine."
        about = f"involvedObject.kind=NodeClaim,involvedObject.name={sign.node_claim}"
        remedy = Remedy(fix, commands=(kubectl("get", "events", "-A", "--field-selector", about),))
        yield Finding(NO_SCALE_UP, say(text, name=sign.node_claim), (_event(analysis, sign),), remedy)
        return
    own = say("NodeClaim {name}", name=claim.metadata.name)
    if not claim.status.conditions:
        late = Clock(snapshot).age(sign.event.last) > PATIENCE
        yield _coming(analysis, sign, (_event(analysis, sign),), late=late, at=own)
        return
    step = claim.unmet()
    facts = (_event(analysis, sign), *([_condition(claim, step)] if step is not None else []))
    if len(sign.claims) >= _MANY_CLAIMS:
        text = "Karpenter has made {count:NodeClaim} for the pod one after the other, and none of them served it"
        fix = "See why the last ones ended, in their conditions and events: usually a machine did not join the cluster."
        remedy = Remedy(fix, commands=(kubectl("describe", "nodeclaims"),))
        yield Finding(NO_SCALE_UP, say(text, count=len(sign.claims)), facts, remedy)
        return
    late = step is not None and Clock(snapshot).age(step.last_transition_time) > PATIENCE
    silent = step is not None and any(
        message.entry.scale == DRIVER for message in all_understood(f"{step.reason}: {step.message}", KARPENTER)
    )
    if step is None or silent:
        nodes = [claim.status.node_name] if claim.status.node_name else []
        if silent or _without_devices(analysis, nodes):
            yield _silent(analysis, sign, nodes, facts, late=late)
    elif step.type == "Launched" and step.status == "False":
        text = "Karpenter cannot make NodeClaim {name} for the pod: {reason}: {message}"
        summary = say(text, name=claim.metadata.name, reason=step.reason, message=step.message)
        yield Finding(NO_SCALE_UP, summary, facts, Remedy(_STOCK, commands=_look(sign.who)))
    elif step.type == "Initialized":
        yield _uninitialized(analysis, claim, step, facts, late=late)
    else:
        text = "{claim}: {step} is {status}: {message}"
        at = say(text, claim=own, step=step.type, status=step.status, message=step.message or step.reason)
        yield _coming(analysis, sign, facts, late=late, at=at)


def _uninitialized(
    analysis: Analysis, claim: NodeClaim, step: PodCondition, facts: Sequence[Evidence], *, late: bool
) -> Finding:
    """The node has joined the cluster, and Karpenter waits for other things than devices of claims."""
    text = (
        "the node of NodeClaim {name} has joined, and Karpenter waits{lasting} for what it lacks: {reason}: {message}"
    )
    lasting = Clock(analysis.snapshot).lasting(step.last_transition_time)
    words = {"name": claim.metadata.name, "lasting": lasting, "reason": step.reason, "message": step.message}
    if not late:
        wait = Remedy("Wait: what a new node still lacks usually comes within minutes.")
        return Finding(NODE_COMING, say(text, **words), tuple(facts), wait, normal=True)
    fix = "Add what is missing on that node, or delete its NodeClaim: Karpenter never gives up a node that has joined."
    return Finding(NEW_NODE_SILENT, say(text, **words), tuple(facts), Remedy(fix))


def _asked(analysis: Analysis, sign: ScaleSign) -> Iterator[Finding]:
    """A node was asked for, and nothing but the nodes themselves says whether it has come."""
    snapshot, since = analysis.snapshot, sign.event.first or sign.event.last
    late = Clock(snapshot).age(sign.event.last) > PATIENCE
    group = next((status for status in groups(snapshot) if status.name == sign.group), None)
    facts = (_event(analysis, sign), *([_group(group)] if group is not None else []))
    new = [name for name, node in snapshot.nodes.items() if _came(node.metadata.creation_timestamp, sign, since)]
    silent = _without_devices(analysis, new)
    if silent:
        yield _silent(analysis, sign, silent, facts, late=late)
    elif not new:
        failed = group is not None and group.scale_up.status == "Backoff"
        yield _coming(analysis, sign, facts, late=late or failed)


def _came(created: str, sign: ScaleSign, since: str) -> bool:
    """Whether a node was made after it was asked for, and before the autoscaler gives up: later ones are for others."""
    last, at = parse(sign.event.last), parse(created)
    return bool(since) and created >= since and not (last and at and at - last > PATIENCE)


_STOCK: Final = "Wait, or allow the group other kinds of nodes or other zones, or raise the quota of the cloud."


def _coming(
    analysis: Analysis, sign: ScaleSign, facts: Sequence[Evidence], *, late: bool, at: Words | None = None
) -> Finding:
    """The node is on its way, or has not come in time."""
    clock, who, why = Clock(analysis.snapshot), sign.who, sign.deciding[0].why
    at_it = clock.lasting(sign.event.first or sign.event.last)
    if late:
        text = "{who} has asked for a node{at_it}, and none has come ({at})"
        remedy = Remedy(_STOCK, commands=_look(who))
        summary = say(text, who=who, at_it=at_it, at=at or sign.event.message)
        return Finding(NO_SCALE_UP, summary, tuple(facts), remedy)
    text = "{why}; it has been trying{at_it}, and gives up after {minutes} minutes"
    if not at_it:
        text = "{why}; it gives up after {minutes} minutes"
    wait = "Wait: a node takes some minutes until it is ready, and its driver some more until it has published."
    summary = say(text, why=why, at_it=at_it, minutes=PROVISION_MINUTES)
    return Finding(NODE_COMING, summary, tuple(facts), Remedy(wait, commands=_look(who)), normal=True)


def _silent(
    analysis: Analysis, sign: ScaleSign, nodes: Sequence[str], facts: Sequence[Evidence], *, late: bool
) -> Finding:
    """The node has come, and the driver has not published its devices there."""
    snapshot, drivers = analysis.snapshot, sorted(analysis.wanted_drivers)
    created = snapshot.nodes[nodes[0]].metadata.creation_timestamp if nodes and nodes[0] in snapshot.nodes else ""
    words = {"nodes": nodes_named(nodes), "drivers": drivers, "count": len(nodes), "who": sign.who}
    come: Words = say("{count:node|nodes} {nodes:some 3} {count:has|have} come since {who} asked for one", **words)
    if not nodes:
        come = say("the node that {who} asked for has come", **words)
    subject = say("driver {drivers}", **words) if drivers else "its driver"
    if not late:
        text = "{come}, and {subject} has published no devices there yet"
        wait = "Wait: a driver publishes its devices some minutes after its node has come, GPUs mostly within 10."
        summary = say(text, come=come, subject=subject)
        return Finding(NEW_NODE_SILENT, summary, tuple(facts), Remedy(wait), state=_WAITS, normal=True)
    text = "{come}, and {subject} still publishes no devices there{up}"
    up = Clock(snapshot).lasting(created)
    fix = say(
        "Look at the driver's pod on {nodes:some 3}: until it has published its devices, {who} counts the node as not "
        "ready{alone}.",
        alone=", and makes no other one for the pod" if sign.who == KARPENTER else "",
        **words,
    )
    summary = say(text, come=come, subject=subject, up=say(" (up{up})", up=up) if up else "")
    return Finding(NEW_NODE_SILENT, summary, tuple(facts), Remedy(fix))


def _without_devices(analysis: Analysis, nodes: Sequence[str]) -> list[str]:
    """Those of some nodes that have no devices of the drivers that the pod needs."""
    snapshot, wanted = analysis.snapshot, analysis.wanted_drivers
    slices = (slice_ for slice_ in snapshot.slices if slice_.devices and (not wanted or slice_.driver in wanted))
    serving = {slice_.scope.node_name for slice_ in slices}
    return [name for name in nodes if name in snapshot.nodes and name not in serving]


# None is added.


def _none(analysis: Analysis, sign: ScaleSign) -> Finding:
    """No node is added, and why, as far as that is known."""
    snapshot, slices, who = analysis.snapshot, analysis.view.cycle.index.slices, sign.who
    bound = sum(1 for slice_ in slices if slice_.scope.node_name)
    scope = say(
        "{bound} of {total} name an existing node" if slices else "there are none", bound=bound, total=len(slices)
    )
    whys: Words = Joined(tuple(reason.why for reason in sign.deciding[:_MAX_REASONS]))
    if not sign.reasons:
        whys = sign.event.message
    zero = sign.outcome in (UNKNOWN, "") and scales_from_zero(analysis)
    such = "such " if any(slice_.devices for slice_ in slices) else ""
    text = "{who} adds no node for the pod, and waiting does not help: {whys}"
    if zero:
        text = "no node has {such}devices yet, and {who} does not know that a new one would have them: {whys}"
    elif sign.outcome == LATER:
        text = "{who} adds no node for the pod at the moment, maybe later: {whys}"
    elif not sign.outcome:
        text = "{who} adds no node for the pod: {whys}"
    troubled = [
        group
        for group in groups(snapshot)
        if group.scale_up.status == "Backoff" or group.health.node_counts.registered.unready.resource_unready
    ]
    facts = [_event(analysis, sign), *map(_group, troubled[:_MAX_GROUPS] if who == CLUSTER_AUTOSCALER else ())]
    facts += [
        Evidence(Subject("NodePool", ObjectName(NODE_POOL, name)), condition.reason, condition.message)
        for name, condition in (unready_pools(snapshot) if who == KARPENTER else {}).items()
    ]
    facts.append(Evidence("ResourceSlices", "nodes", scope))
    summary = say(text, who=who, whys=whys, such=such)
    return Finding(NO_SCALE_UP, summary, tuple(facts), _remedy(analysis, sign, zero=zero))


def _remedy(analysis: Analysis, sign: ScaleSign, *, zero: bool) -> Remedy | None:
    cloud = cloud_of(analysis.snapshot.nodes.values())
    if zero and (cloud.title or not any(slice_.devices for slice_ in analysis.view.cycle.index.slices)):
        text = "{zero}. Only its cloud provider tells {who} what an empty node group would publish."
        return Remedy(say(text, zero=cloud.zero, who=sign.who))
    commands = _look(sign.who) if sign.outcome == LATER else ()
    return Remedy(sign.deciding[0].do, commands=commands) if sign.reasons else None


def _look(who: str) -> tuple[CommandLine, ...]:
    """Where the autoscaler says how its nodes are."""
    if who == KARPENTER:
        return (kubectl("get", "nodeclaims"),)
    space, name = STATUS_MAP
    return (kubectl("get", "configmap", name, "-o", "yaml", namespace=space),)


def _event(analysis: Analysis, sign: ScaleSign) -> Evidence:
    pod = analysis.pod
    assert pod is not None
    said: Phrase = say("{reason} of {who}", reason=sign.event.reason, who=sign.who)
    return Evidence(Subject("Event on Pod", named("Pod", pod)), said, sign.event.message)


def _condition(claim: NodeClaim, condition: PodCondition) -> Evidence:
    text = say("{reason}: {message}", reason=condition.reason, message=condition.message)
    return Evidence(Subject("NodeClaim", named(NODE_CLAIM, claim)), condition.type, text)


def _group(group: GroupStatus) -> Evidence:
    """State of a node group of cluster-autoscaler."""
    info, registered = group.scale_up.backoff_info, group.health.node_counts.registered
    parts: list[Words] = [say("{have} of at most {most} nodes", have=registered.total, most=group.health.max_size)]
    if group.scale_up.status == "Backoff":
        why = say(" ({code}: {message})", code=info.error_code, message=info.error_message) if info.error_code else ""
        parts.append(say("in backoff{why}", why=why))
    if count := registered.unready.resource_unready:
        parts.append(say("{count:node} without published devices", count=count))
    name = ObjectName("ConfigMap", STATUS_MAP[1], STATUS_MAP[0])
    return Evidence(Subject("ConfigMap", name), say("group {name}", name=group.name), Joined(tuple(parts), ", "))


_RESOURCE: Final = "provisioningrequests.autoscaling.x-k8s.io"
_TEXTS: Final[Mapping[RequestStage, str]] = {
    RequestStage.FAILED: "ProvisioningRequest {name} has failed{since}, and is not tried again: {said}",
    RequestStage.REVOKED: "the capacity of ProvisioningRequest {name} was taken back{since}: {said}",
    RequestStage.EXPIRED: "the booking of ProvisioningRequest {name} has expired{since}: nothing is kept for it now",
    RequestStage.PROVISIONED: "the capacity of ProvisioningRequest {name} is there{since}",
    RequestStage.ACCEPTED: "an autoscaler has accepted ProvisioningRequest {name}{since}, and it waits: {said}",
    RequestStage.NEW: "no autoscaler has accepted ProvisioningRequest {name} yet",
}
_FIXES: Final[Mapping[RequestStage, str]] = {
    RequestStage.FAILED: "Repair what it says, then create another request and name that one in the pod.",
    RequestStage.REVOKED: "Create another request and name that one in the pod.",
    RequestStage.EXPIRED: "Free what the pod needs, or create another request and the pod within its ten minutes.",
    RequestStage.ACCEPTED: "Wait; it fails by itself if the capacity does not come.",
    RequestStage.NEW: "See whether cluster-autoscaler runs with --enable-provisioning-requests, and knows its class.",
}


def of_request(state: ProvisioningState) -> Phrase:
    """State of a request, in words."""
    since = say(" since {since}", since=state.since) if state.since else ""
    return say(_TEXTS[state.stage], name=state.name, since=since, said=state.said)


def seen_of_request(pod: Pod, snapshot: Snapshot) -> Iterator[Evidence]:
    """What the pod's request says of itself."""
    request = request_of(pod, snapshot)
    if request is not None:
        state = state_of_request(request)
        about = Subject("ProvisioningRequest", named(PROVISIONING, request))
        value = say("{since}: {said}", since=state.since, said=state.said) if state.stage.value else say("none holds")
        yield Evidence(about, state.stage.value or "conditions", value)


def _consumes(analysis: Analysis) -> Iterator[Finding]:
    """The pod names a request: cluster-autoscaler makes no other node for it."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or pod.node_name or not (name := consumed(pod)):
        return
    space, request = pod.metadata.namespace, request_of(pod, snapshot)
    seen = (Evidence(subject("Pod", pod), "consumes ProvisioningRequest", name), *seen_of_request(pod, snapshot))
    if request is None:
        if snapshot.missing(PROVISIONING, space) is None:
            text = "ProvisioningRequest {name} does not exist; cluster-autoscaler makes no node for pods that name one"
            fix = "Create the request, or take the annotation off the pods."
            yield Finding(NO_SCALE_UP, say(text, name=name), seen, Remedy(fix))
        return
    state = state_of_request(request)
    if state.stage is RequestStage.PROVISIONED:
        return
    comes = state.stage in (RequestStage.ACCEPTED, RequestStage.NEW)
    text = "{state}; cluster-autoscaler makes no other node for a pod that names a request"
    yield Finding(
        NODE_COMING if comes else NO_SCALE_UP,
        say(text, state=of_request(state)),
        seen,
        Remedy(_FIXES[state.stage], commands=(as_written(_RESOURCE, name, space),)),
        normal=state.stage is RequestStage.ACCEPTED,
    )


FINDERS = (
    Finder(When.FAILS_TOO, _more_nodes, 20),
    Finder(When.FAILS_TOO, _consumes, 19),
)
