"""A cluster that can be changed in thought: each change gives another one, which shares with it what stays the same.

What happens to claims when pods end is told here and nowhere else. The rules are those of the claim controller
(pkg/controller/resourceclaim): it removes the entries of pods that are gone or have ended. If none is left, it clears
the allocation, and deletes a claim that was made for such a pod; one that somebody made by hand stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceClass, ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.slices import Device, DeviceID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaint, DeviceTaintRule
from kubectl_dra.api.volumes import CSINode
from kubectl_dra.cluster.claim_relation import ClaimRelation, PodSet, consumers_of, relation_of
from kubectl_dra.cluster.snapshot import Key, RefusedChange, Snapshot
from kubectl_dra.layered_table import layered

ClaimChange = tuple[ResourceClaim | None, ResourceClaim | None]
PodChange = tuple[Pod | None, Pod | None]
"""What was there before a change, and after it; None where it is not there."""

ANY_NODE: Final = "(any node)"
"""Represents all nodes if none is known."""
_VERSIONS: Final = count(1)
_REMEMBERED: Final = 256
"""Number of past changes that a cluster remembers."""
_NOT_THE_POD: Final = (ClaimRelation.REPLACED, ClaimRelation.GROUP, ClaimRelation.FOREIGN)
"""What an entry is that means another pod than the one it is compared with, or none."""


class NodeCopy(NamedTuple):
    """A node that could be had: it is like ``like``, of which kind ``exist`` are there.

    ``pods`` run on it from the beginning, with their ``claims``; ``csi_node`` says what storage drivers can do there.
    """

    like: str
    exist: int
    node: Node
    pods: Sequence[Pod] = ()
    slices: Sequence[ResourceSlice] = ()
    claims: Sequence[ResourceClaim] = ()
    csi_node: CSINode | None = None


class Delta(NamedTuple):
    """What a change touched. ``before`` is the version of the cluster that was changed.

    ``nodes`` are those whose object or pods are others, new ones in their order; ``slices`` were added, None if some
    were replaced. ``pods`` are those that came, went or are others, ``more`` further fields of the snapshot.
    """

    before: int = 0
    claims: Sequence[ClaimChange] = ()
    nodes: Collection[str] = ()
    slices: Sequence[ResourceSlice] | None = ()
    pods: Sequence[PodChange] = ()
    more: Collection[str] = ()

    @property
    def freed(self) -> tuple[ResourceClaim, ...]:
        """The claims that gave their devices back, as they were."""
        return tuple(
            was
            for was, now in self.claims
            if was is not None and was.allocation is not None and (now is None or now.allocation is None)
        )


class PodPlaces(NamedTuple):
    """The pods that have not ended, terminating ones included: by the node that they are bound to, and without one."""

    on: Mapping[str, Sequence[Pod]]
    waiting: Mapping[Key, Pod]


class Cluster(Struct, frozen=True, eq=False, dict=True):
    """The objects of a cluster, indexed on demand. ``version`` is another one for each.

    A change carries over the indexes that were made, adapted. ``delta`` is what it touched, ``history`` what the last
    of the changes before it did.
    """

    snapshot: Snapshot
    delta: Delta = Delta()
    history: tuple[Delta, ...] = ()
    version: int = field(default_factory=lambda: next(_VERSIONS))

    @cached_property
    def places(self) -> PodPlaces:
        """Where the pods are that have not ended."""
        on: dict[str, list[Pod]] = defaultdict(list)
        waiting: dict[Key, Pod] = {}
        for key, pod in self.snapshot.pods.items():
            if pod.finished:
                continue
            if pod.node_name:
                on[pod.node_name].append(pod)
            else:
                waiting[key] = pod
        return PodPlaces(dict(on), waiting)

    @cached_property
    def claims_of(self) -> Mapping[Key, Sequence[Key]]:
        """The claims that list each pod in ``status.reservedFor``, or were made for it: by names alone."""
        claims: dict[Key, list[Key]] = {}
        for key, claim in self.snapshot.claims.items():
            for pod in _pods_of(claim):
                claims.setdefault(pod, []).append(key)
        return claims

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """Pool name to the one node of all its slices; none where several nodes, or drivers on several, have it.

        Drivers whose pools have one name share it, as counters do.
        """
        homes: dict[str, str | None] = {}
        for slice_ in self.snapshot.slices:
            name, home = slice_.pool.name, slice_.scope.node_name or None
            homes[name] = home if homes.setdefault(name, home) == home else None
        return {name: home for name, home in homes.items() if home is not None}

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes; if they were not read, those named by slices, else one that stands for all."""
        read = self.snapshot
        if read.nodes or not read.is_gap("Node"):
            return tuple(read.nodes.values())
        names = {slice_.scope.node_name for slice_ in read.slices}
        for slice_ in read.slices:
            if slice_.per_device_node_selection:
                names.update(device.scope.node_name for device in slice_.devices)
        return tuple(map(Node.named, sorted(names - {""}) or (ANY_NODE,)))

    def since(self, former: Cluster) -> Sequence[Delta] | None:
        """The changes that made this cluster of a former one; None if they are not known, or it was not."""
        if former.version == self.version:
            return ()
        changes = (*self.history, self.delta)
        first = next((number for number, delta in enumerate(changes) if delta.before == former.version), None)
        return None if first is None else changes[first:]

    def touched(self, changes: Sequence[Delta] | None = None) -> Collection[str] | None:
        """The nodes that the last change, or some, touched, also by devices; None if that may be any."""
        nodes: dict[str, None] = {}
        for delta in (self.delta,) if changes is None else changes:
            nodes.update(dict.fromkeys(delta.nodes))
            # Where a pod is nominated, others yield to it.
            nominated = (pod.status.nominated_node_name for change in delta.pods for pod in change if pod is not None)
            nodes.update(dict.fromkeys(filter(None, nominated)))
            for had, has in delta.claims:
                same = had is not None and has is not None and had.allocation is has.allocation
                for device in () if same else (device for claim in (had, has) if claim for device in claim.devices):
                    home = self.homes.get(device.pool)
                    if home is None:
                        return None
                    nodes[home] = None
        return nodes

    def with_named_nodes(self) -> Cluster:
        """With all of ``nodes``, also where none was read."""
        return self if self.snapshot.nodes else self.editing(*self.nodes)

    def ending(self, pods: Iterable[Pod]) -> Cluster:
        """Pods are gone, and the claims that were made for them. Claims that only they used are given back."""
        ended, gone = PodSet(), {key_of(pod): pod for pod in pods}
        for key, pod in gone.items():
            ended.add(*key, pod.metadata.uid)
        return self._without(gone, self._free_without(ended, self._claims_of(gone)))

    def freeing(
        self, claims: Iterable[ResourceClaim], keep: Key | None = None, deleted: Container[Key] = ()
    ) -> Cluster:
        """Claims give their devices back, whoever holds them: a claim keeps them as long as a pod uses it.

        The pods of the claims end, but for ``keep``: that is the one that waits for the devices. Some of the claims are
        ``deleted`` as well.
        """
        return self._without(*self._released(claims, keep), deleted)

    def freed_with(
        self, claims: Iterable[ResourceClaim], others: Iterable[ResourceClaim] | None = None
    ) -> tuple[ResourceClaim, ...]:
        """The claims that have no devices once some are given back: they, and (of the ``others``) what only their
        pods use.
        """
        return tuple(self._released(claims, None, others)[1].values())

    def unbinding(self, pod: Pod) -> Cluster:
        """A pod that has a node waits as ``pod``: its entries are gone, and what only it used has no devices."""
        key = key_of(pod)
        used = ((key[0], name) for name in pod.claim_names)
        held = {ref: claim for ref in used if (claim := self.snapshot.claims.get(ref)) and claim.allocation}
        ended = PodSet()
        ended.add(*key, pod.metadata.uid)
        free = self._free_without(ended, held)
        claims_left = {ref: claim.deallocated() if ref in free else _left(claim, pod) for ref, claim in held.items()}
        return self._changed(pods={key: pod}, claims=claims_left)

    def emptied(self) -> Cluster:
        """No pod is there, and no claim has devices."""
        read = self.snapshot
        free = {key: claim.deallocated() for key, claim in read.claims.items()}
        return self._changed(pods=dict.fromkeys(read.pods), claims=free)

    def without_events(self) -> Cluster:
        """Nothing is known of what happened."""
        return self._changed(events=())

    def adding_other(self, kind: str, key: Key, new: Any) -> Cluster:
        """An object of one of ``cluster.kinds.SCHEDULING_KINDS``, also in place of one."""
        others = self.snapshot.others
        return self._changed(others={**others, kind: {**others.get(kind, {}), key: new}})

    def adding_namespaces(self, names: Iterable[str]) -> Cluster:
        """Namespaces without labels."""
        return self._changed(namespaces={**self.snapshot.namespaces, **{name: ObjectMeta(name=name) for name in names}})

    def refusing(self, change: RefusedChange) -> Cluster:
        """With a change that the API server does not take: the object stays as it is."""
        return self._changed(refused=(*self.snapshot.refused, change))

    def editing(self, *objects: Pod | ResourceClaim | Node | DeviceClass | ResourceQuota) -> Cluster:
        """Objects in place of those of their names, or added. Pods may have been given a node."""
        quotas = {key_of(item): item for item in objects if isinstance(item, ResourceQuota)}
        more: dict[str, Any] = {}
        if classes := {item.name: item for item in objects if isinstance(item, DeviceClass)}:
            more["classes"] = {**self.snapshot.classes, **classes}
        if quotas:
            more["quotas"] = tuple(quotas.get(key_of(quota), quota) for quota in self.snapshot.quotas)
        return self._changed(
            pods={key_of(item): item for item in objects if isinstance(item, Pod)},
            claims={key_of(item): item for item in objects if isinstance(item, ResourceClaim)},
            nodes={item.name: item for item in objects if isinstance(item, Node)},
            **more,
        )

    def adding_node(self, more: NodeCopy) -> Cluster:
        """One more node, with what runs on it and what drivers publish for it."""
        others = self.snapshot.others
        if more.csi_node is not None:
            others = {**others, "CSINode": {**others["CSINode"], ("", more.node.name): more.csi_node}}
        return self._changed(
            pods={key_of(pod): pod for pod in more.pods},
            claims={key_of(claim): claim for claim in more.claims},
            nodes={more.node.name: more.node},
            published=more.slices,
            slices=(*self.snapshot.slices, *more.slices),
            others=others,
            supposed=self.snapshot.supposed | {more.node.name},
        )

    def tainting(self, taints: Iterable[tuple[DeviceID, DeviceTaint]], rules: Container[str] = ()) -> Cluster:
        """Devices with further taints, and without the DeviceTaintRules of these names.

        The taints are put into the slices, because each rule would be compared with every device of the cluster.
        """
        more: dict[DeviceID, tuple[DeviceTaint, ...]] = {}
        for device, taint in taints:
            more[device] = (*more.get(device, ()), taint)
        kept = tuple(rule for rule in self.snapshot.taint_rules if rule.metadata.name not in rules)
        return self._with_taints(more, kept)

    def untainting(self, device: DeviceID) -> Cluster:
        """One device free of taints, the driver's and those of rules, which keep their other devices."""
        others = {DeviceID(*slice_.pool, name) for slice_ in self.snapshot.slices for name in slice_.names} - {device}
        rules: list[DeviceTaintRule] = []
        for rule in self.snapshot.taint_rules:
            if rule.selects(*device):
                rules += [replace(rule, selector=other) for other in sorted(others) if rule.selects(*other)]
            else:
                rules.append(rule)
        return self._with_taints({device: None}, tuple(rules))

    def _with_taints(
        self, taints: Mapping[DeviceID, tuple[DeviceTaint, ...] | None], rules: tuple[DeviceTaintRule, ...]
    ) -> Cluster:
        """Devices with further taints, or (None) without any, and other rules."""

        def edited(device: Device, key: DeviceID) -> Device:
            more = taints.get(key, ())
            return device if more == () else replace(device, taints=(*device.taints, *more) if more else ())

        pools = {device[:2] for device in taints}
        slices: list[ResourceSlice] = []
        for slice_ in self.snapshot.slices:
            if slice_.pool in pools:
                exact = slice_.exact()
                own = [edited(device, DeviceID(*slice_.pool, device.name)) for device in exact.devices]
                slice_ = replace(exact, devices=tuple(own))
            slices.append(slice_)
        return self._changed(published=None, slices=tuple(slices), taint_rules=rules)

    def _released(
        self, claims: Iterable[ResourceClaim], keep: Key | None, others: Iterable[ResourceClaim] | None = None
    ) -> tuple[set[Key], dict[Key, ResourceClaim]]:
        """The pods that end for claims to be given back, and all claims that have no devices then."""
        ended, named, gone = PodSet(), dict[Key, None](), set[Key]()
        known = (self.snapshot.claims.get(key_of(claim)) for claim in claims)
        # Another change may have freed some of them already.
        freed = {key_of(claim): claim for claim in known if claim is not None and claim.allocation is not None}
        for claim in freed.values():
            for use in consumers_of(claim, self.snapshot.pods).entries:
                key = (claim.metadata.namespace, use.entry.name)
                if key == keep or not use.relation.of_pod:
                    continue
                ended.add(*key, use.entry.uid)
                named[key] = None
                if use.pod is not None:
                    gone.add(key)
        more = self._claims_of(named) if others is None else {key_of(claim): claim for claim in others}
        return gone, freed | self._free_without(ended, more)

    def _claims_of(self, pods: Iterable[Key]) -> dict[Key, ResourceClaim]:
        known = self.snapshot.claims
        return {key: known[key] for pod in pods for key in self.claims_of.get(pod, ())}

    def _free_without(self, ended: PodSet, claims: Mapping[Key, ResourceClaim]) -> dict[Key, ResourceClaim]:
        """Of some claims those that hold devices, and none when these pods have ended."""
        pods = self.snapshot.pods
        return {
            key: claim
            for key, claim in claims.items()
            if claim.allocation is not None and _uses(claim, ended) and consumers_of(claim, pods).end_with(ended)
        }

    def _without(
        self, gone: Collection[Key], freed: Mapping[Key, ResourceClaim], deleted: Container[Key] = ()
    ) -> Cluster:
        """Without pods and the claims that were made for them; another one that is freed stays without devices."""
        claims = {key: None if key in deleted else claim.deallocated() for key, claim in freed.items()}
        for key, claim in self._claims_of(gone).items():
            if _owner_of(claim) in gone and (key in claims or claim.allocation is None):
                claims[key] = None
        return self._changed(pods=dict.fromkeys(gone), claims=claims)

    def _changed(
        self,
        *,
        pods: Mapping[Key, Pod | None] = {},
        claims: Mapping[Key, ResourceClaim | None] = {},
        nodes: Mapping[str, Node] = {},
        published: Sequence[ResourceSlice] | None = (),
        **more: Any,
    ) -> Cluster:
        """With objects replaced, added, or (None) taken out, and further fields of the snapshot as given."""
        read = self.snapshot
        was = {key: read.pods.get(key) for key in pods}
        homes = [pod.node_name for pod in (*was.values(), *pods.values()) if pod and pod.node_name]
        delta = Delta(
            self.version,
            [(read.claims.get(key), claim) for key, claim in claims.items()],
            dict.fromkeys((*nodes, *homes)),
            published,
            [(was[key], pod) for key, pod in pods.items()],
            tuple(more),
        )
        if nodes:
            more["nodes"] = {**read.nodes, **nodes}
        read = replace(read, pods=layered(read.pods, pods), claims=layered(read.claims, claims), **more)
        out = Cluster(read, delta, (*self.history, self.delta)[-_REMEMBERED:])
        own, indexes = self.__dict__, out.__dict__
        if "places" in own:
            indexes["places"] = _placed(self.places, was, pods) if pods else self.places
        if "claims_of" in own:
            indexes["claims_of"] = _named(self.claims_of, delta.claims)
        if "homes" in own and published == ():
            indexes["homes"] = self.homes
        return out


