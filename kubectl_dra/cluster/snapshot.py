"""The part of a cluster's state that device allocation reads: immutable, typed and indexed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Set
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.classes import DeviceClass
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.slices import OwnColumn, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.api.versions import Release

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
CORE_KINDS: Final = ("Pod", "Node", "Namespace", "ResourceQuota", "Event")
KINDS: Final = (*DRA_KINDS, *CORE_KINDS)
"""The kinds that a snapshot holds."""

MADE_BY: Final = "kubectl-dra/made-by"
"""Annotation of a pod that represents those of a workload: the workload's kind and name."""

FORBIDDEN: Final = "forbidden"
NOT_SERVED: Final = "not served"
NOT_FOUND: Final = "not found"
ABSENT: Final = "absent"
UNSUPPORTED: Final = "unsupported version"
UNREADABLE: Final = "unreadable"


class Gap(NamedTuple):
    """Something that the snapshot does not know.

    ``reason`` is one of the constants above: the cluster forbids reading the kind, does not serve it, or has
    no such namespace; a file has no object of the kind; the objects are in an unreadable version; or the
    answer was invalid. An empty ``namespace`` means the whole kind.
    """

    kind: str
    reason: str
    namespace: str = ""
    detail: str = ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.kind}{where} {self.reason}{detail}"


class RefusedChange(NamedTuple):
    """An object that exists, and the ``fields`` in which a manifest differs although nobody can change them.

    The server refuses the manifest, and all of the object stays as it is.
    """

    kind: str
    namespace: str
    name: str
    fields: tuple[str, ...]


class Event(Struct, frozen=True):
    """A core event about a Pod or a ResourceClaim. Times are RFC 3339 text, empty if not set."""

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


class Snapshot(Struct, frozen=True, eq=False):
    """What is known about a cluster.

    ``slices`` are all published slices, of all generations. ``release`` is the server's if ``release_source`` is
    "server"; otherwise it is only a hint, and ``release_source`` names its origin. ``notes`` are sentences about
    what was ignored or chosen while reading. ``sources`` names the inputs; of a live cluster ``server`` is its
    address and ``context`` the kubeconfig's context. ``read_at`` is when the cluster was read, as RFC 3339 text; of
    files that do not say, the newest time in their objects, empty if none has one. ``individual`` are the columns
    whose values some slices keep apart from their devices (``api.slices.Individual``); it is empty unless the
    reader was asked to share devices. ``judged`` are those of them that a question reads: where slices keep them
    apart, its selectors answer for each device as they do for the value that stands in for its own. ``written``
    holds the objects of manifests as written, ``workloads`` those of them that make pods, ``refused`` those that the
    server refuses because nobody can change what exists in that way.
    ``others`` holds the objects of ``cluster.kinds.SCHEDULING_KINDS`` by kind, then by namespace (empty if
    none) and name.
    """

    slices: tuple[ResourceSlice, ...] = ()
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    claims: Mapping[Key, ResourceClaim] = field(default_factory=dict)
    templates: Mapping[Key, ResourceClaimTemplate] = field(default_factory=dict)
    pods: Mapping[Key, Pod] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    taint_rules: tuple[DeviceTaintRule, ...] = ()
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
    read_at: str = ""
    individual: frozenset[OwnColumn] = frozenset()
    judged: frozenset[OwnColumn] = frozenset()
    written: Mapping[WrittenKey, Mapping[str, Any]] = field(default_factory=dict)
    workloads: tuple[Mapping[str, Any], ...] = ()
    refused: tuple[RefusedChange, ...] = ()

    def exact(self, only: Set[OwnColumn] | None = None) -> Snapshot:
        """The snapshot with all of every device's own values in ``slices``, or of individual columns ``only`` these."""
        if not self.individual:
            return self
        left = frozenset() if only is None else self.individual - only
        slices = tuple(entry.exact(only) for entry in self.slices)
        return replace(self, slices=slices, individual=left, judged=self.judged & left)

    def for_lists(self) -> Snapshot:
        """The snapshot with what lists of devices show: all but attributes that no selector reads."""
        hidden = {column for column in self.individual - self.judged if column.kind == "attribute"}
        return self.exact(self.individual - hidden)

    def told_apart(self, answers: Mapping[OwnColumn, Callable[[str], Hashable]]) -> Snapshot:
        """The snapshot with devices exact where one has another answer than the value that stands in for its own.

        ``answers`` are those of a question's selectors, for each individual column that they read.
        """
        slices = tuple(entry.told_apart(answers) for entry in self.slices)
        return replace(self, slices=slices, judged=frozenset(answers))

    def missing(self, kind: str, namespace: str = "") -> Gap | None:
        """The gap that makes a kind (in that namespace) incomplete, if any."""
        for gap in self.gaps:
            if gap.kind == kind and (not namespace or not gap.namespace or gap.namespace == namespace):
                return gap
        return None

    def hides(self, kinds: Collection[str]) -> bool:
        """Whether there may be objects of these kinds that could not be read."""
        return any(gap.kind in kinds and gap.reason in (FORBIDDEN, UNSUPPORTED, UNREADABLE) for gap in self.gaps)

    def is_gap(self, kind: str, namespace: str = "") -> bool:
        """Whether the kind (in that namespace) is not known completely."""
        return self.missing(kind, namespace) is not None

    def gap_reason(self, kind: str, namespace: str = "") -> str:
        """Why the kind is not known completely, with the detail; empty if it is."""
        gap = self.missing(kind, namespace)
        if gap is None:
            return ""
        return f"{gap.reason}: {gap.detail}" if gap.detail else gap.reason

    def events_about(self, kind: str, namespace: str, name: str) -> tuple[Event, ...]:
        """Events about one object, oldest first."""
        found = [
            event for event in self.events if event.kind == kind and event.namespace == namespace and event.name == name
        ]
        return tuple(sorted(found, key=lambda event: event.last))
