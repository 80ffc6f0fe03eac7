"""Why requests fail: each by itself, by the stage of its funnel, or all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.api.claims import ALL
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.causes.registry import When, ask, of_stage
from kubectl_dra.explain.diagnosis import Evidence, Finding
from kubectl_dra.explain.funnel.blocked import Blocked
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.funnel.located import Located, by_request, made_by_scheduler
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.funnel.selector_terms import observations
from kubectl_dra.explain.funnel.shown import DeviceLine, Funnel, Observation, Stage, StageName
from kubectl_dra.explain.funnel.stages import SelectorFalse, StageResult, counted, stage_error
from kubectl_dra.explain.node_reasons import KeptApart
from kubectl_dra.explain.phrase import Subject, Words, named, say
from kubectl_dra.explain.remedies.change import LowerCount
from kubectl_dra.explain.remedies.proof_result import Beside, OtherRequest, Price
from kubectl_dra.explain.remedies.prove import Change, WhatIf

# Stages at which a node loses devices that are what was asked for; before them it has none of that kind.
_CLOSE = (
    StageName.BINDING,
    StageName.CAPACITY,
    StageName.TAINT,
    StageName.HELD,
    StageName.GROUPS,
    StageName.COUNTERS,
)


def causes(analysis: Analysis) -> list[Finding]:
    """The causes of each request that fails by itself, else of the combination; proved ones first."""
    groups = [
        group
        for group in by_request(analysis.funnels)
        if all(located.funnel.blocking_stage is not None for located in group)
    ]
    if not groups:
        return ask(When.TOGETHER, analysis)
    several = len(groups) > 1
    findings = _of_several(analysis, groups) if several else _of_request(analysis, analysis.what_if, groups[0])

    def order(finding: Finding) -> tuple[bool, ...]:
        # A selector that sets devices of other nodes apart comes after what is wrong with those that it admits. Of
        # causes on different nodes, what ends a pod that works comes last.
        other_nodes, remedy = finding.kind.code == "selector-matches-nothing", finding.remedy
        ends = not several and remedy is not None and remedy.price >= Price.END_RUNNING
        return other_nodes, finding.proof is None, ends

    first, *others = sorted(findings, key=order)
    if not several and any(finding.kind.code == "no-devices-on-eligible-nodes" for finding in others):
        # The devices of the other nodes match as well.
        summary = say("on nodes where the pod may run, {summary}", summary=first.summary)
        first = replace(first, summary=summary)
    return [first, *others]


def _of_several(analysis: Analysis, groups: Sequence[Sequence[Located]]) -> list[Finding]:
    """The causes of several requests: each proved with the unsolved others set aside, the last with all changes."""
    causes_found: list[Finding] = []
    what_if = analysis.what_if
    names = {_place(group): _other(group[0]) for group in groups}
    unsolved = list(names)
    changed: dict[tuple[int, int], Change] = {}
    for group in groups:
        place = _place(group)
        aside = [other for other in unsolved if other != place]
        findings = _of_request(analysis, what_if.setting_aside(aside), group)
        # One change may be the fix of several requests.
        own = findings[0].remedy.offers[:1] if findings[0].remedy is not None else ()
        others = {other: change for other, change in changed.items() if change not in own}
        beside = Beside(tuple(names[other] for other in others), tuple(names[other] for other in aside))
        changes = tuple(others.values())
        remedy = findings[0].remedy
        if remedy is not None and remedy.proof is not None and remedy.offers:
            what_if = remedy.offers[0].made_in(what_if)
            unsolved.remove(place)
            changed[place] = remedy.offers[0]
        causes_found.extend(_proved_beside(finding, beside, changes) for finding in findings)
    return causes_found


def _place(group: Sequence[Located]) -> tuple[int, int]:
    return group[0].claim_index, group[0].request_index


def _other(located: Located) -> OtherRequest:
    name, claim = located.names[0], located.claim.key
    if made_by_scheduler(located.claim):
        return OtherRequest(name, claim, located.where)
    text = 'request "{name}" of claim {claim}' if located.ambiguous else 'request "{name}"'
    return OtherRequest(name, claim, say(text, name=name, claim=claim))


def _proved_beside(finding: Finding, beside: Beside, changes: tuple[Change, ...]) -> Finding:
    """The finding, with what was done about the other requests when it was proved."""
    remedy = finding.remedy
    if remedy is None or remedy.proof is None or not (beside.changed or beside.aside):
        return finding
    return replace(finding, remedy=replace(remedy, proof=replace(remedy.proof, beside=beside), with_others=changes))


def _of_request(analysis: Analysis, what_if: WhatIf, group: Sequence[Located]) -> list[Finding]:
    """The causes of the nearest alternative: a line to edit is nearer than any other change, then who gets furthest."""
    candidates = [(_reach(located), _of_alternative(analysis, what_if, located, group)) for located in group]

    # Who asks for fewer devices gives something up: another alternative may only wait for devices that others hold.
    waits = any(findings[0].kind.held for _, findings in candidates)

    def distance(candidate: tuple[int, list[Finding]]) -> tuple[object, ...]:
        reach, findings = candidate
        edited = _is_edited(findings) and not (waits and _asks_for_fewer(findings))
        return not edited, -reach, findings[0].proof is None, findings[0].cost

    return min(candidates, key=distance)[1]


def _is_edited(findings: Sequence[Finding]) -> bool:
    """Whether editing a line is a proved fix of the first cause."""
    remedy = findings[0].remedy
    return remedy is not None and remedy.proof is not None and remedy.price <= Price.EDIT


def _asks_for_fewer(findings: Sequence[Finding]) -> bool:
    remedy = findings[0].remedy
    return remedy is not None and any(isinstance(change, LowerCount) for change in remedy.made)


def _of_alternative(analysis: Analysis, what_if: WhatIf, furthest: Located, group: Sequence[Located]) -> list[Finding]:
    """One cause per stage that blocks nodes close to success; else a selector term that fails alone."""
    blocked = _blocked(analysis, what_if, furthest)
    close = [
        blocked_request
        for blocked_request in blocked
        if blocked_request.stage.name in _CLOSE
        or (blocked_request.stage.name is StageName.POOL and _matching_in_unusable_pools(blocked_request))
    ]
    findings = [_finding(blocked_request) for blocked_request in close or blocked[:1]]
    where = _on_barred_nodes(analysis, what_if, furthest)
    barred = _finding(where) if where is not None else None
    if close:
        other_nodes = [
            _finding(blocked_request)
            for blocked_request in blocked
            if blocked_request.stage.name is StageName.REQUEST_SELECTOR
        ]
        findings.extend(
            finding for finding in (*other_nodes[:1], barred) if finding is not None and finding.proof is not None
        )
        if barred in findings and where is not None and all(isinstance(why, KeptApart) for why in where.reasons):
            # There are free devices where other pods keep this one away: that others are held is not what stops it.
            findings.remove(barred)
            findings.insert(0, barred)
    elif barred is not None and blocked[0].stage.name is not StageName.NODE:
        # What it asks for is there and free: its node is at fault, and not the selector that passes over the others.
        findings.insert(0, barred)
    if len(group) > 1:
        text = "none of the {count} alternatives fits; this one is closest (others: {others})"
        others = [located.funnel.name for located in group if located is not furthest]
        fact = Evidence(
            Subject("claim", named("ResourceClaim", furthest.claim)),
            "firstAvailable",
            say(text, count=len(group), others=others),
        )
        findings = [replace(finding, evidence=(*finding.evidence, fact)) for finding in findings]
        first = say("none of the {count} alternatives fits; closest: {why}", count=len(group), why=findings[0].summary)
        findings[0] = replace(findings[0], summary=first)
    return findings


def _finding(blocked: Blocked) -> Finding:
    finding = of_stage(blocked, StageName.TOO_FEW if blocked.left and not blocked.lost else blocked.stage.name)
    place: Words = blocked.where if made_by_scheduler(blocked.located.claim) else ""
    return replace(finding, claim=blocked.located.claim.key, request=blocked.funnel.name, place=place)


def _blocked(analysis: Analysis, what_if: WhatIf, located: Located) -> list[Blocked]:
    """The nodes by the stage at which they fall short, the stage nearest to success first."""
    funnel = located.funnel
    nodes: dict[int, list[str]] = {}
    for node in analysis.view.nodes:
        short = funnel.shortfall(node.name)
        if short is not None:
            nodes.setdefault(short.position, []).append(node.name)
    if set(nodes) <= {0}:
        last = funnel.blocking_stage or funnel.stages[0]
        return [Blocked(analysis, what_if, located, last, (), tuple(last.failed), tuple(last.reasons), last.passed)]
    out: list[Blocked] = []
    for position in sorted(nodes, reverse=True):
        if position:
            lost, reasons, remaining = funnel.lost_on(nodes[position], position)
            stage = funnel.stages[position]
            out.append(Blocked(analysis, what_if, located, stage, tuple(nodes[position]), lost, reasons, remaining))
    return out


def _matching_in_unusable_pools(blocked: Blocked) -> bool:
    """Whether a device lost at the pool stage would satisfy the class's and the request's selectors."""
    return bool(blocked.funnel.matching(blocked.lost))


_BARRED_TRIED = 8


def _on_barred_nodes(analysis: Analysis, what_if: WhatIf, located: Located) -> Blocked | None:
    """The free devices of nodes that have what the claims want and refuse the pod for another reason."""
    outcome, funnel = analysis.pod_outcome, located.funnel
    if outcome is None:
        return None
    stage = next(stage for stage in funnel.stages if stage.name is StageName.NODE)
    free = [item for item in funnel.matching(stage.failed) if not funnel.holders_of(item.id)]
    asked = {node.name: node for node in analysis.one_step_away}
    names = [name for name in dict.fromkeys(item.slice.scope.node_name for item in free) if name in asked]
    fitting = {
        name for name in names[:_BARRED_TRIED] if outcome.try_on(asked[name]).verdict is AttemptVerdict.ALLOCATED
    }
    # Of nodes that one reason keeps the pod from, a few were tried and all are counted.
    why = {analysis.view.ineligible[name] for name in fitting}
    there = tuple(name for name in names if analysis.view.ineligible[name] in why)
    lost = tuple(item for item in free if item.slice.scope.node_name in there)
    if not lost:
        return None
    reasons = tuple(analysis.view.ineligible[item.slice.scope.node_name] for item in lost)
    return Blocked(analysis, what_if, located, stage, there, lost, reasons, 0)


def _reach(located: Located) -> int:
    stage = located.funnel.blocking_stage
    return len(located.funnel.stages) if stage is None else located.funnel.stages.index(stage)


# A funnel as shown in a diagnosis: the stages with what the devices have instead, and every device.


def report(funnel: RequestFunnel, *, with_devices: bool = False) -> Funnel:
    """The funnel of one request, with a line per device only if requested."""
    best_node, best_count = funnel.best_node()
    return Funnel(
        request=funnel.name,
        device_class=funnel.spec.device_class,
        mode=funnel.spec.allocation_mode,
        needed=funnel.spec.count if funnel.spec.allocation_mode != ALL else 0,
        stages=tuple(_stage(funnel, stage) for stage in funnel.stages),
        best_node=best_node,
        best_count=best_count,
        devices=tuple(_devices(funnel)) if with_devices else (),
    )


def _stage(funnel: RequestFunnel, stage: StageResult) -> Stage:
    seen: tuple[Observation, ...] = ()
    error = None
    details: tuple[tuple[Words, int], ...] = ()
    if stage.expression and stage.failed:
        terms = funnel.view.cycle.selectors.terms(stage.program)
        seen = funnel.observed(stage, terms[stage.term]) if terms else ()
        error = stage_error(stage)
    elif stage.failed:
        details = tuple(counted(stage.reasons))
    return Stage(
        name=stage.name,
        label=stage.label,
        passed=stage.passed,
        failed=len(stage.failed),
        expression=stage.expression,
        observations=seen,
        error=error,
        details=details,
        selector=stage.selector,
    )


def _devices(funnel: RequestFunnel) -> Iterator[DeviceLine]:
    seen: dict[tuple[int, int], tuple[Observation, ...]] = {}
    for item, position in funnel.failures.each():
        where = item.device.scope if item.slice.per_device_node_selection else item.slice.scope
        reason = funnel.failures.reason(item, position)
        line = DeviceLine(
            device=item.id,
            where=where.node_name or str(where),
            stage=StageName.USABLE if position is None else funnel.stages[position].name,
            reason=reason,
        )
        if position is None or not isinstance(reason, SelectorFalse):
            yield line
            continue
        key = id(item.device), position
        if key not in seen or funnel.view.differs(item.slice):
            seen[key] = _has(funnel, funnel.stages[position], item)
        yield replace(line, label=funnel.stages[position].label, observations=seen[key])


def _has(funnel: RequestFunnel, stage: StageResult, item: PublishedDevice) -> tuple[Observation, ...]:
    """What a device has where a term reads."""
    terms = funnel.view.cycle.selectors.terms(stage.program)
    return observations(terms[stage.term], [item]) if terms else ()
