"""The attempts as shown in an answer: groups of nodes, placements, and the claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.features import KnownDefects
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import kind_plural
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.refused_claims import Refusal
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import NOT_ASKED, Analysis, Outlook
from kubectl_dra.explain.diagnosis import Choice, ClaimReport, Evidence, NodeDevices, NodeGroup
from kubectl_dra.explain.driver_refusals import not_starting_there
from kubectl_dra.explain.failing_requests import report
from kubectl_dra.explain.funnel.located import Located, made_by_scheduler
from kubectl_dra.explain.funnel.selector_terms import observations
from kubectl_dra.explain.funnel.stages import Shortfall
from kubectl_dra.explain.node_reasons import ResourceShort, plain, reason_of
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.phrase import Joined, Phrase, Statement, Words, nodes_named, say
from kubectl_dra.explain.question.resolve import ClaimEntry, Unresolved
from kubectl_dra.scheduling.gang_scheduling import Placed
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import PluginName

if TYPE_CHECKING:
    from kubectl_dra.scheduling.binding import BestNodes

_NEAREST = 10_000
_AFTER = say("all claims fit when the scheduler has taken back the unused claim")


def node_groups(analysis: Analysis, funnels: Sequence[Located]) -> list[NodeGroup]:
    """Nodes by outcome and reason."""
    groups: dict[tuple[str, Words], list[str]] = {}
    given_back = frozenset(analysis.after_giving_back)
    nearness: dict[tuple[str, Words], int] = {}
    # Nodes that are rejected for the same shortfalls, by the identity of these.
    alike: dict[tuple[int, ...], tuple[str, Words, int]] = {}
    for name, attempt in analysis.attempts.items():
        if attempt.verdict is AttemptVerdict.REJECTED:
            short = tuple([id(located.funnel.shortfall(name)) for located in funnels])
            known = alike.get(short)
            if known is None:
                known = alike[short] = _outcome(analysis, name, attempt, funnels)
            outcome, reason, near = known
        else:
            outcome, reason, near = _outcome(analysis, name, attempt, funnels)
        if name in given_back and outcome == "rejected":
            outcome, reason = "allocated", _AFTER
        groups.setdefault((outcome, reason), []).append(name)
        nearness[outcome, reason] = near
    if not analysis.attempts and analysis.allocated and not analysis.claims:
        usable = "all claims are usable here" if analysis.question.kind == "pod" else "the claim is usable here"
        pod = analysis.pod
        if pod is not None and pod.node_name and any(not relation_of(c, pod).listed for c in analysis.allocated):
            usable = "all claims are allocated here, and not all are reserved for the pod"
        for node in analysis.view.nodes:
            where = analysis.unavailable.get(node.name)
            key: tuple[str, Words] = ("rejected", _for_others(where)) if where else ("allocated", usable)
            if node.name in analysis.overtaxed:
                key = ("rejected", reason_of(analysis.overtaxed[node.name]))
            if where and node.name in given_back:
                key = ("allocated", _AFTER)
            groups.setdefault(key, []).append(node.name)
    for name, reason in analysis.view.ineligible.items():
        if reason is not NOT_ASKED:
            groups.setdefault(("not-eligible", reason), []).append(name)
    return [
        NodeGroup(outcome, reason, tuple(names), nearness.get((outcome, reason), 0))
        for (outcome, reason), names in groups.items()
    ]


class NoHelp(Statement, frozen=True):
    """Why new nodes that are only supposed do not take the pod."""

    TEXT = "{which} not help: {reason}"
    which: Words
    reason: Words


class AutoscalerView(Statement, frozen=True):
    """What an autoscaler makes of new nodes that are only supposed."""

    TEXT = "{view}"
    view: Words


class NewNodesNoMatter(Statement, frozen=True):
    """That nodes that are only supposed change nothing, and why. It answers what was asked, so that it is never cut."""

    TEXT = "{why}"
    why: Words


def no_help(analysis: Analysis, groups: Sequence[NodeGroup]) -> Iterator[NoHelp]:
    """Why new nodes that are only supposed do not take the pod; nothing of one that has its node and its devices."""
    for group in groups if analysis.outlook is not Outlook.PLACED else ():
        names = [name for name in group.nodes if name in analysis.settings.added]
        if names and group.outcome != "allocated":
            text = "new node {nodes:some} does" if len(names) == 1 else "new nodes {nodes:some} do"
            which = say(text, nodes=nodes_named(names))
            yield NoHelp(which, _refused_there(analysis, names[0]) or group.reason)


def _refused_there(analysis: Analysis, node: str) -> Words:
    """What devices of a node have in place of what the only request that fails there asks for; empty if more fails."""
    short = [(located.funnel, missing) for located in analysis.funnels if (missing := located.funnel.shortfall(node))]
    if len(short) != 1:
        return ""
    ((funnel, missing),) = short
    stage = funnel.stages[missing.position]
    terms = funnel.view.cycle.selectors.terms(stage.program) if stage.name.selects and not stage.errors else ()
    lost, _, left = funnel.lost_on([node], missing.position)
    seen = observations(terms[stage.term], lost) if terms and lost else ()
    if not seen or not seen[0].values:
        return ""
    (value, count), *others = seen[0].values
    return say(
        "{request}: {left} of {tested} devices match {selector}: {name} is {value} on {count:,}{rest}",
        request=funnel.name,
        left=left,
        tested=left + len(lost),
        selector=stage.selector,
        name=seen[0].name,
        value="absent" if value is None else value,
        count=count,
        rest=say(" and {more:other value}", more=len(others)) if others else "",
    )


def split_not_starting(
    groups: Sequence[NodeGroup], where: Sequence[NotStarting], refusals: Sequence[Refusal]
) -> tuple[NodeGroup, ...]:
    """The groups, with nodes that fit and on which pods, or this one, do not start in groups of their own."""
    whys = not_starting_there(where, refusals)
    of_all = {node.node for node in where if node.driver.state.starts_no_pod}
    out: list[NodeGroup] = []
    for group in groups:
        parts: dict[Words, list[str]] = {}
        for name in group.nodes:
            parts.setdefault(whys.get(name, "") if group.outcome == "allocated" else "", []).append(name)
        for why, names in sorted(parts.items(), key=lambda part: bool(part[0])):
            reason = group.reason
            if why:
                who = "pods do not start here" if names[0] in of_all else "the pod does not start here"
                reason = say("{reason}, but {who}: {why}", reason=reason, who=who, why=why)
            out.append(replace(group, reason=reason, nodes=tuple(names)))
    return tuple(out)


def _fits(analysis: Analysis, name: str) -> Words:
    """What fits on a node: claims that somebody wrote, or what serves the pod's extended resources there."""
    if any(
        claim is None or not made_by_scheduler(claim) for claim in (entry.claim for entry in analysis.question.claims)
    ):
        return "all claims fit"
    claims = analysis.claims_outcome.devices.claims_on(analysis.view.node_by_name[name])
    return "devices for the extended resources are free" if claims else "its device plugin has enough"


