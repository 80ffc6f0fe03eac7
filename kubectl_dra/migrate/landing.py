"""Where each migrated pod would run, and where it could run before: runs the allocator on the cluster's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs
from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import amount_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import GROUP
from kubectl_dra.cluster.apply import Server
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.copies import Place
from kubectl_dra.cluster.overlay import overlay
from kubectl_dra.cluster.snapshot import DRA_KINDS, Snapshot
from kubectl_dra.errors import DraError, InputError
from kubectl_dra.explain.diagnosis import Verdict
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.manifests.documents import NotAnObject, parse
from kubectl_dra.manifests.objects import ManifestObject, objects, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import WorkloadPodSpec, pod_specs
from kubectl_dra.migrate.device_plugins.asks import extended_amounts
from kubectl_dra.migrate.result import Landing, LandingComparison, LostNodes, MigrationReport
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.framework import ClusterState, NodeState
from kubectl_dra.scheduling.node_affinity import NodeAffinityFilter
from kubectl_dra.scheduling.node_unschedulable import NodeUnschedulable
from kubectl_dra.scheduling.taint_toleration import TaintToleration

if TYPE_CHECKING:
    from kubectl_dra.explain.phrase import Words
    from kubectl_dra.explain.scene.prepare import Settings as Assumed

SHOWN: Final = 5
"""How many nodes are named before the rest is only counted."""
_RULES: Final = (NodeUnschedulable, TaintToleration, NodeAffinityFilter)
"""The scheduler plugins that judge by the pod's own rules, whatever else runs on the node."""


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
    try:
        world = overlay(snapshot, _brought(report, namespace), Server(assumed.release, assumed.gates))
    except InputError:
        world = snapshot
    settings = replace(assumed, with_ways=False)
    # The cluster with nothing in use.
    free = replace(world, pods={}, claims={key: claim.deallocated() for key, claim in world.claims.items()})
    known: dict[str, LandingComparison] = {}
    return [found for pair in pairs for found in _compared(pair, world, free, settings, namespace, known)]


class _Pair(NamedTuple):
    file: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def _pairs(report: MigrationReport) -> Iterator[_Pair]:
    """The objects of changed files, before and after."""
    for file in report.changed:
        if file.text is None:
            continue
        was = {_identity(one.object): one.object for one in _objects(file.text.source, file.text.before)}
        for one in _objects(file.text.source, file.text.after):
            old = was.get(_identity(one.object))
            if old is not None and old != one.object:
                yield _Pair(file.name, old, one.object)


def _objects(source: Source, text: str) -> list[ManifestObject]:
    try:
        documents = parse(Source(source.name, text))
    except NotAnObject:
        return []
    found: list[ManifestObject] = []
    for document in documents:
        try:
            found += objects((document,))
        except InputError:
            continue
    return found


def _identity(raw: Mapping[str, Any]) -> tuple[str, str]:
    return str(raw.get("kind")), title(raw)


def _brought(report: MigrationReport, namespace: str) -> Snapshot:
    """The DRA objects of all files after the migration."""
    builder = SnapshotBuilder(namespace, workloads=True)
    for file in report.all_files:
        if file.text is None:
            continue
        for one in _objects(file.text.source, file.text.after):
            if one.api_version.startswith(f"{GROUP}/") and one.kind in DRA_KINDS:
                try:
                    builder.add(dict(one.object), Place(file.name, one.document.line))
                except InputError:
                    # Overlays have the same object twice; lint says what is wrong with others.
                    continue
    return builder.build(complete=True)


def _compared(
    pair: _Pair,
    world: Snapshot,
    free: Snapshot,
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
            alike = _decides(before, after, world)
            found = known.get(alike)
            if found is None:
                found = _one(pair, where, before, after, resources, world, free, settings)
            if found.verdict is Verdict.ALLOCATABLE:
                # Why another pod does not fit is said with the names of its own claims.
                known[alike] = found
            yield found._replace(file=pair.file, object=title(pair.after), pod=where)


def _decides(before: Pod, after: Pod, world: Snapshot) -> str:
    """A text that is equal for pods that get the same nodes and devices."""
    space = after.metadata.namespace
    parts: list[Any] = [space, sorted(after.metadata.labels.items()) if after.spec.affinity else ()]
    for pod in (before, after):
        parts.append(structs.replace(pod.spec, resource_claims=()))
    for entry in after.claims:
        template = world.templates.get((space, entry.template_name))
        # A claim that pods share has a state of its own.
        parts.append((entry.name, entry.claim_name, template.spec if template is not None else entry.template_name))
    return repr(parts)


def _pod(raw: Mapping[str, Any], spec: WorkloadPodSpec, namespace: str) -> Pod:
    metadata = raw.get("metadata") or {}
    name = metadata.get("name") or str(metadata.get("generateName") or "pod").rstrip("-")
    made = {
        "name": name,
        "namespace": metadata.get("namespace") or namespace,
        "labels": spec.metadata.get("labels") or {},
        "annotations": spec.metadata.get("annotations") or {},
    }
    return Pod.from_json({"metadata": made, "spec": spec.content})


def _one(
    pair: _Pair,
    where: str,
    before: Pod,
    after: Pod,
    resources: Mapping[str, int],
    world: Snapshot,
    free: Snapshot,
    settings: Assumed,
) -> LandingComparison:
    state = ClusterState(Cluster(free), settings.release, settings.gates, settings.patch)
    rules = Chain(before, state, _RULES)
    could = tuple(name for name, node in state.nodes.items() if _offered(node, rules, resources))
    try:
        empty = diagnose(about_pod(after, free, exists=False), free, settings)
        now = diagnose(about_pod(after, world, exists=False), world, settings)
    except DraError as error:
        return LandingComparison(
            pair.file, title(pair.after), where, resources, could, (), (), (), (), Verdict.UNDETERMINED, error
        )
    can = tuple(placement.node for placement in empty.placements)
    reasons = {name: group.reason for group in empty.nodes for name in group.nodes}
    lost: dict[Words | None, list[str]] = {}
    for name in could:
        if name not in can:
            lost.setdefault(reasons.get(name), []).append(name)
    return LandingComparison(
        pair.file,
        title(pair.after),
        where,
        resources,
        could,
        can,
        tuple(Landing(each.node, tuple(str(one.device) for one in each.devices)) for each in now.placements),
        tuple(LostNodes(empty if reason is None else reason, tuple(names)) for reason, names in lost.items()),
        tuple(name for name in can if name not in could),
        now.verdict,
        None if now.verdict is Verdict.ALLOCATABLE else now,
        now.notes,
    )


def _offered(node: NodeState, rules: Chain, resources: Mapping[str, int]) -> bool:
    """Whether the node's device plugin offers enough and the pod's own rules admit the node."""
    enough = all(amount_of(node.node.allocatable.get(name)) >= amount for name, amount in resources.items())
    return enough and rules.filter(node) is None


def changed_total(comparisons: Sequence[LandingComparison]) -> tuple[int, int, int]:
    """How many pods could run on fewer nodes, on as many, and on more."""
    fewer = sum(1 for one in comparisons if one.difference < 0)
    more = sum(1 for one in comparisons if one.difference > 0)
    return fewer, len(comparisons) - fewer - more, more
