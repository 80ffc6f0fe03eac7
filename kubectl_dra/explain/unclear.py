"""When an answer is unreliable: a deciding fact was not seen, is not modelled, or takes too long.

Which kinds an answer depends on is decided here alone (``_of_yes``, ``_of_no``): what filters and admission plugins
find out by themselves comes from them (``NotRead``, ``Question.unread``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.extended_resources import CLAIM_NAME, resources_of
from kubectl_dra.api.behaviour import EXTENDED_TAKES_OF_NODE, KNOWS_ALPHA
from kubectl_dra.api.slices import MAPPINGS, DeviceID, PoolID
from kubectl_dra.cluster.claim_relation import ClaimRelation, all_pods_known, consumers_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis, Outlook
from kubectl_dra.explain.causes.claim_creation import CREATION_FAILED
from kubectl_dra.explain.causes.on_node import may_be_lost
from kubectl_dra.explain.diagnosis import Finding
from kubectl_dra.explain.node_reasons import unread_kinds
from kubectl_dra.explain.phrase import ObjectName, Phrase, Statement, Words, named, say
from kubectl_dra.explain.question.resolve import Question, last_message
from kubectl_dra.explain.scheduler_profile import not_configured
from kubectl_dra.explain.unread_kind import STARTING, UNKNOWN, Stake, Unread, unread_of
from kubectl_dra.scheduling.gang_scheduling import Obstacle, kept_out
from kubectl_dra.scheduling.kinds_to_read import group_kind
from kubectl_dra.scheduling.reasons import PluginName, foreign
from kubectl_dra.scheduling.scheduler import NODE_RESOURCES

_RUNNING: Final = "whether a pod runs with {devices:some} is unknown"


class NotBoundByDefect(Statement, frozen=True):
    """A known defect decides whether the pod is bound, whatever else was not seen."""

    TEXT = (
        "whether the pod is bound is not known: the devices for its extended resources use cpu or memory of node "
        "{node}, and Kubernetes refuses to bind such a pod ({reference}, not fixed in 1.37.2); ask for the devices "
        "with a claim, or turn DRANodeAllocatableResources off"
    )
    node: str
    reference: str


def missing_objects(question: Question, snapshot: Snapshot, findings: Sequence[Finding]) -> Iterator[Unread]:
    """Objects that the pod names and that are missing only because their kind was not seen at all."""
    placed = tuple(_claims_of_placed(question, snapshot))
    yield from placed
    events = snapshot.events_about("Pod", question.namespace, question.name)
    # The controller's own words: it looked for them.
    if any(event.reason == CREATION_FAILED and "not found" in event.message for event in events):
        return
    for finding in findings:
        kind = finding.kind.missing
        missing = snapshot.missing(kind, question.namespace) if kind else None
        if missing is not None and not (placed and kind == placed[0].gap.kind):
            text = "whether {kind} {namespace}/{name} exists is unknown"
            exists = say(text, kind=kind, namespace=question.namespace, name=finding.object)
            yield Unread(missing, exists)


def _claims_of_placed(question: Question, snapshot: Snapshot) -> Iterator[Unread]:
    """The claims of a pod on its node, where they were not read: they tell which devices it has."""
    pod, space = question.pod, question.namespace
    gap = snapshot.missing("ResourceClaim", space)
    if gap is None or pod is None or not pod.node_name or pod.finished:
        return
    names = [claim_entry.name for claim_entry in question.claims if claim_entry.claim is None and claim_entry.name]
    given = pod.extended_resource_claim
    if given and (space, given) not in snapshot.claims:
        names.append(given)
    if names:
        text = "which devices {count:claim|claims} {claims:some} {count:gives|give} the pod is unknown"
        claims = [ObjectName("ResourceClaim", name, space) for name in names]
        yield Unread(gap, say(text, count=len(names), claims=claims))


def not_seen(analysis: Analysis, verdict: Verdict) -> Iterator[Unread]:
    """What decides and was not seen: causes found without it mean nothing."""
    if not _refused_anyway(analysis):
        yield from unread(analysis, verdict)


def _refused_anyway(analysis: Analysis) -> bool:
    """Whether the scheduler's other filters refuse every existing node, so that devices do not matter."""
    outcome = analysis.pod_outcome
    asked_all = not analysis.settings.node
    return bool(
        outcome and analysis.snapshot.nodes and asked_all and not analysis.view.nodes and not unread_kinds(outcome)
    )


