"""Nodes are out: a filter of the scheduler refuses them, devices take too much of them, or a claim is for others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.pods import owner_of
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.explain.analysis import NOT_ASKED, Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Relation, Remedy
from kubectl_dra.explain.holders import consumers_named, owner_of_all
from kubectl_dra.explain.node_reasons import KINDS as OBJECT_KINDS
from kubectl_dra.explain.node_reasons import ResourceShort, ShortForDevices, reason_of
from kubectl_dra.explain.phrase import ObjectName, Words, named, nodes_named, say, subject, the_node
from kubectl_dra.explain.remedies import node_rules
from kubectl_dra.explain.remedies.freeing_claims import freeing
from kubectl_dra.scheduling.inter_pod_affinity import AntiAffinityBroken, ExistingAntiAffinityBroken, kept_apart_by
from kubectl_dra.scheduling.node_resources_of_devices import (
    DeviceGone,
    InsufficientForDevices,
    MappedClaimInUse,
    NothingConsumed,
    PodLimitExceeded,
    PodRequestExceeded,
)
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME, NoDomain
from kubectl_dra.scheduling.reasons import PluginName, Reason
from kubectl_dra.scheduling.volume_binding import ClassOfClaimMissing, NoDefaultClass
from kubectl_dra.scheduling.volumes import ObjectNotFound
from kubectl_dra.text import did_you_mean_or_known

# Filters that check more than a node's labels, taints and resources refuse nodes; one cause per filter.

PORTS = CauseKind(code="host-port-taken", family=Family.NODE_FILTERS, look=Look.ALL_PODS)
VOLUME_IN_USE = CauseKind(code="volume-in-use", family=Family.NODE_FILTERS, look=Look.VOLUME_CLAIMS)
VOLUME_LIMIT = CauseKind(code="too-many-volumes-on-node", family=Family.NODE_FILTERS, look=Look.VOLUMES_ATTACHED)
VOLUME_UNUSABLE = CauseKind(code="volume-not-usable-here", family=Family.NODE_FILTERS, look=Look.VOLUME_CLAIMS)
VOLUME_ZONE = CauseKind(code="volume-in-other-zone", family=Family.NODE_FILTERS, look=Look.VOLUME_CLAIMS)
SPREAD = CauseKind(code="topology-spread-unsatisfied", family=Family.NODE_FILTERS, look=Look.LABELS_OF_PODS)
AFFINITY = CauseKind(code="pod-affinity-unsatisfied", family=Family.NODE_FILTERS, look=Look.LABELS_OF_PODS)
FEATURES = CauseKind(code="node-feature-not-declared", family=Family.NODE_FILTERS, look=Look.FEATURES_OF_NODES)
_OF_PLUGIN: Final[Mapping[PluginName, CauseKind]] = {
    PluginName.NODE_PORTS: PORTS,
    PluginName.VOLUME_RESTRICTIONS: VOLUME_IN_USE,
    PluginName.NODE_VOLUME_LIMITS: VOLUME_LIMIT,
    PluginName.VOLUME_BINDING: VOLUME_UNUSABLE,
    PluginName.VOLUME_ZONE: VOLUME_ZONE,
    PluginName.POD_TOPOLOGY_SPREAD: SPREAD,
    PluginName.INTER_POD_AFFINITY: AFFINITY,
    PluginName.NODE_DECLARED_FEATURES: FEATURES,
}


def kind_on(outcome: Outcome | None, node: str) -> CauseKind | None:
    """The cause, among those here, that refuses a node."""
    rejection = outcome.filtered.get(node) if outcome is not None else None
    if rejection is None:
        return None
    if any(isinstance(reason, ObjectNotFound) for reason in rejection.reasons):
        return VOLUME_UNUSABLE
    return _OF_PLUGIN.get(rejection.plugin)


def kind_of_all(analysis: Analysis) -> CauseKind | None:
    """The cause that refuses every node, if a single one does."""
    kinds = _by_kind(analysis)
    if analysis.view.nodes or len(kinds) != 1:
        return None
    ((kind, reasons),) = kinds.items()
    return kind if len(reasons) == len(analysis.view.ineligible) else None


def _by_kind(analysis: Analysis) -> dict[CauseKind, dict[str, Words]]:
    """The nodes of each cause, with their reasons."""
    by_kind: dict[CauseKind, dict[str, Words]] = {}
    outcome = analysis.pod_outcome
    for name in outcome.filtered if outcome is not None else ():
        kind = kind_on(outcome, name)
        if kind is not None and name in analysis.view.ineligible:
            by_kind.setdefault(kind, {})[name] = analysis.view.ineligible[name]
    return by_kind


def _refused(analysis: Analysis) -> Iterator[Finding]:
    for kind, reasons in _by_kind(analysis).items():
        from kubectl_dra.explain.outcomes import by_reason, counted, evidence

        groups = by_reason(reasons)
        summary = say("{count:node} refused: {reasons}", count=len(reasons), reasons=counted(groups))
        facts = (*evidence(groups), *_pods_apart(analysis.pod_outcome, reasons))
        yield Finding(
            kind, summary, facts, remedy_on(analysis.pod_outcome, reasons), next=look_on(analysis.pod_outcome, reasons)
        )


def _refusals(outcome: Outcome | None, nodes: Iterable[str]) -> Iterator[Reason]:
    """Why filters refuse the pod on these nodes."""
    refused = outcome.filtered if outcome is not None else {}
    return (reason for name in nodes if name in refused for reason in refused[name].reasons)


def remedy_on(outcome: Outcome | None, nodes: Iterable[str]) -> Remedy | None:
    """What ends the cause if an object, a label or a node is missing; None leaves the kind's general advice."""
    for reason in _refusals(outcome, nodes):
        if isinstance(reason, ObjectNotFound):
            kind = OBJECT_KINDS.get(reason.resource, reason.resource)
            return Remedy(say("Create {kind} {name}, or correct the name.", kind=kind, name=reason.name))
        if isinstance(reason, ClassOfClaimMissing):
            text = "Create StorageClass {name}, or correct the name: {hint}."
            known = [each for _, each in outcome.state.others("StorageClass")] if outcome is not None else []
            hint = did_you_mean_or_known(reason.storage_class, known) if known else "there is none yet"
            return Remedy(say(text, name=reason.storage_class, hint=hint))
        if isinstance(reason, NoDefaultClass):
            return Remedy("Name a StorageClass in the claim, or make one the default.")
        if isinstance(reason, NoDomain):
            text = "Give nodes the label {key}, or spread by a label that they have (topologyKey)."
            return Remedy(say(text, key=reason.key))
        if isinstance(reason, AntiAffinityBroken) and reason.key == HOSTNAME:
            return Remedy("Add a node, run fewer such pods, or correct the anti-affinity.", adds_node=True)
    return None