def _for_others(claim: str) -> Words:
    return say("claim {claim} is allocated for other nodes", claim=claim)


def _outcome(analysis: Analysis, name: str, attempt: Attempt, funnels: Sequence[Located]) -> tuple[str, Words, int]:
    """Outcome, reason, and how near to success the node is (larger is nearer)."""
    if attempt.verdict is AttemptVerdict.ERROR:
        return "error", attempt.message, 0
    if attempt.verdict is AttemptVerdict.UNDETERMINED:
        why = "the random order of pools decides" if attempt.order_decides else "the search did not end in time"
        return "undetermined", why, 0
    if name in analysis.overtaxed:
        rejection = analysis.overtaxed[name]
        return "error" if rejection.error else "rejected", reason_of(rejection), _NEAREST
    if attempt.verdict is AttemptVerdict.ALLOCATED:
        if name in analysis.unavailable:
            return "rejected", _for_others(analysis.unavailable[name]), 0
        return "allocated", _fits(analysis, name), 0
    shortfalls: dict[tuple[int, int], list[Shortfall | None]] = {}
    for located in funnels:
        key = (located.claim_index, located.request_index)
        shortfalls.setdefault(key, []).append(located.funnel.shortfall(name))
    furthest = [
        max(
            (shortfall for shortfall in entries if shortfall),
            key=lambda shortfall: (shortfall.position, shortfall.left),
        )
        for entries in shortfalls.values()
        if all(entries)
    ]
    if not furthest:
        if _by_defect(analysis, name):
            return "rejected", "a known defect of the scheduler refuses the devices", _NEAREST
        together = "each request fits alone, all together do not"
        return "rejected", together if len(shortfalls) > 1 else "enough devices are left, but not together", _NEAREST
    near = min(shortfall.position * 100 + min(shortfall.left, 99) for shortfall in furthest)
    parts = tuple(say("{request}: {text}", request=shortfall.request, text=shortfall.text) for shortfall in furthest)
    return "rejected", Joined(parts), near


