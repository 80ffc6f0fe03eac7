"""The sentences of a diagnosis: the answer, what to do about a cause, its proof, what to look at next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kubectl_dra.allocation.extended_resources import CLAIM_NAME
from kubectl_dra.api.claims import devices_of
from kubectl_dra.cluster.snapshot import Gap
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import Family
from kubectl_dra.explain.diagnosis import (
    OUTCOMES,
    Diagnosis,
    Evidence,
    Finding,
    NodeDevices,
    NodeGroup,
    Relation,
    RemedyPlan,
)
from kubectl_dra.explain.driver_refusals import each_sort, refused
from kubectl_dra.explain.funnel.shown import Observation
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.pending_alike import without_pod
from kubectl_dra.explain.phrase import Phrase
from kubectl_dra.explain.remedies.change import RequestChange
from kubectl_dra.explain.remedies.claim_edits import RequestPlace
from kubectl_dra.explain.remedies.proof_result import OtherRequest, Proof, Tried
from kubectl_dra.explain.unread_kind import if_none
from kubectl_dra.report.phrases import devices_named, shares_of, written
from kubectl_dra.text import amount, are, ended, some

if TYPE_CHECKING:
    from kubectl_dra.explain.overview import Overview

_WITH: Final = {
    Tried.CHANGE: "then",
    Tried.WITHOUT_TERM: "without the term",
    Tried.WITHOUT_REQUEST: 'without request "{request}"',
    Tried.CLAIM_PER_REQUEST: "with a claim for each request",
}
"""What was changed for a proof."""
MAX_VALUES: Final = 6
MAX_FITTING: Final = 3
_TOGETHER: Final = "No single change is enough, but several together are: see the fixes."


def answer(diagnosis: Diagnosis) -> str:
    """The answer in one sentence."""
    lead, reason = parts(diagnosis)
    return ended(f"{lead}: {reason}" if reason else lead)


def reason(diagnosis: Diagnosis) -> str:
    """Why it is so: the answer without what is said beside it, the subject and the verdict."""
    lead, reason = parts(diagnosis)
    return reason or lead


def parts(diagnosis: Diagnosis) -> tuple[str, str]:
    """The answer as the subject with its verdict, and why, which is empty where the first says it all; neither ends
    with a full stop.
    """
    lead, why = _parts(diagnosis)
    return lead, why.rstrip(".")


def _parts(diagnosis: Diagnosis) -> tuple[str, str]:
    kind = "Pod" if diagnosis.kind == "pod" else "Claim"
    if diagnosis.of_template:
        kind = "A claim of ResourceClaimTemplate"
    subject = f"{kind} {diagnosis.namespace}/{diagnosis.name}"
    if diagnosis.made_by:
        subject = f"A pod of {diagnosis.made_by}"
    first = written(diagnosis.findings[0].summary) if diagnosis.findings else ""
    if diagnosis.verdict is Verdict.UNDETERMINED:
        if conditional(diagnosis):
            lead, why = _allocatable(diagnosis, subject, first)
            condition = if_there_is_none(if_none(diagnosis.unclear), diagnosis.namespace, "it")
            return f"{lead} if {condition}", why
        why = written(diagnosis.unclear[0]) if diagnosis.unclear else "the search did not end in time"
        if diagnosis.node:
            return f"{subject} is on node {diagnosis.node}; undetermined", why
        return f"{subject}: undetermined", why
    if diagnosis.verdict is Verdict.ALLOCATED:
        return _allocated(diagnosis, subject, first)
    if diagnosis.verdict is Verdict.SCHEDULABLE:
        return _allocatable(diagnosis, subject, first)
    if diagnosis.verdict is Verdict.NOT_STARTING:
        return _not_starting(diagnosis, subject)
    return _not_allocatable(diagnosis, subject, first)


def conditional(diagnosis: Diagnosis) -> bool:
    """Whether it is open only because of objects of which none may exist, and the answer is yes then."""
    idle = diagnosis.not_starting or diagnosis.refused or diagnosis.node
    open_ = diagnosis.verdict is Verdict.UNDETERMINED and not diagnosis.findings and bool(diagnosis.fitting)
    return open_ and not idle and bool(if_none(diagnosis.unclear))


def if_there_is_none(gaps: Sequence[Gap], namespace: str, whom: str) -> str:
    """The condition under which an answer holds, as there are kinds of which nothing was read; ``whom`` they change."""
    parts = [_NONE[gap.kind].format(namespace=namespace, whom=whom) for gap in gaps]
    return f"there is no {', and no '.join(parts)} (not in what was read)"


_NONE: Final = {
    "LimitRange": "LimitRange in namespace {namespace} that changes {whom}",
    "ResourceQuota": "ResourceQuota in namespace {namespace} that refuses {whom}",
    "DeviceTaintRule": "DeviceTaintRule that taints the devices",
}


def _allocated(diagnosis: Diagnosis, subject: str, first: str) -> tuple[str, str]:
    findings = diagnosis.findings
    if findings and findings[0].under_way is None and (state := findings[0].trouble):
        return f"{subject} {written(state)}", first
    where = f" on node {diagnosis.node}" if diagnosis.node else ""
    if diagnosis.kind == "pod" and not diagnosis.claims and where:
        return f"{subject} is{where}", "it has no resource claims" + (f"; but {first}" if first else "")
    held = devices_named(diagnosis.held) or "no devices needed"
    return f"{subject} is allocated{where}", held + (f"; but {first}" if first else "")


def _changed(diagnosis: Diagnosis) -> str:
    count = len(diagnosis.supposed)
    provided = f", if {written(diagnosis.provided)}" if diagnosis.provided else ""
    return f" with {'this change' if count == 1 else 'these changes'}{provided}" if count else ""


def _allocatable(diagnosis: Diagnosis, subject: str, first: str) -> tuple[str, str]:
    can, fits, fit = ("could", "would fit", "would fit") if diagnosis.supposed else ("can", "fits", "fit")
    where = f"{amount(len(diagnosis.fitting), 'node')} ({some(diagnosis.fitting)})"
    changed = _changed(diagnosis)
    if diagnosis.fits_already and (diagnosis.kind == "claim" or diagnosis.claims):
        return _fits_already(diagnosis, subject, first)
    if diagnosis.kind == "claim":
        unused = f", but it is pending: {first}" if first else idle(diagnosis.not_starting)
        return f"{subject} {can} be allocated{changed}", f"it {fits} on {where}{unused}"
    if not diagnosis.claims and (diagnosis.fits_already or not (diagnosis.supposed and diagnosis.fitting)):
        return f"{subject} uses no resource claims", "devices do not keep it pending"
    still = f"; it still waits: {first}".removesuffix(".") if first else idle(diagnosis.not_starting)
    written_claims = any(not claim.by_scheduler for claim in diagnosis.claims)
    who, verb, have = ("its claims", fit, "its claims are") if written_claims else ("it", fits, "its devices are")
    reason = f"{who} {verb} on {where}" if diagnosis.fitting else f"{have} allocated already"
    return f"{subject} {can} be scheduled{changed}", f"{reason}{still}"


def _fits_already(diagnosis: Diagnosis, subject: str, first: str) -> tuple[str, str]:
    """That it fits on nodes that are there, and on new ones as well."""
    several = diagnosis.kind == "pod" and any(not claim.by_scheduler for claim in diagnosis.claims)
    new = [name for name in diagnosis.fitting if name not in diagnosis.fits_already]
    also = f", and on {some(new)} as well" if new else ""
    still = f"; it still waits: {first}".removesuffix(".") if first else idle(diagnosis.not_starting)
    done = "scheduled" if diagnosis.kind == "pod" else "allocated"
    fits = "its claims fit" if several else "it fits"
    where = some(diagnosis.fits_already)
    changes = "this change" if len(diagnosis.supposed) == 1 else "these changes"
    return f"{subject} can be {done} without {changes}", f"{fits} on {where} already{also}{still}"


def _not_starting(diagnosis: Diagnosis, subject: str) -> tuple[str, str]:
    can, does = ("could", "would not") if diagnosis.supposed else ("can", "does not")
    verb = f"{can} be {'scheduled' if diagnosis.kind == 'pod' else 'allocated'}{_changed(diagnosis)}"
    lead = f"{subject} {verb}, but {does} start" if diagnosis.kind == "pod" else f"{subject} {verb}, but is of no use"
    if diagnosis.refused:
        return lead, written(refused(next(each_sort(diagnosis.refused))))
    where = diagnosis.not_starting[0]
    fits, do = ("it would fit", "would not") if where.unseen else ("it fits", "do not")
    return lead, f"{fits} on {some(diagnosis.fitting)}, where pods {do} start: {written(where.why)}"


def idle(where: Sequence[NotStarting]) -> str:
    """Part of a sentence that names nodes where pods fit and do not start; empty if there are none."""
    if not where:
        return ""
    whys = [written(node.why) for node in where]
    alike = [node.node for node, why in zip(where, whys, strict=True) if why == whys[0]]
    rest = f", and not on {amount(len(where) - len(alike), 'more node')} either" if where[len(alike) :] else ""
    return f"; on {some(alike, 2)} pods do not start: {whys[0]}{rest}"


def _is_named(finding: Finding, first: str) -> bool:
    """Whether what the first cause says has all reasons for which another one refuses nodes."""
    if finding.kind.family is not Family.NODE_FILTERS:
        return False
    reasons = [written(fact.value) for fact in finding.evidence if fact.relation is Relation.HAS]
    return bool(reasons) and all(reason in first for reason in reasons)


def _not_allocatable(diagnosis: Diagnosis, subject: str, first: str) -> tuple[str, str]:
    findings = diagnosis.findings
    further = sum(not _is_named(finding, first) for finding in findings[1:])
    more = f"and {amount(further, 'further cause')}" if further else ""
    if more:
        more = f", {more}" if first.endswith(")") else f" ({more})"
    if findings and findings[0].kind.ends_pod and isinstance(findings[0].summary, Phrase):
        return f"{written(findings[0].summary.saying(pod=subject))}{more}", ""
    only = f" on node {diagnosis.asked_node}" if diagnosis.asked_node else ""
    verb = f"cannot be {'scheduled' if diagnosis.kind == 'pod' else 'allocated'}{only}{_changed(diagnosis)}"
    if findings and (state := findings[0].trouble):
        verb = written(state)
    why = f"{first or 'no reason found'}{more}"
    if diagnosis.on_new_nodes:
        why = f"{written(diagnosis.on_new_nodes)}; elsewhere, {written(diagnosis.on_old_nodes)}{more}"
    return f"{subject} {verb}", why


def choice(diagnosis: Diagnosis) -> str:
    """Which of several nodes the scheduler takes; empty where there is no choice, or nobody knows."""
    chosen = diagnosis.choice
    if chosen is None or not chosen.certain or chosen.feasible < 2:
        return ""
    if len(chosen.nodes) == 1:
        return f"the scheduler takes {chosen.nodes[0]}, which scores best"
    return f"the scheduler takes any of {some(chosen.nodes)}, which score alike"


def fix(finding: Finding) -> str:
    """What to do about a cause; the commands for it are the remedy's."""
    remedy = finding.remedy
    if remedy is None:
        return finding.kind.fix
    return f"{written(remedy.change)} {_TOGETHER}" if remedy.not_alone else written(remedy.change)


