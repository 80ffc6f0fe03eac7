"""The scheduler makes room for the pod: it evicts others, or waits for evicted pods to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, by_key, named, say
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.default_preemption import Candidate, Preemption, VictimsEnding

MAX_CANDIDATES = 5

EVICTS = CauseKind(code="preemption-makes-room", family=Family.POD, look=Look.POD)
ENDING = CauseKind(code="victims-still-ending", family=Family.POD, look=Look.POD)


def _making_room(trial: Trial) -> Iterator[Finding]:
    outcome = trial.outcome
    preemption = outcome.preemption if outcome is not None else None
    if preemption is None:
        return
    if isinstance(preemption.ineligible, VictimsEnding):
        node, victims = preemption.ineligible.node, preemption.ineligible.victims
        text = "the scheduler evicted {victims:some} on {node} for it, and {count:that has|they have} not ended yet"
        summary = say(text, victims=victims, count=len(victims), node=node)
        facts = tuple(
            Evidence(Subject("Pod", by_key("Pod", victim)), "metadata.deletionTimestamp", "set") for victim in victims
        )
        yield Finding(ENDING, summary, facts)
        return
    if not preemption.best:
        return
    seen = (*_victims(preemption.best), *_sample(preemption))
    yield Finding(EVICTS, _eviction(preemption), seen, Remedy(EVICTS.fix))


def _eviction(preemption: Preemption) -> Words:
    """Who is evicted. Among several nodes without preference, the scheduler's choice is unknown."""
    best = preemption.best
    first = best[0]
    if preemption.enough:
        text = "the scheduler evicts pods on one of {count:,} nodes to make room"
        return say(text, count=len(preemption.candidates))
    if len(best) > 1:
        text = "the scheduler evicts pods on one of {nodes:some} ({count:pod} each) to make room"
        return say(text, nodes=[candidate.node for candidate in best], count=len(first.victims))
    names = [victim.key for victim in first.victims]
    return say("the scheduler evicts {victims:some} on {node} to make room", victims=names, node=first.node)


def _victims(best: Sequence[Candidate]) -> Iterator[Evidence]:
    for candidate in best[:MAX_CANDIDATES]:
        names = [named("Pod", victim) for victim in candidate.victims]
        text = "{victims:some 12}"
        if candidate.violations:
            text += "; {broken} of them against a PodDisruptionBudget"
        shown = say(text, victims=names, broken=candidate.violations)
        yield Evidence(Subject("node", ObjectName("Node", candidate.node)), "would be evicted there", shown)
    if (more := len(best) - MAX_CANDIDATES) > 0:
        yield Evidence("the scheduler", "has no preference", say("{count:more node} as good", count=more))


def _sample(preemption: Preemption) -> Iterator[Evidence]:
    """A note that the scheduler may not reach the best of all candidates."""
    if preemption.enough:
        text = "{enough:,} of {count:,} nodes where evictions help, from a random one on: it may evict on another one"
        seen = say(text, enough=preemption.enough, count=len(preemption.candidates))
        yield Evidence("the scheduler", "looks at", seen)


FINDERS = (Finder(When.FAILS, _making_room, 5),)
