"""Number of replicas that fit with the fix of the first pod that does not, made in the template for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.explain.diagnosis import Diagnosis, Remedy, RemedyPlan
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.change import LowerCount
from kubectl_dra.explain.remedies.proof import ChangeStep, Price
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.result import FitAnswer, FitOptions
from kubectl_dra.fit.workload import WorkloadPods

_MOST_PODS: Final = 2_000
"""All pods are placed again, so of more pods it is not asked."""


def with_fixed_template(
    answer: FitAnswer, snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> FitAnswer:
    """The answer with how many replicas fit once the fix is made in the template of a workload's pods, or of claims.

    Asked of one workload with one template, none of whose pods exists yet: those have their claims already.
    """
    if len(answer.workloads) != 1 or options.most:
        return answer
    (workload,) = answer.workloads
    stop = workload.stop
    first = next(iter(stop.diagnosis.findings), None) if stop is not None else None
    several = 1 < workload.pods <= _MOST_PODS and not workload.running and workload.replicas > 1
    if stop is None or first is None or first.remedy is None or not several:
        return answer

    def fits_all(change: LowerCount) -> bool:
        changes = _of_claims(() if change.place.extended else change.supposed, workload.workload)
        pods = workload.workload if changes else _of_pods([change], workload.workload)
        if pods is None:
            return False
        supposed = replace(settings, supposed=changes)
        counted = fit([pods], snapshot, supposed, replace(options, only_counts=True), progress)
        return counted.workloads[0].fitting == workload.replicas

    for way in (None, *_milder(stop.diagnosis, first.remedy)):
        offers, what_if = (first.remedy.offers, first.remedy.what_if) if way is None else (way.changes, way.what_if)
        changes = _of_claims(what_if, workload.workload)
        pods = workload.workload if changes else _of_pods(offers, workload.workload)
        if pods is None:
            continue
        progress(f"placing {pods.title} with its fix")
        supposed = replace(settings, supposed=changes)
        counted = fit([pods], snapshot, supposed, replace(options, only_counts=True), progress)
        fitting = counted.workloads[0].fitting
        steps, proof = (first.remedy.steps, first.remedy.proof) if way is None else (way.steps, way.proof)
        if proof is not None and (count := _largest(offers, steps, fits_all)) is not None:
            fitting, way = workload.replicas, RemedyPlan((count,), proof, tuple(count.supposed))
        stop = replace(stop, fitting_with_fix=fitting, way=way)
        return replace(answer, workloads=(replace(workload, stop=stop),))
    return answer


def _largest(
    offers: Sequence[Change], steps: Sequence[ChangeStep], fits_all: Callable[[LowerCount], bool]
) -> LowerCount | None:
    """The largest number of devices with which all fit; None where the change is that, or is another one."""
    offer, before = offers[0] if len(offers) == 1 else None, steps[0].before if len(steps) == 1 else None
    if not isinstance(offer, LowerCount) or offer.every or not isinstance(before, int):
        return None
    # With fewer devices each, no fewer pods fit.
    fitting, too_many = 0, before
    while too_many - fitting > 1:
        count = (fitting + too_many) // 2
        if fits_all(replace(offer, count=count)):
            fitting = count
        else:
            too_many = count
    return replace(offer, count=fitting) if fitting not in (0, offer.count) else None


def _milder(diagnosis: Diagnosis, remedy: Remedy) -> Sequence[RemedyPlan]:
    """The ways out that edit one thing, where the fix asks for more than that."""
    return [way for way in diagnosis.ways if len(way.changes) == 1 and way.price <= Price.EDIT < remedy.price]


def _of_claims(changes: Sequence[WhatIfChange], workload: WorkloadPods) -> Sequence[WhatIfChange]:
    """What a fix changes of the requests that all pods make; empty where it is another one."""
    roles = workload.roles
    from_template = len(roles) == 1 and all(claim.template_name for claim in roles[0].pod.claims)
    return changes if from_template and all(change.of_requests for change in changes) else ()


def _of_pods(offers: Sequence[Change], workload: WorkloadPods) -> WorkloadPods | None:
    """The workload with a fix in its only template; None where the fix is another one."""
    if len(workload.roles) != 1 or not offers:
        return None
    (role,) = workload.roles
    pod = role.pod
    for offer in offers:
        edited = offer.in_template(pod)
        if edited == pod:
            return None
        pod = edited
    return replace(workload, roles=(replace(role, pod=pod),))
