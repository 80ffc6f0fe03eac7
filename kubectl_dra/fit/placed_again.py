"""Workloads placed once more: with a fix made for all of their pods, or in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.explain.diagnosis import Diagnosis, Remedy, RemedyPlan
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.change import LowerCount
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.explain.remedies.node_rules import LessOfNode
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, Proof, ReplicasThen
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit, nearest_that_fits
from kubectl_dra.fit.result import FitAnswer, FitOptions, WorkloadFit
from kubectl_dra.fit.workload import WorkloadPods


class _Placing(NamedTuple):
    """How the workloads of a manifest are placed again."""

    snapshot: Snapshot
    settings: Settings
    options: FitOptions
    progress: Progress

    def counted(self, workloads: Sequence[WorkloadPods]) -> tuple[WorkloadFit, ...]:
        """What comes of these."""
        options = replace(self.options, only_counts=True)
        return fit(workloads, self.snapshot, self.settings, options, self.progress).workloads

    def with_fix(
        self,
        workloads: Sequence[WorkloadPods],
        number: int,
        offers: Sequence[Change],
        supposed: Sequence[WhatIfChange],
        called: str = "its fix",
    ) -> WorkloadFit | None:
        """What comes of one of them with changes in its template, or that of its claims; None of other changes."""
        workload = workloads[number]
        # What is supposed of requests is supposed of those of all workloads.
        changes = _of_claims(supposed, workload) if len(workloads) == 1 else ()
        fixed = workload if changes else _of_pods(offers, workload)
        if fixed is None:
            return None
        self.progress(f"placing {fixed.title} with {called}")
        placing = self._replace(settings=replace(self.settings, supposed=(*self.settings.supposed, *changes)))
        return placing.counted([*workloads[:number], fixed, *workloads[number + 1 :]])[number]


# How many replicas fit with the fix of the first pod that does not, made in the template for all.

_MOST_PODS: Final = 2_000
"""All pods are placed again, so of more pods it is not asked."""
_FEWEST_TRIES: Final = 3
_MOST_PLACED: Final = 6_000
"""So many pods are placed, or few amounts tried, in search of a request with which all fit."""


def with_fixed_template(
    answer: FitAnswer, snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> FitAnswer:
    """The answer with how many replicas fit once the fix is made in the template of a workload's pods, or of claims.

    Asked of workloads with one template, none of whose pods exists yet: those have their claims already.
    """
    if sum(workload.pods for workload in answer.workloads) > _MOST_PODS:
        return answer
    placing, pods = _Placing(snapshot, settings, options, progress), [each.workload for each in answer.workloads]
    fixed = [_fixed(number, workload, placing, pods) for number, workload in enumerate(answer.workloads)]
    return replace(answer, workloads=tuple(fixed))


def _fixed(number: int, workload: WorkloadFit, placing: _Placing, workloads: Sequence[WorkloadPods]) -> WorkloadFit:
    """What came of a workload, with what comes of it once its fix is made in its template."""
    stop, most = workload.stop, placing.options.most
    first = next(iter(stop.diagnosis.findings), None) if stop is not None else None
    several = (most or workload.pods > 1) and not workload.running
    if stop is None or first is None or not several:
        return workload

    def fits_all(change: LowerCount | LessOfNode) -> bool:
        supposed = () if isinstance(change, LessOfNode) or change.place.extended else change.supposed
        counted = placing.with_fix(workloads, number, [change], supposed)
        return counted is not None and counted.fitting == workload.replicas

    remedy = first.remedy
    own = [RemedyPlan(remedy.offers, remedy.proof, remedy.what_if, remedy.steps)] if remedy and remedy.proof else []
    for plan in (*own, *_milder(stop.diagnosis, remedy)):
        counted = placing.with_fix(workloads, number, plan.changes, plan.what_if)
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
        return replace(workload, stop=replace(stop, fitting_with_fix=fitting, placed_with_fix=placed, way=way))
    return workload


def _largest(
    offers: Sequence[Change], steps: Sequence[ChangeStep], fits_all: Callable[[LowerCount], bool]
) -> LowerCount | None:
    """The largest number of devices with which all fit; None where the change is that, or is another one."""
    offer, before = offers[0] if len(offers) == 1 else None, steps[0].before if len(steps) == 1 else None
    if not isinstance(offer, LowerCount) or offer.every or not isinstance(before, int):
        return None
    # With fewer devices each, no fewer pods fit.
    fitting = nearest_that_fits(0, before, lambda count: fits_all(replace(offer, count=count)))
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


# How many replicas fit with each fix that is proved for the first of them that does not.

_MOST_COUNTED: Final = 200
_MOST_FIXES: Final = 6
"""All pods are placed again for each."""


def with_counts(
    workload: WorkloadFit, diagnosis: Diagnosis, cluster: Snapshot, settings: Settings, progress: Progress
) -> Diagnosis:
    """The diagnosis of the first pod that does not fit, with how many replicas do with each fix, the most first."""
    if not 1 < workload.pods <= _MOST_COUNTED or workload.replicas < 2 or workload.running:
        return diagnosis
    placing, pods = _Placing(cluster, settings, FitOptions(), progress), workload.workload

    def counted(proof: Proof | None, changes: Sequence[Change], what_if: Sequence[WhatIfChange]) -> Proof | None:
        if proof is None or not changes or not proof.enough:
            return proof
        after = _after_ends(changes, cluster)
        if after is not None:
            progress(f"placing {pods.title} with a fix")
            (fixed,) = placing._replace(snapshot=after).counted([pods])
        elif (template := placing.with_fix([pods], 0, changes, what_if, "a fix")) is not None:
            fixed = template
        else:
            return proof
        return replace(proof, then=ReplicasThen(fixed.fitting, workload.replicas, pods.unit))

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


def _after_ends(changes: Sequence[Change], cluster: Snapshot) -> Snapshot | None:
    """The cluster after pods and claims have ended that it has; None where a change is another one."""
    after = Cluster(cluster)
    for change in changes:
        if isinstance(change, EndPods):
            after = after.ending(pod for pod in change.ended if key_of(pod) in cluster.pods)
        elif isinstance(change, Free):
            held = (holder.claim for holder in change.holders)
            after = after.freeing([claim for claim in held if key_of(claim) in cluster.claims])
        else:
            return None
    return after.snapshot


def _best_first(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis, where a single other change with which more replicas fit takes the place of the first fix."""
    first = next(iter(diagnosis.findings), None)
    remedy = first.remedy if first is not None else None
    if first is None or remedy is None or remedy.proof is None or remedy.proof.then is None or len(remedy.offers) != 1:
        return diagnosis
    # They say in words what they end.
    single = (way for way in diagnosis.ways if len(way.changes) == 1 and isinstance(way.changes[0], Free | EndPods))
    better = max(single, key=lambda way: _number(way.proof), default=None)
    if better is None or _number(better.proof) <= _number(remedy.proof):
        return diagnosis
    change = better.changes[0]
    assert isinstance(change, Free | EndPods)
    instead = Remedy(say("{what:capital}.", what=change.what), better.proof, offers=better.changes, steps=better.steps)
    former = RemedyPlan(remedy.offers, remedy.proof, remedy.what_if, remedy.steps, first.place_of_fix)
    ways = (former, *(way for way in diagnosis.ways if way is not better))
    return replace(diagnosis, findings=(replace(first, remedy=instead), *diagnosis.findings[1:]), ways=ways)


