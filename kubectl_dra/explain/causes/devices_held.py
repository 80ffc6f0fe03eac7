"""The matching devices are held by other claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.workload_pods import belongs_to, made_by
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family
from kubectl_dra.explain.causes.node_filters import reserved_for
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.terminating import Ending, ending_of
from kubectl_dra.explain.diagnosis import Evidence, Finding, Relation, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked, in_all
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.holders import ClaimHolder, HolderState
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, say, the_node
from kubectl_dra.explain.remedies.freeing_claims import Free, InTheWay, first_enough, in_the_way, sets_of_holders
from kubectl_dra.explain.remedies.proof_result import Proof

# No single node has enough devices for a request.

TOO_FEW = CauseKind(code="too-few-on-one-node", family=Family.DEVICES)


def _too_few(blocked: Blocked) -> Iterator[Finding]:
    best = blocked.most_on_one_node
    remedy = blocked.lower_count(best)
    in_shares = _in_shares(blocked) if best else None
    if in_shares is not None:
        text = "Write {count} requests of count 1: they may share a device, which one request takes once."
        remedy = Remedy(say(text, count=blocked.spec.count), in_shares)
    text = "{where} needs {count:device} on one node, and no eligible node has more than {best}"
    summary = blocked.say(text, count=blocked.spec.count, best=best)
    counts = ((name, len(blocked.view.on_node(name))) for name in blocked.nodes[:MAX_EVIDENCE])
    facts = tuple(Evidence(the_node(name), "devices of this kind", count) for name, count in counts)
    yield Finding(TOO_FEW, summary, facts, remedy)


def _in_shares(blocked: Blocked) -> Proof | None:
    """The proof that a request fits as several requests of count 1, if its devices can be shared."""
    if blocked.spec.allocation_mode == ALL or not 1 < blocked.spec.count <= MAX_RESULTS:
        return None
    if blocked.located.place.extended:
        # Nobody writes the requests of an extended resource.
        return None
    if not any(item.device.allow_multiple_allocations for item in blocked.funnel.usable):
        return None
    split = blocked.what_if.splitting(blocked.located.claim_index, blocked.located.request_index)
    return split.proof() if split is not None else None


ALL_INCOMPLETE = CauseKind(code="all-not-possible", family=Family.DEVICES, held=True)
ALL_HELD = CauseKind(code="devices-held", family=Family.DEVICES, held=True)
ORPHANED = CauseKind(code="allocation-orphaned", family=Family.DEVICES)
HOLDER_STUCK = CauseKind(code="holder-stuck", family=Family.DEVICES)
NOT_RUNNING = CauseKind(code="holder-not-running", family=Family.DEVICES, held=True)
HELD_WHOLE = CauseKind(code="shareable-device-held-whole", family=Family.DEVICES, held=True)


def _held(blocked: Blocked) -> Iterator[Finding]:
    holders = blocked.analysis.holders
    held: dict[str, list[PublishedDevice]] = {}
    claims: dict[str, ResourceClaim] = {}
    for item in blocked.lost:
        for claim in holders.claims(item.id):
            held.setdefault(claim.key, []).append(item)
            claims[claim.key] = claim
    blocking = in_the_way(blocked)
    kind, remedy, stuck = _free(blocked, blocking)
    first = [holder.claim.key for free in blocking.single[:MAX_EVIDENCE] for holder in free.holders]
    ranked = sorted(
        claims.values(),
        key=lambda claim: (
            first.index(claim.key) if claim.key in first else MAX_EVIDENCE,
            holders.holder(claim).order,
            len(held[claim.key]),
        ),
    )
    evidence = [
        Evidence(
            holders.describe_claim(claim),
            "holds",
            say("{devices:some}", devices=[say("{device:short}", device=item.id) for item in held[claim.key]]),
            relation=Relation.DOES,
        )
        for claim in ranked[:MAX_EVIDENCE]
    ]
    from kubectl_dra.explain.remedies.replicas import by_sharing, for_replicas

    among = [holders.holder(claim) for claim in claims.values()]
    siblings = among[0] if stuck is None and all(holder.replica for holder in among) else None
    if siblings is not None:
        remedy = for_replicas(blocked, siblings)
    elif stuck is None and (shared := by_sharing(blocked, tuple(claims.values()))) is not None:
        remedy = shared
    summary = _held_by_stuck(blocked, stuck) if stuck is not None else _summary(blocked, among)
    if words := _priority(blocked, among):
        summary = say("{summary}{words}", summary=summary, words=words)
    facts = (*_one_channel(blocked), *evidence, *in_all(len(held), "claims hold devices"))
    if stuck is not None and stuck.ending is not None and stuck.ending.fact is not None:
        facts = (*facts, stuck.ending.fact)
    yield Finding(kind, summary, facts, remedy)


def _priority(blocked: Blocked, holders: Sequence[ClaimHolder]) -> Words:
    """What people expect of a pod's priority, where it is higher than that of a holder."""
    pod = blocked.analysis.pod
    if pod is None or all(holder.priority >= pod.priority for holder in holders if holder.pods):
        return ""
    return say("; priority {priority} does not help, because no pod is evicted to free a device", priority=pod.priority)