def look_on(outcome: Outcome | None, nodes: Iterable[str]) -> NextStep | None:
    """What shows the node label that a rule about pods goes by, where nodes lack it; None leaves the kind's own."""
    keys = (reason.key for reason in _refusals(outcome, nodes) if isinstance(reason, NoDomain))
    return next((NextStep(Look.ONE_LABEL_OF_NODES, key) for key in keys), None)


_NAMED: Final = 3
"""Pods that are named for a rule about pods."""


def _pods_apart(outcome: Outcome | None, nodes: Iterable[str]) -> Iterator[Evidence]:
    """The pods that a rule about pods keeps this one away from, a node each."""
    for reason in _refusals(outcome, islice(nodes, _NAMED)):
        if outcome is not None and isinstance(reason, AntiAffinityBroken | ExistingAntiAffinityBroken):
            for other in islice(kept_apart_by(outcome.pod, reason, outcome.state), 1):
                owner = owner_of(other)
                of = say(" (of {owner})", owner=str(owner)) if owner is not None else ""
                # No cluster has a pod that was placed to see what fits.
                text, does = ("{node}{of}", "runs on")
                if other.only_placed:
                    text, does = ("{node}{of}, placed before it", "would run on")
                words = say(text, node=ObjectName("Node", other.node_name), of=of)
                yield Evidence(subject("Pod", other), does, words, relation=Relation.DOES)


MAX_REASONS = 4
NO_NODE = CauseKind(code="no-eligible-node", family=Family.DEVICES, look=Look.NODES)