def proof(proof: Proof, *, short: bool = False) -> str:
    """A proof: on which node it then fits, and unless ``short`` the devices; and what it rests on besides."""
    names = [*devices_of(proof.claims)]
    devices = f": {devices_named(names)}" if names and not short else ""
    then = f"{_WITH[proof.tried].format(request=proof.request)} it fits on {_where(proof)}"
    return f"{then}{devices}{_replicas(proof)}{_beside(proof)}{_contested(proof)}{idle(proof.not_starting)}"


def _replicas(found: Proof) -> str:
    """How many replicas of its workload fit with a fix."""
    if found.then is None:
        return ""
    fitting, of, unit = found.then
    every = f"both {unit}s" if of == 2 else f"all {of:,} {unit}s"
    return f", and so do {every}" if fitting >= of else f", and {fitting:,} of {amount(of, unit)} do"


def _where(proof: Proof) -> str:
    """The nodes of a proof: the only one, or how many they are."""
    if len(proof.nodes) < 2:
        return f"{proof.node} at least" if proof.more else proof.node
    least = "at least " if proof.more else ""
    return f"{least}{amount(len(proof.nodes), 'node')} ({some(proof.nodes, MAX_FITTING)})"


def _contested(found: Proof) -> str:
    """The pods that may take first what a fix gives."""
    if found.beside is None:
        return ""
    waits, successor = taken_first(found.beside.rivals), found.beside.successor
    return f"{waits}; the pod that {successor} makes again has a higher priority" if successor else waits


