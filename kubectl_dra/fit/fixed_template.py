"""Number of replicas that fit with the fix of the first pod that does not, made in the template for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.explain.diagnosis import Diagnosis, Remedy, RemedyPlan
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.change import LowerCount
from kubectl_dra.explain.remedies.node_rules import LessOfNode
from kubectl_dra.explain.remedies.proof import ChangeStep, Price
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.result import FitAnswer, FitOptions, WorkloadFit
from kubectl_dra.fit.workload import WorkloadPods

_MOST_PODS: Final = 2_000
"""All pods are placed again, so of more pods it is not asked."""


_FEWEST_TRIES: Final = 3
_MOST_PLACED: Final = 6_000
"""So many pods are placed, or few amounts tried, in search of a request with which all fit."""


class _Counting(NamedTuple):
    """How all workloads of a manifest are placed again, one of them with a fix in its template."""

    workloads: Sequence[WorkloadPods]
    snapshot: Snapshot
    settings: Settings
    options: FitOptions
    progress: Progress

    def with_fix(self, number: int, offers: Sequence[Change], supposed: Sequence[WhatIfChange]) -> WorkloadFit | None:
        """What comes of a workload with changes in its template, or that of its claims; None of other changes."""
        workload = self.workloads[number]
        # What is supposed of requests is supposed of those of all workloads.
        changes = of_claims(supposed, workload) if len(self.workloads) == 1 else ()
        fixed = workload if changes else of_pods(offers, workload)
        if fixed is None:
            return None
        self.progress(f"placing {fixed.title} with its fix")
        pods = [*self.workloads[:number], fixed, *self.workloads[number + 1 :]]
        options = replace(self.options, only_counts=True)
        settings = replace(self.settings, supposed=(*self.settings.supposed, *changes))
        return fit(pods, self.snapshot, settings, options, self.progress).workloads[number]


def with_fixed_template(
    answer: FitAnswer, snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> FitAnswer:
    """The answer with how many replicas fit once the fix is made in the template of a workload's pods, or of claims.

    Asked of workloads with one template, none of whose pods exists yet: those have their claims already.
    """
    if sum(workload.pods for workload in answer.workloads) > _MOST_PODS:
        return answer
    counting = _Counting([each.workload for each in answer.workloads], snapshot, settings, options, progress)
    fixed = [_counted(number, workload, counting) for number, workload in enumerate(answer.workloads)]
    return replace(answer, workloads=tuple(fixed))


def _counted(number: int, workload: WorkloadFit, counting: _Counting) -> WorkloadFit:
    """What came of a workload, with what comes of it once its fix is made in its template."""
    stop, most = workload.stop, counting.options.most
    first = next(iter(stop.diagnosis.findings), None) if stop is not None else None
    several = (most or workload.pods > 1) and not workload.running
    if stop is None or first is None or not several:
        return workload

    def fits_all(change: LowerCount | LessOfNode) -> bool:
        supposed = () if isinstance(change, LessOfNode) or change.place.extended else change.supposed
        counted = counting.with_fix(number, [change], supposed)
        return counted is not None and counted.fitting == workload.replicas

    remedy = first.remedy
    own = [RemedyPlan(remedy.offers, remedy.proof, remedy.what_if, remedy.steps)] if remedy and remedy.proof else []
    for plan in (*own, *_milder(stop.diagnosis, remedy)):
        counted = counting.with_fix(number, plan.changes, plan.what_if)
        if counted is None or (counted.placed <= workload.placed and plan not in own):
            continue
        way = None if plan in own else plan
        fitting, placed = counted.fitting, counted.placed
        less: LowerCount | LessOfNode | None = _largest(plan.changes, plan.steps, fits_all) if not most else None
        if less is None and not most and fitting < workload.replicas:
            part = Fraction(counted.fitting, workload.replicas)
            less = _largest_request(plan.changes, fits_all, part, workload.pods)
        if less is not None:
            fitting, placed = workload.replicas, workload.pods
            supposed = tuple(less.supposed) if isinstance(less, LowerCount) else ()
            way = RemedyPlan((less,), plan.proof, supposed)
        stop = replace(stop, fitting_with_fix=fitting, placed_with_fix=placed, way=way)
        return replace(workload, stop=stop)
    return workload


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


def _largest_request(
    offers: Sequence[Change], fits_all: Callable[[LessOfNode], bool], part: Fraction, pods: int
) -> LessOfNode | None:
    """The largest smaller request of a resource of nodes with which all fit; None where none is worth asking for.

    With that of the offer a ``part`` of so many ``pods`` fits. Of many pods the search ends early, with one that is
    small enough.
    """
    offer = offers[0] if len(offers) == 1 else None
    if not isinstance(offer, LessOfNode) or offer.least >= offer.amount:
        return None
    fitting, too_much = None, offer.amount
    # Nodes are not filled to the last bit.
    guesses = [amount for share in (part, part * 9 / 10) if offer.least < (amount := offer.of(share)) < offer.amount]
    left = max(_FEWEST_TRIES, _MOST_PLACED // max(1, pods))
    for amount in (*guesses, offer.least):
        left -= 1
        if fits_all(replace(offer, amount=amount)):
            fitting = amount
            break
        too_much = amount
    if fitting is None:
        return None
    while left > 0 and (middle := offer.between(fitting, too_much)) is not None:
        left -= 1
        if fits_all(replace(offer, amount=middle)):
            fitting = middle
        else:
            too_much = middle
    return replace(offer, amount=fitting)


def _milder(diagnosis: Diagnosis, remedy: Remedy | None) -> Sequence[RemedyPlan]:
    """The ways out that edit one thing, where the fix asks for more than that, or is not proved."""
    single = [way for way in diagnosis.ways if len(way.changes) == 1]
    if remedy is None or remedy.proof is None:
        return [way for way in single if way.price <= Price.WAIT]
    return [way for way in single if way.price <= Price.EDIT < remedy.price]


def of_claims(changes: Sequence[WhatIfChange], workload: WorkloadPods) -> Sequence[WhatIfChange]:
    """What a fix changes of the requests that all pods make; empty where it is another one."""
    roles = workload.roles
    from_template = len(roles) == 1 and all(claim.template_name for claim in roles[0].pod.claims)
    return changes if from_template and all(change.of_requests for change in changes) else ()


def of_pods(offers: Sequence[Change], workload: WorkloadPods) -> WorkloadPods | None:
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
