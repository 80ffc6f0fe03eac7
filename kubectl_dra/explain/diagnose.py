"""From a question and a snapshot to a diagnosis: the scheduler's steps, then the reasons."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kubectl_dra.allocation.attempt import Attempt, Cycle
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.search import Budget
from kubectl_dra.allocation.selection import Selectors
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.allocation.taint_rules import apply_rules
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import InvalidNodeSelector, Node
from kubectl_dra.api.versions import Release
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain import fatal, words
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import devices, request
from kubectl_dra.explain.eligibility import rejection
from kubectl_dra.explain.find import Finder, Located
from kubectl_dra.explain.funnel import RequestFunnel
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.model import (
    Cause,
    ClaimReport,
    Diagnosis,
    Evidence,
    NodeGroup,
    Placement,
    Verdict,
)
from kubectl_dra.explain.question import PodClaimState, Question
from kubectl_dra.explain.view import View
from kubectl_dra.explain.whatif import WhatIf
from kubectl_dra.names import nearest

SECONDS_PER_NODE = 2.0
SECONDS_TOTAL = 8.0
STEPS_PER_NODE = 400_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How to answer. ``patch`` is the patch release where known; ``release_source`` says where from."""

    release: Release
    gates: frozenset[str]
    release_source: str = ""
    patch: int | None = None
    node: str = ""
    request: str = ""
    with_devices: bool = False


@dataclass(slots=True)
class Case:
    """A question while it is worked on."""

    question: Question
    snapshot: Snapshot
    settings: Settings
    view: View
    holders: HolderIndex
    notes: list[str]
    causes: list[Cause]


