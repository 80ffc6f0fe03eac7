"""The alternatives that fit have more devices in total than one allocation can hold."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_dra.api.claims import MAX_RESULTS, ResourceClaim
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.remedies.proof import Tried
from kubectl_dra.explain.trial import Trial

TOO_MANY_TOGETHER = CauseKind(code="alternatives-too-large", family=Family.REQUEST, look=Look.AS_WRITTEN)


def _too_large(trial: Trial) -> Iterator[Finding]:
    claims = trial.claims
    for index, claim in enumerate(claims):
        largest = [max(spec.count for spec in entry.alternatives()) for entry in claim.requests if entry.alternatives()]
        if not any(entry.first_available for entry in claim.requests) or sum(largest) <= MAX_RESULTS:
            continue
        parts = [_only(claim, number) for number in range(len(claim.requests))]
        proof = trial.world.asking([*claims[:index], *parts, *claims[index + 1 :]]).proof()
        if proof is None:
            continue
        asked = [
            Evidence(
                Subject("claim", named("ResourceClaim", claim)),
                say('request "{name}"', name=entry.name),
                say(
                    "{alternatives}",
                    alternatives=[
                        say("{name}: {count}", name=spec.name or entry.name, count=spec.count)
                        for spec in entry.alternatives()
                    ],
                ),
            )
            for entry in claim.requests
        ]
        text = "claim {claim} fits only with alternatives of more than {most} devices in all"
        how = replace(proof, tried=Tried.CLAIM_PER_REQUEST)
        yield Finding(
            TOO_MANY_TOGETHER,
            say(text, claim=claim.key, most=MAX_RESULTS),
            tuple(asked),
            Remedy(TOO_MANY_TOGETHER.fix, how),
            claim=claim.key,
        )
        return


def _only(claim: ResourceClaim, number: int) -> ResourceClaim:
    """A claim with only one of the requests, and the constraints that concern only that one."""
    entry = claim.requests[number]
    own = tuple(
        constraint
        for constraint in claim.constraints
        if constraint.requests and all(name.split("/")[0] == entry.name for name in constraint.requests)
    )
    return replace(claim, requests=(entry,), constraints=own)


FINDERS = (Finder(When.TOGETHER, _too_large, 30),)
