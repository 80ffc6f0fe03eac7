"""A workload of the cluster by its name, as a manifest: what it would take once more, or with other replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.cli.explain.target import NotThere, TypedTarget, targets_of
from kubectl_dra.cli.kind_words import VOLCANO_JOB, group_of
from kubectl_dra.cluster.kinds import MAKER_PLURALS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import ClusterFlags, kubectl, misnamed
from kubectl_dra.errors import UndeterminedError, UsageError
from kubectl_dra.text import did_you_mean, nearest

_VERSIONS: Final = {
    "": "v1",
    "apps": "apps/v1",
    "batch": "batch/v1",
    "batch.volcano.sh": "batch.volcano.sh/v1alpha1",
    "jobset.x-k8s.io": "jobset.x-k8s.io/v1alpha2",
    "leaderworkerset.x-k8s.io": "leaderworkerset.x-k8s.io/v1",
}
"""The version of a group that is asked for."""


def named_workload(words: Sequence[str], namespace: str, where: ClusterFlags) -> TypedTarget:
    """The one workload that was typed, as TYPE/NAME or TYPE NAME; ``namespace`` and ``where`` were typed besides.

    Raises UsageError: anything else.
    """
    from kubectl_dra.cli.unknown_words import like_file, unexpected_words

    if like_file(words[0]) or (len(words) == 1 and (words[0].count("/") != 1 or misnamed(words[0].split("/")))):
        raise unexpected_words("fit", words, files=True, namespace=namespace, where=where)
    targets = targets_of(words)
    target = targets[0]
    if len(targets) > 1:
        raise UsageError("fit is about one workload by its name; several are in a manifest: -f MANIFEST")
    if not group_of(target.kind) or target.kind.startswith("VirtualMachine"):
        raise UsageError(f"fit places workloads: deployment/NAME and the like, or -f MANIFEST; {target} is none")
    return target


def identity(target: TypedTarget) -> tuple[str, str]:
    """Group and kind of a workload."""
    return group_of(target.kind), "Job" if target.kind == VOLCANO_JOB else target.kind


def asked_for(target: TypedTarget) -> Mapping[str, Any]:
    """What tells a live cluster which object is meant."""
    group, kind = identity(target)
    return {"apiVersion": _VERSIONS.get(group, group), "kind": kind, "metadata": {"name": target.name}}


def stored_manifest(target: TypedTarget, namespace: str, snapshot: Snapshot) -> Snapshot:
    """The workload as a manifest would give it.

    Raises:
        NotThere: it does not exist.
        UndeterminedError: it was not read.
    """
    from kubectl_dra.cluster.builder import SnapshotBuilder
    from kubectl_dra.cluster.duplicates import Place

    group, kind = identity(target)
    raw = snapshot.stored.get((group, kind, namespace, target.name))
    if raw is None:
        raise _absent(target, namespace, snapshot)
    builder = SnapshotBuilder(namespace, workloads=True)
    fields = {name: value for name, value in raw.items() if name != "status"}
    metadata = {name: value for name, value in raw["metadata"].items() if name in ("name", "namespace", "labels")}
    annotations = raw["metadata"].get("annotations") or {}
    builder.add({**fields, "metadata": {**metadata, "annotations": annotations}}, Place(str(target)))
    return builder.build()


def _absent(target: TypedTarget, namespace: str, snapshot: Snapshot) -> NotThere | UndeterminedError:
    group, kind = identity(target)
    known = [name for of, own, space, name in snapshot.stored if (of, own, space) == (group, kind, namespace)]
    title = f"{kind} {target.name} in namespace {namespace}"
    show = kubectl("get", kind=f"{target.kind.lower()}", namespace=namespace)
    if snapshot.server and (group, kind) not in MAKER_PLURALS:
        return UndeterminedError(f"{kind}s are not read from a cluster: write its manifest to a file, and say -f FILE")
    if gap := snapshot.missing(kind, namespace) if snapshot.server else None:
        return UndeterminedError(f"{title} was not read: {gap}")
    hint = did_you_mean(nearest(target.name, known)) if nearest(target.name, known) else ""
    elsewhere = [space for of, own, space, name in snapshot.stored if (of, own, name) == (group, kind, target.name)]
    if elsewhere:
        hint = f"it is in namespace {elsewhere[0]}: did you mean -n {elsewhere[0]}?"
    what = "is not in the cluster" if snapshot.server else "is not in what was read, with its template"
    return NotThere(title, f"{title} {what}{f'; {hint}' if hint else ''}", ("What there is", show))
