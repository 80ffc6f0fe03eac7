"""What is odd about a driver on a node beside its state: seen by comparing its pod with others, and claims with slices.

None of it alone keeps a pod waiting; each explains a failure that the driver's own words do not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID, PoolID, ResourceSlice, newest_slices
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import Moment, moment, parse
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.driver_pods import kubelet_root
from kubectl_dra.drivers.hardware import plugin_offer
from kubectl_dra.drivers.health import DriverState, NodeDriver, seconds_since

_ENOUGH: Final = 2
"""So many nodes with another release say that this one is the odd one."""
_RECENT: Final = 86_400
"""Seconds for which a restart is news."""


class ConcernKind(StrEnum):
    """What is odd."""

    OTHER_ROOT = "other-kubelet-root"
    """It announces itself in another folder than the other plugins of the node: the kubelet watches only one."""
    OLDER = "older-than-what-it-needs"
    """It has run since before what it depends on was made anew, and may use what that had then."""
    OTHER_VERSION = "other-version"
    """Most nodes run another release of it."""
    PLUGIN_TOO = "device-plugin-too"
    """A device plugin offers devices of the same vendor on the node."""
    IN_USE = "devices-in-use-not-published"
    """It publishes no devices that are in use; what it publishes is what is free."""
    RESTARTED = "restarted"
    """Its container failed within the last day and runs again: what it kept in memory only is gone."""
    TWICE = "device-allocated-twice"
    """A device that only one claim can have is in the allocations of two."""


class Concern(NamedTuple):
    """One of these about a driver on a node: ``values`` are what was compared, by the kind."""

    kind: ConcernKind
    values: tuple[str, ...]


def concerns_of(snapshot: Snapshot, rows: Iterable[NodeDriver]) -> Mapping[tuple[str, str], tuple[Concern, ...]]:
    """What is odd, by driver and node; drivers of which nothing is odd are left out."""
    rows = tuple(rows)
    nodes = {row.node for row in rows}
    plugins: dict[str, list[Pod]] = defaultdict(list)
    beside: dict[str, list[Pod]] = defaultdict(list)
    needs = tuple(sign for driver in {row.driver for row in rows} for sign in _needs(driver))
    for pod in snapshot.pods.values():
        if pod.node_name in nodes and not pod.finished:
            if pod.plugin is not None:
                plugins[pod.node_name].append(pod)
            elif needs and (owner := pod.metadata.controller()) is not None and owner.kind == "DaemonSet":
                beside[pod.node_name].append(pod)
    versions: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row.pod is not None and row.pod.version:
            versions[row.driver][row.pod.version] += 1
    twice, at = devices_given_twice(snapshot.claims.values()), moment(snapshot)
    out: dict[tuple[str, str], tuple[Concern, ...]] = {}
    for row in rows:
        pools = {(row.driver, pool) for pool in row.pools}
        concerns = (
            *_other_root(row, plugins[row.node]),
            *_older(row, [*beside[row.node], *plugins[row.node]]),
            *_other_version(row, versions[row.driver]),
            *_restarted(row, at),
            *_plugin_too(row, snapshot),
            *((Concern(ConcernKind.IN_USE, (str(row.in_use),)),) if row.in_use else ()),
            *(
                Concern(ConcernKind.TWICE, (device.device, *(claim.key for claim in claims)))
                for device, claims in twice.items()
                if device[:2] in pools
            ),
        )
        if concerns:
            out[row.driver, row.node] = concerns
    return out


def _other_root(row: NodeDriver, plugins: Iterable[Pod]) -> Iterator[Concern]:
    own = row.pod.kubelet_root if row.pod is not None else ""
    for pod in plugins if own else ():
        assert pod.plugin is not None
        root = kubelet_root(pod.plugin.spec)
        if root and root != own:
            yield Concern(ConcernKind.OTHER_ROOT, (own, pod.key, root))
            return


def _older(row: NodeDriver, beside: Iterable[Pod]) -> Iterator[Concern]:
    """Something that the driver needs on its node was made anew since the driver started."""
    started = parse(row.pod.since) if row.pod is not None else None
    for pod in beside if started is not None else ():
        owner = pod.metadata.controller()
        name = owner.name if owner is not None else pod.metadata.name
        if not any(sign in name for sign in _needs(row.driver)):
            continue
        created = parse(pod.metadata.creation_timestamp)
        if created is not None and started is not None and created > started:
            yield Concern(ConcernKind.OLDER, (pod.key, pod.metadata.creation_timestamp))
            return


def _other_version(row: NodeDriver, versions: Counter[str]) -> Iterator[Concern]:
    own = row.pod.version if row.pod is not None else ""
    if own and len(versions) > 1:
        usual, count = versions.most_common(1)[0]
        if usual != own and count >= _ENOUGH and count > versions[own]:
            yield Concern(ConcernKind.OTHER_VERSION, (own, usual))


def _restarted(row: NodeDriver, at: Moment) -> Iterator[Concern]:
    """A driver that runs again: while it does not, its state says more."""
    last = row.pod.last if row.pod is not None and row.pod.state is DriverState.HEALTHY else None
    if row.pod is None or last is None or not last.exit_code or not row.pod.restarts:
        return
    if 0 <= seconds_since(last.at, at) < _RECENT:
        said = last.message.strip().rpartition("\n")[2]
        yield Concern(ConcernKind.RESTARTED, (last.at, last.reason or str(last.exit_code), said))


def _plugin_too(row: NodeDriver, snapshot: Snapshot) -> Iterator[Concern]:
    node = snapshot.nodes.get(row.node) if row.devices else None
    if node is not None and (offer := plugin_offer(node, row.driver)) is not None:
        yield Concern(ConcernKind.PLUGIN_TOO, offer)


def _needs(driver: str) -> tuple[str, ...]:
    return next((look.needs for look in catalogue().looks if look.driver == driver), ())


def exclusive(claim: ResourceClaim) -> Iterator[DeviceID]:
    """The devices that a claim has to itself: neither a share of one nor administrative access."""
    for result in claim.results:
        if not result.share_id and not result.admin_access:
            yield result.device


def devices_given_twice(claims: Iterable[ResourceClaim]) -> Mapping[DeviceID, tuple[ResourceClaim, ...]]:
    """Devices that are in the allocations of several claims though only one can have them."""
    first: dict[DeviceID, ResourceClaim] = {}
    twice: dict[DeviceID, tuple[ResourceClaim, ...]] = {}
    for claim in claims:
        for device in exclusive(claim):
            known = first.setdefault(device, claim)
            if known is not claim:
                twice[device] = (*twice.get(device, (known,)), claim)
    return twice


def not_published(
    claims: Iterable[ResourceClaim], snapshot: Snapshot
) -> Iterator[tuple[ResourceClaim, DeviceResult, Sequence[ResourceSlice]]]:
    """Devices of claims that the newest generation of their pool does not have, and its slices: none of no pool."""
    newest = newest_slices(snapshot.slices)
    names: dict[PoolID, set[str]] = {}
    for claim in claims:
        for result in claim.results:
            pool = PoolID(result.device.driver, result.device.pool)
            if pool not in names:
                names[pool] = {name for entry in newest.get(pool, ()) for name in entry.names}
            if result.device.device not in names[pool]:
                yield claim, result, newest.get(pool, ())


def held_unpublished(snapshot: Snapshot) -> Mapping[tuple[str, str], int]:
    """By driver and node: how many allocated devices of its published pools their newest generation does not have."""
    gone = ((result, slices) for _, result, slices in not_published(snapshot.claims.values(), snapshot) if slices)
    return Counter((result.device.driver, node) for result, slices in gone if (node := slices[0].scope.node_name))