def taken_first(rivals: Sequence[str]) -> str:
    """Part of a sentence: other pods may take first what a fix gives; empty if none may."""
    who = "other pods that wait" if rivals[1:] else "another pod that waits"
    return f"; {who} may take it first: {some(rivals, 2)}" if rivals else ""


def _beside(proof: Proof) -> str:
    """What else the pod needs: other requests that fail were changed as well, or left out; other causes are mended."""
    if proof.beside is None:
        return ""
    changed, aside = proof.beside.changed, proof.beside.aside
    parts = []
    if changed:
        parts.append(f"with the fix of {_places(changed)} made too")
    if aside:
        parts.append(f"without {_places(aside)}, which {'fail' if aside[1:] else 'fails'} too")
    if proof.beside.causes:
        parts.append(f"once {' and '.join(proof.beside.causes)} {'are' if proof.beside.causes[1:] else 'is'} fixed too")
    return f" ({', and '.join(parts)})" if parts else ""


def _places(others: Sequence[OtherRequest]) -> str:
    return " and ".join(written(other.place) for other in others)


def claim_named(key: str) -> str:
    """A claim by its key; in words where the scheduler would make it for extended resources, for it has no name yet."""
    made = key.rpartition("/")[2] == CLAIM_NAME
    return "the scheduler's claim for the pod's extended resources" if made else f"claim {key}"