def _placed(places: PodPlaces, before: Mapping[Key, Pod | None], pods: Mapping[Key, Pod | None]) -> PodPlaces:
    """The places after some pods have become others; one that stays on its node keeps its turn there."""
    on, waiting = dict[str, Sequence[Pod] | None](), dict[Key, Pod | None]()
    for key, now in pods.items():
        was = before[key]
        there = None if now is None or now.finished else now
        node = there.node_name if there is not None else ""
        waiting[key] = None if node else there
        if was is not None and was.node_name and not was.finished:
            known = (on[was.node_name] if was.node_name in on else places.on[was.node_name]) or ()
            instead = (there,) if there is not None and node == was.node_name else ()
            remaining = (instead if other is was else (other,) for other in known)
            on[was.node_name] = tuple(chain.from_iterable(remaining)) or None
            if instead:
                continue
        if there is not None and node:
            known = (on[node] if node in on else places.on.get(node)) or ()
            on[node] = (*known, there)
    return PodPlaces(layered(places.on, on), layered(places.waiting, waiting))


def _named(claims_of: Mapping[Key, Sequence[Key]], changes: Sequence[ClaimChange]) -> Mapping[Key, Sequence[Key]]:
    """The claims of each pod after some have become others."""
    out: dict[Key, Sequence[Key] | None] = {}
    for was, now in changes:
        before, after = (() if claim is None else _pods_of(claim) for claim in (was, now))
        for pod in (*before, *after):
            if (pod in before) == (pod in after):
                continue
            known = (out[pod] if pod in out else claims_of.get(pod)) or ()
            own = key_of(now or was)
            out[pod] = (*known, own) if pod in after else tuple(key for key in known if key != own) or None
    return layered(claims_of, out)


