"""Decodes pods from JSON bytes, reduced to what is read of them. What many pods have in common is decoded once.

The pods of an owner are written alike, but for the names of their nodes and of the volumes with their tokens. So
the text of a spec without these names is compared with that of the owner's pod before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sys import intern
from typing import Final, Literal, NamedTuple, get_args

from msgspec import Raw, ValidationError, field, json, msgpack
from msgspec.structs import force_setattr as put

from kubectl_dra.api.meta import Amount, ObjectMeta, OwnerReference, Wire
from kubectl_dra.api.neighbour_kinds import LAYER_ANNOTATIONS
from kubectl_dra.api.plugins import PluginSpec, node_plugin, plugin_spec
from kubectl_dra.api.pods import (
    ENDED,
    BoundSpec,
    ClaimStatus,
    Container,
    ContainerStatus,
    ExtendedClaimStatus,
    NodeResourcesOfClaim,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from kubectl_dra.api.volumes import PodVolume
from kubectl_dra.cluster.duplicates import CheckedAmounts, Interner

KEPT_ANNOTATIONS: Final = ("resource.kubernetes.io/", "kubectl-dra/", *LAYER_ANNOTATIONS)
_OWNERS: Final = 256
"""Of how many owners the last spec is remembered. Lists are sorted by name, so the pods of one stand together."""
_NODE: Final = b'"nodeName":"'
_TOKEN: Final = b'"kube-api-access-'
_Usual = Literal["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
_USUAL: Final = frozenset(get_args(_Usual))
_Requests = Mapping[str, Mapping[str, Amount]]
_NONE: Final[Mapping[str, Amount]] = {}
_NO_LIST: Final = Raw(b"[]")


class _Meta(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int = 0
    labels: Raw = Raw(b"{}")
    annotations: Raw = Raw(b"{}")
    finalizers: tuple[str, ...] = ()
    owners: Raw = field(default=_NO_LIST, name="ownerReferences")


class _Status(Wire, frozen=True):
    phase: str = ""
    conditions: Raw = _NO_LIST
    nominated_node_name: str = ""
    start_time: str = ""
    resource_claim_statuses: tuple[ClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None
    container_statuses: Raw = _NO_LIST
    init_container_statuses: Raw = _NO_LIST
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Amount] = field(default_factory=dict)
    node_allocatable_resource_claim_statuses: tuple[NodeResourcesOfClaim, ...] = ()
    reason: str = ""
    message: str = ""


class PodText(Wire, frozen=True):
    """A pod whose larger parts are still text."""

    metadata: _Meta = _Meta()
    spec: Raw = Raw(b"{}")
    status: _Status = _Status()


class _UsualCondition(PodCondition, frozen=True):
    type: _Usual


class _Spec(NamedTuple):
    """A spec without its node, and the requests of its containers and of its init containers, by name.

    ``plugin`` is what runs in the pod if a driver may.
    """

    spec: PodSpec
    requests: tuple[_Requests, _Requests]
    plugin: PluginSpec | None


class _Around(NamedTuple):
    """The text of a spec around the names that differ among the pods of an owner.

    ``before`` and ``after`` the node's name, cut where the random suffix of the volume with the token stands.
    ``token`` is where that stands first. Without a node, all is before it.
    """

    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    token: slice
    node: slice

    def node_in(self, text: bytes) -> bytes | None:
        """The node's name in another spec, in quotes; None if more differs than the names."""
        token, node = text[self.token], text[self.node]
        if (
            text.startswith(token.join(self.before))
            and text.endswith(token.join(self.after))
            and (token.isalnum() or not token)
            and (node == b"") == (self.after == (b"",))
        ):
            return b'"%b"' % node
        return None


