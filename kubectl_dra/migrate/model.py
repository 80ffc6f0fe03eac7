"""What a migration plans for one object: steps that change it, objects to add, notes and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from msgspec import Struct, field

from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change
from kubectl_dra.manifests.edits import Edit
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.objects import ObjectKey
from kubectl_dra.migrate.codes import Safety

if TYPE_CHECKING:
    from kubectl_dra.errors import DraError
    from kubectl_dra.exit_codes import Verdict
    from kubectl_dra.explain.diagnosis import Diagnosis, NodeDevices
    from kubectl_dra.explain.phrase import Words
    from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

T = TypeVar("T")

Strategy = Literal["claims", "extended-resource", "auto"]
"""claims: pods claim devices. extended-resource: DeviceClasses take over the resource's name (from 1.36).
auto: the second if the release supports it and the pod asks only for a number, else the first.
"""
Share = Literal["template", "claim"]
"""template: each pod has its own claim. claim: all pods of a workload share one ResourceClaim."""


class Moved(NamedTuple):
    """A resource of a device plugin, and the class and DRA driver whose devices pods get in its place."""

    resource: str
    device_class: str
    driver: str


class ClusterHas(NamedTuple):
    """Which DeviceClasses exist in a cluster, and of which drivers it has ResourceSlices; without those not known."""

    classes: Mapping[str, bool]
    drivers: Mapping[str, bool]


class Step(Struct, frozen=True):
    """One step for one object. Its ``changes`` are made together or not at all.

    ``code`` is that of a ``ChangePage``. Paths lead from the object's root. ``reason`` is one sentence for
    people. ``notes`` are about this step. ``moved`` are the resources that go from plugin to driver, or back.
    """

    code: str
    path: FieldPath
    reason: str
    changes: tuple[Change, ...]
    safety: Safety = "safe"
    notes: tuple[Note, ...] = ()
    moved: tuple[Moved, ...] = ()


class NewObject(Struct, frozen=True):
    """An object to add beside the one that needs it. ``kind/name`` is unique in the file.

    ``moved``: the resource that a DeviceClass takes over.
    """

    code: str
    raw: Mapping[str, Any]
    reason: str
    safety: Safety = "safe"
    moved: tuple[Moved, ...] = ()


class Note(Struct, frozen=True):
    """Something to do or know. ``done``: it says what a step does, once that is made.

    ``writes``: it is a change of its own that the step makes at this place, and is told and counted as one.
    """

    code: str
    path: FieldPath
    message: str
    done: bool = False
    writes: bool = False


class PlanRefusal(Struct, frozen=True):
    """A needed change that is not made. ``message`` says why, ``way_out`` what to do by hand."""

    code: str
    path: FieldPath
    message: str
    way_out: str


class ObjectPlan(Struct, frozen=True):
    """The plan for one object. An empty plan means that there is nothing to do.

    ``left`` counts the comments inside texts of the object that say to leave something; then its steps are not made.
    """

    steps: tuple[Step, ...] = ()
    objects: tuple[NewObject, ...] = ()
    notes: tuple[Note, ...] = ()
    refusals: tuple[PlanRefusal, ...] = ()
    left: int = 0


class MigrationSettings(Struct, frozen=True):
    """What the user asked for. ``version`` is the target API version of resource.k8s.io."""

    catalogue: VendorCatalogue
    release: Release
    strategy: Strategy = "claims"
    share: Share = "template"
    version: str = "v1"
    reverse: bool = False


class NamespaceDemand(NamedTuple):
    """What the objects of a run ask for, by namespace.

    An object without a namespace may be for any one: that is often given with kubectl or by a kustomization.
    ``asking`` names an object for each resource of device plugins, ``claimed`` has the DeviceClasses of claims, and
    ``offered`` those of claims that only --unsafe writes.
    """

    asking: Mapping[str, Mapping[str, str]]
    claimed: Mapping[str, frozenset[str]]
    offered: Mapping[str, frozenset[str]] = {}

    def who_asks(self, namespace: str, name: str) -> str:
        """An object that asks device plugins for the resource; empty if none does."""
        return next((found[name] for found in _for(self.asking, namespace) if name in found), "")

    def classes(self, namespace: str) -> frozenset[str]:
        """The DeviceClasses of claims and claim templates."""
        return frozenset[str]().union(*_for(self.claimed, namespace))

    def classes_offered(self, namespace: str) -> frozenset[str]:
        """The DeviceClasses of claims and claim templates that only --unsafe writes."""
        return frozenset[str]().union(*_for(self.offered, namespace))


def _for(by_namespace: Mapping[str, T], namespace: str) -> list[T]:
    """What is in the namespace or may be; all where it is not said."""
    if not namespace:
        return list(by_namespace.values())
    return [by_namespace[space] for space in (namespace, "") if space in by_namespace]


class PlanSurroundings(Struct, frozen=True):
    """The other objects of the run: those that the object may refer to, and names that are taken.

    ``taken`` holds ``(kind, namespace, name)`` of all objects read and of those added so far. With ``patch``
    the object is a strategic merge patch of a kustomization and contains only differences from the patched
    object. ``shared`` are resources of which a device plugin gives one device to several pods, with the object that
    says so. ``alike`` are the names of templates that other Pods of the file got, by ``template_key``. ``demand`` reads
    what all of them ask for now.
    """

    objects: Iterable[Mapping[str, Any]] = ()
    taken: AbstractSet[tuple[str, str, str]] = field(default_factory=frozenset)
    patch: bool = False
    shared: Mapping[str, str] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)
    demand: Callable[[], NamespaceDemand] = field(default=lambda: NamespaceDemand({}, {}))


Plan = Callable[[Mapping[str, Any], PlanSurroundings, MigrationSettings], ObjectPlan]
"""Plan the migration of one object (as written); ``apiVersion`` and ``kind`` are texts."""


class Migration(Struct, frozen=True):
    """One family of changes: its name, and how it plans the changes of an object."""

    name: str
    plan: Plan


# The result of a run of migrate: each file before and after, with all changes, offers, notes and refusals.

Sort = Literal["change", "object", "offer", "note", "refusal"]
"""change: part of an object changes. object: one is added. offer: an unsafe change that was not requested and
so is not made. note: something left to do. refusal: something left unchanged.
"""


class Remark(NamedTuple):
    """One remark about a place in a file.

    Lines and columns count from 1. ``object`` is the kind with namespace and name, ``field`` a path as
    Kubernetes writes it; ``new`` is the added object that the remark is about. ``way_out`` says what to do by
    hand. ``document`` counts from 0, ``root`` leads to the object inside it. ``origin`` is FILE:LINE of the
    template of a chart that it is rendered from. ``moved`` is that of the step; ``stays`` is the resource that a
    refusal leaves with its device plugin, empty where the refusal is about something else.
    """

    sort: Sort
    code: str
    file: str
    line: int
    column: int
    object: str
    field: str
    message: str
    way_out: str = ""
    new: str = ""
    safety: Literal["safe", "unsafe"] = "safe"
    document: int = 0
    root: FieldPath = ()
    origin: str = ""
    moved: tuple[Moved, ...] = ()
    stays: str = ""


class MigratedFile(NamedTuple):
    """The outcome for one file. ``text`` is None if it could not be read.

    ``edits`` are the rounds of edits from the text before to the one after; each applies to the result of the
    one before it.
    """

    name: str
    text: Rewritten | None
    items: tuple[Remark, ...] = ()
    edits: tuple[tuple[Edit, ...], ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the text changes."""
        return self.text is not None and self.text.after != self.text.before

    @property
    def main_change(self) -> Remark | None:
        """The change that the others go with: of those with the lowest code the first."""
        return min((item for item in self.items if item.sort == "change"), key=lambda item: item.code, default=None)

    @property
    def is_new(self) -> bool:
        """Whether the file is made: nothing is written into an empty one that is there."""
        return self.changed and self.text is not None and not self.text.before


