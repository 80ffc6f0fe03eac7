"""What ``explain -f`` says of what fits, once the others of its manifest have their nodes and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import ONLY_PLACED, Pod, PodStatus
from kubectl_dra.cli.explain.questions import Posed
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import BesideOthers, ClaimAfterOthers
from kubectl_dra.explain.diagnosis import Diagnosis, NodeDevices
from kubectl_dra.explain.outcomes import NoHelp

if TYPE_CHECKING:
    from kubectl_dra.fit.place import PlacedPod
    from kubectl_dra.fit.result import FitAnswer, WorkloadFit

Ask = Callable[[Posed], Diagnosis]
"""Answers a question."""


def beside_others(diagnosis: Diagnosis, posed: Posed, workload: WorkloadFit, answer: FitAnswer, ask: Ask) -> Diagnosis:
    """The diagnosis of a pod that fits, as it is with the pods of other workloads on their nodes.

    Where new nodes are supposed it is about a pod that gets one, if any does: others take what there is already.
    """
    if diagnosis.exit_code or not workload.placed_pods:
        return diagnosis
    looked_at = next((pod for pod in workload.placed_pods if pod.node in posed.settings.added), None)
    own = workload.placed_pods if looked_at is not None else ()
    of_others = (pod for each in answer.workloads if each is not workload for pod in each.placed_pods)
    others = [pod for pod in (*of_others, *own) if pod is not looked_at]
    if not {pod.node for pod in others}.intersection(diagnosis.fitting):
        return diagnosis
    again = ask(posed._replace(snapshot=_with(others, Cluster(posed.snapshot)).snapshot, before=None))
    if again.exit_code:
        return diagnosis
    # New nodes that others take help, too.
    notes = [note for note in again.notes if not isinstance(note, NoHelp) or note in diagnosis.notes]
    return replace(again, notes=(BesideOthers(), *notes))


def _with(placed_pods: Iterable[PlacedPod], cluster: Cluster) -> Cluster:
    """The cluster with pods on their nodes, and without those that end for them."""
    for placed in placed_pods:
        bound = replace(placed.new.pod, node_name=placed.node)
        cluster = cluster.ending(placed.evicted).editing(bound, *placed.claims)
    return cluster


def claims_in_turn(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], ask: Ask) -> list[Diagnosis]:
    """The diagnoses, where those about claims of the manifest are given with the devices that others of them take.

    Which is allocated first, nobody knows: a claim that fits on fewer nodes comes before one that fits on more.
    """
    out = list(diagnoses)
    waiting = [at for at, each in enumerate(posed) if _is_claim_of_manifest(each) and _fits(diagnoses[at])]
    taken: list[ResourceClaim | Pod] = []
    for at in sorted(waiting, key=lambda number: len(diagnoses[number].fitting)):
        if taken:
            after = Cluster(posed[at].snapshot).editing(*taken).snapshot
            again = ask(posed[at]._replace(snapshot=after, before=None))
            if again.exit_code:
                from kubectl_dra.fit.changes import without_own

                # Nobody ends what is only supposed.
                users = {item.key for item in taken if isinstance(item, Pod)}
                again = without_own(again, users, after)
            if again.exit_code or again.placements != out[at].placements:
                out[at] = replace(again, notes=(ClaimAfterOthers(), *again.notes))
        if _fits(out[at]):
            later = [diagnoses[other].fitting for other in waiting if other != at]
            for new in _least_wanted(out[at].placements, later).claims:
                taken += _in_use(new)
    return out


def _in_use(claim: ResourceClaim) -> tuple[ResourceClaim, Pod]:
    """The claim as a pod uses it, which is when it gets its devices, and the pod."""
    name = f"user-of-{claim.metadata.name}"
    meta = ObjectMeta(name=name, namespace=claim.metadata.namespace, uid=f"user:{claim.key}")
    pod = Pod(metadata=replace(meta, annotations={ONLY_PLACED: ""}), status=PodStatus(phase="Running"))
    return replace(claim, reserved_for=(Consumer("pods", name, meta.uid),)), pod


def _is_claim_of_manifest(posed: Posed) -> bool:
    question, manifest = posed.question, posed.manifest
    return question.pod is None and manifest is not None and (question.namespace, question.name) in manifest.claims


def _fits(diagnosis: Diagnosis) -> bool:
    return diagnosis.verdict is Verdict.SCHEDULABLE and bool(diagnosis.placements)


def _least_wanted(placements: Sequence[NodeDevices], others: Sequence[Sequence[str]]) -> NodeDevices:
    """The place on the node on which the fewest others fit."""
    return min(placements, key=lambda place: sum(place.node in fitting for fitting in others))
