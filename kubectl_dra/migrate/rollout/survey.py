"""What still uses device plugins in a cluster, where a device would be handed out twice, and which namespaces
can move.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import amount_of, class_by_resource
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.api.releases import default_features
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.funnel.device_view import DeviceView
from kubectl_dra.manifests.changes import fields_at, items_at, value_at
from kubectl_dra.manifests.pod_counts import pods_of_spec
from kubectl_dra.manifests.workloads import pod_specs
from kubectl_dra.migrate.device_plugins import pod_rewrite as device_plugins
from kubectl_dra.migrate.device_plugins.asks import extended_amounts, meanings
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanSurroundings
from kubectl_dra.migrate.quotas import quota_key
from kubectl_dra.migrate.vendors.catalogue import is_extended
from kubectl_dra.migrate.vendors.model import Resource
from kubectl_dra.scheduling.scheduler import Scheduler, proved, taken_on

LABEL: Final = "kubectl-dra/device-plugins"
"""The namespace label that controls pods which request a device plugin's resource: ``warn`` or ``refuse``."""
REFUSED: Final = "refuse"

Outcome = Literal["auto", "unsafe", "refused"]
"""What migrate does with a user of device plugins: by itself, with --unsafe, or it refuses."""
State = Literal["migrated", "ready", "decide", "blocked"]
"""The state of a namespace. migrated: nothing uses device plugins. ready: migrate can do all of it, and
devices are published. decide: likewise, but with --unsafe. blocked: something has to be done first.
"""


class Use(NamedTuple):
    """What one owner requests from a device plugin.

    ``owner`` is "KIND NAME" of the workload. Its ``pods`` exist and hold or wait for ``devices`` together; a
    workload without pods has none. ``wanted`` is how many pods it keeps running, or None if that is not written.
    ``each`` is the request of one pod, of the largest if they differ. ``reason`` says why it is not migrated
    automatically. ``becomes`` is what the resource is in its pods, with the class that migrate writes there; None if no
    vendor knows it. ``twin`` is not 0 for a further object of the same name. ``offered``: whether a node has any of it,
    without which no pod gets it; None if nobody knows.
    """

    namespace: str
    owner: str
    resource: str
    pods: int
    devices: int
    each: int
    outcome: Outcome
    reason: str = ""
    becomes: Resource | None = None
    wanted: int | None = None
    twin: int = 0
    offered: bool | None = None


class Clash(NamedTuple):
    """A node on which a device plugin offers ``amount`` of ``resource``, and ``driver`` publishes devices.

    ``same`` are the driver's devices that the resource also covers: both would hand them out. ``published``
    counts all of the driver's devices on the node.
    """

    node: str
    resource: str
    amount: int
    driver: str
    same: tuple[str, ...]
    published: int


class Standing(NamedTuple):
    """The progress of a namespace. ``reasons`` say what blocks it, ``todo`` what to do on the way.

    ``pods`` use device plugins, ``claims`` is the number of its claims and claim templates; ``label`` is the
    value of the namespace's ``LABEL``.
    """

    namespace: str
    state: State
    pods: int
    claims: int
    reasons: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    label: str = ""


class Survey(NamedTuple):
    """The answer. ``namespace`` is empty if all were examined; ``notes`` say what was not seen."""

    namespace: str
    uses: tuple[Use, ...]
    clashes: tuple[Clash, ...]
    namespaces: tuple[Standing, ...]
    notes: tuple[str, ...] = ()
    release: str = ""


def survey(
    snapshot: Snapshot,
    settings: MigrationSettings,
    workloads: Iterable[Mapping[str, Any]] = (),
    *,
    namespace: str = "",
    notes: Sequence[str] = (),
) -> Survey:
    """Examine a cluster, or one of its namespaces. ``workloads`` are Deployments and the like, as served."""
    uses = tuple(_uses(snapshot, settings, workloads, namespace))
    published = PublishedDevices(snapshot, settings)
    return Survey(
        namespace,
        uses,
        tuple(_clashes(snapshot, settings, published)),
        tuple(_standings(uses, snapshot, settings, namespace, published)),
        (*notes, *(str(gap) for gap in snapshot.gaps if gap.kind in _NEEDED)),
        str(settings.release),
    )