def _by_defect(analysis: Analysis, name: str) -> bool:
    """Whether the node has devices for a scheduler without known defects."""
    node = analysis.view.node_by_name.get(name)
    if node is None or analysis.view.cycle.defects == KnownDefects.none():
        return False
    attempt = analysis.without_defects.outcome.try_on(node)
    return attempt.verdict is AttemptVerdict.ALLOCATED


def placements_after_giving_back(analysis: Analysis) -> list[NodeDevices]:
    """What the claims would get where the pod fits after the scheduler takes back one of them."""
    devices = analysis.last_outcome.chain.devices if analysis.last_outcome is not None else None
    if devices is None:
        return []
    given = ((name, devices.given_on(analysis.view.node_by_name[name])) for name in analysis.after_giving_back)
    return [NodeDevices(name, tuple(claims)) for name, claims in given if claims]


def placements(analysis: Analysis) -> list[NodeDevices]:
    """What the claims would get, for every node that works."""
    pod, together = analysis.pod, analysis.together
    if pod is not None and isinstance(together, Placed) and together.nodes.get(pod.key) in analysis.fitting:
        # Each pod of a group gets devices that those before it have left.
        return [NodeDevices(together.nodes[pod.key], tuple(together.given[pod.key]))]
    nodes = (name for name in analysis.fitting if name not in analysis.unavailable)
    return [NodeDevices(name, tuple(analysis.given_on(name))) for name in nodes]


def claim_report(analysis: Analysis, claim_entry: ClaimEntry, funnels: Sequence[Located]) -> ClaimReport:
    """One claim: its state and devices, or the funnels of its requests."""
    claim = claim_entry.claim
    if claim is None:
        kind = "ResourceClaimTemplate" if claim_entry.unresolved is Unresolved.TEMPLATE_MISSING else "ResourceClaim"
        named = claim_entry.unresolved is not Unresolved.NO_SOURCE
        unread = named and analysis.snapshot.missing(kind, analysis.question.namespace) is not None
        return ClaimReport(claim_entry.entry, "", claim_entry.template, "not read" if unread else "missing")
    if claim.allocation is not None:
        return ClaimReport(
            entry=claim_entry.entry,
            claim=claim.key,
            template=claim_entry.template,
            state=_reservation(analysis.pod, claim),
            devices=claim.results,
            nodes=str(claim.allocation.node_selector or "all nodes"),
            by_scheduler=made_by_scheduler(claim),
        )
    return ClaimReport(
        entry=claim_entry.entry,
        claim=claim.key,
        template=claim_entry.template,
        state="not created yet" if claim_entry.hypothetical else "pending",
        funnels=tuple(
            report(located.funnel, with_devices=analysis.settings.with_devices)
            for located in funnels
            if located.claim is claim
        ),
        by_scheduler=made_by_scheduler(claim),
    )


def _reservation(asking: Pod | None, claim: ResourceClaim) -> Words:
    """Whether an allocated claim is reserved, and for whom if not for the pod in question."""
    if not claim.reserved_for:
        return "allocated"
    if asking is None or relation_of(claim, asking).listed:
        return "allocated and reserved"
    return say("allocated, reserved for {others:some}", others=[str(consumer) for consumer in claim.reserved_for])


# Which of the nodes that fit the scheduler takes.

BATCHING: Final = "OpportunisticBatching"


def choice(analysis: Analysis, verdict: Verdict) -> Choice | None:
    """The winning node, or those of which any may win; None if there is nothing to choose."""
    pod, settings, snapshot = analysis.pod, analysis.settings, analysis.snapshot
    outcome = analysis.outcome
    if pod is None or verdict is not Verdict.SCHEDULABLE or outcome is None:
        return None
    if settings.node or not snapshot.nodes or not settings.scheduler.schedules(pod):
        return None
    # The nodes of a group's pods are chosen for all of them together.
    if pod.pod_group or pod.spec.workload_ref is not None:
        return None
    if len(analysis.takers) == 1:
        return Choice(1, tuple(analysis.takers))
    from kubectl_dra.scheduling.binding import winner, winner_among

    if analysis.outlook is Outlook.FITS:
        return _told(analysis, winner_among(outcome.chain, analysis.takers), len(analysis.takers))
    return _told(analysis, winner(outcome), len(analysis.after_giving_back))


def certain_choice(analysis: Analysis) -> tuple[str, ...]:
    """The nodes of which one certainly wins, for a pod that fits; empty where that is not known."""
    chosen = choice(analysis, Verdict.SCHEDULABLE)
    return chosen.nodes if chosen is not None and chosen.certain else ()


def _told(analysis: Analysis, best: BestNodes, feasible: int) -> Choice:
    unread = ("Pod",) if analysis.snapshot.missing("Pod") is not None and feasible > 1 else ()
    batched = (BATCHING,) if feasible > 1 and _batched(analysis) else ()
    return Choice(feasible, best.nodes, best.enough, (*unread, *best.unknown, *batched))