def _number(proof: Proof) -> int:
    return proof.then.fitting if proof.then is not None else -1


# Whether a workload that does not fit would if it was applied before the others of its manifest.

_MOST_FIRST: Final = 3


def with_other_order(
    answer: FitAnswer, snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> FitAnswer:
    """The answer with how many pods of the others fit where one that does not fit comes first.

    That is its fix where more of all fit then; else they compete, and the order decides who fits.
    """
    lacking = [number for number, each in enumerate(answer.workloads) if number and each.stop is not None]
    workloads, placing = list(answer.workloads), _Placing(snapshot, settings, options, progress)
    for number in lacking[:_MOST_FIRST]:
        late = workloads[number]
        if late.stop is None or late.refused or late.workload.namespace in answer.missing_namespaces:
            continue
        if late.unclear and not late.may_fit:
            continue
        progress(f"placing {late.workload.title} first")
        order = [late, *(each for each in workloads if each is not late)]
        first, *others = placing.counted([each.workload for each in order])
        placed = sum(each.placed for each in others)
        if first.all_placed and first.placed + placed > sum(each.placed for each in workloads):
            stop = replace(late.stop, others_if_first=(placed, sum(each.pods for each in others)))
            workloads[number] = replace(late, stop=stop)
        elif first.placed > late.placed:
            fits = Joined(tuple(map(_fits, (first, *others))), " and ")
            text = "the order of the manifest was assumed, and decides: with this one first {fits} fit"
            workloads[number] = replace(late, stop=replace(late.stop, if_first=say(text, fits=fits)))
    return replace(answer, workloads=tuple(workloads))


def _fits(workload: WorkloadFit) -> Words:
    return say(
        "{number} of {pods:pod} of {title}", number=workload.placed, pods=workload.pods, title=workload.workload.title
    )
