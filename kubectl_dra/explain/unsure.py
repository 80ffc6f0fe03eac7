"""When an answer cannot be relied on: what was not seen, or is not modelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.explain.causes import devices, pod
from kubectl_dra.explain.diagnosis import Cause, Evidence, Verdict
from kubectl_dra.explain.question.resolve import CREATION_FAILED, Question
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.scene.prepare import Case
from kubectl_dra.explain.words import gap

NAMED = {pod.CLAIM_MISSING: "ResourceClaim", pod.TEMPLATE_MISSING: "ResourceClaimTemplate"}
"""Causes that say of an object that it does not exist, with its kind."""


def reasons(case: Case, verdict: Verdict, attempts: Mapping[str, Attempt]) -> list[str]:
    """Why the verdict about unallocated claims is undetermined; empty where it stands."""
    if not case.unallocated:
        return []
    return [*not_seen(case, verdict), *_too_long(verdict, attempts), *_unmodelled(case)]


def unresolved(question: Question, snapshot: Snapshot, causes: Sequence[Cause]) -> list[str]:
    """Objects that the pod names and that are missing only where their kind was not seen at all."""
    out: list[str] = []
    events = snapshot.events_about("Pod", question.namespace, question.name)
    told = any(event.reason == CREATION_FAILED and "not found" in event.message for event in events)
    for cause in causes:
        kind = NAMED.get(cause.kind)
        missing = snapshot.missing(kind, question.namespace) if kind else None
        if missing is not None and not told:
            name = cause.evidence[0].value.rpartition(": ")[2]
            out.append(f"whether {kind} {question.namespace}/{name} exists is unknown ({gap(missing)})")
    return out


def not_seen(case: Case, verdict: Verdict) -> list[str]:
    """What decides and was not seen: causes found without it mean nothing."""
    return list(_not_seen(case, verdict))


def _not_seen(case: Case, verdict: Verdict) -> Iterator[str]:
    snapshot = case.snapshot
    if slices := snapshot.missing("ResourceSlice"):
        yield f"which devices exist is unknown ({gap(slices)})"
    if classes := snapshot.missing("DeviceClass"):
        yield f"what the classes select is unknown ({gap(classes)})"
    claims = snapshot.missing("ResourceClaim")
    if claims and claims.reason != ABSENT and verdict is Verdict.ALLOCATABLE:
        yield f"claims that were not seen may hold these devices ({gap(claims)})"
    by_label = any(entry.scope.node_selector is not None for entry in case.view.cycle.index.slices)
    if not snapshot.nodes and by_label:
        yield "no Nodes were read, and some devices are bound to node labels"


def _too_long(verdict: Verdict, attempts: Mapping[str, Attempt]) -> Iterator[str]:
    fitting = [attempt for attempt in attempts.values() if attempt.verdict is Outcome.ALLOCATED]
    if verdict is Verdict.ALLOCATABLE and fitting and all(attempt.would_time_out for attempt in fitting):
        yield f"the claims fit, but the scheduler would probably time out before it finds out ({fitting[0].node})"
    if verdict is not Verdict.UNDETERMINED:
        return
    for attempt in attempts.values():
        if attempt.verdict is Outcome.UNDETERMINED:
            yield (
                f"the search on node {attempt.node} did not end in time; the scheduler, which gives up after 10 s per "
                "node, may time out as well"
            )
            return


def too_slow(attempts: Mapping[str, Attempt], whatif: WhatIf) -> list[Cause]:
    """The cause of a search that does not end in time, with the constraint without which it does."""
    slow = [
        attempt for attempt in attempts.values() if attempt.verdict is Outcome.UNDETERMINED or attempt.would_time_out
    ]
    if not slow:
        return []
    kind = devices.SLOW
    fix, proved = kind.fix, ""
    for claim, constraint in whatif.constraints():
        proof = whatif.without_constraint(claim, constraint)
        if proof is not None:
            fix, proved = f"Drop or loosen the constraint {constraint}, or narrow the selectors.", str(proof)
            break
    first = slow[0]
    steps = "more combinations than can be tried device by device in 10 s"
    if first.verdict is Outcome.UNDETERMINED:
        steps = "stopped without an answer: too many combinations"
    return [
        Cause(
            kind,
            f"there are too many combinations of devices on node {first.node} to try them all",
            (Evidence(f"node {first.node}", "search", steps),),
            fix,
            proved,
        )
    ]


def _unmodelled(case: Case) -> Iterator[str]:
    fields: dict[str, str] = {}
    for claim in case.unallocated:
        for name in claim.unmodelled:
            fields.setdefault(f"spec.devices.{name}", f"claim {claim.key}")
        for request in claim.requests:
            for spec in request.alternatives():
                for name in spec.unmodelled:
                    fields.setdefault(f"requests[].{name}", f"claim {claim.key}")
    for entry in case.view.cycle.index.slices:
        for name in entry.unmodelled:
            fields.setdefault(f"spec.{name}", f"ResourceSlice {entry.name}")
        for device in entry.devices:
            for name in device.unmodelled:
                fields.setdefault(f"spec.devices[].{name}", f"ResourceSlice {entry.name}")
    for rule in case.snapshot.taint_rules:
        for name in rule.unmodelled:
            fields.setdefault(f"spec.{name}", f"DeviceTaintRule {rule.metadata.name}")
    for field, where in sorted(fields.items()):
        yield f"{where} uses {field}, which is not modelled"