class LostNodes(NamedTuple):
    """Nodes where the pod could run before and cannot after, for the same reason: the nodes' or the pod's."""

    reason: Words | Diagnosis
    nodes: tuple[str, ...]


class LandingComparison(NamedTuple):
    """A pod of each pod spec of a migrated workload, before and after.

    Attributes:
        file, object: the workload's file and "KIND NAMESPACE/NAME"; ``pod`` distinguishes its pods, empty if one.
        resources: what it requested from device plugins, with amounts.
        before: the nodes on which the scheduler accepts the pod as it was, with nothing in use: by the amounts of
            device plugins, or by devices of a DeviceClass that serves the resource.
        after: the nodes on which it accepts the migrated pod, with nothing in use.
        landings: the nodes that fit now, with the claims, in the scheduler's order of nodes.
        lost, gained: how ``after`` differs from ``before``.
        verdict: explain's verdict for now.
        answer: explain's diagnosis, None if it can be scheduled; or the error that prevented it.
        notes: what was assumed or not seen.
        pods: how many such pods run at a time; at least that many unless ``counted``.
        unread: the kinds that decide on which nodes it could run and were not all read; then no nodes are named.
    """

    file: str
    object: str
    pod: str
    resources: Mapping[str, int]
    before: tuple[str, ...]
    after: tuple[str, ...]
    landings: tuple[NodeDevices, ...]
    lost: tuple[LostNodes, ...]
    gained: tuple[str, ...]
    verdict: Verdict
    answer: Diagnosis | DraError | None = None
    notes: tuple[Words, ...] = ()
    pods: int = 1
    counted: bool = True
    unread: tuple[str, ...] = ()

    @property
    def difference(self) -> int:
        """Number of nodes more (or, if negative, fewer) than before."""
        return len(self.after) - len(self.before)


