"""Where each migrated pod would run, and where it could run before: runs the allocator on the cluster's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import of_answer
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import GROUP
from kubectl_dra.cluster.apply import Server, overlay
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.snapshot import DRA_KINDS, Snapshot
from kubectl_dra.errors import DraError, InputError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import as_created
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.manifests.changes import fields_at, items_at
from kubectl_dra.manifests.documents import Skipped, each_document
from kubectl_dra.manifests.objects import ManifestObject, objects, title
from kubectl_dra.manifests.pod_counts import pods_of_spec
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import WorkloadPodSpec, containers, pod_specs
from kubectl_dra.migrate.device_plugins.asks import extended_amounts
from kubectl_dra.migrate.model import ClusterHas, LandingComparison, LostNodes, MigrationReport

if TYPE_CHECKING:
    from kubectl_dra.explain.phrase import Words
    from kubectl_dra.explain.settings import Settings as Assumed

SHOWN: Final = 5
"""Number of nodes that are named before the rest is only counted."""
_DECIDE: Final = ("Node", "ResourceSlice", "DeviceClass")
"""The kinds without which it is not known on which nodes a pod could run."""


def compare(
    report: MigrationReport, snapshot: Snapshot, assumed: Assumed, namespace: str = "default"
) -> list[LandingComparison]:
    """Run every pod whose requests the report changes through the allocator, on the snapshot's cluster.

    ``assumed`` are the release and gates of the cluster, as in explain. Objects without a namespace are in
    ``namespace``.
    """
    pairs = list(_pairs(report))
    if not pairs:
        return []
    server = Server(assumed.scheduler.release, assumed.scheduler.gates)
    old = _with_manifests(snapshot, _manifests(report, namespace, migrated=False), server)
    now = _with_manifests(snapshot, _manifests(report, namespace, migrated=True), server)
    snapshots = _Snapshots(Cluster(old).emptied().snapshot, Cluster(now).emptied().snapshot, now)
    settings = replace(assumed, with_ways=False)
    known: dict[str, LandingComparison] = {}
    return [comparison for pair in pairs for comparison in _compared(pair, snapshots, settings, namespace, known)]


class _Snapshots(NamedTuple):
    """The cluster with the files before and after, with nothing in use; and as it is, with those after."""

    before: Snapshot
    after: Snapshot
    now: Snapshot


def _with_manifests(snapshot: Snapshot, manifests: Snapshot, server: Server) -> Snapshot:
    try:
        return overlay(snapshot, manifests, server)
    except InputError:
        return snapshot


def has_needed(report: MigrationReport, snapshot: Snapshot) -> ClusterHas | None:
    """What the cluster has of what the migrated pods need; None for the way back, which needs nothing of DRA."""
    if report.settings.reverse:
        return None
    wanted = {moved_request.device_class for moved_request in report.moved} - report.own_classes
    classes = {name: name in snapshot.classes for name in sorted(wanted)}
    published = {slice_.driver for slice_ in snapshot.slices}
    drivers = {
        moved_request.driver: moved_request.driver in published
        for moved_request in report.moved
        if moved_request.driver
    }
    return ClusterHas(
        {name: there for name, there in classes.items() if there or not snapshot.is_gap("DeviceClass")},
        {name: there for name, there in drivers.items() if there or not snapshot.is_gap("ResourceSlice")},
    )


class _Pair(NamedTuple):
    """``scaled``: an autoscaler among the files decides how many replicas there are."""

    file: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    scaled: bool


def _pairs(report: MigrationReport) -> Iterator[_Pair]:
    """The objects of changed files, before and after."""
    texts = [(file.name, file.text) for file in report.changed if file.text is not None]
    files = [
        (name, [manifest.object for manifest in _objects(text.source, text.before)], _objects(text.source, text.after))
        for name, text in texts
    ]
    scaled = set(map(_scaled, chain.from_iterable(before for _, before, _ in files)))
    for name, before, after in files:
        # Several objects can have one name: of other clusters, or made by generateName.
        was: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for raw in before:
            was.setdefault(_identity(raw), []).append(raw)
        for manifest in after:
            same = was.get(_identity(manifest.object))
            old = same.pop(0) if same else None
            if old is not None and old != manifest.object:
                target = (str(old.get("kind")), str(fields_at(old, "metadata").get("name")))
                yield _Pair(name, old, manifest.object, target in scaled)


def _scaled(raw: Mapping[str, Any]) -> tuple[str, str]:
    """The kind and name of what an autoscaler scales; nothing's for other objects."""
    target = fields_at(raw, "spec", "scaleTargetRef")
    return str(target.get("kind") or ("Deployment" if target else "")), str(target.get("name") or "")


def _objects(source: Source, text: str) -> list[ManifestObject]:
    """The objects of a file; documents that cannot be read were left as they are."""
    manifests: list[ManifestObject] = []
    for document in each_document(Source(source.name, text)):
        with suppress(InputError):
            manifests += () if isinstance(document, Skipped) else objects((document,))
    return manifests


def _identity(raw: Mapping[str, Any]) -> tuple[str, str]:
    return str(raw.get("kind")), title(raw)


def _manifests(report: MigrationReport, namespace: str, *, migrated: bool) -> Snapshot:
    """The DRA objects of all files, before or after the migration."""
    builder = SnapshotBuilder(namespace, workloads=True)
    for file in (*report.all_files, *report.plain):
        if file.text is None:
            continue
        for manifest in _objects(file.text.source, file.text.after if migrated else file.text.before):
            if manifest.api_version.startswith(f"{GROUP}/") and manifest.kind in DRA_KINDS:
                try:
                    builder.add(dict(manifest.object), Place(file.name, manifest.document.line))
                except InputError:
                    # Overlays have the same object twice; lint says what is wrong with others.
                    continue
    return builder.build(complete=True)


