"""From a question and a snapshot to a diagnosis: the scheduler's steps, then the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.api.claims import MAX_RESULTS, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain import after, fatal, of_extended, of_release, retry, unscheduled, unsure, words
from kubectl_dra.explain.attempts import node_groups, placements, run_attempts, unavailable_nodes
from kubectl_dra.explain.blocked import Located
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import devices, extended, pod, request
from kubectl_dra.explain.diagnosis import Cause, ClaimReport, Diagnosis, Evidence, Verdict, Way
from kubectl_dra.explain.find import Finder
from kubectl_dra.explain.funnel.funnel_report import report
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.of_nodes import elsewhere, no_node, one_step_away, stuck
from kubectl_dra.explain.of_pools import handed_out_twice
from kubectl_dra.explain.question.resolve import PodClaimState, Question
from kubectl_dra.explain.remedies.next_step import next_command
from kubectl_dra.explain.remedies.prove import MAX_NODES, WhatIf
from kubectl_dra.explain.remedies.vendor_part_off import part_off
from kubectl_dra.explain.scene.attributes_read import complete
from kubectl_dra.explain.scene.prepare import NO_CONSUMER, NOT_ASKED, Case, Settings, prepare
from kubectl_dra.names import nearest
from kubectl_dra.wording import some

# With these the devices still matter: what would happen next is worth saying.
_PASSING = (
    pod.NOT_CREATED,
    pod.CREATION_DENIED,
    pod.QUOTA,
    pod.ADMIN_NAMESPACE,
    pod.SCHEDULING_GATED,
    pod.OTHER_SCHEDULER,
    pod.POD_GROUP,
)


# The devices are there, but the pod will not be bound to them.
_NEVER_BOUND = (extended.MIXED, claim_causes.TOO_MANY_CONFIGS, *retry.PERMANENT)

MAX_NOTED_NODES = 5
TOGETHER = "No change is enough by itself; several together are, see what would help."

# Devices that somebody else has.
_HELD = (devices.ALL_HELD, devices.HELD_WHOLE, devices.COUNTERS, devices.CAPACITY, devices.ALL_INCOMPLETE)


def diagnose(question: Question, snapshot: Snapshot, settings: Settings) -> Diagnosis:
    """Answers the question.

    Raises:
        InputError: the node or request asked about does not exist.
    """
    snapshot = complete(question, snapshot, settings)
    notes = list(words.gap_notes(snapshot))
    case = prepare(question, snapshot, settings, notes)
    causes = _structural(case)
    funnels = _funnels(case, settings.request)
    stopped = any(cause.kind not in _PASSING for cause in causes)
    if not causes:
        causes = list(of_release.crash(case, funnels))
        stopped = bool(causes)
    attempts = run_attempts(case) if case.unallocated and not stopped else {}
    unavailable = unavailable_nodes(case)
    verdict = Verdict.NOT_ALLOCATABLE if causes else _verdict(case, attempts, unavailable)
    if not causes:
        causes = _causes(case, verdict, attempts, unavailable, funnels)
        if verdict is Verdict.ALLOCATABLE and any(cause.kind in _NEVER_BOUND for cause in causes):
            verdict = Verdict.NOT_ALLOCATABLE
    undetermined = unsure.unresolved(question, snapshot, causes)
    if undetermined:
        causes = [cause for cause in causes if cause.kind not in unsure.NAMED]
        verdict = Verdict.NOT_ALLOCATABLE if causes else Verdict.UNDETERMINED
    elif not stopped and (undetermined := unsure.reasons(case, verdict, attempts)):
        if unsure.not_seen(case, verdict):
            causes = _structural(case)
        verdict = Verdict.UNDETERMINED
    found = [] if stopped else _ways(case, verdict, causes, attempts, funnels)
    if found and len(found[0].changes) > 1 and causes and not any(cause.proved for cause in causes):
        causes = [replace(causes[0], fix=f"{causes[0].fix} {TOGETHER}"), *causes[1:]]
    return Diagnosis(
        kind=question.kind,
        namespace=question.namespace,
        name=question.name,
        verdict=verdict,
        answer=words.answer(case.question, verdict, causes, undetermined, attempts, len(settings.supposed)),
        causes=tuple(causes),
        claims=tuple(_claim_report(case, state, funnels) for state in case.question.claims),
        nodes=() if stopped else tuple(node_groups(case, attempts, unavailable, funnels)),
        placements=tuple(placements(case, attempts, unavailable)),
        scheduler=tuple(words.scheduler_words(question, snapshot)),
        notes=tuple(dict.fromkeys((*undetermined, *_notes(case, causes, attempts), *_cut(case, causes, found)))),
        release=str(settings.release),
        release_source=settings.release_source,
        next_command=next_command(case, verdict, causes, funnels),
        gates=tuple(sorted(settings.gates)),
        ways=tuple(found),
        supposed=tuple(str(change) for change in settings.supposed),
    )


def _ways(
    case: Case, verdict: Verdict, causes: Sequence[Cause], attempts: Mapping[str, Attempt], funnels: Sequence[Located]
) -> list[Way]:
    """Changes that would help, but those that the causes offer; devices to add where nothing cheaper was found."""
    failed = any(attempt.verdict is not Outcome.REJECTED for attempt in attempts.values())
    if verdict is not Verdict.NOT_ALLOCATABLE or failed or not case.unallocated or not case.settings.with_ways:
        return []
    from kubectl_dra.explain.remedies.added_devices import devices_to_add
    from kubectl_dra.explain.remedies.candidates import changes
    from kubectl_dra.explain.remedies.combine import ways

    whatif = _whatif(case, funnels)
    near: dict[str, list[str]] = {}
    for node in one_step_away(case):
        near.setdefault(case.view.ineligible[node.name], []).append(node.name)
    near.pop(NOT_ASKED, None)
    found = ways(whatif, changes(case.view, case.unallocated, funnels, case.holders, near), causes)
    more = devices_to_add(case.view, whatif, funnels)
    return [*found, more] if more else found


def _structural(case: Case) -> list[Cause]:
    """What stands in the way before devices count: the pod, its entries, and missing classes."""
    causes = list(case.question.causes)
    # That a claim is refused says also that it is not there.
    told = any(cause.kind in (pod.QUOTA, pod.ADMIN_NAMESPACE) for cause in causes)
    of_claims = [cause for state in case.question.claims for cause in state.causes]
    causes.extend(cause for cause in of_claims if not (told and cause.kind is pod.NOT_CREATED))
    asking = case.question.pod
    if asking is not None and not asking.node_name and not asking.finished:
        causes.extend(of_extended.unserved(case))
        if case.view.cycle.features.binding_conditions:
            causes.extend(after.binding(case.allocated))
        causes.extend(of_extended.not_eligible(case))
        causes.extend(of_release.rules_unseen(case))
    if case.snapshot.missing("DeviceClass"):
        return causes
    classes = case.view.cycle.classes
    for claim in case.unallocated:
        for entry in claim.requests:
            for spec in entry.alternatives():
                if spec.device_class and spec.device_class not in classes:
                    name = entry.result_name(spec)
                    causes.append(_class_missing(case, claim, name, spec.device_class))
    return causes


def _causes(
    case: Case,
    verdict: Verdict,
    attempts: Mapping[str, Attempt],
    unavailable: Mapping[str, str],
    funnels: Sequence[Located],
) -> list[Cause]:
    """Why, where nothing structural stands in the way; also what is wrong although devices are allocated."""
    asked = case.question
    if verdict is Verdict.NOT_ALLOCATABLE:
        causes = _reasons(case, attempts, unavailable, funnels)
        return [*causes, *unsure.too_slow(attempts, _whatif(case, funnels)), *retry.not_scaled(case)]
    if verdict is Verdict.UNDETERMINED:
        return unsure.too_slow(attempts, _whatif(case, funnels))
    if verdict is Verdict.ALLOCATED:
        if asked.pod is None:
            return list(after.binding(case.allocated)) if case.view.cycle.features.binding_conditions else []
        return list(after.on_node(asked.pod, case.allocated, case.snapshot))
    if asked.pod is None:
        claim = case.unallocated[0]
        known = asked.exists and case.snapshot.missing("Pod") is None
        return [unscheduled.nobody(claim)] if known and not unscheduled.consumers(claim, case.snapshot) else []
    never = of_extended.never_bound(case, attempts)
    fitting = {name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED}
    if fitting and all(attempts[name].would_time_out for name in fitting):
        return unsure.too_slow(attempts, _whatif(case, funnels))
    if never and fitting - set(unavailable) <= never:
        return [of_extended.mixed(case, never)]
    full = of_release.overfull(attempts, unavailable)
    if full is not None:
        return [full]
    return list(of_extended.left_over(case)) or list(retry.waiting(case))


def _notes(case: Case, causes: Sequence[Cause], attempts: Mapping[str, Attempt]) -> list[str]:
    notes = list(case.notes)
    if any(cause.kind is pod.NOBODY_CONSUMES for cause in causes) and NO_CONSUMER in notes:
        notes.remove(NO_CONSUMER)
    asking = case.question.pod
    if asking is not None and asking.priority > 0 and any(cause.kind in _HELD for cause in causes):
        notes.append(f"the pod's priority ({asking.priority}) does not help: no pod is evicted to free a device")
    for name, drivers in of_release.shared_pool_names(case.view).items():
        if case.view.cycle.quirks.counters_keyed_by_pool_name:
            notes.append(
                f"not determined: drivers {', '.join(drivers)} use one pool name ({name}), and the scheduler of this "
                "release mixes up their shared counters; the node that it looks at first decides"
            )
    fitting = {name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED}
    notes.extend(handed_out_twice(case.view, sorted(fitting)[:MAX_NOTED_NODES]))
    for node in case.view.nodes:
        if node.name in fitting and node.ready is False:
            notes.append(f"node {node.name} is not ready: its slices may be left over, and its devices not be prepared")
    if fitting and (unheard := retry.not_looked_at(case, causes)):
        notes.append(unheard)
    if unscored := of_release.unscored(case, fitting):
        notes.append(unscored)
    never = of_extended.never_bound(case, attempts)
    if never and not any(cause.kind is extended.MIXED for cause in causes):
        notes.append(f"on {some(sorted(never))} the pod would fit, but never bind: {extended.MIXED.why}")
    return notes


def _whatif(case: Case, funnels: Sequence[Located]) -> WhatIf:
    """Asks what would be on the nodes that differ; of very many, on those that come closest to what is asked for."""
    cycle, claims = case.view.cycle, case.snapshot.claims.values()
    nodes = case.view.different_nodes()
    if len(nodes) > MAX_NODES:
        nodes = nsmallest(MAX_NODES, nodes, lambda node: sum(_distance(entry, node) for entry in funnels))
    return WhatIf(cycle, case.unallocated, nodes, claims, one_step_away(case))


def _cut(case: Case, causes: Sequence[Cause], ways: Sequence[Way]) -> Iterator[str]:
    """A note where changes were not tried on all nodes that differ."""
    if not ways and not any(cause.proved for cause in causes):
        return
    nodes = len(case.view.different_nodes())
    if nodes > MAX_NODES:
        yield f"changes were tried on the {MAX_NODES} nodes that come closest to what is asked for, of {nodes:,}"


def _distance(located: Located, node: Node) -> int:
    """How far a node is from what a request asks for: the stages that are left, then the devices that lack."""
    short = located.funnel.shortfall(node.name)
    if short is None:
        return 0
    left = len(located.funnel.stages) - short.position
    return left * MAX_RESULTS + max(0, located.funnel.needed_on(node.name) - short.left)


def _class_missing(case: Case, claim: ResourceClaim, name: str, wanted: str) -> Cause:
    kind, known = request.CLASS_MISSING, list(case.view.cycle.classes)
    near = nearest(wanted, known)
    hint = f"; nearest: {', '.join(near)}" if near else f"; classes here: {some(sorted(known), 6) or 'none'}"
    fix = kind.fix
    if near:
        fix = f"Name an existing class ({', '.join(near)}) in a new claim, or install the driver that brings {wanted}."
    evidence: tuple[Evidence, ...] = (Evidence(f"claim {claim.key}", f'request "{name}" deviceClassName', wanted),)
    off = None if near else part_off(wanted, case.snapshot.nodes.values(), case.view.drivers())
    if off is not None:
        evidence, fix = (*evidence, *off.evidence), f"{off.fix} The chart brings the class."
    return Cause(kind, f"DeviceClass {wanted} does not exist{hint}", evidence, fix, claim=claim.key, request=name)


def _funnels(case: Case, wanted: str) -> list[Located]:
    """The funnel of every request and subrequest, or of the one asked for."""
    out: list[Located] = []
    names: list[str] = []
    for claim_index, claim in enumerate(case.unallocated):
        for request_index, entry in enumerate(claim.requests):
            for alternative, spec in enumerate(entry.alternatives()):
                device_class = case.view.cycle.classes.get(spec.device_class)
                name = entry.result_name(spec)
                names.append(name)
                if device_class is None or (wanted and wanted not in (name, entry.name)):
                    continue
                funnel = RequestFunnel(case.view, name, spec, device_class, case.holders)
                out.append(Located(claim_index, request_index, alternative, claim, funnel))
    if wanted and not any(wanted in (name, name.split("/")[0]) for name in names):
        near = nearest(wanted, names) or names[:5]
        raise InputError(f'no request "{wanted}" in these claims; there are: {", ".join(near) or "none unallocated"}')
    return out


def _verdict(case: Case, attempts: Mapping[str, Attempt], unavailable: Mapping[str, str]) -> Verdict:
    asked = case.question
    bound = asked.pod is not None and asked.pod.node_name
    if not case.unallocated:
        if not asked.claims and asked.pod is not None and not bound and of_extended.plugin_exhausted(case):
            return Verdict.NOT_ALLOCATABLE
        if asked.kind == "claim" or bound:
            return Verdict.ALLOCATED
        usable = any(node.name not in unavailable for node in case.view.nodes)
        return Verdict.ALLOCATABLE if usable else Verdict.NOT_ALLOCATABLE
    if any(attempt.verdict is Outcome.ERROR for attempt in attempts.values()):
        return Verdict.NOT_ALLOCATABLE
    if any(attempt.verdict is Outcome.ALLOCATED and name not in unavailable for name, attempt in attempts.items()):
        return Verdict.ALLOCATABLE
    if any(attempt.verdict is Outcome.UNDETERMINED for attempt in attempts.values()):
        return Verdict.UNDETERMINED
    return Verdict.NOT_ALLOCATABLE


def _reasons(
    case: Case, attempts: Mapping[str, Attempt], unavailable: Mapping[str, str], funnels: Sequence[Located]
) -> list[Cause]:
    whatif = _whatif(case, funnels)
    failed = next((attempt for attempt in attempts.values() if attempt.error is not None), None)
    if failed is not None and failed.error is not None:
        cause = fatal.cause_of(failed.error, failed.node, case.view, whatif)
        fits = [name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED]
        if fits:
            text = "would fit, but an error on one node ends the attempt for all"
            cause = replace(cause, evidence=(*cause.evidence, Evidence(f"node {fits[0]}", "allocation", text)))
        return [cause]
    if not case.view.nodes:
        return [no_node(case, whatif)]
    fitting = [name for name, attempt in attempts.items() if attempt.verdict is Outcome.ALLOCATED]
    if unavailable and (fitting or not case.unallocated):
        return [elsewhere(case, claim) for claim in case.allocated if claim.key in unavailable.values()]
    located = _funnels(case, "") if case.settings.request else funnels
    causes = Finder(case.view, case.unallocated, whatif, case.holders).causes(located)
    rival = of_extended.two_classes(case, whatif)
    return [*([rival] if rival else []), *causes, *stuck(case, unavailable)]


def _reservation(asking: Pod | None, claim: ResourceClaim) -> str:
    """What is said of an allocated claim: whether it is reserved, and for whom if not for the pod asked about."""
    if not claim.reserved_for:
        return "allocated"
    if asking is None or after.reserved(asking, claim):
        return "allocated and reserved"
    return f"allocated, reserved for {some([str(entry) for entry in claim.reserved_for])}"


def _claim_report(case: Case, state: PodClaimState, funnels: Sequence[Located]) -> ClaimReport:
    claim = state.claim
    if claim is None:
        return ClaimReport(state.entry, "", state.template, "missing")
    if claim.allocation is not None:
        return ClaimReport(
            entry=state.entry,
            claim=claim.key,
            template=state.template,
            state=_reservation(case.question.pod, claim),
            devices=tuple(f"{result.request}: {result.device}" for result in claim.allocation.results),
            nodes=str(claim.allocation.node_selector or "all nodes"),
        )
    return ClaimReport(
        entry=state.entry,
        claim=claim.key,
        template=state.template,
        state="not created yet" if state.hypothetical else "pending",
        funnels=tuple(
            report(located.funnel, with_devices=case.settings.with_devices)
            for located in funnels
            if located.claim is claim
        ),
    )
