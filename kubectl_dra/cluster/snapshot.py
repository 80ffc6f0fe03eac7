"""The part of a cluster's state that device allocation reads: immutable, typed and indexed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.meta import ObjectMeta, kind_plural
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.releases import GROUP, LIFECYCLES, Release
from kubectl_dra.api.shared_devices import PerDeviceColumn
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.kinds import CORE_KINDS, SCHEDULING_KINDS, resource_of
from kubectl_dra.data.messages import Speaker, speaker_of
from kubectl_dra.errors import InputError, NoDRA
from kubectl_dra.text import did_you_mean_or_known

_T = TypeVar("_T")
Key = tuple[str, str]
"""Namespace and name."""
WrittenKey = tuple[str, str, str]
"""Kind, namespace (empty if it has none) and name of an object of a manifest."""
Progress = Callable[[str], None]
"""Receives a short description of what is being read."""

DRA_KINDS: Final = (
    "ResourceSlice",
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceTaintRule",
)
KINDS: Final = (*DRA_KINDS, *CORE_KINDS)
"""The kinds that a snapshot holds, besides those of ``cluster.kinds.SCHEDULING_KINDS``."""
EVERY_KIND: Final = (*KINDS, *SCHEDULING_KINDS)
_DRA: Final = ("ResourceSlice", "ResourceClaim")
"""Without these there is no Dynamic Resource Allocation."""

_MADE_BY: Final = "kubectl-dra/made-by"
_MADE_AT: Final = "kubectl-dra/made-at"

FORBIDDEN: Final = "forbidden"
NOT_SERVED: Final = "not served"
NOT_FOUND: Final = "not found"
ABSENT: Final = "absent"
UNSUPPORTED: Final = "unsupported version"
UNREADABLE: Final = "unreadable"


class Gap(NamedTuple):
    """A part of the cluster that the snapshot does not know.

    ``reason`` is one of the constants above: the cluster forbids reading the kind, does not serve it, or has
    no such namespace; nobody asked for the kind, or a file has no object of it; the objects are in an unreadable
    version; or the answer was invalid. An empty ``namespace`` means the whole kind, of which the objects of namespace
    ``read_in`` could be read all the same.
    """

    kind: str
    reason: str
    namespace: str = ""
    detail: str = ""
    read_in: str = ""

    @property
    def permission(self) -> Permission | None:
        """What the user would have to be allowed; None if the gap has another reason."""
        return Permission("list", *resource_of(self.kind)) if self.reason == FORBIDDEN else None

    @property
    def help(self) -> str:
        """Advice to close the gap, as the end of a sentence; empty if there is none."""
        if self.reason == FORBIDDEN:
            return '; examples/rbac/read.yaml allows it, and the command "can" says what is missing'
        return "; if the cluster has none, add --complete" if self.reason == ABSENT else ""

    def __str__(self) -> str:
        kinds = kind_plural(self.kind)
        if self.reason == ABSENT:
            return self.detail or f"there is no {self.kind} in what was read"
        if self.reason == NOT_SERVED:
            return self.detail or f"the server does not serve {kinds}"
        why = f"{self.permission} is forbidden" if self.permission else self.detail or self.reason
        if self.namespace:
            rest = f"{kinds} of namespace {self.namespace}"
            all_ = f"the {rest} could not" if self.reason != UNREADABLE else f"not all {rest} could"
            return f"{all_} be read ({why})"
        if self.read_in:
            return f"only namespace {self.read_in} could be read of the {kinds} ({why})"
        return f"{'no' if self.reason == FORBIDDEN else 'not all'} {kinds} could be read ({why})"


class Permission(NamedTuple):
    """A verb on a resource of an API group, as RBAC has it."""

    verb: str
    resource: str
    group: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


class RefusedChange(NamedTuple):
    """An existing object, and the immutable ``fields`` in which a manifest differs.

    The server refuses the manifest, and all of the object stays as it is. ``by_its_pods``: the object was not read, and
    only pods of it show that it is there, and as what.
    """

    kind: str
    namespace: str
    name: str
    fields: tuple[str, ...]
    by_its_pods: bool = False


class Event(Struct, frozen=True):
    """A core event about a Pod, a ResourceClaim, or what makes pods. Times are RFC 3339 text, empty if not set."""

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    type: str
    count: int
    first: str
    last: str
    component: str

    @property
    def speaker(self) -> Speaker:
        """The component that wrote it: several have reasons in common."""
        return speaker_of(self.component)


class Snapshot(Struct, frozen=True, eq=False, dict=True):
    """What is known about a cluster.

    ``slices`` are all published slices, of all generations. ``release`` is the server's if ``release_source`` is
    "server"; otherwise it is only a hint, and ``release_source`` names its origin. ``notes`` are sentences about
    what was ignored or chosen while reading. ``sources`` names the inputs; of a live cluster ``server`` is its
    address, ``context`` the kubeconfig's context, and ``served`` maps the kinds of other layers that it serves to their
    versions (None: not known). ``read_at`` is when the cluster was read, as RFC 3339 text; of
    files that do not say, the newest time in their objects, empty if none has one. ``individual`` are the columns
    whose values some slices keep apart from their devices (``api.shared_devices``); it is empty unless the
    reader was asked to share devices. ``judged`` are those of them that a question reads: where slices keep them
    apart, its selectors answer for each device as they do for the value that stands in for its own. ``written``
    holds the objects of manifests as written, ``workloads`` those of them that make pods, ``created`` those that were
    not there before, ``refused`` those that the server refuses because nobody can change what exists in that way.
    ``rule_version`` is the version of resource.k8s.io in which DeviceTaintRules were read, empty if none was.
    ``others`` holds the objects of ``cluster.kinds.SCHEDULING_KINDS`` by kind, then by namespace (empty if
    none) and name. ``gaps`` has an entry for every kind that was not read whole; only ``missing`` and ``unread`` tell
    whether an object that is not here may exist. ``declared``: somebody said that the files are complete.
    ``refound`` are those notes that follow from the objects: whoever reads these again finds them again. ``supposed``
    are the nodes that somebody only thinks of. ``stored`` are the objects that make pods as the cluster has them, where
    they were asked for, by group, kind, namespace and name.
    """

    slices: tuple[ResourceSlice, ...] = ()
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    claims: Mapping[Key, ResourceClaim] = field(default_factory=dict)
    templates: Mapping[Key, ResourceClaimTemplate] = field(default_factory=dict)
    pods: Mapping[Key, Pod] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    rule_version: str = ""
    quotas: tuple[ResourceQuota, ...] = ()
    namespaces: Mapping[str, ObjectMeta] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    others: Mapping[str, Mapping[Key, Any]] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    release: Release | None = None
    release_source: str = ""
    sources: tuple[str, ...] = ()
    server: str = ""
    context: str = ""
    served: Mapping[str, str] | None = None
    read_at: str = ""
    individual: frozenset[PerDeviceColumn] = frozenset()
    judged: frozenset[PerDeviceColumn] = frozenset()
    written: Mapping[WrittenKey, Mapping[str, Any]] = field(default_factory=dict)
    workloads: tuple[Mapping[str, Any], ...] = ()
    created: frozenset[WrittenKey] = frozenset()
    refused: tuple[RefusedChange, ...] = ()
    declared: bool = False
    refound: tuple[str, ...] = ()
    supposed: frozenset[str] = frozenset()
    stored: Mapping[tuple[str, str, str, str], Mapping[str, Any]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the kinds without gaps have all of their objects; files made by hand may have any part of them."""
        return self.declared or self.release_source == "server"

    @property
    def server_patch(self) -> int | None:
        """The patch release of the control plane; None if only a kubelet's is known, which may be another one."""
        return self.release.patch if self.release is not None and self.release_source == "server" else None

    def derived(self, make: Callable[[Snapshot], _T]) -> _T:
        """What ``make`` makes of the snapshot, made once: many questions are asked about one cluster."""
        known: dict[Callable[[Snapshot], Any], Any] = self.__dict__.setdefault("_derived", {})
        if make not in known:
            known[make] = make(self)
        value: _T = known[make]
        return value

    def exact(self, only: Set[PerDeviceColumn] | None = None) -> Snapshot:
        """The snapshot with all of every device's own values in ``slices``, or of individual columns ``only`` these."""
        if not self.individual:
            return self
        per_device_columns = frozenset() if only is None else self.individual - only
        slices = tuple(slice_.exact(only) for slice_ in self.slices)
        return replace(self, slices=slices, individual=per_device_columns, judged=self.judged & per_device_columns)

    def for_lists(self) -> Snapshot:
        """The snapshot with what lists of devices show: all but attributes that no selector reads."""
        hidden = {column for column in self.individual - self.judged if column.kind == "attribute"}
        return self.exact(self.individual - hidden)

    def told_apart(self, answers: Mapping[PerDeviceColumn, Callable[[str], Hashable]]) -> Snapshot:
        """The snapshot with devices exact where one has another answer than the value that stands in for its own.

        ``answers`` are those of a question's selectors, for each individual column that they read.
        """
        slices = tuple(slice_.told_apart(answers) for slice_ in self.slices)
        return replace(self, slices=slices, judged=frozenset(answers))

    def with_only(self, nodes: Set[str]) -> Snapshot:
        """With no nodes but these, and without the devices of the others."""
        slices = tuple(slice_ for slice_ in self.slices if slice_.scope.node_name in ("", *nodes))
        return replace(self, nodes={name: node for name, node in self.nodes.items() if name in nodes}, slices=slices)

    @property
    def real(self) -> Snapshot:
        """Without the nodes that are only supposed, and what was supposed with them."""
        return self.derived(_real) if self.supposed else self

    def missing(self, kind: str, namespace: str = "") -> Gap | None:
        """The gap that makes a kind (in that namespace) incomplete, if any."""
        for gap in self.gaps:
            if gap.kind != kind or (namespace and gap.read_in == namespace):
                continue
            if not namespace or not gap.namespace or gap.namespace == namespace:
                return gap
        return None

    def unread(self, kinds: Iterable[str], namespace: str = "") -> tuple[Gap, ...]:
        """The gaps that may hide objects of these kinds: a kind that the server does not serve has none."""
        gaps = (self.missing(kind, namespace) for kind in kinds)
        return tuple(gap for gap in gaps if gap is not None and gap.reason != NOT_SERVED)

    def require_dra(self) -> None:
        """Raise NoDRA if the server said that it does not serve resource.k8s.io."""
        gaps = [self.missing(kind) for kind in _DRA]
        # Not every command asks for both.
        deciding = [gap for gap in gaps if gap is None or gap.reason != ABSENT]
        if not deciding or any(gap is None or gap.reason != NOT_SERVED for gap in deciding):
            return
        release = self.release
        server = f"v{release.major}.{release.minor}.{release.patch}" if release is not None else "the server"
        since = next(life.default_since for life in LIFECYCLES if life.kind == _DRA[0] and life.default_since)
        raise NoDRA(f"This cluster has no DRA: {server} does not serve {GROUP} (on by default from 1.{since}).")

    def has_namespace(self, name: str) -> bool:
        """Whether there is such a namespace, or an object in it."""
        return name in self.namespaces or any(
            space == name for table in (self.pods, self.claims, self.templates) for space, _ in table
        )

    def require_namespace(self, name: str) -> None:
        """Raise InputError if namespaces were read and none is called so; an empty name is none that was typed."""
        if name and self.namespaces and not self.is_gap("Namespace", name) and not self.has_namespace(name):
            hint = did_you_mean_or_known(name, self.namespaces)
            raise InputError(f"-n: there is no namespace {name}; {hint}")

    def is_gap(self, kind: str, namespace: str = "") -> bool:
        """Whether the kind (in that namespace) is not known completely."""
        return self.missing(kind, namespace) is not None

    def lacks_node(self, name: str) -> bool:
        """Whether a node that is named somewhere is gone: nodes were read, and it is not among them."""
        return bool(name and self.nodes) and name not in self.nodes and not self.is_gap("Node")

    @property
    def has_plugins(self) -> bool:
        """Whether a pod was read in which a driver may run."""
        return any(pod.plugin is not None for pod in self.pods.values())

    def events_about(self, kind: str, namespace: str, name: str) -> tuple[Event, ...]:
        """Events about one object, oldest first."""
        events = [
            event for event in self.events if event.kind == kind and event.namespace == namespace and event.name == name
        ]
        return tuple(sorted(events, key=lambda event: event.last))

    def events_of(self, pod: Pod, *reasons: str) -> tuple[Event, ...]:
        """Events with one of these reasons about this pod, oldest first.

        Those about another pod of its name are left out, as far as both are saved with their UIDs.
        """
        uid, about = pod.metadata.uid, self.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        return tuple(
            event for event in about if event.reason in reasons and (not uid or not event.uid or event.uid == uid)
        )


