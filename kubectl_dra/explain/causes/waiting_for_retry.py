"""The pod fits but is not placed: the scheduler's last message, and whether something has changed since."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import waiting_for
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.search_too_slow import SLOW
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, named, say
from kubectl_dra.explain.question.last_word import last_word
from kubectl_dra.explain.trial import Trial

IN_FLIGHT = CauseKind(code="claim-allocation-in-flight", family=Family.CLAIM, look=Look.POD_OF_SAME_CLAIM)
CHANGED = CauseKind(code="claim-changed-meanwhile", family=Family.CLAIM, look=Look.POD)
RETRY = CauseKind(code="waiting-for-retry", family=Family.POD, look=Look.POD)
CHANGED_SINCE = CauseKind(code="changed-since-last-attempt", family=Family.POD, look=Look.POD)
BINDING_DENIED = CauseKind(code="scheduler-not-permitted", family=Family.POD, look=Look.POD, never_binds=True)

# What kube-scheduler writes: its own words are all that tells.
_SAID: Final[tuple[tuple[re.Pattern[str], CauseKind], ...]] = (
    (re.compile(r"is in the process of being allocated"), IN_FLIGHT),
    (re.compile(r"got (?:deleted|(?:de)?allocated elsewhere) in the meantime"), CHANGED),
    (re.compile(r"timed out trying to allocate devices"), SLOW),
    (re.compile(r"changing status\.allocation or status\.reservedFor requires"), BINDING_DENIED),
)


def _waiting(trial: Trial) -> Iterator[Finding]:
    """At most one cause. With a hypothetical change, causes that resolve themselves do not count."""
    pod, scene = trial.question.pod, trial.scene
    if pod is None or not trial.question.exists or pod.node_name or pod.finished:
        return
    if not scene.settings.schedules(pod):
        return
    word = last_word(pod, scene.snapshot)
    if word is None or not word.message:
        return
    about = Subject("Event on Pod" if word.event else "Pod", named("Pod", pod))
    said = Evidence(about, say("said at {time}", time=word.time) if word.time else "said", word.message)
    from kubectl_dra.explain.changed_since import changes

    since = changes(trial, pod, word)
    supposed = bool(scene.settings.supposed)
    for pattern, kind in _SAID:
        if pattern.search(word.message) and (kind.never_binds or not supposed):
            summary = say("the scheduler says: {message}", message=word.message)
            yield Finding(kind, summary, (said, *since, *_other_consumers(trial, pod)), contrary=not since)
            return
    if supposed:
        return
    if since:
        summary = say("{object} changed after the scheduler's last attempt", object=since[0].object)
        yield Finding(CHANGED_SINCE, summary, (said, *since))
        return
    unseen = Evidence("what changed since", "not seen", "a deletion, or an update: objects do not tell when")
    text = "the scheduler{when} said otherwise, and nothing that can be seen has changed since: {message}"
    when = say(" at {time}", time=word.time) if word.time else ""
    yield Finding(RETRY, say(text, when=when, message=word.message), (said, unseen), contrary=True)


def _other_consumers(trial: Trial, asking: Pod) -> Iterator[Evidence]:
    """Other pods that use the claims to be allocated."""
    for claim in trial.claims:
        states: list[Phrase] = []
        for pod in waiting_for(claim, trial.scene.snapshot):
            if pod.key != asking.key:
                where = say("on {node}", node=ObjectName("Node", pod.node_name)) if pod.node_name else pod.phase or "?"
                states.append(say("{pod} ({where})", pod=named("Pod", pod), where=where))
        if states:
            shown = say("{states:some}", states=states)
            yield Evidence(Subject("ResourceClaim", named("ResourceClaim", claim)), "other pods that use it", shown)


FINDERS = (Finder(When.FITS, _waiting, 60),)