def _one_channel(blocked: Blocked) -> Iterator[Evidence]:
    """What NVIDIA's driver means by the channel of a ComputeDomain, of which every node has a single one."""
    from kubectl_dra.drivers.hardware import NVIDIA_DOMAINS

    if all(item.id.driver == NVIDIA_DOMAINS for item in blocked.lost):
        text = (
            "one channel for each node, because a node serves one ComputeDomain at a time; a pod that uses GPUs of one "
            "node only can leave the request out"
        )
        yield Evidence(Subject("driver", NVIDIA_DOMAINS), "publishes", text, relation=Relation.DOES)


def _kind(blocked: Blocked) -> CauseKind:
    if blocked.spec.allocation_mode == ALL:
        return ALL_INCOMPLETE
    if blocked.left >= blocked.spec.count:
        return TOO_FEW
    return HELD_WHOLE if all(item.device.allow_multiple_allocations for item in blocked.lost) else ALL_HELD


def _by(blocked: Blocked, holders: Sequence[ClaimHolder]) -> tuple[Words, Words]:
    """Who holds several devices, and who holds one, where all of them are of one sort."""
    pod, pods = blocked.analysis.pod, [pod for holder in holders for pod in holder.pods]
    maker = made_by(pod) if pod is not None else None
    if not pods or not all(holder.pods for holder in holders):
        return "other claims", "another claim"
    own = (each.metadata.namespace == blocked.analysis.question.namespace for each in pods)
    if maker is not None and all(own) and all(made_by(each) == maker or belongs_to(each, maker) for each in pods):
        return say("other pods of {owner}", owner=str(maker)), say("another pod of {owner}", owner=str(maker))
    if all(each.only_placed for each in pods):
        return "pods placed before it", "a pod placed before it"
    return "other claims", "another claim"


def _summary(blocked: Blocked, holders: Sequence[ClaimHolder]) -> Phrase:
    several, one = _by(blocked, holders)
    if blocked.left:
        position = blocked.position
        best = max(blocked.nodes, key=lambda name: blocked.funnel.left_on(name, position))
        lost, _, remaining = blocked.funnel.lost_on([best], position)
        claims = {claim.key: claim for item in lost for claim in blocked.analysis.holders.claims(item.id)}
        # A pod may hold several claims.
        held = [*dict.fromkeys(blocked.analysis.holders.users(claim) for claim in claims.values())]
        whole = blocked.spec.allocation_mode == ALL
        needs: Words = "all of a node's" if whole else say("{count:,} on one node", count=blocked.spec.count)
        verb = "holds" if len(held) == 1 else "hold"
        rest = say("the other") if len(lost) == 1 else say("the {count:other}", count=len(lost))
        others = say(" ({held:some 2} {verb} {rest})", held=held, verb=verb, rest=rest)
        return say(
            "{where} needs {needs}; {node} comes nearest with {left} of {tested:matching device} free{others}",
            where=blocked.where,
            needs=needs,
            node=best,
            left=remaining,
            tested=remaining + len(lost),
            others=others if held else "",
        )
    untainted = _others_are_tainted(blocked)
    if blocked.tested == 1:
        text = "the only device {that} matches {where} is held by {by}"
        return say(text, that="without a taint that" if untainted else "that", where=blocked.where, by=one)
    every = "both" if blocked.tested == 2 else say("all {count:,}", count=blocked.tested)
    text = "{every} devices {that} match {where} are held by {by}"
    that = "without taints that" if untainted else "that"
    return say(text, every=every, that=that, where=blocked.where, by=several)


def _others_are_tainted(blocked: Blocked) -> bool:
    """Whether further devices of these nodes match, and have taints that the request does not tolerate."""
    before = enumerate(blocked.funnel.stages[: blocked.position])
    return any(blocked.funnel.lost_on(blocked.nodes, at)[0] for at, stage in before if stage.name is StageName.TAINT)


def _held_by_stuck(blocked: Blocked, stuck: Stuck) -> Phrase:
    """The holders of what the request needs, on the node where their end is enough."""
    lost, _, remaining = blocked.funnel.lost_on([stuck.node], blocked.position)
    claim = stuck.holder.claim
    own = [item for item in lost if claim in blocked.analysis.holders.claims(item.id)]
    whole = blocked.spec.allocation_mode == ALL
    needs: Words = "every matching device of a node" if whole else say("{count:device}", count=blocked.spec.count)
    free = "{left} of {tested} {left:is|are} free, and " if remaining else ""
    return say(
        "{where} needs {needs}; on {node} " + free + "{holder} holds {devices:some 3}{kept}",
        kept=say(" {until}", until=stuck.ending.until) if stuck.ending is not None and stuck.ending.until else "",
        where=blocked.where,
        needs=needs,
        node=ObjectName("Node", stuck.node),
        left=remaining,
        tested=remaining + len(lost),
        holder=stuck.holder.who,
        devices=[say("{device:bare}", device=item.id) for item in own],
    )