def pods_of(uses: Iterable[Use]) -> int:
    """Number of pods that use device plugins; one with several resources counts once."""
    return sum({(use.namespace, use.owner, use.twin): use.pods for use in uses}.values())


_NEEDED: Final = ("Pod", "Node", "ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate")

# --- who uses device plugins -----------------------------------------------------------------------


class _Owner:
    """What is known about one owner: its pods, and an object to pass to migrate."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.pods = 0
        self.wanted: int | None = 0
        self.devices: dict[str, int] = {}
        self.each: dict[str, int] = {}

    def take(self, requested: Mapping[str, int]) -> None:
        """Count one pod that exists."""
        self.pods += 1
        for resource, amount in requested.items():
            self.devices[resource] = self.devices.get(resource, 0) + amount


def _uses(
    snapshot: Snapshot, settings: MigrationSettings, workloads: Iterable[Mapping[str, Any]], namespace: str
) -> Iterator[Use]:
    owners: dict[tuple[str, str, int], _Owner] = {}
    for raw in workloads:
        space, name = _identity(raw)
        if (namespace and space != namespace) or _is_controlled(raw):
            continue
        # Files can have several of one name, for other clusters or of which each is part of another overlay.
        title = f"{raw['kind']} {name}"
        number = next(number for number in count() if (space, title, number) not in owners)
        for spec in pod_specs(raw):
            requested = _moving(_asked(_pod_of(spec.content)), settings)
            if requested:
                owner = owners.setdefault((space, title, number), _Owner(raw))
                pods, known = pods_of_spec(raw, spec.path)
                # Pods that end are no longer there when all is well.
                known = known and spec.content.get("restartPolicy", "Always") == "Always"
                owner.wanted = owner.wanted + pods if known and owner.wanted is not None else None
                if raw["kind"] == "Pod":
                    owner.take(requested)
                for resource, amount in requested.items():
                    owner.each[resource] = max(owner.each.get(resource, 0), amount)
    for pod in snapshot.pods.values():
        space = pod.metadata.namespace
        if pod.finished or (namespace and space != namespace):
            continue
        requested = _moving(_of_plugin(pod, snapshot), settings)
        if not requested:
            continue
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(pod), "spec": pod.spec_json()}
        title = str(owner_of(pod) or f"Pod {pod.metadata.name}")
        key = (space, title, 0)
        if key not in owners:
            owners[key] = _Owner(raw)
            owners[key].wanted = None
        owners[key].take(requested)
        for resource, amount in requested.items():
            owners[key].each.setdefault(resource, amount)
    offered = _offered(snapshot)
    for (space, title, twin), owner in sorted(owners.items()):
        plan = device_plugins.plan(owner.raw, PlanSurroundings(), settings)
        outcome, reason = _outcome(owner.raw, plan)
        becomes = _becomes(owner.raw, plan, settings)
        for resource, units in sorted(owner.each.items()):
            devices = owner.devices.get(resource, 0)
            # Pods that are still there can ask for more than what is written of them now.
            row = becomes.get(resource) or settings.catalogue.resource(resource)
            there = resource in offered if offered is not None else None
            yield Use(
                space, title, resource, owner.pods, devices, units, outcome, reason, row, owner.wanted, twin, there
            )


def _offered(snapshot: Snapshot) -> frozenset[str] | None:
    """The resources of which a node has any; None if Nodes were not read."""
    if not snapshot.nodes or snapshot.unread(("Node",)):
        return None
    nodes = snapshot.nodes.values()
    return frozenset(name for node in nodes for name, value in node.allocatable.items() if amount_of(value))


def _moving(requested: Mapping[str, int], settings: MigrationSettings) -> dict[str, int]:
    """What pods request, without resources declared to stay with their device plugin."""
    return {
        name: amount
        for name, amount in requested.items()
        if settings.catalogue.moves(name) or settings.catalogue.resource(name) is None
    }


def _becomes(raw: Mapping[str, Any], plan: ObjectPlan, settings: MigrationSettings) -> dict[str, Resource]:
    """What the resources of a workload's pods become; labels may choose another class than the vendor's first."""
    out: dict[str, Resource] = {}
    for spec in pod_specs(raw):
        out = meanings(spec, settings.catalogue) | out
    moves = [*(step.moved for step in plan.steps), *(added.moved for added in plan.objects)]
    for moved in chain.from_iterable(moves):
        if moved.resource in out:
            out[moved.resource] = replace(out[moved.resource], device_class=moved.device_class, driver=moved.driver)
    return out


def _outcome(raw: Mapping[str, Any], plan: ObjectPlan) -> tuple[Outcome, str]:
    for refusal in plan.refusals:
        return "refused", f"{refusal.code}: {refusal.message}"
    if not plan.steps and not plan.objects:
        return "refused", f"migrate knows no place for claims in a {raw.get('kind')}"
    for step in plan.steps:
        if step.safety == "unsafe":
            return "unsafe", f"{step.code}: {step.reason}"
    return "auto", ""


def _of_plugin(pod: Pod, snapshot: Snapshot) -> dict[str, int]:
    """What a pod requests from device plugins, without what the scheduler serves by a claim for extended resources."""
    requested = _asked(pod)
    if not requested or not pod.extended_resource_claim:
        return requested
    node = snapshot.nodes.get(pod.node_name)
    backed = class_by_resource(snapshot.classes)
    return {
        name: amount
        for name, amount in requested.items()
        if name not in backed or (node is not None and amount_of(node.allocatable.get(name)))
    }


def _asked(pod: Pod | None) -> dict[str, int]:
    return extended_amounts(pod) if pod is not None else {}


def _pod_of(spec: Mapping[str, Any]) -> Pod | None:
    try:
        return Pod.from_json({"spec": spec})
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _identity(raw: Mapping[str, Any]) -> tuple[str, str]:
    metadata = fields_at(raw, "metadata")
    return str(metadata.get("namespace") or "default"), str(metadata.get("name") or metadata.get("generateName") or "")


def _is_controlled(raw: Mapping[str, Any]) -> bool:
    """Whether another object controls it, which is then the owner."""
    return any(value_at(owner, ("controller",)) for owner in items_at(raw, "metadata", "ownerReferences"))


def _metadata(pod: Pod) -> dict[str, Any]:
    meta = pod.metadata
    return {"name": meta.name, "namespace": meta.namespace, "annotations": dict(meta.annotations)}


# --- the same device twice -------------------------------------------------------------------------


def _clashes(snapshot: Snapshot, settings: MigrationSettings, published: PublishedDevices) -> list[Clash]:
    """Nodes with devices from both a device plugin and a driver, those with the same devices first."""
    drivers = {slice_.driver for slice_ in snapshot.slices}
    clashes: list[Clash] = []
    for node in snapshot.nodes.values():
        for name, value in node.allocatable.items():
            amount = amount_of(value) if is_extended(name) else 0
            # Each of what the name can be: HAMi's driver has the GPUs of NVIDIA's plugin as well.
            readings = {reading.driver: reading for reading in settings.catalogue.readings(name)} if amount else {}
            for driver, resource in readings.items():
                devices = published.on(node.name, driver) if driver in drivers else ()
                if devices:
                    same = published.meant(node.name, resource)
                    clashes.append(Clash(node.name, name, amount, driver, same, len(devices)))
    return sorted(clashes, key=lambda clash: (not clash.same, clash.node, clash.resource))


class PublishedDevices:
    """The devices that drivers publish, and which of them a device plugin's resource covers."""

    def __init__(self, snapshot: Snapshot, settings: MigrationSettings) -> None:
        self._settings = settings
        self._snapshot = snapshot
        gates = frozenset(default_features(settings.release))
        gates |= proved(snapshot.slices, gates, settings.release)
        gates |= taken_on(snapshot.taint_rules, settings.release, None)
        # Without slices there is nothing to be judged, and nothing to be made for it.
        self._cycle = Scheduler(settings.release, gates).cycle(snapshot.exact()) if snapshot.slices else None
        self._view = DeviceView(self._cycle, list(snapshot.nodes.values()), {}) if self._cycle else None

    def on(self, node: str, driver: str) -> tuple[str, ...]:
        """The driver's devices on a node, as ``pool/device``."""
        items = self._view.on_node(node) if self._view else ()
        return tuple(f"{item.id.pool}/{item.id.device}" for item in items if item.id.driver == driver)

    def meant(self, node: str, resource: Resource) -> tuple[str, ...]:
        """The devices that the class and the selectors of the resource admit."""
        if self._view is None or self._cycle is None:
            return ()
        published = [item for item in self._view.on_node(node) if item.id.driver == resource.driver]
        accepted = self._cycle.selectors.accepted(self._selectors(resource), [item.device for item in published])
        ids = set(map(id, accepted))
        return tuple(f"{item.id.pool}/{item.id.device}" for item in published if id(item.device) in ids)

    def anywhere(self, resource: Resource) -> int:
        """On how many nodes the driver has devices that the resource covers."""
        return sum(1 for name in self._snapshot.nodes if self.meant(name, resource))

    def _selectors(self, resource: Resource) -> tuple[str, ...]:
        own = self._snapshot.classes.get(resource.device_class)
        if own is not None:
            return (*(selector for selector in own.selectors if selector), *resource.selectors)
        known = self._settings.catalogue.device_class(resource.device_class)
        return ((known.selector,) if known and known.selector else ()) + resource.selectors