def unread(analysis: Analysis, verdict: Verdict) -> Iterator[Unread]:
    """What was not read of the kinds that an answer about something without devices depends on.

    A "yes" may be ended by any object; a "no" stands unless there are devices or classes that nobody has seen. Of an
    allocated claim its pods tell whether it serves anybody.
    """
    snapshot, question = analysis.snapshot, analysis.question
    if verdict is Verdict.SCHEDULABLE:
        yield from unread_of(_of_yes(analysis), snapshot)
    elif verdict is not Verdict.ALLOCATED:
        yield from unread_of(_of_no(analysis), snapshot)
    elif question.pod is None:
        yield from unread_of((Stake("Pod", question.namespace, say(_RUNNING, devices=_held(analysis))),), snapshot)
    elif analysis.allocated and may_be_lost(question.pod, snapshot):
        text = "whether node {node} is there and pod {pod} runs is unknown"
        node, pod = ObjectName("Node", question.pod.node_name), named("Pod", question.pod)
        yield from unread_of((Stake("Node", "", say(text, node=node, pod=pod)),), snapshot)


def _of_no(analysis: Analysis) -> Iterator[Stake]:
    pod = analysis.pod
    if analysis.claims:
        yield Stake("ResourceSlice", "", UNKNOWN["ResourceSlice"])
    serves = analysis.view.cycle.features.extended_resources and pod is not None and resources_of(pod)
    if serves or (analysis.claims and _class_unknown(analysis)):
        yield Stake("DeviceClass", "", UNKNOWN["DeviceClass"])
    if analysis.claims and any(slice_.scope.node_selector is not None for slice_ in analysis.view.cycle.index.slices):
        yield Stake("Node", "", say("some devices are bound to node labels, which are unknown"))


def _of_yes(analysis: Analysis) -> Iterator[Stake]:
    question = analysis.question
    pod, space = question.pod, question.namespace
    waits = pod is not None and not pod.node_name
    # A claim from which the scheduler takes its devices back is allocated anew.
    taken_back = waits and bool(question.claims) and analysis.outlook is Outlook.FAILS
    anew = bool(analysis.claims) or taken_back
    if waits or anew:
        yield Stake("Node", "", UNKNOWN["Node"])
    if waits:
        yield Stake("Pod", "", UNKNOWN["Pod"])
    elif anew:
        yield Stake("Pod", "", STARTING)
    if anew:
        yield Stake("ResourceSlice", "", UNKNOWN["ResourceSlice"])
        if _class_unknown(analysis):
            yield Stake("DeviceClass", "", UNKNOWN["DeviceClass"])
        yield Stake("ResourceClaim", "", UNKNOWN["ResourceClaim"])
        yield Stake("DeviceTaintRule", "", UNKNOWN["DeviceTaintRule"])
    if pod is None or not waits:
        if analysis.claims and not question.exists:
            yield Stake("ResourceQuota", space, say("whether a quota refuses the claim is unknown"))
        return
    if kind := group_kind(pod):
        yield Stake(kind, space, UNKNOWN[kind])
        yield Stake("PriorityClass", "", say("the priority of the pod's group is unknown"))
    yield from _of_admission(question, analysis.snapshot)


def _of_admission(question: Question, snapshot: Snapshot) -> Iterator[Stake]:
    """What the API server reads when the pod, or a claim for it, is created."""
    pod, space = question.pod, question.namespace
    assert pod is not None
    claims = [
        claim_entry.claim
        for claim_entry in question.claims
        if claim_entry.hypothetical and claim_entry.claim is not None
    ]
    kinds = dict.fromkeys(question.unread)
    if claims:
        kinds["ResourceQuota"] = None
    if any(spec.admin_access for claim in claims for spec in claim.alternatives()):
        kinds["Namespace"] = None
    if not question.exists and any(other.status.nominated_node_name for other in snapshot.pods.values()):
        # A pod of lower priority leaves others the room that the scheduler made for them.
        kinds["PriorityClass"] = None
    named = {
        "PriorityClass": pod.spec.priority_class_name,
        "RuntimeClass": pod.spec.runtime_class_name,
        "ServiceAccount": pod.spec.service_account_name,
    }
    for kind in kinds:
        if name := named.get(kind, ""):
            yield Stake(
                kind, space, say("whether {kind} {name} exists, and what it adds, is unknown", kind=kind, name=name)
            )
        elif kind == "PriorityClass":
            yield Stake(kind, space, say("the pod's priority is unknown"))
        elif kind == "Namespace":
            yield Stake(kind, space, say("whether namespace {name} takes the pod is unknown", name=space))
        elif kind == "ResourceQuota":
            yield Stake(kind, space, say("whether a quota refuses the pod or its claims is unknown"))
        else:
            yield Stake(kind, space, say("what the API server makes of the pod is unknown"))


