"""Two entries of the pod refer to the same claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.question.resolve import Question

TWICE = CauseKind(code="claim-listed-twice", family=Family.CLAIM, look=Look.POD)


def _twice(question: Question, _: Snapshot, __: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    seen: dict[str, str] = {}
    for entry in question.claims if pod is not None else ():
        if entry.claim is None or entry.hypothetical or pod is None:
            continue
        first = seen.setdefault(entry.claim.key, entry.entry)
        if first is not entry.entry:
            names = {"first": first, "second": entry.entry, "claim": entry.claim.key}
            yield Finding(
                TWICE,
                say('entries "{first}" and "{second}" are both ResourceClaim {claim}', **names),
                (
                    Evidence(
                        Subject("Pod", named("Pod", pod)), "spec.resourceClaims", say("{first}, {second}", **names)
                    ),
                ),
            )


FINDERS = (Finder(When.QUESTION, _twice, 70),)