def _no_node(analysis: Analysis) -> Iterator[Finding]:
    if analysis.view.nodes:
        return
    from kubectl_dra.explain.outcomes import by_reason, counted, evidence

    refused = {name: why for name, why in analysis.view.ineligible.items() if why is not NOT_ASKED}
    groups = by_reason(refused)
    if not groups:
        yield Finding(NO_NODE, "the cluster has no Nodes", remedy=Remedy("Add nodes that have such devices."))
        return
    text, node = "none of the {count:,} nodes may run the pod: {reasons}", analysis.settings.node
    if len(refused) == 1:
        text = "node {node} may not run the pod: {reasons}" if node else "the only node may not run the pod: {reasons}"
    summary = say(text, count=len(refused), node=node, reasons=counted(groups))
    if kind := kind_of_all(analysis):
        # It says more than that no node is left, and what helps.
        facts = (*evidence(groups), *_pods_apart(analysis.pod_outcome, refused))
        outcome, largest = analysis.pod_outcome, groups[0].nodes
        yield Finding(kind, summary, facts, remedy_on(outcome, largest), next=look_on(outcome, largest))
        return
    first, nodes = groups[0]
    reasons = [(group.reason, group.nodes) for group in groups[:MAX_REASONS]]
    kind_there = kind_on(analysis.pod_outcome, nodes[0])
    remedy = node_rules.best(reasons, analysis.what_if)
    if kind_there and (remedy is None or remedy.proof is None):
        # What lets the pod onto other nodes is not enough: those that most nodes belong to need something else.
        remedy = remedy_on(analysis.pod_outcome, nodes) or Remedy(kind_there.fix)
    remedy = remedy or Remedy(NO_NODE.fix)
    look = (
        look_on(analysis.pod_outcome, nodes) or NextStep(kind_there.look, namespace=analysis.question.namespace)
        if kind_there
        else node_rules.look_at(first, nodes)
    )
    yield Finding(NO_NODE, summary, evidence(groups), remedy, next=look)


# The pod's devices exist, but not with what they take from the node's own resources (KEP-5517, alpha in 1.37).

_PROVED_BY = 6


TOO_MUCH = CauseKind(code="node-resources-for-devices", family=Family.DEVICES, look=Look.PODS_ON_NODE)
IN_USE = CauseKind(code="claim-of-node-resources-in-use", family=Family.CLAIM, look=Look.POD)
EXCEEDED = CauseKind(code="pod-level-resources-too-small", family=Family.DEVICES, look=Look.POD)
UNKNOWN = CauseKind(code="node-resources-not-computable", family=Family.DEVICES, look=Look.SLICES)
_ERRORS = (DeviceGone, NothingConsumed)


def _too_much(analysis: Analysis) -> Iterator[Finding]:
    """Also the claims that are allocated for other nodes, unless the scheduler takes them back and goes on."""
    if not analysis.overtaxed or analysis.after_giving_back:
        return
    if failed := list(_grouped(analysis, UNKNOWN, *_ERRORS)):
        # The error ends the attempt, whatever is found elsewhere.
        yield from failed
        return
    findings = [
        *_in_use(analysis),
        *_grouped(analysis, EXCEEDED, PodRequestExceeded, PodLimitExceeded),
        *_short(analysis),
    ]
    yield from findings
    claims = {finding.claim for finding in findings}
    if findings:
        yield from (finding for finding in _elsewhere(analysis) if finding.claim not in claims)


def _short(analysis: Analysis) -> Iterator[Finding]:
    """Nodes with too little left, the one that lacks least as the example."""
    short = {name: reason_of(analysis.overtaxed[name]) for name, _ in _reasons(analysis, InsufficientForDevices)}
    if not short:
        return
    nearest = min(short, key=lambda name: _lacking(short[name]))
    node = ObjectName("Node", nearest)
    text = "node {node} has {why}"
    if len(short) > 1:
        text = "{count:node} have the devices but too little of their own resources: {node} has {why}"
    names = sorted(short, key=lambda name: name != nearest)[:_PROVED_BY]
    facts = tuple(Evidence(the_node(name), "rejects the pod", short[name]) for name in names)
    summary = say(text, count=len(short), node=node, why=short[nearest])
    yield Finding(TOO_MUCH, summary, facts, next=NextStep(Look.ONE_NODE, nearest))


def _lacking(why: Words) -> float:
    return why.lacking if isinstance(why, ShortForDevices) else 2.0


