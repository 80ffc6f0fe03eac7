"""Which pods of a workload were made from the template that its manifest gives: what is stored is compared.

Sources: FindNewReplicaSet and EqualIgnoreHash of the Deployment's controller, updateStatefulSet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.merge import applied_workload, has_template, same_templates, templates_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.stored_workloads import REPLICA_SETS, made_by
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.pod_counts import counts_of
from kubectl_dra.manifests.workloads import key_of

_SCALED = (("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("argoproj.io", "Rollout"))
"""What is often scaled by others, so that its manifest leaves the number out."""
_REVISION = "controller-revision-hash"


class StoredTemplate(Struct, frozen=True):
    """How the stored templates of a workload differ from those after an apply.

    ``changed``: those of the workload differ; None where it was not read, or is not there. ``sets`` are its ReplicaSets
    by name, and whether each has the template. ``by_set``: its pods are made through such. ``revision`` is that of a
    StatefulSet's stored template; empty where nobody says.
    """

    changed: bool | None = None
    sets: Mapping[str, bool] = {}
    by_set: bool = False
    revision: str = ""

    def made(self, pod: Pod) -> bool | None:
        """Whether a pod was made from the template; None where that was not read."""
        owner = pod.metadata.controller()
        if self.by_set:
            known = self.sets.get(owner.name) if owner is not None else None
            return False if known is None and self.changed else known
        if self.changed is not False:
            return None if self.changed is None else False
        own = pod.metadata.labels.get(_REVISION, "")
        return not (own and self.revision and own != self.revision)

    def unread(self, workload: WorkloadPods, pod: Pod) -> str:
        """What was not read that would tell of a pod."""
        owner = pod.metadata.controller()
        if self.by_set and owner is not None:
            return f"{owner.own_kind} {workload.namespace}/{owner.name}"
        return workload.title


def as_applied(workload: WorkloadPods, own: Sequence[Pod], snapshot: Snapshot) -> WorkloadPods:
    """A workload as an apply leaves it: what its manifest does not say stays, such as the number of replicas.

    Where the stored one was not read, a number that is not written is that of its ``own`` pods.
    """
    if not workload.raw:
        return workload
    stored = snapshot.stored.get((*key_of(workload.raw), workload.namespace, workload.name))
    if stored is not None:
        raw = applied_workload(stored, workload.raw)
        return replace(workload, raw=raw, replicas=counts_of(raw).replicas)
    unsaid = own and "replicas" not in fields_at(workload.raw, "spec") and key_of(workload.raw) in _SCALED
    return replace(workload, replicas=len(own)) if unsaid else workload


def stored_template(workload: WorkloadPods, snapshot: Snapshot) -> StoredTemplate:
    """What is stored of the templates of a workload."""
    if not workload.raw:
        return StoredTemplate()
    key, written = key_of(workload.raw), workload.raw
    stored = snapshot.stored.get((*key, workload.namespace, workload.name))
    after = templates_of(applied_workload(stored, written)) if stored is not None else None
    changed = not same_templates(templates_of(stored), after) if stored is not None and after is not None else None
    if key not in REPLICA_SETS:
        revision = fields_at(stored, "status").get("updateRevision") if stored is not None else ""
        return StoredTemplate(changed, revision=str(revision or ""))
    sets = {}
    for raw in made_by(snapshot, workload.namespace, workload.kind, workload.name):
        name, own = str(fields_at(raw, "metadata").get("name")), templates_of(raw)
        same = same_templates(own, after) if after is not None else has_template(own[0], templates_of(written)[0])
        sets[name] = same
    return StoredTemplate(changed, sets, by_set=True)