# --- how far the namespaces are --------------------------------------------------------------------


def _standings(
    uses: Sequence[Use], snapshot: Snapshot, settings: MigrationSettings, namespace: str, published: PublishedDevices
) -> Iterator[Standing]:
    claims: dict[str, int] = {}
    for table in (snapshot.claims, snapshot.templates):
        for space, _ in table:
            claims[space] = claims.get(space, 0) + 1
    rows = {_key(use): use.becomes for use in uses}
    lacks = {key: _lack(row, snapshot, published) if row is not None else "" for key, row in rows.items()}
    spaces = {use.namespace for use in uses} | set(claims)
    for space in sorted(spaces if not namespace else spaces & {namespace}):
        mine = [use for use in uses if use.namespace == space]
        reasons = [f"{use.owner}: {use.reason}" for use in mine if use.outcome == "refused"]
        reasons += [lacks[key] for key in sorted(set(map(_key, mine))) if lacks[key]]
        state: State = "blocked" if reasons else "ready" if mine else "migrated"
        if state == "ready" and any(use.outcome == "unsafe" for use in mine):
            state = "decide"
            reasons = [f"{use.owner}: {use.reason}" for use in mine if use.outcome == "unsafe"]
        meta = snapshot.namespaces.get(space)
        yield Standing(
            space,
            state,
            pods_of(mine),
            claims.get(space, 0),
            tuple(dict.fromkeys(reasons)),
            tuple(_todo(space, mine, snapshot, settings)),
            meta.labels.get(LABEL, "") if meta is not None else "",
        )


