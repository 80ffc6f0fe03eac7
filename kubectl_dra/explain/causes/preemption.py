"""The scheduler makes room for the pod: it evicts others, or waits for those that it evicted to end."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.default_preemption import VictimsEnding

EVICTS = CauseKind(
    code="preemption-makes-room",
    title="The scheduler evicts other pods for this one",
    why="No node has room now, but pods of lower priority hold what the pod needs: cpu, memory, ports or a place that "
    "their affinity forbids. The scheduler deletes the least important of them, names their node in "
    "status.nominatedNodeName, and tries the pod again when they have ended. Devices are never freed this way.",
    fix="Wait until the evicted pods have ended; their terminationGracePeriodSeconds says how long that can take.",
    seen_as="status.nominatedNodeName; Preempted events on the victims",
    family=Family.POD,
    look=Look.POD,
)
ENDING = CauseKind(
    code="victims-still-ending",
    title="The pod waits for evicted pods to end",
    why="The scheduler evicted pods of lower priority for this one. Until they have ended, nobody else is evicted and "
    "the pod stays pending.",
    fix="Wait for them, or look at what keeps them: finalizers, a long grace period, a node that does not answer.",
    seen_as="preemption: not eligible due to a terminating pod on the nominated node.",
    family=Family.POD,
    look=Look.POD,
)


def _making_room(trial: Trial) -> Iterator[Finding]:
    outcome = trial.outcome
    preemption = outcome.preemption if outcome is not None else None
    if preemption is None:
        return
    if isinstance(preemption.ineligible, VictimsEnding):
        node, victims = preemption.ineligible.node, preemption.ineligible.victims
        summary = say("{count:pod} evicted for it still {count:ends|end} on {node}", count=len(victims), node=node)
        facts = tuple(Evidence(Subject("Pod", victim), "metadata.deletionTimestamp", "set") for victim in victims)
        yield Finding(ENDING, summary, facts)
        return
    if not preemption.best:
        return
    first = preemption.best[0]
    names = [victim.key for victim in first.victims]
    summary = say("the scheduler evicts {victims:some} on {node} to make room", victims=names, node=first.node)
    facts = tuple(
        Evidence(Subject("node", candidate.node), "would be evicted there", victim.key)
        for candidate in preemption.best
        for victim in candidate.victims
    )
    yield Finding(EVICTS, summary, facts, Remedy(EVICTS.fix))


KINDS = (EVICTS, ENDING)
FINDERS = (Finder(When.FAILS, _making_room, 5),)
