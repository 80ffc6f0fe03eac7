"""Every allocation that fits has more configurations than the API server accepts."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, say
from kubectl_dra.explain.trial import Trial

MAX_CONFIGS = 64

TOO_MANY_CONFIGS = CauseKind(code="too-many-configs", family=Family.CLAIM, look=Look.POD, never_binds=True)


def _overfull(trial: Trial) -> Iterator[Finding]:
    found = [trial.attempts[name] for name in trial.fitting if name not in trial.unavailable]
    largest = [max((len(result.config) for result in attempt.results), default=0) for attempt in found]
    if trial.question.pod is None or not largest or min(largest) <= MAX_CONFIGS:
        return
    most = min(largest)
    text = "the claims fit, but the allocation would hold {most} configurations, and {limit} is the most"
    about = say("allocation on node {node}", node=ObjectName("Node", found[0].node))
    yield Finding(
        TOO_MANY_CONFIGS,
        say(text, most=most, limit=MAX_CONFIGS),
        (Evidence(about, "devices.config", say("{most} entries", most=most)),),
    )


FINDERS = (Finder(When.FITS, _overfull, 40),)