def _compared(
    pair: _Pair,
    snapshots: _Snapshots,
    settings: Assumed,
    namespace: str,
    known: dict[str, LandingComparison],
) -> Iterator[LandingComparison]:
    """Compare the pods of one object. ``known`` holds finished comparisons, by everything that affects the result."""
    old, new = list(pod_specs(pair.before)), list(pod_specs(pair.after))
    changed = [(was, now) for was, now in zip(old, new, strict=False) if was.content != now.content]
    for was, now in changed:
        try:
            before, after = _pod(pair.before, was, namespace), _pod(pair.after, now, namespace)
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        kept = extended_amounts(after)
        resources = {name: amount for name, amount in extended_amounts(before).items() if name not in kept}
        if resources:
            where = "" if len(old) == 1 else ".".join(str(step) for step in was.path)
            alike = _decides(before, after, snapshots.now)
            comparison = known.get(alike)
            if comparison is None:
                comparison = _one(before, after, resources, snapshots, settings)
            if comparison.verdict is Verdict.SCHEDULABLE:
                # Why another pod does not fit is said with the names of its own claims.
                known[alike] = comparison
            count, exact = pods_of_spec(pair.before, was.path)
            yield comparison._replace(
                file=pair.file,
                object=title(pair.after),
                pod=where,
                pods=max(count, 1) if pair.scaled else count,
                counted=exact and not pair.scaled,
            )


def _decides(before: Pod, after: Pod, snapshot: Snapshot) -> str:
    """A text that is equal for pods that get the same nodes and devices."""
    space = after.metadata.namespace
    parts: list[Any] = [space, sorted(after.metadata.labels.items()) if after.spec.affinity else ()]
    for pod in (before, after):
        parts.append(structs.replace(pod.spec, resource_claims=()))
    for pod_claim in after.claims:
        template = snapshot.templates.get((space, pod_claim.template_name))
        # A claim that pods share has a state of its own.
        parts.append(
            (pod_claim.name, pod_claim.claim_name, template.spec if template is not None else pod_claim.template_name)
        )
    return repr(parts)


def _pod(raw: Mapping[str, Any], spec: WorkloadPodSpec, namespace: str) -> Pod:
    metadata = raw.get("metadata") or {}
    name = metadata.get("name") or str(metadata.get("generateName") or "pod").rstrip("-")
    meta = {
        "name": name,
        "namespace": metadata.get("namespace") or namespace,
        "labels": spec.metadata.get("labels") or {},
        "annotations": spec.metadata.get("annotations") or {},
    }
    content = spec.content
    if not items_at(content, "containers"):
        # The containers of some kinds are written elsewhere, and a controller puts them there.
        here = [dict(container.content, name=container.name) for container in containers(spec) if not container.init]
        content = {**content, "containers": here}
    return Pod.from_json({"metadata": meta, "spec": content})


def _one(
    before: Pod, after: Pod, resources: Mapping[str, int], snapshots: _Snapshots, settings: Assumed
) -> LandingComparison:
    """The comparison of a pod, whose workload is not named yet."""
    unread = tuple(gap.kind for gap in snapshots.now.unread(_DECIDE))
    could = () if unread else _accepting(before, snapshots.before, settings)
    try:
        can = () if unread else _accepting(after, snapshots.after, settings)
        empty = diagnose(about_pod(after, snapshots.after, exists=False), snapshots.after, settings)
        now = diagnose(about_pod(after, snapshots.now, exists=False), snapshots.now, settings)
    except DraError as error:
        return LandingComparison("", "", "", resources, could, (), (), (), (), Verdict.UNDETERMINED, error)
    reasons = {name: group.reason for group in empty.nodes for name in group.nodes}
    lost: dict[Words | None, list[str]] = {}
    for name in could:
        if name not in can:
            lost.setdefault(reasons.get(name), []).append(name)
    return LandingComparison(
        "",
        "",
        "",
        resources,
        could,
        can,
        now.placements,
        tuple(LostNodes(empty if reason is None else reason, tuple(names)) for reason, names in lost.items()),
        tuple(name for name in can if name not in could),
        now.verdict,
        None if now.verdict is Verdict.SCHEDULABLE else now,
        now.notes,
        unread=unread,
    )


def _accepting(pod: Pod, snapshot: Snapshot, settings: Assumed) -> tuple[str, ...]:
    """The nodes on which the scheduler accepts a new pod, by all its steps."""
    created, cluster = as_created(about_pod(pod, snapshot, exists=False), Cluster(snapshot).with_named_nodes())
    assert created is not None
    return tuple(settings.scheduler.attempt(created, cluster, of_answer(len(snapshot.nodes))).taking)


def changed_total(comparisons: Sequence[LandingComparison]) -> tuple[int, int, int]:
    """Numbers of pods that could run on fewer nodes, on as many, and on more; without those not known."""
    comparisons = [comparison for comparison in comparisons if not comparison.unread]
    fewer = sum(comparison.pods for comparison in comparisons if comparison.difference < 0)
    more = sum(comparison.pods for comparison in comparisons if comparison.difference > 0)
    return fewer, sum(comparison.pods for comparison in comparisons) - fewer - more, more
