"""The scheduler's search would not finish in time."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.trial import Trial

SLOW = CauseKind(code="search-too-slow", family=Family.DEVICES)


def _slow(trial: Trial) -> Iterator[Finding]:
    first = next(
        (
            attempt
            for attempt in trial.attempts.values()
            if (attempt.verdict is AttemptVerdict.UNDETERMINED and not attempt.order_decides)
            or trial.would_time_out(attempt)
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
    yield Finding(SLOW, say(text, node=node), (Evidence(node, "search", steps),), _remedy(trial))


def _where_all_are_slow(trial: Trial) -> Iterator[Finding]:
    """The claims fit, but the search would finish too late on every node."""
    fitting = [trial.attempts[name] for name in trial.fitting]
    if trial.question.pod is not None and fitting and all(trial.would_time_out(attempt) for attempt in fitting):
        yield from _slow(trial)


def _remedy(trial: Trial) -> Remedy | None:
    """The constraint without which the search finishes."""
    for claim, constraint in trial.world.constraints():
        proof = trial.world.without_constraint(claim, constraint).proof()
        if proof is not None:
            text = "Drop or loosen the constraint {constraint}, or narrow the selectors."
            return Remedy(say(text, constraint=constraint), proof)
    return None


FINDERS = (
    Finder(When.OPEN, _slow),
    Finder(When.FAILS_TOO, _slow, 10),
    Finder(When.FITS, _where_all_are_slow, 20),
)