def _ending(blocked: Blocked, holder: ClaimHolder) -> Ending | None:
    """What keeps a holder that is being deleted."""
    if holder.standing is not HolderState.ENDING:
        return None
    endings = [ending_of(pod, blocked.analysis.snapshot) for pod in holder.pods if pod.metadata.deletion_timestamp]
    return next((ending for ending in endings if ending.until is not None), endings[0])


class Stuck(NamedTuple):
    """A holder that does not need its devices, whose end is enough on this node, and what keeps it from ending."""

    holder: ClaimHolder
    node: str
    ending: Ending | None


def _free(blocked: Blocked, blocking: InTheWay) -> tuple[CauseKind, Remedy | None, Stuck | None]:
    """The holders that have to give up devices, proved: the first that is enough alone, else several of one node."""
    kind = _kind(blocked)
    search = first_enough(blocked.what_if, blocking.single)
    if search.found is not None:
        free, proof = search.found
        holder, users = free.holders[0], sum(len(claim_holder.claim.reserved_for) for claim_holder in free.holders)
        text = "{what:capital}, or wait until {pods:it ends|they end}." if holder.ends else "{what:capital}."
        words = say(text, what=free.what, pods=users)
        cause = NOT_RUNNING if holder.slow else _STUCK.get(holder.standing, kind)
        stuck = Stuck(holder, proof.node, _ending(blocked, holder)) if cause is not kind else None
        if stuck is not None and stuck.ending is not None and stuck.ending.step is not None:
            words = say("{what:capital}: {step}.", what=free.what, step=stuck.ending.step)
        return cause, Remedy(words, proof, free.devices, (free,)), stuck
    several = first_enough(blocked.what_if, list(sets_of_holders(blocked, blocking.spots)))
    if several.found is None:
        return kind, None, None
    free, proof = several.found
    alone = "; one alone is not enough" if search.tried == search.of and blocking.every else ""
    words = say("{what:capital}{alone}.", what=free.what, alone=alone)
    return kind, Remedy(words, proof, free.devices, (free,)), None


_STUCK = {
    HolderState.UNUSED: ORPHANED,
    HolderState.ENDED: HOLDER_STUCK,
    HolderState.ENDING: HOLDER_STUCK,
    HolderState.FOREIGN: HOLDER_STUCK,
}


def _of_claim(analysis: Analysis) -> Iterator[Finding]:
    """Finds claims, asked about by themselves, whose devices no pod needs, or not for long."""
    if analysis.pod is not None:
        return
    snapshot, holders = analysis.snapshot, analysis.holders
    for claim in analysis.allocated:
        holder = holders.holder(claim)
        devices = [result.device for result in claim.results if not result.admin_access]
        if not devices or (holder.standing is HolderState.UNUSED and waiting_for(claim, snapshot)):
            continue
        own = reserved_for(claim)
        words = {"devices": devices, "users": holder.users, "count": len(claim.reserved_for)}
        if holder.standing is HolderState.UNUSED:
            text = "it holds {devices:some} until a pod uses it or it is deleted"
            unused = say("Delete unused claim {claim}, if no pod is going to use it.", claim=claim.key)
            remedy = Remedy(unused, offers=(Free.of([holder], ()),))
            yield Finding(ORPHANED, say(text, **words), (own,), remedy, state="is unused")
        elif holder.standing is HolderState.ENDED:
            gone = "has ended|have ended" if holder.pods else "is gone|are gone"
            state = say("is allocated for {users}, which {count:" + gone + "}", **words)
            summary = say("it holds {devices:some} until kube-controller-manager releases it", **words)
            change = "Wait a few seconds. If it stays, find out whether kube-controller-manager runs."
            yield Finding(HOLDER_STUCK, summary, (own,), Remedy(change), state=state)
        elif holder.standing is HolderState.ENDING:
            last = next(pod for pod in holder.pods if pod.metadata.deletion_timestamp)
            text = "is allocated for {users}, Terminating since {since}"
            state = say(text, since=last.metadata.deleted_at, **words)
            of_pod = ending_of(last, snapshot).finding
            facts = (own, *of_pod.evidence)
            yield Finding(HOLDER_STUCK, of_pod.summary, facts, of_pod.remedy, state=state, next=of_pod.next)


SAYING_PRIORITY = frozenset((ALL_INCOMPLETE, ALL_HELD, ORPHANED, HOLDER_STUCK, NOT_RUNNING, HELD_WHOLE, TOO_FEW))
"""Kinds whose findings say already that priority does not help, where somebody might expect it."""


FINDERS = (
    Finder(When.STAGE, _too_few, of=StageName.TOO_FEW),
    Finder(When.STAGE, _held, of=StageName.HELD),
    Finder(When.PLACED, _of_claim, -10),
)