def about(evidence: Evidence) -> str:
    """What a fact is about, up to its value: ``claim a holds``, or ``ResourceClaim a · status.reservedFor:``."""
    text = written(evidence.field)
    if evidence.relation is Relation.DOES:
        return f"{written(evidence.object)} {text}"
    return f"{written(evidence.object)} · {text}:"


def changes(way: RemedyPlan) -> str:
    """The changes of a way out, each as JSON has it."""
    return ", and ".join(map(written, way.changes))


def changes_told(way: RemedyPlan) -> str:
    """The changes of a way out as parts of one sentence: those of one request after each other name it once."""
    out: list[str] = []
    place: RequestPlace | None = None
    for change in way.changes:
        if isinstance(change, RequestChange):
            out.append(written(change.what if change.place == place else change))
            place = change.place
        else:
            out.append(written(change))
            place = None
    return ", and ".join(out)


def observation(seen: Observation) -> str:
    """What refused devices have, each value with the number of devices, the most frequent ones only."""
    total = sum(count for _, count in seen.values)
    parts = [
        f"absent on {count:,} of {total:,}" if value is None else f"{value} on {count:,}"
        for value, count in seen.values[:MAX_VALUES]
    ]
    more = len(seen.values) - MAX_VALUES
    return f"refused: {seen.name} is {', '.join(parts)}" + (f", and {more:,} other values" if more > 0 else "")


def placed(placement: NodeDevices) -> str:
    """The devices of each request on a node."""
    devices: dict[str, list[str]] = {}
    for result in (result for claim in placement.claims for result in claim.results):
        shares = shares_of(result)
        devices.setdefault(result.request, []).append(f"{result.device} ({shares})" if shares else str(result.device))
    return "; ".join(f"{request}: {', '.join(names)}" for request, names in devices.items())


def node_groups(diagnosis: Diagnosis) -> list[NodeGroup]:
    """The nodes: those that fit first, those where the pod may not run last."""
    return sorted(
        diagnosis.nodes,
        key=lambda group: (
            OUTCOMES.index(group.outcome),
            -group.nearness,
            -len(group.nodes),
            written(group.reason),
        ),
    )


def is_stuck(diagnosis: Diagnosis) -> bool:
    """Whether a pod or claim gets no devices, or is not served by those it has, and waiting a few seconds will not
    help.
    """
    first = diagnosis.findings[0] if diagnosis.findings else None
    if first is not None and (first.normal or first.under_way is not None):
        return False
    return diagnosis.troubled or diagnosis.verdict is Verdict.UNSCHEDULABLE


def overview_answer(overview: Overview) -> str:
    """The answer about everything that is pending, in one sentence."""
    where = f" in namespace {overview.namespace}" if overview.namespace else ""
    more = f"; {overview.elsewhere:,} in other namespaces" if overview.elsewhere else ""
    if overview.unread and not overview.found:
        return f"Undetermined: {written(overview.unread[0])}{more}."
    if not overview.found and overview.unmade:
        return f"{written(without_pod(overview.unmade[0])).removesuffix('.')}{more}."
    if not overview.found:
        return f"No claim is pending{where}{more}."
    total = sum(len(alike.names) for alike in overview.found)
    stuck = sum(len(alike.names) for alike in overview.found if is_stuck(alike.diagnosis))
    turn = ""
    if (fit := overview.together) is not None:
        count = f"{'only' if fit.always else 'at least'} {fit.fewest:,}"
        turn = f"; each of {fit.pods:,} would fit alone, and {count} of them together"
    open_ = sum(len(alike.names) for alike in overview.found if alike.diagnosis.verdict is Verdict.UNDETERMINED)
    unknown = f", {open_:,} undetermined" if open_ else ""
    return f"{_waiting(overview, total, stuck)}{unknown}{turn}{more}."


def _waiting(overview: Overview, total: int, stuck: int) -> str:
    """Number of pods and claims that wait, and of those that are stuck."""
    names = [name for alike in overview.found for name in alike.names]
    pods = sum(name.startswith("pod/") for name in names)
    kinds = [amount(count, kind) for count, kind in ((pods, "pod"), (total - pods, "claim")) if count]
    who = " and ".join(kinds)
    if stuck == total:
        return f"{who} {are(total)} stuck"
    wait = "waits" if total == 1 else "wait"
    if not stuck:
        return f"{who} {wait}, and {'it is not' if total == 1 else 'none is'} stuck"
    return f"{who} {wait}, and {stuck:,} of them {are(stuck)} stuck"


# The commands that make a change in the cluster, or that show what would be with it.