def _real(snapshot: Snapshot) -> Snapshot:
    gone = snapshot.supposed
    return replace(
        snapshot,
        nodes={name: node for name, node in snapshot.nodes.items() if name not in gone},
        pods={key: pod for key, pod in snapshot.pods.items() if pod.node_name not in gone},
        slices=tuple(slice_ for slice_ in snapshot.slices if slice_.scope.node_name not in gone),
        supposed=frozenset(),
    )


# Pods that nobody has made yet, which stand for those that a workload would make.


class StandIn(NamedTuple):
    """What such a pod stands for: the pods of the ``workload`` of this kind and name.

    ``path`` is where the workload has the spec of these pods; empty where it was not written in a manifest.
    """

    workload: str
    path: str = ""

    @property
    def kind(self) -> str:
        """The kind of the workload."""
        return self.workload.partition(" ")[0]

    @property
    def name(self) -> str:
        """The name of the workload, without its namespace."""
        return self.workload.partition(" ")[2].rpartition("/")[2]

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations by which the pod is known."""
        return {_MADE_BY: self.workload, **({_MADE_AT: self.path} if self.path else {})}

    @classmethod
    def of(cls, annotations: Mapping[str, str]) -> StandIn | None:
        """What the pod with these annotations stands for; None if it is a pod of its own."""
        workload = annotations.get(_MADE_BY)
        return cls(workload, annotations.get(_MADE_AT, "")) if workload else None


def stand_in(pod: Pod | None) -> StandIn | None:
    """What a pod stands for; None if it is a pod of its own, or none is asked about."""
    return StandIn.of(pod.metadata.annotations) if pod is not None else None