def _batched(analysis: Analysis) -> bool:
    """Whether the pod may take the second-best node of an identical pod scheduled before: one without claims,
    and without spread constraints of its own or the profile's.
    """
    pod, outcome = analysis.pod, analysis.pod_outcome
    if pod is None or outcome is None or BATCHING not in analysis.scheduler.gates:
        return False
    profile = outcome.state.profile
    spread = profile.runs(PluginName.POD_TOPOLOGY_SPREAD, Point.FILTER) and profile.args.spread.constraints
    return not (pod.claims or pod.spec.topology_spread_constraints or spread)


def open_choice(chosen: Choice | None, snapshot: Snapshot) -> Iterator[Phrase]:
    """Why the winning node is not named."""
    if chosen is None or chosen.certain:
        return
    if chosen.enough:
        text = (
            "which of the {feasible:,} nodes the scheduler takes is not known: of {nodes:,} it looks at some until "
            "{enough:,} fit"
        )
        yield say(text, feasible=chosen.feasible, nodes=len(snapshot.nodes), enough=chosen.enough)
    elif chosen.unknown:
        text = "which of the {feasible:,} nodes the scheduler takes depends on {what}"
        yield say(text, feasible=chosen.feasible, what=depends_on(chosen.unknown, snapshot))


def depends_on(unknown: Sequence[str], snapshot: Snapshot) -> Words:
    """What decides which node wins, and is not known: kinds that were not read, and what is not modelled."""
    unread = [name for name in unknown if any(gap.kind == name for gap in snapshot.gaps)]
    others = [name for name in unknown if name not in unread]
    what = (
        *((say("{kinds}, which were not read", kinds=[*map(kind_plural, unread)]),) if unread else ()),
        *((say("{others}, not known here", others=others),) if others else ()),
    )
    return Joined(what, ", and on ")


# Why nodes refuse a pod, and how many nodes each reason has.

_SAID: Final = 3
_PROVED_BY: Final = 6


class RefusingNodes(NamedTuple):
    """The nodes that refuse the pod for the same reason."""

    reason: Words
    nodes: tuple[str, ...]


def by_reason(reasons: Mapping[str, Words]) -> list[RefusingNodes]:
    """The nodes grouped by their reason, the reason with the most nodes first."""
    nodes: dict[Words, list[str]] = {}
    for name, reason in reasons.items():
        nodes.setdefault(reason, []).append(name)
    groups = [RefusingNodes(reason, tuple(names)) for reason, names in nodes.items()]
    return sorted(groups, key=lambda group: -len(group.nodes))


def counted(groups: Sequence[RefusingNodes]) -> Words:
    """The reasons, each with its number of nodes; a single one without, because it covers all."""
    groups = _summed_up(groups)
    if len(groups) == 1:
        return groups[0].reason
    said = [say("{reason} ({count:node})", reason=group.reason, count=len(group.nodes)) for group in groups[:_SAID]]
    more = len(groups) - len(said)
    # Reasons have commas of their own.
    return say("{said} and {more:more reason}" if more else "{said}", said=Joined(tuple(said)), more=more)


def _summed_up(groups: Sequence[RefusingNodes]) -> list[RefusingNodes]:
    """The groups; nodes that have too little of one resource are one, whatever each of them has left."""
    out: dict[Words | tuple[str, Quantity], list[RefusingNodes]] = {}
    for group in groups:
        short = group.reason if isinstance(group.reason, ResourceShort) else None
        out.setdefault((short.name, short.needed) if short is not None else group.reason, []).append(group)
    summed = [_as_one(alike) if alike[1:] else alike[0] for alike in out.values()]
    return sorted(summed, key=lambda group: -len(group.nodes))


def _as_one(groups: Sequence[RefusingNodes]) -> RefusingNodes:
    short = [group.reason for group in groups if isinstance(group.reason, ResourceShort)]
    most = max(short, key=lambda shortage: shortage.left.nanos)
    reason = say(
        "Insufficient {name}: needs {needed}, at most {left} left",
        name=most.name,
        needed=plain(most.needed),
        left=plain(most.left),
    )
    return RefusingNodes(reason, tuple(name for group in groups for name in group.nodes))


def evidence(groups: Sequence[RefusingNodes]) -> tuple[Evidence, ...]:
    """One fact for each of the first reasons."""
    return tuple(
        Evidence(say("{names:some}", names=nodes_named(group.nodes)), "rejects the pod", group.reason)
        for group in groups[:_PROVED_BY]
    )