def _in_use(analysis: Analysis) -> Iterator[Finding]:
    keys = {reason.claim for _, reason in _reasons(analysis, MappedClaimInUse) if isinstance(reason, MappedClaimInUse)}
    for claim in analysis.allocated:
        if claim.key in keys:
            text = "claim {claim} stands for resources of its node, so only one pod can use it, and {users:some} does"
            users = [consumer.name for consumer in claim.reserved_for]
            yield Finding(IN_USE, say(text, claim=claim.key, users=users), (reserved_for(claim),), claim=claim.key)


def _grouped(analysis: Analysis, kind: CauseKind, *of: type[Reason]) -> Iterator[Finding]:
    names = {name for name, _ in _reasons(analysis, *of)}
    if names:
        from kubectl_dra.explain.outcomes import by_reason, evidence

        groups = by_reason({name: reason_of(analysis.overtaxed[name]) for name in analysis.overtaxed if name in names})
        # They differ from node to node by little but the devices.
        yield Finding(kind, groups[0].reason, evidence(groups))


def _reasons(analysis: Analysis, *of: type[Reason]) -> Iterator[tuple[str, Reason]]:
    for name, rejection in analysis.overtaxed.items():
        for reason in rejection.reasons:
            if isinstance(reason, of):
                yield name, reason


# A claim is allocated for nodes where the pod cannot run.

MAX_NODES = 3

ELSEWHERE = CauseKind(code="claim-allocated-elsewhere", family=Family.CLAIM, look=Look.POD)
ELSEWHERE_UNUSED = CauseKind(code="claim-allocated-elsewhere-unused", family=Family.CLAIM, look=Look.POD)
STUCK = CauseKind(code="claim-stuck-elsewhere", family=Family.CLAIM, look=Look.POD)


def reserved_for(claim: ResourceClaim) -> Evidence:
    """Who may use a claim, by its status."""
    said = say("{consumers: else nobody}", consumers=consumers_named(claim))
    return Evidence(subject("ResourceClaim", claim), "status.reservedFor", said)


def _elsewhere(analysis: Analysis) -> Iterator[Finding]:
    """The unallocated claims fit, or there are none."""
    if analysis.unavailable and (analysis.fitting or not analysis.claims):
        for finding in _of_claims(analysis):
            if finding.kind is ELSEWHERE:
                yield _with_room(finding, analysis)
            elif analysis.after_giving_back:
                # The scheduler resolves this by itself.
                text = "the scheduler first takes back the devices of unused claim {claim}"
                nodes = say("{nodes:some}", nodes=nodes_named(analysis.after_giving_back))
                facts = (*finding.evidence, Evidence("the scheduler", "binds the pod after that", nodes))
                change = "Wait for the next attempt: the scheduler allocates the claim anew, where the pod can run."
                summary = say(text, claim=finding.claim)
                yield replace(finding, summary=summary, evidence=facts, remedy=Remedy(change))
            else:
                yield finding


def _with_room(finding: Finding, analysis: Analysis) -> Finding:
    """With the end of those who use the claim as its remedy, where the claim is then allocated for the pod."""
    claim = next(claim for claim in analysis.allocated if claim.key == finding.claim)
    remedy = _there(claim, analysis) or _among_siblings(claim, analysis)
    change = freeing(claim, analysis.view, analysis.holders) if remedy is None else None
    proof = analysis.what_if.proof_with(change) if change is not None else None
    if change is not None and proof is not None:
        text = (
            "Let the pod run on the claim's node, or give each pod its own claim by a template. Or {what}, so that the "
            "claim is allocated anew."
        )
        remedy = Remedy(say(text, what=change.what), proof, offers=(change,))
    return replace(finding, remedy=remedy) if remedy is not None else finding


_SECOND: Final = (
    "Make a second claim for some {pods}, or give each pod its own claim by a template: the pods of one claim run "
    "where it is."
)
SECOND_CLAIM: Final = say(_SECOND, pods="of the pods")


def _among_siblings(claim: ResourceClaim, analysis: Analysis) -> Remedy | None:
    """What helps where only pods of the same owner use the claim: the end of one of them makes way for the next."""
    if (owner := owner_of_all(claim, analysis.pod, analysis.snapshot)) is None:
        return None
    return Remedy(say(_SECOND, pods=say("pods of {owner}", owner=str(owner))))


