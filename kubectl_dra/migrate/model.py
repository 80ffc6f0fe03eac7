"""What a migration plans for one object: steps that change it, objects to add, notes and refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from kubectl_dra.api.releases import Release
from kubectl_dra.data import pages
from kubectl_dra.data.pages import CodePage
from kubectl_dra.manifests.changes import Change, Path

if TYPE_CHECKING:
    from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

Safety = Literal["safe", "unsafe"]
"""safe: the pod's devices, and where it can run, stay the same. unsafe: they probably do; people must judge."""

Strategy = Literal["claims", "extended-resource", "auto"]
"""claims: pods claim devices. extended-resource: DeviceClasses take over the resource's name (from 1.36).
auto: the second if the release supports it and the pod asks only for a number, else the first.
"""

Share = Literal["template", "claim"]
"""template: each pod has its own claim. claim: all pods of a workload share one ResourceClaim."""


class Step(Struct, frozen=True):
    """One step for one object. Its ``changes`` are made together or not at all.

    ``code`` is that of a ``ChangePage``. Paths lead from the object's root. ``reason`` is one sentence for
    people.
    """

    code: str
    path: Path
    reason: str
    changes: tuple[Change, ...]
    safety: Safety = "safe"


class NewObject(Struct, frozen=True):
    """An object to add beside the one that needs it. ``kind/name`` is unique in the file."""

    code: str
    raw: Mapping[str, Any]
    reason: str
    safety: Safety = "safe"


class Note(Struct, frozen=True):
    """Something to do or know that changes nothing."""

    code: str
    path: Path
    message: str


class PlanRefusal(Struct, frozen=True):
    """A needed change that is not made. ``message`` says why, ``way_out`` what to do by hand."""

    code: str
    path: Path
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


class PlanSurroundings(Struct, frozen=True):
    """The other objects of the run: those that the object may refer to, and names that are taken.

    ``taken`` holds ``(kind, namespace, name)`` of all objects read and of those added so far. With ``patch``
    the object is a strategic merge patch of a kustomization and contains only differences from the patched
    object. ``shared`` are resources of which a device plugin gives one device to several pods, with the object that
    says so. ``alike`` are the names of templates that other Pods of the file got, by ``template_key``.
    """

    objects: Sequence[Mapping[str, Any]] = ()
    taken: AbstractSet[tuple[str, str, str]] = field(default_factory=frozenset)
    patch: bool = False
    shared: Mapping[str, str] = field(default_factory=dict)
    alike: Mapping[str, str] = field(default_factory=dict)


Plan = Callable[[Mapping[str, Any], PlanSurroundings, MigrationSettings], ObjectPlan]
"""Plan the migration of one object (as written); ``apiVersion`` and ``kind`` are texts."""


class ChangePage(Struct, frozen=True):
    """A code of migrate; its texts are on its page, ``docs/changes/CODE.md``."""

    code: str
    name: str
    safety: Safety | Literal["note", "refusal"]

    @property
    def page(self) -> CodePage:
        """Its page."""
        return pages.page("changes", self.code)

    @property
    def title(self) -> str:
        """The change in a few words."""
        return self.page.title

    @property
    def why(self) -> str:
        """What changes, and why."""
        return self.page.head[-1]


class Migration(Struct, frozen=True):
    """One family of changes: the objects that it examines, and the documentation of its codes."""

    name: str
    plan: Plan
    about: tuple[ChangePage, ...]
