"""What quota a Workload of Kueue lacks: of which resource, in which flavors, in its ClusterQueue and its cohort.

As ``pkg/cache/scheduler/resource_node.go`` of Kueue 0.19 has it: a queue in a cohort has what it does not lend, and
besides whatever the cohort has left, up to its borrowing limit. Which flavors a pod tolerates is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_dra.api.claims import EXACT_COUNT, Request
from kubectl_dra.api.kueue import (
    ClusterQueue,
    Cohort,
    KueuePodSet,
    KueueQuota,
    KueueResourceGroup,
    KueueWorkload,
)
from kubectl_dra.api.pod_resources import pod_requests
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.neighbours.kueue_controller import configuration

COHORT: Final = "Cohort.kueue.x-k8s.io"
_CLUSTER_QUEUE: Final = "ClusterQueue.kueue.x-k8s.io"
_NOTHING: Final = Quantity.of(0, "DecimalSI")


class FlavorQuota(NamedTuple):
    """What a ClusterQueue has of a resource in a flavor, and what the Workload wants of it.

    ``free`` is what it could take now, ``most`` what it could ever, ``lent`` what it borrows of its cohort. ``free``
    and ``most`` are None where the cohort was not read; ``wanted`` is None where that is not known.
    """

    resource: str
    flavor: str
    wanted: Quantity | None
    nominal: Quantity
    held: Quantity
    lent: Quantity
    free: Quantity | None
    most: Quantity | None

    @property
    def missing(self) -> Quantity | None:
        """Amount that is missing; zero if it fits; None if that is not known."""
        if self.wanted is None or self.free is None:
            return None
        return max(self.wanted - self.free, _NOTHING)

    @property
    def never(self) -> bool:
        """Whether no waiting helps."""
        return self.wanted is not None and self.most is not None and self.wanted > self.most


class MappedClass(NamedTuple):
    """As which resource Kueue counts devices of a class: empty if its configuration does not name the class.

    ``covered``: whether the ClusterQueue has quota for that resource; None if it was not read.
    """

    name: str
    resource: str = ""
    covered: bool | None = None


def mapped_classes(workload: KueueWorkload, queue: ClusterQueue | None, snapshot: Snapshot) -> tuple[MappedClass, ...]:
    """The DeviceClasses that the Workload's claims ask for; none where Kueue's configuration was not read."""
    known = configuration(snapshot)
    if known is None:
        return ()
    names = {
        device.device_class: None
        for pods in workload.spec.pod_sets
        for request in _requests(pods, workload.metadata.namespace, snapshot) or ()
        for device in request.alternatives()
    }
    entries = ((name, known[1].mapping(name)) for name in names)
    return tuple(
        MappedClass(name, entry.name, None if queue is None else entry.name in queue.resources)
        if entry is not None
        else MappedClass(name)
        for name, entry in entries
    )


def flavor_quotas(workload: KueueWorkload, queue: ClusterQueue, snapshot: Snapshot) -> tuple[FlavorQuota, ...]:
    """The quota for what the Workload asks for, in the order of the ClusterQueue; none where amounts are no amounts."""
    try:
        wanted = _wanted(workload, snapshot)
        return tuple(_flavor_quotas(queue, wanted, snapshot))
    except QuantityError:
        return ()


def short(quotas: Iterable[FlavorQuota]) -> tuple[FlavorQuota, ...]:
    """Quotas of the resources of which no flavor has enough; none of a resource with an unknown quota."""
    by_resource: dict[str, list[FlavorQuota]] = {}
    for quota in quotas:
        by_resource.setdefault(quota.resource, []).append(quota)
    return tuple(
        quota
        for flavors in by_resource.values()
        if all(quota.missing or quota.never for quota in flavors)
        for quota in flavors
    )


def _flavor_quotas(
    queue: ClusterQueue, wanted: Mapping[str, list[Quantity]], snapshot: Snapshot
) -> Iterator[FlavorQuota]:
    for group in queue.spec.resource_groups:
        for flavor in group.flavors:
            for limit in flavor.resources:
                sets = wanted.get(limit.name)
                asked: Quantity | None = None
                if sets:
                    # With several flavors each set of pods may have another, so that none needs more than the largest.
                    asked = sum(sets[1:], sets[0]) if len(group.flavors) == 1 else max(sets)
                room = _room(queue, (flavor.name, limit.name), snapshot)
                own = _of_queue(queue, (flavor.name, limit.name))
                lent = max(own.used - own.subtree, _NOTHING)
                yield FlavorQuota(limit.name, flavor.name, asked, own.subtree, own.used, lent, *room)


def _wanted(workload: KueueWorkload, snapshot: Snapshot) -> dict[str, list[Quantity]]:
    """What each set of pods asks for, by resource: as Kueue has counted it, otherwise counted here."""
    out: dict[str, list[Quantity]] = {}
    if workload.status.resource_requests:
        for request in workload.status.resource_requests:
            for name, amount in request.resources.items():
                out.setdefault(name, []).append(Quantity.parse(amount))
        return out
    for pods in workload.spec.pod_sets:
        for name, quantity in pod_requests(Pod(spec=pods.template.spec)).items():
            out.setdefault(name, []).append(quantity * pods.count)
        for name, count in _devices(pods, workload.metadata.namespace, snapshot).items():
            out.setdefault(name, []).append(Quantity.of(count * pods.count, "DecimalSI"))
    return out


def _devices(pods: KueuePodSet, namespace: str, snapshot: Snapshot) -> dict[str, int]:
    """Number of devices a pod of the set asks for, by the resource they count as; empty if Kueue cannot count one."""
    known, requests = configuration(snapshot), _requests(pods, namespace, snapshot)
    if known is None or requests is None:
        return {}
    out: dict[str, int] = {}
    for request in requests:
        device = request.exactly
        entry = known[1].mapping(device.device_class) if device is not None else None
        if device is None or entry is None or entry.sources or device.allocation_mode != EXACT_COUNT:
            return {}
        out[entry.name] = out.get(entry.name, 0) + device.count
    return out


def _requests(pods: KueuePodSet, namespace: str, snapshot: Snapshot) -> list[Request] | None:
    """The requests of all templates of a set of pods; None if one of them was not read."""
    claims = Pod(spec=pods.template.spec).claims
    templates = [snapshot.templates.get((namespace, claim.template_name)) for claim in claims]
    if None in templates:
        return None
    return [request for template in templates if template is not None for request in template.claim("", "").requests]


# The tree of ClusterQueues and cohorts, for one resource of one flavor.

_Cell = tuple[str, str]
"""Flavor and resource."""


class _Count(NamedTuple):
    """What a node of the tree has and uses: ``subtree`` is its quota with what those below it lend."""

    limit: KueueQuota
    subtree: Quantity
    used: Quantity

    @property
    def local(self) -> Quantity:
        """What it never lends."""
        lending = self.limit.lending_limit
        return _NOTHING if lending is None else max(self.subtree - Quantity.parse(lending), _NOTHING)


def _room(queue: ClusterQueue, cell: _Cell, snapshot: Snapshot) -> tuple[Quantity | None, Quantity | None]:
    """Amount that a queue can take now, and the most that it can ever take; None if not known."""
    own = _of_queue(queue, cell)
    if not queue.cohort:
        return own.subtree - own.used, own.subtree
    if snapshot.unread((COHORT, _CLUSTER_QUEUE)):
        return None, None
    above = _above(queue.cohort, snapshot)
    if above is None:
        return None, None
    counts = _of_cohorts(above[-1], cell, snapshot)
    nodes = [own, *(counts[name] for name in above)]
    free, most = nodes[-1].subtree - nodes[-1].used, nodes[-1].subtree
    for node in reversed(nodes[:-1]):
        stored, limit = node.subtree - node.local, node.limit.borrowing_limit
        if limit is not None:
            free = min(stored - max(node.used - node.local, _NOTHING) + Quantity.parse(limit), free)
        free, most = max(node.local - node.used, _NOTHING) + free, node.local + most
        if limit is not None:
            most = min(node.subtree + Quantity.parse(limit), most)
    return free, most


def _above(cohort: str, snapshot: Snapshot) -> list[str] | None:
    """A cohort and those above it; None if they are a circle, in which Kueue admits nothing."""
    names = [cohort]
    while parent := _parent(names[-1], snapshot):
        if parent in names:
            return None
        names.append(parent)
    return names


def _cohort(name: str, snapshot: Snapshot) -> Cohort:
    known: Cohort | None = snapshot.others.get(COHORT, {}).get(("", name))
    return known or Cohort()


def _parent(name: str, snapshot: Snapshot) -> str:
    spec = _cohort(name, snapshot).spec
    return spec.parent_name or spec.parent


def _of_queue(queue: ClusterQueue, cell: _Cell) -> _Count:
    limit = _limit(queue.spec.resource_groups, cell)
    used = (
        Quantity.parse(held.total)
        for flavor in queue.status.flavors_reservation
        for held in flavor.resources
        if (flavor.name, held.name) == cell
    )
    return _Count(limit, Quantity.parse(limit.nominal_quota), next(used, _NOTHING))


def _of_cohorts(root: str, cell: _Cell, snapshot: Snapshot) -> dict[str, _Count]:
    """The cohorts below a root, which is among them."""
    below: dict[str, list[str]] = {}
    for _, name in snapshot.others.get(COHORT, {}):
        below.setdefault(_parent(name, snapshot), []).append(name)
    queues: dict[str, list[ClusterQueue]] = {}
    for queue in snapshot.others.get(_CLUSTER_QUEUE, {}).values():
        queues.setdefault(queue.cohort, []).append(queue)
    order = [root]
    for name in order:
        order += below.get(name, ())
    counts: dict[str, _Count] = {}
    for name in reversed(order):
        limit = _limit(_cohort(name, snapshot).spec.resource_groups, cell)
        subtree, used = Quantity.parse(limit.nominal_quota), _NOTHING
        members = (*(_of_queue(queue, cell) for queue in queues.get(name, ())), *map(counts.get, below.get(name, ())))
        for member in members:
            assert member is not None
            subtree, used = subtree + (member.subtree - member.local), used + max(member.used - member.local, _NOTHING)
        counts[name] = _Count(limit, subtree, used)
    return counts


def _limit(groups: Iterable[KueueResourceGroup], cell: _Cell) -> KueueQuota:
    flavor, resource = cell
    return next(
        (
            limit
            for group in groups
            for kueue_flavor in group.flavors
            if kueue_flavor.name == flavor
            for limit in kueue_flavor.resources
            if limit.name == resource
        ),
        KueueQuota(),
    )