def _there(claim: ResourceClaim, analysis: Analysis) -> Remedy | None:
    """What lets the pod run where the claim is, proved, where the pod asks for more than that node has left."""
    from kubectl_dra.explain.remedies import node_rules

    own = [node.name for node in analysis.barred_nodes if claim.allocation and claim.allocation.usable_on(node)]
    refused = {analysis.view.ineligible[name]: [name] for name in own}
    found = node_rules.best(
        ((reason, names) for reason, names in refused.items() if isinstance(reason, ResourceShort)), analysis.what_if
    )
    return found if found is not None and found.proof is not None else None


def _stuck(analysis: Analysis) -> Iterator[Finding]:
    """No node suits the allocated claims, and another claim of the pod fails as well."""
    if not analysis.unavailable or len(analysis.unavailable) < len(analysis.view.nodes):
        return
    for finding in _of_claims(analysis):
        yield replace(finding, kind=STUCK) if finding.kind is ELSEWHERE_UNUSED else finding


def _of_claims(analysis: Analysis) -> Iterator[Finding]:
    for claim in analysis.allocated:
        if claim.key in analysis.unavailable.values():
            found = _finding(analysis, claim)
            yield replace(found, remedy=_among_siblings(claim, analysis)) if found.kind is ELSEWHERE else found


def _finding(analysis: Analysis, claim: ResourceClaim) -> Finding:
    asking = analysis.pod
    listed = asking is not None and relation_of(claim, asking, groups=False).listed
    others = len(claim.reserved_for) - listed
    selector = claim.allocation.node_selector if claim.allocation else None
    usable = [
        node
        for node in analysis.barred_nodes
        if claim.allocation is not None and selector is not None and claim.allocation.usable_on(node)
    ]
    # With --node, the others were left out by whoever asked.
    asked = [node for node in usable if analysis.view.ineligible.get(node.name) is not NOT_ASKED]
    alone = analysis.settings.node if usable and not asked else ""
    barred = [Evidence(the_node(node.name), "rejects the pod", analysis.view.ineligible[node.name]) for node in asked]
    own = subject("ResourceClaim", claim)
    placed = [_only_placed(use, claim, analysis) for use in claim.reserved_for]
    consumers = [
        say("{consumer} (placed before it)", consumer=consumer) if before else consumer
        for consumer, before in zip(consumers_named(claim), placed, strict=True)
    ]
    # Then so is its allocation.
    supposed = bool(placed) and all(placed)
    reasons = {reason for node in asked if (reason := analysis.view.ineligible.get(node.name)) is not None}
    why = say(" ({reason})", reason=next(iter(reasons))) if len(reasons) == 1 else ""
    there = [node.name for node in analysis.view.nodes if node.name not in analysis.unavailable]
    if not reasons and there and analysis.claims:
        lacking, count = [named("ResourceClaim", each) for each in analysis.claims], len(analysis.claims)
        text = ": its {count:claim|claims} {lacking:some 2} {count:does|do} not fit there"
        why = say(text, lacking=lacking, count=count)
    text = "claim {claim} {is_} allocated for {selector}, where the pod cannot run{why}"
    if alone:
        text = "claim {claim} {is_} allocated for {selector}, not for node {alone}"
    words = {"claim": claim.key, "is_": "would be" if supposed else "is", "selector": str(selector), "why": why}
    facts = (
        Evidence(own, "status.allocation.nodeSelector", str(selector)),
        Evidence(own, "status.reservedFor", say("{consumers: else nobody}", consumers=consumers)),
        *barred[:MAX_NODES],
    )
    kind = ELSEWHERE if others else ELSEWHERE_UNUSED
    return Finding(kind, say(text, alone=ObjectName("Node", alone), **words), facts, claim=claim.key)


def _only_placed(use: Consumer, claim: ResourceClaim, analysis: Analysis) -> bool:
    """Whether a pod for which the claim is reserved was placed to see what fits, and no cluster has it."""
    pod = analysis.snapshot.pods.get((claim.metadata.namespace, use.name)) if use.is_pod else None
    return pod is not None and pod.only_placed


FINDERS = (
    Finder(When.FAILS_TOO, _refused, 50),
    Finder(When.FAILS, _no_node, 30),
    Finder(When.FAILS, _too_much, 35),
    Finder(When.FAILS, _elsewhere, 40),
    Finder(When.BESIDE_REQUESTS, _stuck),
)
