"""A limit is exceeded: by the claim itself, its configs, its alternatives, or the time of the search."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.registry import FailedAttempt, Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say
from kubectl_dra.explain.remedies.proof import Tried

TOO_MANY_DEVICES = CauseKind(code="too-many-devices", family=Family.REQUEST, look=Look.AS_WRITTEN)
FEATURE_OFF = CauseKind(code="feature-disabled", family=Family.REQUEST, look=Look.VERSION)
UNSUPPORTED = CauseKind(code="unsupported-request", family=Family.REQUEST, look=Look.AS_WRITTEN)


def plain(kind: CauseKind, error: AllocationError) -> Finding:
    """A cause that the scheduler's own text explains."""
    return Finding(
        kind,
        error.message,
        (Evidence(error.subject, "scheduler", error.message),),
        request=error.detail.request,
        object=error.detail.claim,
    )


def _too_many(failed: FailedAttempt) -> Iterator[Finding]:
    yield plain(TOO_MANY_DEVICES, failed.error)


def _feature_off(failed: FailedAttempt) -> Iterator[Finding]:
    finding = plain(FEATURE_OFF, failed.error)
    text = "Turn the feature gate {gate} on in kube-apiserver and kube-scheduler, or do without the field."
    yield Finding(finding.kind, finding.summary, finding.evidence, Remedy(say(text, gate=failed.error.detail.gate)))


def _unsupported(failed: FailedAttempt) -> Iterator[Finding]:
    yield plain(UNSUPPORTED, failed.error)


# Every allocation that fits has more configurations than the API server accepts.

MAX_CONFIGS = 64
TOO_MANY_CONFIGS = CauseKind(code="too-many-configs", family=Family.CLAIM, look=Look.POD, never_binds=True)


def _overfull(analysis: Analysis) -> Iterator[Finding]:
    attempts = [analysis.attempts[name] for name in analysis.fitting if name not in analysis.unavailable]
    largest = [max((len(each.config) for each in attempt.allocations), default=0) for attempt in attempts]
    if analysis.pod is None or not largest or min(largest) <= MAX_CONFIGS:
        return
    most = min(largest)
    text = "the claims fit, but the allocation would hold {most} configurations, and {limit} is the maximum"
    about = say("allocation on node {node}", node=ObjectName("Node", attempts[0].node))
    yield Finding(
        TOO_MANY_CONFIGS,
        say(text, most=most, limit=MAX_CONFIGS),
        (Evidence(about, "devices.config", say("{most} entries", most=most)),),
    )


# The alternatives that fit have more devices in total than one allocation can hold.

TOO_MANY_TOGETHER = CauseKind(code="alternatives-too-large", family=Family.REQUEST, look=Look.AS_WRITTEN)


def _too_large(analysis: Analysis) -> Iterator[Finding]:
    claims = analysis.claims
    for index, claim in enumerate(claims):
        largest = [
            max(spec.count for spec in request.alternatives()) for request in claim.requests if request.alternatives()
        ]
        if not any(request.first_available for request in claim.requests) or sum(largest) <= MAX_RESULTS:
            continue
        parts = [_only(claim, number) for number in range(len(claim.requests))]
        proof = analysis.what_if.in_several(index, parts).proof()
        if proof is None:
            continue
        evidence = [
            Evidence(
                Subject("claim", named("ResourceClaim", claim)),
                say('request "{name}"', name=request.name),
                say(
                    "{alternatives}",
                    alternatives=[
                        say("{name}: {count}", name=spec.name or request.name, count=spec.count)
                        for spec in request.alternatives()
                    ],
                ),
            )
            for request in claim.requests
        ]
        text = "claim {claim} fits only with alternatives of more than {most} devices in all"
        keys = {part.key for part in parts}
        own = tuple(replace(given, metadata=claim.metadata) if given.key in keys else given for given in proof.claims)
        how = replace(proof, tried=Tried.CLAIM_PER_REQUEST, claims=own)
        yield Finding(
            TOO_MANY_TOGETHER,
            say(text, claim=claim.key, most=MAX_RESULTS),
            tuple(evidence),
            Remedy(TOO_MANY_TOGETHER.fix, how),
            claim=claim.key,
        )
        return


def _only(claim: ResourceClaim, number: int) -> ResourceClaim:
    """A claim of its own with only one of the requests, and the constraints that concern only that one."""
    request = claim.requests[number]
    own = tuple(
        constraint
        for constraint in claim.constraints
        if constraint.requests and all(name.split("/")[0] == request.name for name in constraint.requests)
    )
    named = replace(claim.metadata, name=f"{claim.metadata.name}-{number}")
    return replace(claim, metadata=named, requests=(request,), constraints=own)


# The scheduler's search would not finish in time.

SLOW = CauseKind(code="search-too-slow", family=Family.DEVICES)


def _slow(analysis: Analysis) -> Iterator[Finding]:
    first = next(
        (
            attempt
            for attempt in analysis.attempts.values()
            if (attempt.verdict is AttemptVerdict.UNDETERMINED and not attempt.order_decides)
            or analysis.would_time_out(attempt)
        ),
        None,
    )
    if first is None:
        return
    steps = "more combinations than can be tried device by device in 10 s"
    if first.verdict is AttemptVerdict.UNDETERMINED:
        steps = "stopped without an answer: too many combinations"
    node = Subject("node", ObjectName("Node", first.node))
    text = "there are too many combinations of devices on {node} to try them all"
    yield Finding(SLOW, say(text, node=node), (Evidence(node, "search", steps),), _remedy(analysis))


def _where_all_are_slow(analysis: Analysis) -> Iterator[Finding]:
    """The claims fit, but the search would finish too late on every node."""
    fitting = [analysis.attempts[name] for name in analysis.fitting]
    if analysis.pod is not None and fitting and all(analysis.would_time_out(attempt) for attempt in fitting):
        yield from _slow(analysis)


def _remedy(analysis: Analysis) -> Remedy | None:
    """The constraint without which the search finishes."""
    for claim, constraint in analysis.what_if.constraints():
        proof = analysis.what_if.with_constraint(claim, constraint, None).proof()
        if proof is not None:
            text = "Drop or loosen the constraint {constraint}, or narrow the selectors."
            return Remedy(say(text, constraint=constraint), proof)
    return None


FINDERS = (
    Finder(When.ERROR, _too_many, of=AllocationCheck.TOO_MANY_DEVICES),
    Finder(When.ERROR, _feature_off, of=AllocationCheck.FEATURE_DISABLED),
    Finder(When.ERROR, _unsupported, rank=99),
    Finder(When.FITS, _overfull, 40),
    Finder(When.TOGETHER, _too_large, 30),
    Finder(When.OPEN, _slow),
    Finder(When.FAILS_TOO, _slow, 10),
    Finder(When.FITS, _where_all_are_slow, 20),
)