def _key(use: Use) -> tuple[str, str]:
    """A resource, and the class that it becomes."""
    return use.resource, use.becomes.device_class if use.becomes is not None else ""


def _lack(resource: Resource, snapshot: Snapshot, published: PublishedDevices) -> str:
    """What the cluster lacks for a resource's claims; empty if nothing, or if that cannot be seen."""
    name = resource.name
    if not resource.device_class:
        return ""
    if resource.device_class not in snapshot.classes and not snapshot.is_gap("DeviceClass"):
        return f"{name}: there is no DeviceClass {resource.device_class}; install the driver {resource.driver}"
    if snapshot.is_gap("ResourceSlice") or snapshot.is_gap("Node"):
        return ""
    if not published.anywhere(resource):
        return f"{name}: no ResourceSlice of {resource.driver} has a device for class {resource.device_class}"
    return ""


def _todo(space: str, uses: Sequence[Use], snapshot: Snapshot, settings: MigrationSettings) -> Iterator[str]:
    """Quotas that count the old resource but no claims of the classes that its users in the namespace get."""
    hard = {key for quota in snapshot.quotas if quota.metadata.namespace == space for key in quota.hard}
    for quota in snapshot.quotas:
        for key in quota.hard if quota.metadata.namespace == space else ():
            if not key.startswith("requests."):
                continue
            old = key.removeprefix("requests.")
            rows = [use.becomes for use in uses if use.resource == old] or [settings.catalogue.resource(old)]
            classes = dict.fromkeys(row.device_class for row in rows if row is not None and row.device_class)
            missing = [wanted for wanted in map(quota_key, classes) if wanted not in hard]
            if missing:
                name = quota.metadata.name
                yield f"ResourceQuota {name} counts {key} and no claims: add {' and '.join(missing)}"
