"""Workloads that have no pod as they are suspended or wait for others: the pod that one would make, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from kubectl_dra.api.gangs import BatchJob, JobSet, LeaderWorkerSet
from kubectl_dra.api.meta import ObjectMeta, OwnerReference
from kubectl_dra.api.pods import Pod, PodTemplateSpec
from kubectl_dra.cluster.pointed import Pointer
from kubectl_dra.cluster.snapshot import MADE_BY, Snapshot

Maker: TypeAlias = BatchJob | JobSet | LeaderWorkerSet
JOB: Final = "Job.batch"
JOBSET: Final = "JobSet.jobset.x-k8s.io"
LWS: Final = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
MAKERS: Final[Mapping[str, str]] = {"Job": JOB, "JobSet": JOBSET, "LeaderWorkerSet": LWS}
"""The kinds that may have no pods for a reason that stands in the object, by their plain names."""
_VERSIONS: Final = {JOB: "batch/v1", JOBSET: "jobset.x-k8s.io/v1alpha2", LWS: "leaderworkerset.x-k8s.io/v1"}


def maker_pointer(kind: str, name: str, namespace: str) -> Pointer:
    """What to read of a workload of one of ``MAKERS``."""
    return Pointer(MAKERS[kind], namespace, name)


def would_make(kind: str, name: str, namespace: str, snapshot: Snapshot) -> Pod | None:
    """A pod as the workload would make it; None if the workload is not there, or has no template for one."""
    known = MAKERS.get(kind, "")
    maker: Maker | None = snapshot.others.get(known, {}).get((namespace, name))
    template = _template(maker) if maker is not None else None
    if maker is None or template is None:
        return None
    meta = maker.metadata
    owner = OwnerReference(kind, name, meta.uid, controller=True, api_version=_VERSIONS[known])
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        # Queues are named on the workload.
        labels={**meta.labels, **template.metadata.labels},
        annotations={MADE_BY: f"{kind} {namespace}/{name}"},
        owners=(owner, *meta.owners),
    )
    return Pod(metadata, template.spec)


def maker_of(pod: Pod, snapshot: Snapshot) -> Maker | None:
    """The workload for which the pod stands that it would make; None of any other pod."""
    owner = pod.metadata.controller()
    if owner is None or MADE_BY not in pod.metadata.annotations or pod.metadata.uid:
        return None
    return snapshot.others.get(MAKERS.get(owner.kind, ""), {}).get((pod.metadata.namespace, owner.name))


def is_suspended(maker: Maker) -> bool:
    """Whether ``spec.suspend`` is set."""
    return not isinstance(maker, LeaderWorkerSet) and maker.spec.suspend


def _template(maker: Maker) -> PodTemplateSpec | None:
    return next(_templates(maker), None)


def _templates(maker: Maker) -> Iterator[PodTemplateSpec]:
    """The templates of a workload's pods, those of a JobSet that have not begun first."""
    if isinstance(maker, BatchJob):
        yield maker.spec.template
    elif isinstance(maker, LeaderWorkerSet):
        template = maker.spec.leader_worker_template
        yield template.leader_template or template.worker_template
    else:
        yield from (job.template.spec.template for job in maker.spec.replicated_jobs)
