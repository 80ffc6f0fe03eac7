"""From a question to a diagnosis: analysis, attempts, findings, the verdict, remedies, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.api.pods import replaced_by
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain import failing_requests
from kubectl_dra.explain.analysis import Analysis, Outlook, analysis_of
from kubectl_dra.explain.answer_notes import answer_notes
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.causes.devices_published import NOT_FOR_NODE
from kubectl_dra.explain.causes.driver_unhealthy import drivers_first
from kubectl_dra.explain.causes.node_filters import ELSEWHERE_UNUSED
from kubectl_dra.explain.causes.on_node import drivers_of
from kubectl_dra.explain.causes.registry import When, ask, of_question
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, NodeDevices, Remedy, RemedyPlan
from kubectl_dra.explain.driver_refusals import driver_refusals, refused_on
from kubectl_dra.explain.funnel.located import Located
from kubectl_dra.explain.further_causes import beside, not_offered_yet, question_past, resting_on, supposing
from kubectl_dra.explain.holders import replicas_of_one
from kubectl_dra.explain.next_step import next_step, place_of, place_of_fix, without_commands_for
from kubectl_dra.explain.not_starting import NotStarting, not_prepared, not_starting
from kubectl_dra.explain.outcomes import (
    choice,
    claim_report,
    node_groups,
    open_choice,
    placements,
    placements_after_giving_back,
    split_not_starting,
)
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.remedies.candidates import as_steps, as_what_if, candidates, one_more_node
from kubectl_dra.explain.remedies.candidates import ways as ways_out
from kubectl_dra.explain.remedies.ending_pods import ending_pods
from kubectl_dra.explain.remedies.node_rules import rule_changes
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.scheduler_profile import RULES_UNKNOWN, message_of_scheduler, rules_unknown, scheduler_words
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unclear import NotBoundByDefect, missing_objects, not_decided, not_seen
from kubectl_dra.explain.unclear import unread as unread_for
from kubectl_dra.explain.unread_kind import NotProved
from kubectl_dra.scheduling.default_preemption import VictimsEnding
from kubectl_dra.text import did_you_mean_or_known

_VERDICTS = {
    Outlook.PLACED: Verdict.ALLOCATED,
    Outlook.FITS: Verdict.SCHEDULABLE,
    Outlook.FAILS: Verdict.UNSCHEDULABLE,
    Outlook.OPEN: Verdict.UNDETERMINED,
}


def diagnose(question: Question, snapshot: Snapshot, settings: Settings, budget: Budget | None = None) -> Diagnosis:
    """Answer the question. What that takes is taken from the ``budget`` as well.

    Raises:
        InputError: the node or request asked about does not exist.
    """
    snapshot = complete(question, snapshot, settings)
    analysis, judged, first, stopped = _examined(question, snapshot, settings, budget)
    funnels = _asked_for(analysis)
    unread = tuple(unread_for(analysis, Verdict.SCHEDULABLE)) if judged.verdict is not Verdict.ALLOCATED else ()
    unsure = bool(unread) or rules_unknown(analysis)
    ways = [] if stopped or unsure else _ways(analysis, judged)
    if first:
        kinds = {finding.kind for finding in first}
        judged = judged._replace(
            findings=[finding if finding.kind in kinds else beside(finding, first) for finding in judged.findings]
        )
        ways = [replace(way, proof=resting_on(way.proof, first), what_if=()) for way in ways]
    if settings.with_ways:
        ways = [replace(way, proof=analysis.what_if.with_all(way.changes).counted(way.proof, snapshot)) for way in ways]
    proved = _unproved(judged.findings) if unsure else list(_with_what_if(analysis, judged.findings))
    proved, ways = _with_new_node(proved, ways)
    shown = [
        replace(finding, place_of_fix=place_of_fix(analysis, finding)) for finding in _with_note_on_ways(proved, ways)
    ]
    ways = [replace(way, place=place_of(analysis, way.changes[0])) for way in ways]
    chosen = choice(analysis, judged.verdict)
    unproved: tuple[Words, ...] = ()
    if unread and shown and not judged.unclear:
        unproved = (NotProved(tuple(unread_kind.gap for unread_kind in unread)),)
    elif unsure and any(finding.proof for finding in judged.findings):
        unproved = (RULES_UNKNOWN,)
    # The scheduler first takes back a claim.
    second = judged.verdict is Verdict.SCHEDULABLE and analysis.outlook is Outlook.FAILS
    places = tuple(placements_after_giving_back(analysis) if second else placements(analysis))
    refused = tuple(refused_on(analysis, places)) if judged.verdict is Verdict.SCHEDULABLE and not stopped else ()
    idle = _not_starting(analysis, judged.verdict, places)
    groups = () if stopped else split_not_starting(node_groups(analysis, funnels), idle, refused)
    noted = (
        *driver_refusals(analysis, refused, tried=not stopped),
        *answer_notes(analysis, shown, (*judged.unclear, *unproved), ways, groups),
    )
    look = next_step(analysis, judged.verdict, shown, judged.unclear)
    if idle and judged.verdict is Verdict.SCHEDULABLE and not shown:
        look = NextStep(Look.EXPLAIN_NODE, idle[0].node)
    found = Diagnosis(
        kind=question.kind,
        namespace=question.namespace,
        name=question.name,
        verdict=judged.verdict,
        node=question.pod.node_name if question.pod is not None else "",
        asked_node=settings.node,
        fitting=analysis.after_giving_back if second else analysis.fitting,
        held=tuple(device for claim in analysis.allocated for device in claim.devices),
        unclear=judged.unclear,
        findings=tuple(shown),
        claims=tuple(claim_report(analysis, claim_entry, funnels) for claim_entry in analysis.question.claims),
        nodes=groups,
        placements=places,
        choice=chosen,
        scheduler=tuple(scheduler_words(question, snapshot, settings.scheduler)),
        message="" if judged.unclear else message_of_scheduler(analysis, judged.verdict),
        notes=(*noted, *open_choice(chosen, analysis.snapshot)),
        release=settings.scheduler.version,
        release_source=settings.release_source,
        next=look,
        gates=tuple(sorted(settings.scheduler.gates)),
        ways=tuple(ways),
        supposed=settings.supposed,
        not_starting=idle,
        refused=refused,
        made_by=question.made_by,
    )
    if not snapshot.supposed:
        return found
    if found.verdict is Verdict.SCHEDULABLE and not analysis.question.claims:
        # A new node may be the only one that takes a pod without claims.
        found = replace(found, fitting=tuple(analysis.takers))
    return without_commands_for(snapshot.supposed, found)


def _not_starting(analysis: Analysis, verdict: Verdict, places: Sequence[NodeDevices]) -> tuple[NotStarting, ...]:
    """Where a pod that fits would not start, or does not where it is."""
    own, pod = drivers_of(analysis.allocated), analysis.pod
    if verdict is Verdict.ALLOCATED and pod is not None and pod.node_name and pod.phase in ("", "Pending"):
        return not_starting(analysis.snapshot, [(pod.node_name, own)]) or not_prepared(pod, own, analysis.snapshot)
    if verdict is not Verdict.SCHEDULABLE:
        return ()
    placed = ((place.node, {*own, *drivers_of(place.claims)}) for place in places)
    return not_starting(analysis.snapshot, placed if places else [(name, own) for name in analysis.takers])


def _behind(first: Sequence[Finding], analysis: Analysis) -> list[Finding]:
    """What keeps the pod before the scheduler sees it, with what the scheduler would say: the same attempt tells."""
    at = next((number for number, finding in enumerate(first) if finding.kind.queued), None)
    if not first or any(not finding.kind.passes for finding in first):
        return list(first)
    if at is None:
        return [*first, *(_after_attempts(analysis) if analysis.outlook is Outlook.FAILS else ())]
    text = {
        Outlook.FITS: "{cause}; {when} it fits on {nodes:some}",
        Outlook.FAILS: "{cause}; {when} it could not be scheduled either",
        Outlook.OPEN: "{cause}; whether it can be scheduled {when} is not determined",
    }
    held = first[at]
    if (outlook := analysis.outlook) not in text:
        return list(first)
    when = say("{when} and past its further causes", when=held.kind.queued) if len(first) > 1 else held.kind.queued
    summary = say(text[outlook], cause=held.summary, when=when, nodes=analysis.takers)
    findings = [*first[:at], replace(held, summary=summary), *first[at + 1 :]]
    return [*findings, *_after_attempts(analysis)] if outlook is Outlook.FAILS else findings


class Judgement(NamedTuple):
    """The verdict, the findings that hold with it, and why it is undetermined."""

    verdict: Verdict
    findings: Sequence[Finding]
    unclear: tuple[Words, ...] = ()


class Examined(NamedTuple):
    """A question with its judgement, what was found before devices count, and whether no node was tried for that."""

    analysis: Analysis
    judged: Judgement
    first: Sequence[Finding]
    stopped: bool


def _examined(question: Question, snapshot: Snapshot, settings: Settings, budget: Budget | None) -> Examined:
    """The question with its verdict and all causes, also those that only show when the first are mended."""
    analysis = analysis_of(question, snapshot, settings, budget)
    early = [*of_question(question, snapshot), *ask(When.SCENE, analysis)]
    before = [finding for finding in early if finding.under_way is None]
    first = before or ask(When.CRASH, analysis)
    # Where devices do not count, no node is tried.
    stopped = any(not finding.kind.passes for finding in first)
    if not stopped:
        analysis = analysis.trying_nodes()
    findings = [
        *(_behind(first, analysis) or _after_attempts(analysis)),
        *(finding for finding in early if finding.under_way is not None),
    ]
    expected = Verdict.UNSCHEDULABLE if first and not _placed(first[0], analysis) else _expected(analysis, findings)
    if expected is Verdict.UNSCHEDULABLE:
        findings = drivers_first(analysis, findings)
    judged = _judge(analysis, expected, findings, before, stopped=stopped)
    if judged.verdict is Verdict.UNSCHEDULABLE and not judged.unclear:
        further = _further(analysis, question, judged.findings, first)
        judged = judged._replace(findings=[*_helping(judged.findings, further), *further])
    return Examined(analysis, judged, first, stopped)


def _helping(findings: Sequence[Finding], further: Sequence[Finding]) -> Iterator[Finding]:
    """The findings; a change that is not enough is only offered where something is proved to end the rest."""
    for finding in findings:
        alone = finding.remedy is not None and finding.remedy.offers and finding.proof is None
        ends = any(other.proof is not None for other in further)
        yield replace(finding, remedy=None) if finding.kind is NOT_FOR_NODE and alone and not ends else finding


def _placed(first: Finding, analysis: Analysis) -> bool:
    """Whether the pod has a node and its devices, though not for long."""
    return bool(first.trouble and analysis.pod and analysis.allocated) and analysis.outlook is Outlook.PLACED


def _further(
    analysis: Analysis, question: Question, findings: Sequence[Finding], first: Sequence[Finding]
) -> list[Finding]:
    """The causes that keep the pod when these are mended; their fixes are proved with these mended."""
    past = question_past(question, analysis, findings)
    if past is None:
        return []
    judged = _examined(past, analysis.snapshot, analysis.settings, analysis.budget).judged
    if judged.verdict is not Verdict.UNSCHEDULABLE or judged.unclear:
        return []
    known = {finding.kind for finding in first}, {(finding.kind, finding.summary) for finding in findings}
    new = [
        finding
        for finding in judged.findings
        if finding.kind not in known[0] and (finding.kind, finding.summary) not in known[1]
    ]
    # What it rejects besides is a cause of its own kind, unless nothing else is left.
    new = [other for other in new if other.kind not in {finding.kind for finding in findings}] or new
    return [beside(supposing(finding, findings), findings, analysis.what_if) for finding in new]


def _judge(
    analysis: Analysis, expected: Verdict, findings: Sequence[Finding], before: Sequence[Finding], *, stopped: bool
) -> Judgement:
    """The verdict: the expected one, unless a deciding fact is unknown."""
    missing = tuple(missing_objects(analysis.question, analysis.snapshot, findings))
    if missing:
        return _without(missing, analysis, expected, findings, before)
    hidden = () if stopped else tuple(not_seen(analysis, expected))
    open_ = () if stopped else tuple(not_decided(analysis, expected, findings))
    if hidden or open_:
        # What was found without what was not seen means nothing.
        known = sorted((*hidden, *open_), key=lambda reason: not isinstance(reason, NotBoundByDefect))
        return Judgement(Verdict.UNDETERMINED, before if hidden else findings, tuple(known))
    return Judgement(expected, findings)


def _without(
    missing: tuple[Words, ...],
    analysis: Analysis,
    expected: Verdict,
    findings: Sequence[Finding],
    before: Sequence[Finding],
) -> Judgement:
    """The verdict where objects that the pod names were not read: what stands whatever they are."""
    if expected is not Verdict.UNSCHEDULABLE or tuple(not_seen(analysis, expected)):
        # Nodes were tried without these objects, so neither a yes nor what goes with it means anything.
        findings = before
    kept = [finding for finding in findings if not finding.kind.missing]
    if expected is Verdict.ALLOCATED and kept and kept[0].trouble:
        return Judgement(expected, kept, missing)
    stands = bool(kept) and expected is not Verdict.ALLOCATED
    return Judgement(Verdict.UNSCHEDULABLE if stands else Verdict.UNDETERMINED, kept, missing)


def _expected(analysis: Analysis, findings: Sequence[Finding]) -> Verdict:
    """What the attempts say, except that a pod which never binds does not get the devices."""
    verdict = _VERDICTS[analysis.outlook]
    if any(finding.kind is ELSEWHERE_UNUSED for finding in findings) and analysis.after_giving_back:
        return Verdict.SCHEDULABLE
    never = verdict is Verdict.SCHEDULABLE and any(finding.kind.never_binds for finding in findings)
    return Verdict.UNSCHEDULABLE if never else verdict


def _after_attempts(analysis: Analysis) -> list[Finding]:
    """The causes if nothing blocks before devices count, including what is wrong although the devices exist."""
    if analysis.outlook is not Outlook.FAILS:
        points = {Outlook.FITS: When.FITS, Outlook.OPEN: When.OPEN, Outlook.PLACED: When.PLACED}
        return ask(points[analysis.outlook], analysis)
    findings = ask(When.FAILS, analysis)
    if not findings:
        findings = [
            *ask(When.REQUESTS, analysis),
            *failing_requests.causes(analysis),
            *ask(When.BESIDE_REQUESTS, analysis),
        ]
    kinds = {finding.kind for finding in findings}
    if ELSEWHERE_UNUSED in kinds and analysis.after_giving_back:
        # What refuses the claim's own node does not refuse the pod.
        return findings
    return [*findings, *(finding for finding in ask(When.FAILS_TOO, analysis) if finding.kind not in kinds)]


def _ways(analysis: Analysis, judged: Judgement) -> list[RemedyPlan]:
    """Changes that would help, except those that findings offer; devices to add if nothing cheaper was found."""
    failed = analysis.fails_somewhere or any(
        attempt.verdict is not AttemptVerdict.REJECTED and name not in analysis.overtaxed
        for name, attempt in analysis.attempts.items()
    )
    wanted = judged.verdict is Verdict.UNSCHEDULABLE and analysis.claims and analysis.settings.with_ways
    if failed or not wanted:
        return []
    near: dict[Words, list[str]] = {}
    for node in analysis.one_step_away:
        near.setdefault(analysis.view.ineligible[node.name], []).append(node.name)
    changes = [
        *candidates(analysis.view, analysis.claims, analysis.funnels, analysis.holders),
        *rule_changes(near, analysis.what_if, room=not _evicts(analysis)),
        *(() if _evicts(analysis) else _ends(analysis)),
    ]
    changes = sorted(dict.fromkeys(changes), key=lambda change: change.cost)
    others = not_offered_yet(ways_out(analysis.what_if, changes, judged.findings), judged.findings)
    plans = sorted(others, key=lambda way: (way.price, _made_again(way)))
    more = one_more_node(analysis) if not analysis.settings.node else None
    return [*plans, more] if more else plans


def _made_again(way: RemedyPlan) -> bool:
    """Whether a pod ends that something makes again, which then competes for what it gave back."""
    return any(replaced_by(pod) is not None for change in way.changes for pod in change.ended_pods)


def _ends(analysis: Analysis) -> Sequence[Change]:
    """Pods whose end makes room."""
    outcome = analysis.outcome
    if outcome is None:
        return []
    full = [node.name for node in analysis.one_step_away if outcome.filtered[node.name].resolvable]
    overtaxed = [name for name, rejection in analysis.overtaxed.items() if rejection.resolvable]
    more = ending_pods(outcome, overtaxed, outcome.chain) if overtaxed else []
    found = [*ending_pods(outcome, full), *more]
    # Who ends a replica of the pod's own owner makes another one wait.
    return [change for change in found if not any(replicas_of_one(pod, outcome.pod) for pod in change.ended)]


def _evicts(analysis: Analysis) -> bool:
    """Whether the scheduler makes room by itself, or already has."""
    preemption = analysis.outcome.preemption if analysis.outcome is not None else None
    return preemption is not None and bool(preemption.best or isinstance(preemption.ineligible, VictimsEnding))


def _with_note_on_ways(findings: Sequence[Finding], ways: Sequence[RemedyPlan]) -> list[Finding]:
    """The findings; the first one that no new node ends says if only several changes together help."""
    together = ways and len(ways[0].changes) > 1
    if not together or not findings or any(finding.proof for finding in findings):
        return list(findings)
    at = next((at for at, finding in enumerate(findings) if not finding.kind.instead), 0)
    remedy = replace(findings[at].remedy or Remedy(findings[at].kind.fix), not_alone=True)
    return [*findings[:at], replace(findings[at], remedy=remedy), *findings[at + 1 :]]


def _with_new_node(findings: Sequence[Finding], ways: Sequence[RemedyPlan]) -> tuple[list[Finding], list[RemedyPlan]]:
    """The findings, with the proof of one more node where that is the fix; and the other ways out."""
    at = next(
        (at for at, finding in enumerate(findings) if finding.remedy is not None and finding.remedy.adds_node), None
    )
    more = next((way for way in ways if way.proof.like), None)
    if at is None or more is None or (remedy := findings[at].remedy) is None:
        return [*findings], [*ways]
    remedy = replace(remedy, proof=more.proof, offers=more.changes, what_if=more.what_if, steps=more.steps)
    mended = [*findings[:at], replace(findings[at], remedy=remedy), *findings[at + 1 :]]
    return mended, [way for way in ways if way is not more]


def _unproved(findings: Sequence[Finding]) -> list[Finding]:
    """The findings where something that would decide after a fix was not read or is not known: nothing is proved."""
    return [
        finding
        if finding.remedy is None
        else replace(finding, remedy=replace(finding.remedy, proof=None, offers=(), what_if=(), steps=()))
        for finding in findings
    ]


def _with_what_if(analysis: Analysis, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, each fix also as data and as a value of ``--what-if``."""
    for finding in findings:
        remedy = finding.remedy
        if remedy is None or remedy.proof is None or not remedy.offers:
            yield finding
            continue
        changes, what_if = remedy.made, analysis.what_if
        # Where a request was left out, or another cause stays, nothing that can be supposed makes the pod fit.
        supposed = as_what_if(what_if, (*remedy.with_others, *changes)) if remedy.proof.enough else ()
        proof = remedy.proof
        if analysis.settings.with_ways:
            proof = what_if.with_all((*remedy.with_others, *changes)).counted(proof, analysis.snapshot)
        steps = remedy.steps or as_steps(what_if, changes)
        remedy = replace(remedy, proof=proof, what_if=supposed, steps=steps)
        yield replace(finding, remedy=remedy)


def _asked_for(analysis: Analysis) -> list[Located]:
    """The funnels to show: of all requests, or of the one named by ``--request``."""
    wanted = analysis.settings.request
    if not wanted:
        return list(analysis.funnels)
    requests = (request for claim in analysis.claims for request in claim.requests)
    names = [request.result_name(spec) for request in requests for spec in request.alternatives()]
    if not any(wanted in (name, name.split("/")[0]) for name in names):
        hint = did_you_mean_or_known(wanted, names) if names else "all are allocated"
        raise InputError(f'no request "{wanted}" in these claims; {hint}')
    return [located for located in analysis.funnels if wanted in (located.funnel.name, located.names[0])]