class MigrationReport(NamedTuple):
    """The results of a run in input order, without files that have no remarks.

    ``read`` counts files, ``manifests`` the Kubernetes objects in those that were examined. ``claims`` is the file
    of --claims-file. ``notes`` are sentences about what was left out, ``defects`` are failures of migrate itself.
    ``comparisons`` show where migrated pods would run, and ``has`` says what the cluster has of what they need, if
    one was read. ``ignored`` counts comments in the files that say to leave something, ``left`` are the objects
    that stay for one, with their files. ``set_aside`` are the new objects of the claims file, with what is said of
    them. ``plain`` are the files without remarks that have objects of DRA; ``own_classes`` are the DeviceClasses of
    all files.
    """

    files: tuple[MigratedFile, ...]
    read: int
    manifests: int
    settings: MigrationSettings
    unsafe: bool
    notes: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    claims: MigratedFile | None = None
    comparisons: tuple[LandingComparison, ...] | None = None
    has: ClusterHas | None = None
    ignored: int = 0
    left: frozenset[tuple[str, ObjectKey]] = frozenset()
    set_aside: tuple[tuple[Remark, Mapping[str, Any]], ...] = ()
    plain: tuple[MigratedFile, ...] = ()
    own_classes: frozenset[str] = frozenset()

    @property
    def all_files(self) -> tuple[MigratedFile, ...]:
        """The files, followed by the claims file."""
        return self.files if self.claims is None else (*self.files, self.claims)

    def items(self, sort: Sort | None = None) -> list[Remark]:
        """The remarks, of one sort or all, in file order."""
        return [item for file in self.all_files for item in file.items if sort is None or item.sort == sort]

    @property
    def changed(self) -> list[MigratedFile]:
        """The files that change."""
        return [file for file in self.all_files if file.changed]

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The resources that go from plugin to driver, or back: of the changes made, else of those that are offered."""
        for sorts in (("change", "object"), ("offer",)):
            found = [moved for item in self.items() if item.sort in sorts for moved in item.moved]
            if found:
                return tuple(dict.fromkeys(found))
        return ()

    @property
    def in_part(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """What stays with device plugins in files that change, by file and object."""
        out: dict[tuple[str, str], tuple[str, ...]] = {}
        for file in self.changed:
            for item in file.items:
                if item.sort == "refusal":
                    key = item.file, item.object
                    names = (*out.get(key, ()), *([item.stays] if item.stays else []))
                    out[key] = tuple(dict.fromkeys(names))
        return out

    @property
    def open(self) -> bool:
        """Whether a person still has to decide or do something: a refusal or an offer."""
        return any(item.sort in ("refusal", "offer") for item in self.items())
