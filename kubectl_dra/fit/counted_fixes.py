"""How many replicas of a workload fit with each fix that is proved for the first of them that does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, Remedy, RemedyPlan
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.explain.remedies.proof import Proof, ReplicasThen
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.fixed_template import of_claims, of_pods
from kubectl_dra.fit.result import FitOptions, WorkloadFit

_MOST_PODS: Final = 200
_MOST_FIXES: Final = 6
"""All pods are placed again for each."""


def with_counts(
    workload: WorkloadFit, diagnosis: Diagnosis, cluster: Snapshot, settings: Settings, progress: Progress
) -> Diagnosis:
    """The diagnosis of the first pod that does not fit, with how many replicas do with each fix; the fix with which
    most do stands first.
    """
    if not 1 < workload.pods <= _MOST_PODS or workload.replicas < 2 or workload.running:
        return diagnosis

    def counted(proof: Proof | None, changes: Sequence[Change], what_if: Sequence[WhatIfChange]) -> Proof | None:
        if proof is None or not changes or not proof.enough:
            return proof
        fitting = _fitting(workload, changes, what_if, cluster, settings, progress)
        return proof if fitting is None else replace(proof, then=ReplicasThen(fitting, workload.replicas, unit))

    unit = workload.workload.unit
    findings = []
    for finding in diagnosis.findings:
        if (remedy := finding.remedy) is not None:
            remedy = replace(remedy, proof=counted(remedy.proof, remedy.offers, remedy.what_if))
            finding = replace(finding, remedy=remedy)
        findings.append(finding)
    ways = [
        replace(way, proof=counted(way.proof, way.changes, way.what_if) or way.proof)
        for way in diagnosis.ways[:_MOST_FIXES]
    ]
    return _best_first(replace(diagnosis, findings=tuple(findings), ways=(*ways, *diagnosis.ways[_MOST_FIXES:])))


def _fitting(
    workload: WorkloadFit,
    changes: Sequence[Change],
    what_if: Sequence[WhatIfChange],
    cluster: Snapshot,
    settings: Settings,
    progress: Progress,
) -> int | None:
    """How many replicas fit with the changes; None where they cannot be made for all of them."""
    pods = workload.workload
    if all(isinstance(change, Free | EndPods) for change in changes):
        after = Cluster(cluster)
        for change in changes:
            if isinstance(change, EndPods):
                after = after.ending(pod for pod in change.ended if _there(pod.key, cluster))
            elif isinstance(change, Free):
                after = after.freeing([each.claim for each in change.holders if each.claim.key in _claims(cluster)])
        cluster = after.snapshot
    elif supposed := of_claims(what_if, pods):
        settings = replace(settings, supposed=(*settings.supposed, *supposed))
    elif (edited := of_pods(changes, pods)) is not None:
        pods = edited
    else:
        return None
    progress(f"placing {pods.title} with a fix")
    return fit([pods], cluster, settings, FitOptions(only_counts=True), progress).workloads[0].fitting


def _there(key: str, cluster: Snapshot) -> bool:
    namespace, _, name = key.partition("/")
    return (namespace, name) in cluster.pods


def _claims(cluster: Snapshot) -> frozenset[str]:
    return cluster.derived(_claim_keys)


def _claim_keys(cluster: Snapshot) -> frozenset[str]:
    return frozenset(claim.key for claim in cluster.claims.values())


def _best_first(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis, where a single other change with which more replicas fit takes the place of the first fix."""
    first = next(iter(diagnosis.findings), None)
    remedy = first.remedy if first is not None else None
    if first is None or remedy is None or remedy.proof is None or remedy.proof.then is None or len(remedy.offers) != 1:
        return diagnosis
    better = max(_ending(diagnosis.ways), key=lambda way: _number(way.proof), default=None)
    if better is None or _number(better.proof) <= _number(remedy.proof):
        return diagnosis
    change = better.changes[0]
    assert isinstance(change, Free | EndPods)
    instead = Remedy(say("{what:capital}.", what=change.what), better.proof, offers=better.changes, steps=better.steps)
    former = RemedyPlan(remedy.offers, remedy.proof, remedy.what_if, remedy.steps, first.place_of_fix)
    head: Finding = replace(first, remedy=instead)
    ways = (former, *(way for way in diagnosis.ways if way is not better))
    return replace(diagnosis, findings=(head, *diagnosis.findings[1:]), ways=ways)


def _ending(ways: Iterable[RemedyPlan]) -> Iterable[RemedyPlan]:
    """The ways that end one holder, and say so in words."""
    return (way for way in ways if len(way.changes) == 1 and isinstance(way.changes[0], Free | EndPods))


def _number(proof: Proof) -> int:
    return proof.then.fitting if proof.then is not None else -1