def _class_unknown(analysis: Analysis) -> bool:
    """Whether a request names a class that is not there."""
    known = analysis.snapshot.classes
    claims = analysis.question.existing_claims
    specs = (spec for claim in claims for spec in claim.alternatives())
    return any(spec.device_class not in known for spec in specs)


def not_decided(analysis: Analysis, verdict: Verdict, findings: Sequence[Finding]) -> Iterator[Words]:
    """What was seen but leaves the answer open: searches that are too long, unmodelled fields, contrary messages."""
    if verdict is Verdict.SCHEDULABLE:
        text = "judging by what was read, the pod fits on {nodes:some}, but {contrary}"
        for finding in findings:
            if finding.contrary:
                yield say(text, nodes=analysis.takers, contrary=finding.summary)
    yield from (waiting := tuple(_under_way(verdict, findings)))
    yield from _of_consumers(analysis, verdict)
    yield from not_configured(analysis, verdict)
    yield from _group(analysis, verdict)
    if not waiting:
        yield from _out_of_queue(analysis, verdict)
    yield from _of_filters(analysis, verdict)
    yield from _said_by_others(analysis, verdict)
    yield from _of_nodes(analysis, verdict)
    if analysis.claims:
        yield from _too_long(analysis, verdict)
        yield from _by_order(analysis, verdict)
        yield from _by_count(analysis, verdict)
        yield from _unmodelled(analysis)


def _held(analysis: Analysis) -> list[DeviceID]:
    """The devices that the claims have."""
    return [device for claim in analysis.allocated for device in claim.devices]