def diagnose(question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """Answers the question.

    Raises:
        InputError: the node or request asked about does not exist.
    """
    case = _prepare(question, snapshot, settings)
    unallocated = [state.claim for state in question.claims if state.claim and state.claim.allocation is None]
    allocated = [state.claim for state in question.claims if state.claim and state.claim.allocation is not None]
    case.causes.extend(_structural(case))
    funnels = _funnels(case, unallocated)
    attempts = _attempts(case, unallocated) if unallocated else {}
    unavailable = _unavailable(case, allocated)
    verdict = _verdict(case, attempts, unavailable, unallocated)
    if verdict is Verdict.NOT_ALLOCATABLE and not case.causes:
        case.causes.extend(_reasons(case, attempts, unavailable, unallocated, allocated, funnels))
    undetermined = _undetermined(case, verdict, unallocated, attempts)
    if undetermined:
        verdict = Verdict.UNDETERMINED
    return Diagnosis(
        kind=question.kind,
        namespace=question.namespace,
        name=question.name,
        verdict=verdict,
        answer=words.answer(question, verdict, case.causes, undetermined, attempts),
        causes=tuple(case.causes),
        claims=tuple(_claim_report(case, state, funnels) for state in question.claims),
        nodes=tuple(_node_groups(case, attempts, unavailable, funnels)),
        placements=tuple(_placements(attempts, unavailable, unallocated)),
        scheduler=tuple(words.scheduler_words(question, snapshot)),
        notes=tuple(dict.fromkeys((*undetermined, *case.notes))),
        release=str(settings.release),
        release_source=settings.release_source,
        next_command=words.next_command(question, verdict, case.causes),
        gates=tuple(sorted(settings.gates)),
    )


def make_cycle(snapshot: Snapshot, settings: Settings, notes: list[str]) -> Cycle:
    """The scheduling cycle of a snapshot, DeviceTaintRules applied as the release does."""
    features = Features.from_gates(settings.gates)
    slices = snapshot.slices
    if snapshot.taint_rules:
        if settings.release.minor == 36 and settings.patch is not None and settings.patch <= 2:
            notes.append(
                f"{len(snapshot.taint_rules)} DeviceTaintRules exist: the scheduler of 1.36.0-1.36.2 does not see "
                "them (and may crash); they are left out here"
            )
        else:
            slices = apply_rules(slices, snapshot.taint_rules)
    return Cycle(
        index=SliceIndex(slices),
        classes=snapshot.classes,
        state=allocated_state(snapshot.claims.values(), features),
        selectors=Selectors(Environment.for_release(str(settings.release), features=settings.gates, stored=True)),
        features=features,
        quirks=Quirks.of_release(settings.release.minor),
    )


def _prepare(question: Question, snapshot: Snapshot, settings: Settings) -> Case:
    notes = list(words.gap_notes(snapshot))
    cycle = make_cycle(snapshot, settings, notes)
    nodes = _nodes(snapshot, cycle, settings, notes)
    ineligible: dict[str, str] = {}
    if question.pod is not None:
        for node in nodes:
            reason = rejection(question.pod, node)
            if reason:
                ineligible[node.name] = reason
    eligible = [node for node in nodes if node.name not in ineligible]
    return Case(
        question=question,
        snapshot=snapshot,
        settings=settings,
        view=View(cycle, eligible, ineligible),
        holders=HolderIndex(cycle.state, snapshot.pods),
        notes=notes,
        causes=list(question.causes),
    )


def _nodes(snapshot: Snapshot, cycle: Cycle, settings: Settings, notes: list[str]) -> list[Node]:
    nodes = list(snapshot.nodes.values())
    if not nodes:
        names = {entry.scope.node_name for entry in cycle.index.slices if entry.scope.node_name}
        names |= {
            device.scope.node_name
            for entry in cycle.index.slices
            if entry.per_device_node_selection
            for device in entry.devices
            if device.scope.node_name
        }
        nodes = [Node(name=name) for name in sorted(names)] or [Node(name="(any node)")]
        notes.append("no Nodes were read: node names are taken from ResourceSlices, labels and node taints are unknown")
    if not settings.node:
        return nodes
    chosen = [node for node in nodes if node.name == settings.node]
    if not chosen:
        near = nearest(settings.node, [node.name for node in nodes])
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise InputError(f"node {settings.node} does not exist{hint}")
    return chosen


def _structural(case: Case) -> list[Cause]:
    """What stands in the way before devices count: the pod's entries, and missing classes."""
    causes = [cause for state in case.question.claims for cause in state.causes]
    classes = case.view.cycle.classes
    for state in case.question.claims:
        claim = state.claim
        if claim is None or claim.allocation is not None or case.snapshot.missing("DeviceClass"):
            continue
        for entry in claim.requests:
            for spec in entry.alternatives():
                if spec.device_class and spec.device_class not in classes:
                    causes.append(_class_missing(claim, entry.result_name(spec), spec.device_class, list(classes)))
    return causes


def _class_missing(claim: ResourceClaim, name: str, wanted: str, known: Sequence[str]) -> Cause:
    kind = request.CLASS_MISSING
    near = nearest(wanted, known)
    hint = f"; nearest: {', '.join(near)}" if near else f"; classes here: {', '.join(sorted(known)[:6]) or 'none'}"
    fix = (
        f"Name an existing class ({', '.join(near)}) in a new claim, or install the driver that brings {wanted}."
        if near
        else kind.fix
    )
    return Cause(
        kind,
        f"DeviceClass {wanted} does not exist{hint}",
        (Evidence(f"claim {claim.key}", f'request "{name}" deviceClassName', wanted),),
        fix,
        claim=claim.key,
        request=name,
    )


def _funnels(case: Case, claims: Sequence[ResourceClaim]) -> list[Located]:
    out: list[Located] = []
    classes = case.view.cycle.classes
    names: list[str] = []
    for claim_index, claim in enumerate(claims):
        for request_index, entry in enumerate(claim.requests):
            for alternative, spec in enumerate(entry.alternatives()):
                device_class = classes.get(spec.device_class)
                name = entry.result_name(spec)
                names.append(name)
                if device_class is None:
                    continue
                if case.settings.request and case.settings.request not in (name, entry.name):
                    continue
                funnel = RequestFunnel(case.view, name, spec, device_class, case.holders)
                out.append(Located(claim_index, request_index, alternative, claim, funnel))
    wanted = case.settings.request
    if wanted and not any(wanted in (name, name.split("/")[0]) for name in names):
        near = nearest(wanted, names) or tuple(names[:5])
        raise InputError(f'no request "{wanted}" in these claims; there are: {", ".join(near) or "none unallocated"}')
    return out


def _attempts(case: Case, claims: Sequence[ResourceClaim]) -> dict[str, Attempt]:
    """One attempt per eligible node, within a total time."""
    out: dict[str, Attempt] = {}
    end = time.monotonic() + SECONDS_TOTAL
    for node in case.view.nodes:
        now = time.monotonic()
        deadline = min(now + SECONDS_PER_NODE, end)
        budget = Budget(max_steps=STEPS_PER_NODE if now < end else 1, deadline=deadline)
        out[node.name] = case.view.cycle.attempt(node, claims, budget=budget, pools=case.view.pools.get(node.name))
    return out


def _unavailable(case: Case, claims: Sequence[ResourceClaim]) -> dict[str, str]:
    """Nodes on which an allocated claim of the pod cannot be used, with the claim."""
    out: dict[str, str] = {}
    if case.question.kind == "claim":
        return out
    for claim in claims:
        assert claim.allocation is not None
        selector = claim.allocation.node_selector
        if selector is None:
            continue
        for node in case.view.nodes:
            try:
                usable = selector.matches(node)
            except InvalidNodeSelector:
                usable = False
            if not usable:
                out.setdefault(node.name, claim.key)
    return out


def _verdict(
    case: Case,
    attempts: dict[str, Attempt],
    unavailable: dict[str, str],
    unallocated: Sequence[ResourceClaim],
) -> Verdict:
    question = case.question
    if case.causes:
        return Verdict.NOT_ALLOCATABLE
    if not unallocated:
        if question.kind == "claim" or (question.pod is not None and question.pod.node_name):
            return Verdict.ALLOCATED
        if any(node.name not in unavailable for node in case.view.nodes):
            return Verdict.ALLOCATABLE
        return Verdict.NOT_ALLOCATABLE
    if any(attempt.verdict is Outcome.ERROR for attempt in attempts.values()):
        return Verdict.NOT_ALLOCATABLE
    if any(attempt.verdict is Outcome.ALLOCATED and name not in unavailable for name, attempt in attempts.items()):
        return Verdict.ALLOCATABLE
    if any(attempt.verdict is Outcome.UNDETERMINED for attempt in attempts.values()):
        return Verdict.UNDETERMINED
    return Verdict.NOT_ALLOCATABLE


def _reasons(
    case: Case,
    attempts: dict[str, Attempt],
    unavailable: dict[str, str],
    unallocated: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    funnels: Sequence[Located],
) -> list[Cause]:
    errors = [attempt for attempt in attempts.values() if attempt.error is not None]
    if errors:
        fits = [name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED]
        cause = fatal.cause_of(errors[0].error, errors[0].node)  # type: ignore[arg-type]
        if fits:
            hidden = Evidence(
                f"node {fits[0]}",
                "allocation",
                "would fit, but an error on one node ends the attempt for all",
            )
            cause = replace(cause, evidence=(*cause.evidence, hidden))
        return [cause]
    if not case.view.nodes:
        return [_no_node(case)]
    fitting = [name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED]
    if unavailable and (fitting or not unallocated):
        return [_elsewhere(case, claim) for claim in allocated if claim.key in unavailable.values()]
    whatif = WhatIf(case.view.cycle, unallocated, case.view.nodes, case.snapshot.claims.values())
    located = funnels
    if case.settings.request:
        located = _funnels(replace_request(case), unallocated)
    return Finder(case.view, unallocated, whatif, case.holders).causes(located)


def replace_request(case: Case) -> Case:
    """The same case about all requests."""
    return replace(case, settings=replace(case.settings, request=""))


def _no_node(case: Case) -> Cause:
    kind = devices.NO_NODE
    reasons: dict[str, list[str]] = {}
    for name, reason in case.view.ineligible.items():
        reasons.setdefault(reason, []).append(name)
    evidence = tuple(
        Evidence(words.some(names), "rejects the pod", reason)
        for reason, names in sorted(reasons.items(), key=lambda entry: -len(entry[1]))[:6]
    )
    first = next(iter(sorted(reasons.items(), key=lambda entry: -len(entry[1]))), ("no Nodes exist", []))[0]
    count = len(case.view.ineligible)
    return Cause(kind, f"none of the {count} nodes may run the pod: {first}", evidence, kind.fix)


def _elsewhere(case: Case, claim: ResourceClaim) -> Cause:
    assert claim.allocation is not None
    pod = case.question.pod
    others = [entry for entry in claim.reserved_for if pod is None or entry.uid != pod.metadata.uid or not entry.uid]
    kind = claim_causes.ELSEWHERE if others else claim_causes.ELSEWHERE_UNUSED
    selector = str(claim.allocation.node_selector)
    return Cause(
        kind,
        f"claim {claim.key} is allocated for {selector}, where the pod cannot run",
        (
            Evidence(f"ResourceClaim {claim.key}", "status.allocation.nodeSelector", selector),
            Evidence(
                f"ResourceClaim {claim.key}",
                "status.reservedFor",
                ", ".join(f"{entry.resource} {entry.name}" for entry in claim.reserved_for) or "nobody",
            ),
        ),
        kind.fix,
        claim=claim.key,
    )


def _undetermined(
    case: Case, verdict: Verdict, unallocated: Sequence[ResourceClaim], attempts: dict[str, Attempt]
) -> list[str]:
    """Why the verdict cannot be relied on; empty where it can."""
    reasons: list[str] = []
    snapshot = case.snapshot
    if not unallocated or (case.causes and verdict is Verdict.NOT_ALLOCATABLE and _causes_are_structural(case)):
        return reasons
    slices, classes, claims = (snapshot.missing(kind) for kind in ("ResourceSlice", "DeviceClass", "ResourceClaim"))
    if slices:
        reasons.append(f"which devices exist is unknown ({words.gap(slices)})")
    if classes:
        reasons.append(f"what the classes select is unknown ({words.gap(classes)})")
    if claims and claims.reason != ABSENT and verdict is Verdict.ALLOCATABLE:
        reasons.append(f"claims that were not seen may hold these devices ({words.gap(claims)})")
    if not snapshot.nodes and any(entry.scope.node_selector is not None for entry in case.view.cycle.index.slices):
        reasons.append("Nodes could not be read, and some devices are bound to node labels")
    for attempt in attempts.values():
        if attempt.verdict is Outcome.UNDETERMINED and verdict is Verdict.UNDETERMINED:
            reasons.append(
                f"the search on node {attempt.node} was stopped after {attempt.steps:,} steps; the scheduler, which "
                "gives up after 10 s per node, would probably time out as well"
            )
            break
    reasons.extend(_unmodelled(case, unallocated))
    return reasons


def _causes_are_structural(case: Case) -> bool:
    return (
        any(state.causes for state in case.question.claims)
        or bool(case.question.causes)
        or any(cause.kind is request.CLASS_MISSING for cause in case.causes)
    )


def _unmodelled(case: Case, claims: Sequence[ResourceClaim]) -> list[str]:
    fields: dict[str, str] = {}
    for claim in claims:
        for name in claim.unmodelled:
            fields.setdefault(f"spec.devices.{name}", f"claim {claim.key}")
        for entry in claim.requests:
            for spec in entry.alternatives():
                for name in spec.unmodelled:
                    fields.setdefault(f"requests[].{name}", f"claim {claim.key}")
    for entry in case.view.cycle.index.slices:
        for name in entry.unmodelled:
            fields.setdefault(f"spec.{name}", f"ResourceSlice {entry.name}")
        for device in entry.devices:
            for name in device.unmodelled:
                fields.setdefault(f"spec.devices[].{name}", f"ResourceSlice {entry.name}")
    return [f"{where} uses {field}, which is not modelled" for field, where in sorted(fields.items())]


def _claim_report(case: Case, state: PodClaimState, funnels: Sequence[Located]) -> ClaimReport:
    claim = state.claim
    if claim is None:
        return ClaimReport(state.entry, "", state.template, "missing")
    if claim.allocation is not None:
        return ClaimReport(
            entry=state.entry,
            claim=claim.key,
            template=state.template,
            state="allocated" + (" and reserved" if claim.reserved_for else ""),
            devices=tuple(f"{result.request}: {result.device}" for result in claim.allocation.results),
            nodes=str(claim.allocation.node_selector or "all nodes"),
        )
    return ClaimReport(
        entry=state.entry,
        claim=claim.key,
        template=state.template,
        state="not created yet" if state.hypothetical else "pending",
        funnels=tuple(
            located.funnel.report(with_devices=case.settings.with_devices)
            for located in funnels
            if located.claim is claim
        ),
    )


def _node_groups(
    case: Case, attempts: dict[str, Attempt], unavailable: dict[str, str], funnels: Sequence[Located]
) -> list[NodeGroup]:
    groups: dict[tuple[str, str], list[str]] = {}
    for name, attempt in attempts.items():
        key = _node_outcome(name, attempt, unavailable, funnels)
        groups.setdefault(key, []).append(name)
    if not attempts:
        for node in case.view.nodes:
            where = unavailable.get(node.name)
            outcome = (
                ("rejected", f"claim {where} is allocated for other nodes")
                if where
                else ("allocated", "all claims are usable here")
            )
            groups.setdefault(outcome, []).append(node.name)
    for name, reason in case.view.ineligible.items():
        groups.setdefault(("not-eligible", reason), []).append(name)
    order = {"allocated": 0, "error": 1, "rejected": 2, "undetermined": 3, "not-eligible": 4}
    return [
        NodeGroup(outcome, reason, tuple(names))
        for (outcome, reason), names in sorted(
            groups.items(), key=lambda entry: (order[entry[0][0]], -len(entry[1]), entry[0][1])
        )
    ]


def _node_outcome(
    name: str, attempt: Attempt, unavailable: dict[str, str], funnels: Sequence[Located]
) -> tuple[str, str]:
    if attempt.verdict is Outcome.ERROR:
        return "error", attempt.message
    if attempt.verdict is Outcome.UNDETERMINED:
        return "undetermined", "the search did not end in time"
    if attempt.verdict is Outcome.ALLOCATED:
        if name in unavailable:
            return "rejected", f"claim {unavailable[name]} is allocated for other nodes"
        return "allocated", "all claims fit"
    parts: list[str] = []
    blocked: dict[tuple[int, int], list[str]] = {}
    for located in funnels:
        short = located.funnel.shortfall(name)
        texts = blocked.setdefault((located.claim_index, located.request_index), [])
        texts.append(f"{located.funnel.name}: {short[1]}" if short else "")
    for texts in blocked.values():
        if all(texts):
            parts.append(texts[-1])
    return "rejected", "; ".join(parts) or "each request fits alone, all together do not"


def _placements(
    attempts: dict[str, Attempt], unavailable: dict[str, str], claims: Sequence[ResourceClaim]
) -> list[Placement]:
    out: list[Placement] = []
    for name, attempt in attempts.items():
        if attempt.verdict is not Outcome.ALLOCATED or name in unavailable:
            continue
        out.append(
            Placement(
                name,
                tuple(
                    (claim.key, device["request"], f"{device['driver']}/{device['pool']}/{device['device']}")
                    for claim, result in zip(claims, attempt.results, strict=True)
                    for device in result.devices
                ),
            )
        )
    return out