def key_of(item: Pod | ResourceClaim | ResourceQuota | None) -> Key:
    """The key of an object in the tables of a cluster."""
    assert item is not None
    return item.metadata.namespace, item.metadata.name


def _pods_of(claim: ResourceClaim) -> Collection[Key]:
    """The pods that a claim names: as its consumers, and as what it was made for."""
    owner = _owner_of(claim)
    named = dict.fromkeys((claim.metadata.namespace, consumer.name) for consumer in claim.reserved_for)
    return named if owner is None else {owner: None, **named}


def _owner_of(claim: ResourceClaim) -> Key | None:
    """The pod that a claim was made for."""
    owner = claim.metadata.controller()
    return (claim.metadata.namespace, owner.name) if owner is not None and owner.kind == "Pod" else None


def _uses(claim: ResourceClaim, ended: PodSet) -> bool:
    """Whether one of these pods uses a claim, or the claim was made for it."""
    space, owner = claim.metadata.namespace, claim.metadata.controller()
    made_for_pod = owner is not None and owner.kind == "Pod" and ended.has(space, owner.name, owner.uid)
    return made_for_pod or any(ended.has(space, consumer.name, consumer.uid) for consumer in claim.reserved_for)


def _left(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """A claim that others use as well, without the entries of a pod."""
    others = (consumer for consumer in claim.reserved_for if relation_of(claim, consumer, pod) in _NOT_THE_POD)
    return replace(claim, reserved_for=tuple(others))