class PodLists:
    """Reads pods one after another and shares equal parts among all of them."""

    def __init__(self, amounts: CheckedAmounts) -> None:
        self._amounts = amounts
        self._specs = Interner()
        self._last: dict[bytes, tuple[_Around, _Spec]] = {}
        self._times = Interner()
        self._statuses = Interner()
        self._labels = Interner()
        self._annotations = Interner()
        self._owners = Interner()

    def read(self, raw: PodText) -> Pod:
        """The pod without the parts that are never read. Raises ValueError if it needs a closer look."""
        meta, status = raw.metadata, raw.status
        ending = bool(meta.deletion_timestamp)
        owners = bytes(memoryview(meta.owners))
        node, (spec, (requests, first_requests), plugin) = self._spec(bytes(memoryview(raw.spec)), owners)
        metadata = ObjectMeta(
            name=meta.name,
            namespace=intern(meta.namespace),
            uid=meta.uid,
            # What was written after what matters where a pod waits, or has ended.
            resource_version="" if node and status.phase not in ENDED else meta.resource_version,
            generation=meta.generation,
            generate_name=intern(meta.generate_name),
            creation_timestamp=self._times.first(meta.creation_timestamp, meta.creation_timestamp),
            deletion_timestamp=meta.deletion_timestamp,
            deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
            labels=self._labels.made(bytes(memoryview(meta.labels)), _labels.decode),
            annotations=self._annotations.made(bytes(memoryview(meta.annotations)), _kept_annotations),
            finalizers=meta.finalizers,
            owners=self._owners.made(owners, _owners.decode),
        )
        return Pod(
            metadata,
            spec,
            self._shared_status(
                PodStatus(
                    phase=intern(status.phase),
                    conditions=_conditions(status.conditions, runs=bool(node) and not spec.resource_claims),
                    nominated_node_name=status.nominated_node_name,
                    start_time=status.start_time,
                    resource_claim_statuses=status.resource_claim_statuses,
                    extended_resource_claim_status=status.extended_resource_claim_status,
                    container_statuses=_telling(status.container_statuses, requests, ending=ending),
                    init_container_statuses=_telling(status.init_container_statuses, first_requests, ending=ending),
                    resources=status.resources,
                    allocated_resources=status.allocated_resources,
                    node_allocatable_resource_claim_statuses=status.node_allocatable_resource_claim_statuses,
                    reason=status.reason,
                    message=status.message,
                )
            ),
            node,
            node_plugin(plugin, status.init_container_statuses, status.container_statuses),
        )

    def _shared_status(self, status: PodStatus) -> PodStatus:
        """One object for all pods of a phase that started in one second, if there is no more to tell."""
        key = (status.phase, status.start_time)
        plain = self._statuses.get(key) or self._statuses.first(key, PodStatus(key[0], start_time=key[1]))
        return plain if plain == status else status

    def _spec(self, text: bytes, owners: bytes) -> tuple[str, _Spec]:
        """The node, and the rest of the spec. Raises ValueError."""
        last = self._last.get(owners)
        if last is not None and (name := last[0].node_in(text)) is not None:
            return intern(_text.decode(name)), last[1]
        spec = _spec.decode(text)
        node = intern(_bound.decode(text).node_name)
        shared, key = self._shared(spec)
        requests = _requests(shared.containers), _requests(shared.init_containers)
        read_spec = _Spec(shared, requests, plugin_spec(text, owners))
        if (around := _around(text, node.encode(), key)) is not None:
            if len(self._last) >= _OWNERS:
                self._last.clear()
            self._last[owners] = around, read_spec
        return node, read_spec

    def _shared(self, spec: PodSpec) -> tuple[PodSpec, bytes]:
        """The spec without the volumes that every node has, and its bytes. Raises Unusual.

        It has just been decoded and has no other owner, so it is changed in place.
        """
        put(spec, "volumes", tuple([volume for volume in spec.volumes if volume != PodVolume(volume.name)]))
        key = msgpack.encode(spec)
        shared: PodSpec | None = self._specs.get(key)
        if shared is None:
            self._amounts.check(list(_written(spec)))
            shared = self._specs.first(key, spec)
        return shared, key


_labels: Final = json.Decoder(dict[str, str])
_owners: Final = json.Decoder(tuple[OwnerReference, ...])
_text: Final = json.Decoder(str)
_spec: Final = json.Decoder(PodSpec)
_bound: Final = json.Decoder(BoundSpec)
_usual_conditions: Final = json.Decoder(tuple[_UsualCondition, ...])
_all_conditions: Final = json.Decoder(tuple[PodCondition, ...])
_statuses: Final = json.Decoder(tuple[ContainerStatus, ...])


def _around(text: bytes, node: bytes, kept: bytes) -> _Around | None:
    """What is around the names in a spec; None if it is not clear where they stand. ``kept`` is all that is read."""
    before, after = text, b""
    if node:
        before, mark, after = text.partition(b'"nodeName":"%b"' % node)
        if text.count(b'"nodeName"') != 1 or not mark:
            return None
        before, after = before + _NODE, b'"' + after
    elif b'"nodeName"' in text:
        return None
    start = before.find(_TOKEN) + len(_TOKEN)
    token = before[start : before.find(b'"', start)]
    if start < len(_TOKEN) or not token.isalnum() or _TOKEN[1:] in kept:
        return _Around((before,), (after,), slice(0), slice(len(before), -len(after) or None))
    name, mark = _TOKEN + token + b'"', _TOKEN + b'\0"'
    return _Around(
        tuple(before.replace(name, mark).split(b"\0")),
        tuple(after.replace(name, mark).split(b"\0")),
        slice(start, start + len(token)),
        slice(len(before), -len(after) or None),
    )


def _kept_annotations(text: bytes) -> dict[str, str]:
    return {name: value for name, value in _labels.decode(text).items() if name.startswith(KEPT_ANNOTATIONS)}


def _conditions(text: Raw, *, runs: bool) -> tuple[PodCondition, ...]:
    """The conditions. Of a pod that runs, and has no claims, the usual ones explain nothing. Raises ValueError."""
    if not runs:
        return _all_conditions.decode(text)
    try:
        _usual_conditions.decode(text)
    except ValidationError:
        return tuple([condition for condition in _all_conditions.decode(text) if condition.type not in _USUAL])
    return ()


def _telling(text: Raw, requests: _Requests, *, ending: bool) -> tuple[ContainerStatus, ...]:
    """The statuses, unless they say no more than the containers request, and nothing keeps a container."""
    statuses = _statuses.decode(text)
    told = any(tells(status, requests.get(status.name, _NONE), ending=ending) for status in statuses)
    return statuses if told else ()


def tells(status: ContainerStatus, requested: Mapping[str, Amount], *, ending: bool) -> bool:
    """Whether a status says that a container waits or failed (or of a pod that is ``ending``, has ended), that a device
    has a health, or that the container was given other than it ``requested``.
    """
    state, given, allocated = status.state, status.resources, status.allocated_resources
    return bool(
        state.waiting is not None
        or (state.terminated is not None and (ending or state.terminated.exit_code))
        or status.allocated_resources_status
        or (given is not None and given.requests != requested)
        or (allocated and allocated != requested)
    )


def _requests(containers: tuple[Container, ...]) -> _Requests:
    return {container.name: container.resources.requests for container in containers}


def _written(spec: PodSpec) -> Iterator[Amount]:
    """All quantities."""
    for container in (*spec.containers, *spec.init_containers):
        yield from container.resources.requests.values()
        yield from container.resources.limits.values()
    if spec.resources is not None:
        yield from spec.resources.requests.values()
        yield from spec.resources.limits.values()
    yield from spec.overhead.values()