def _of_consumers(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """The pods for which an allocated claim is reserved, where those that were read are not all there are."""
    snapshot, question = analysis.snapshot, analysis.question
    if verdict is not Verdict.ALLOCATED or question.pod is not None or snapshot.is_gap("Pod", question.namespace):
        return
    for claim in analysis.allocated:
        for use in consumers_of(claim, snapshot.pods, complete=all_pods_known(snapshot, question.namespace)).entries:
            if use.relation is ClaimRelation.UNSEEN:
                text = "pod {pod} is not in what was read, so " + _RUNNING
                pod = ObjectName("Pod", use.entry.name, question.namespace)
                yield say(text, pod=pod, devices=_held(analysis))


def _under_way(verdict: Verdict, findings: Sequence[Finding]) -> Iterator[Phrase]:
    """What somebody is doing by itself, where nothing else keeps the pod from its devices."""
    for finding in findings if verdict is Verdict.SCHEDULABLE else ():
        if finding.under_way is not None:
            text = "{summary}; {by} has had {seconds:second} for it"
            yield say(text, summary=finding.summary, by=finding.under_way.by, seconds=finding.under_way.seconds)


def _out_of_queue(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """The scheduler does not try the pod because of a claim, and no cause has said so."""
    outcome = analysis.pod_outcome
    if outcome is None or verdict is not Verdict.SCHEDULABLE or not analysis.question.exists:
        return
    rejection = kept_out(outcome.pod, outcome.state)
    if rejection is not None and rejection.plugin is PluginName.DYNAMIC_RESOURCES:
        text = "judging by what was read, the scheduler leaves the pod out of its queue: {reasons}"
        yield say(text, reasons=[reason.words for reason in rejection.reasons])


def _of_filters(analysis: Analysis, verdict: Verdict) -> Iterator[Words]:
    """Kinds that filters need to judge nodes, if no other node accepts the pod."""
    outcome = analysis.pod_outcome
    if outcome is None or verdict is not Verdict.UNSCHEDULABLE:
        return
    for kind in sorted(unread_kinds(outcome)):
        missing = outcome.state.snapshot.missing(kind)
        unknown = say("whether nodes take the pod is unknown")
        yield Unread(missing, unknown) if missing is not None else unknown


def _said_by_others(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """What the scheduler's last message counts and no known filter produces; it may still hold."""
    pod = analysis.pod
    if pod is None or verdict is not Verdict.SCHEDULABLE or not analysis.question.exists or analysis.settings.supposed:
        return
    if not analysis.scheduler.schedules(pod):
        return
    word = last_message(pod, analysis.snapshot)
    for text in foreign(word.message) if word is not None else ():
        yield say('the scheduler counts "{text}", which no filter known here says', text=text)


OBSTACLES: Final = {
    Obstacle.TOO_LARGE: "whether the group {group} fits is not tried: too many pods, nodes and slices",
    Obstacle.TOO_LONG: "whether the group {group} fits is not known: the search for devices did not end in time",
    Obstacle.VOLUMES: "whether the group {group} fits is not known: volumes are bound together with its pods",
    Obstacle.CHANCE: "whether the group {group} fits depends on chance: which pod is tried first, which node it gets",
    Obstacle.LEFT_OUT: "the group {group} fits, but not all of its pods: which is left out is not known",
    Obstacle.NESTED: "the group {group} is part of a group of groups, which is not modelled",
    Obstacle.CLAIMS: "whether the group {group} fits is not known: claims of its other pods do not exist yet",
    Obstacle.DOMAIN: "pods of the group {group} run in several domains of its topology key, or in none",
}


def _group(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """Why it is unknown whether the gang fits, for a pod that fits by itself."""
    pod = analysis.pod
    if pod is None or verdict is not Verdict.SCHEDULABLE or not isinstance(analysis.together, Obstacle):
        return
    reference = pod.spec.workload_ref
    yield say(OBSTACLES[analysis.together], group=reference.pod_group if reference is not None else pod.pod_group)


def _too_long(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    fitting = [analysis.attempts[name] for name in analysis.fitting]
    if verdict is Verdict.SCHEDULABLE and fitting and all(analysis.would_time_out(attempt) for attempt in fitting):
        text = "it fits, but the scheduler would probably time out before it finds out ({node})"
        yield say(text, node=fitting[0].node)
    if verdict is not Verdict.UNDETERMINED:
        return
    for attempt in analysis.attempts.values():
        if attempt.verdict is AttemptVerdict.UNDETERMINED and not attempt.order_decides:
            yield say(
                "the search on node {node} did not end in time; the scheduler, which gives up after 10 s per node, may "
                "time out as well",
                node=attempt.node,
            )
            return


def _of_nodes(analysis: Analysis, verdict: Verdict) -> Iterator[Words]:
    """What devices take of their nodes, where the scheduler itself may read or write it in several ways."""
    if verdict is Verdict.UNDETERMINED:
        for reason in analysis.published_twice[:1]:
            yield say("slices differ in what {device} takes from the node", device=reason.device)
    devices = analysis.outcome.chain.devices if analysis.outcome is not None else None
    if verdict is not Verdict.SCHEDULABLE or devices is None or devices.extended is None:
        return
    for name in analysis.takers if devices.takes_of_nodes else ():
        taken = devices.taken_on(analysis.view.node_by_name[name])
        if any(resources.resource_claim_name == CLAIM_NAME for resources in taken.claims):
            yield NotBoundByDefect(name, EXTENDED_TAKES_OF_NODE.reference)
            return


def _by_order(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """Nodes on which the random order of pools decides; an error there fails the pod whatever fits elsewhere."""
    for attempt in analysis.attempts.values():
        if not attempt.order_decides:
            continue
        if verdict is Verdict.UNDETERMINED:
            yield say("on node {node} the order in which pools are tried decides, and it is random", node=attempt.node)
            return
        if verdict is Verdict.SCHEDULABLE and attempt.fails_in_some_order:
            text = "on node {node} the scheduler may fail first, depending on a random order: {error}"
            yield say(text, node=attempt.node, error=attempt.fails_in_some_order)
            return


def _by_count(analysis: Analysis, verdict: Verdict) -> Iterator[Phrase]:
    """A pool whose slices disagree on their number: the scheduler goes by any of them, so it may be complete or not."""
    view = analysis.view
    # What each generation's slices announce, where they disagree: hardly ever.
    announced: dict[tuple[PoolID, int], set[int]] = {}
    for slice_ in view.cycle.index.slices:
        announced.setdefault((slice_.pool, slice_.generation), set()).add(slice_.slice_count)
    announced = {key: counts for key, counts in announced.items() if len(counts) > 1}
    loose = view.cycle.features.loose_pools
    if not announced or loose or verdict not in (Verdict.SCHEDULABLE, Verdict.UNSCHEDULABLE):
        return
    drivers = {item.id.driver for located in analysis.funnels for item in located.funnel.selected()}
    unsure: dict[str, PoolID] = {}
    for node in view.nodes:
        for pool in view.pools[node.name].pools if node.name in view.pools else ():
            counts = announced.get((pool.id, pool.generation), set())
            if pool.found in counts and (pool.id.driver in drivers or not drivers):
                unsure.setdefault(node.name, pool.id)
    known = set(analysis.fitting) - unsure.keys()
    if unsure and not (verdict is Verdict.SCHEDULABLE and known):
        text = "slices of pool {pool} disagree on how many there are, and the scheduler may go by any of them"
        yield say(text, pool=next(iter(unsure.values())))


def _unmodelled(analysis: Analysis) -> Iterator[Phrase]:
    fields: dict[str, str] = {}
    of_nodes: list[tuple[DeviceID, str]] = []
    for claim in analysis.claims:
        for name in claim.unmodelled:
            fields.setdefault(f"spec.devices.{name}", f"claim {claim.key}")
        for name in (name for spec in claim.alternatives() for name in spec.unmodelled):
            fields.setdefault(f"requests[].{name}", f"claim {claim.key}")
    for slice_ in analysis.view.cycle.index.slices:
        for name in slice_.unmodelled:
            fields.setdefault(f"spec.{name}", f"ResourceSlice {slice_.name}")
        for position, device in enumerate(slice_.devices):
            for name in device.unmodelled:
                if name == MAPPINGS:
                    of_nodes.append((DeviceID(*slice_.pool, slice_.names[position]), slice_.name))
                else:
                    fields.setdefault(f"spec.devices[].{name}", f"ResourceSlice {slice_.name}")
    within = _within_reach(analysis) if of_nodes and NODE_RESOURCES in analysis.scheduler.gates else frozenset()
    for device_id, slice_name in of_nodes:
        if device_id in within:
            fields.setdefault(f"spec.devices[].{MAPPINGS}", f"ResourceSlice {slice_name}")
    for rule in analysis.snapshot.taint_rules:
        for name in rule.unmodelled:
            fields.setdefault(f"spec.{name}", f"DeviceTaintRule {rule.metadata.name}")
    for field, where in sorted(fields.items()):
        yield say("{where} uses {field}, which is not modelled", where=where, field=field)
    release = analysis.scheduler.release
    for field, where in () if release in KNOWS_ALPHA else sorted(_of_137(analysis)):
        text = (
            "{where} uses {field}, which came with Kubernetes 1.37, and {release} is assumed: if the cluster runs it, "
            "add --kubernetes-version 1.37"
        )
        yield say(text, where=where, field=field, release=release)


def _within_reach(analysis: Analysis) -> frozenset[DeviceID]:
    """The devices that the question has, or that a request of it asks for: no other can take anything for the pod."""
    selected = [item.id for located in analysis.funnels for item in located.funnel.selected()]
    return frozenset((*selected, *_held(analysis)))


def _of_137(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Fields that change an allocation and that releases before 1.37 do not have, and the first object with each."""
    for claim in analysis.claims:
        if any(spec.derived_attributes for spec in claim.alternatives()):
            yield "requests[].derivedAttributes", f"claim {claim.key}"
            break
    index = analysis.view.cycle.index
    if index.has_groups:
        first = next(filter(index.uses_groups, index.slices))
        yield "spec.devices[].consumesCounters[].compatibilityGroups", f"ResourceSlice {first.name}"
    for slice_ in index.slices:
        if slice_.skip_node_operations:
            yield "spec.skipNodeOperations", f"ResourceSlice {slice_.name}"
            break
    if index.takes_of_nodes and NODE_RESOURCES in analysis.scheduler.gates:
        within = _within_reach(analysis)
        for slice_ in index.slices:
            named = zip(slice_.devices, slice_.names, strict=True)
            if any(device.node_resources and DeviceID(*slice_.pool, name) in within for device, name in named):
                yield "spec.devices[].nodeAllocatableResources", f"ResourceSlice {slice_.name}"
                break
