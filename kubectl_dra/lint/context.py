"""The input of a rule: an object, the objects linted with it, and the assumed cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, wraps
from itertools import accumulate, takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from kubectl_dra.api.codec import mismatch
from kubectl_dra.api.conversion import CLUSTER_SCOPED, VERSIONS, ConversionError, reshaped
from kubectl_dra.api.dra_fields import KINDS
from kubectl_dra.api.limits import MAX_EXPRESSION_BYTES
from kubectl_dra.api.releases import GROUP, Release
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import fields_at, items_at, value_at
from kubectl_dra.manifests.objects import shares_kind

if TYPE_CHECKING:
    from kubectl_dra.cel.errors import CompileError
    from kubectl_dra.cel.program import Program
    from kubectl_dra.cluster.snapshot import Gap, Snapshot
    from kubectl_dra.data.drivers import Driver
    from kubectl_dra.lint.upgrade import Upgrade


def items(holder: Any, *path: str | int) -> list[Mapping[str, Any]]:
    """The items of the list at a path, with an empty mapping for each that is not one; none if there is no list."""
    return [value if isinstance(value, dict) else {} for value in items_at(holder, *path)]


def walked(value: Any, path: FieldPath = (), without: Collection[str] = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Everything in a value, with its path, in the order of the text; nothing of what has one of these keys."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, inner in below:
        if part not in without:
            here = (*path, part)
            yield here, inner
            if isinstance(inner, dict | list):
                yield from walked(inner, here, without)


class ObjectPlace(NamedTuple):
    """Where an item is written: the file, the document in it, the path inside the document.

    ``bare``: the path leads only to the item's spec, as in kinds that name a pod spec differently.
    """

    file: str
    document: int
    path: FieldPath = ()
    bare: bool = False

    def written(self, path: FieldPath) -> FieldPath:
        """The path in the document for a path in the item; the item itself if the path is not written."""
        if not self.bare:
            return (*self.path, *path)
        return (*self.path, *path[1:]) if path[:1] == ("spec",) else self.path


class Item:
    """One object of a manifest, or one pod template of a workload, presented as a Pod.

    ``raw`` is the object as written. For a pod template it is a Pod made of the template's metadata and spec,
    with the workload's namespace, and ``owner`` is the workload. Paths are relative to ``raw``. ``complete``
    is false if a controller adds to the pod's spec and removes fields of its own, and for a kustomize patch,
    which is a part of an object.
    """

    def __init__(
        self, raw: Mapping[str, Any], place: ObjectPlace, owner: Item | None = None, complete: bool = True
    ) -> None:
        self.raw: Final = raw
        self.place: Final = place
        self.owner: Final = owner
        self.complete: Final = complete
        self.api_version: Final = str(raw.get("apiVersion", ""))
        self.kind: Final = str(raw.get("kind", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return Item, (self.raw, self.place, self.owner, self.complete)

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version in the group, such as v1beta1."""
        return self.api_version.rpartition("/")[2]

    @property
    def is_dra(self) -> bool:
        """Whether it is of resource.k8s.io, in any version."""
        return self.group == GROUP

    @property
    def only_shares_kind(self) -> bool:
        """Whether its kind is Kubernetes' own and its group is not: rules about that kind are not about it."""
        return shares_kind(self.group, self.kind)

    @property
    def is_patch(self) -> bool:
        """Whether it (or its workload) is a kustomize patch: a part of an object."""
        return not (self if self.owner is None else self.owner).complete

    @property
    def is_template(self) -> bool:
        """Whether it is a pod template of a workload."""
        return self.owner is not None

    @property
    def metadata(self) -> Mapping[str, Any]:
        """``metadata`` if it is a mapping, otherwise an empty one."""
        return fields_at(self.raw, "metadata")

    @cached_property
    def name(self) -> str:
        """``metadata.name``, else generateName with a star; empty without either. A template has its owner's."""
        if self.owner is not None:
            return self.owner.name
        name, prefix = self.metadata.get("name"), self.metadata.get("generateName")
        if isinstance(name, str) and name:
            return name
        return f"{prefix}*" if isinstance(prefix, str) and prefix else ""

    @cached_property
    def namespace(self) -> str:
        """``metadata.namespace`` as written; empty if missing, which means kubectl's own namespace."""
        namespace = (self.owner or self).metadata.get("namespace")
        return namespace if isinstance(namespace, str) else ""

    def spec_field(self, key: str) -> Any:
        """The value of a field of ``spec``, or None."""
        return value_at(self.raw, ("spec", key))

    @property
    def spec_path(self) -> FieldPath:
        """The path of ``spec``; in a ResourceClaimTemplate that of the claim's."""
        return ("spec", "spec") if self.kind == "ResourceClaimTemplate" else ("spec",)

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """The requests of a claim or template, in v1's shape where it has one."""
        return items(self.v1 or self.raw, *self.spec_path, "devices", "requests")

    @property
    def title(self) -> str:
        """``Kind NAMESPACE/NAME`` as messages show it."""
        kind = self.owner.kind if self.owner is not None else self.kind
        namespaced = self.namespace and not (self.is_dra and kind in CLUSTER_SCOPED)
        return f"{kind} {self.namespace}/{self.name}" if namespaced else f"{kind} {self.name}".rstrip()

    @cached_property
    def v1(self) -> Mapping[str, Any] | None:
        """The object in v1's shape, without defaults.

        For kinds of other groups it is ``raw``. None if the group or version is unknown or a field has the wrong type;
        rules that need the shape then report nothing.
        """
        if not self.is_dra:
            return None if self.only_shares_kind else self.raw
        if self.version not in VERSIONS or self.kind not in KINDS:
            return None
        try:
            return None if mismatch(self.raw, self.kind, self.version) is not None else reshaped(self.raw)
        except (ConversionError, KeyError, TypeError, AttributeError):
            return None


class GivenObjects:
    """The items given together, by kind and name. Several objects may share a name: different environments."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: Final = tuple(items)
        self._by_kind: dict[str, list[Item]] = {}
        self._by_name: dict[tuple[str, str], list[Item]] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._found: dict[tuple[str, str, str], tuple[Item, ...]] = {}
        # The gaps of the cluster because of which a rule could not decide.
        self.unread: Final[dict[Gap, None]] = {}
        # The known drivers with what devices of the cluster and of the manifests have besides.
        self.drivers: Final[dict[str, Driver]] = {}
        # The specs of the ResourceSlices that the API server takes; None before anyone asked.
        self.slices: tuple[Mapping[str, Any], ...] | None = None
        for item in self.items:
            self._by_kind.setdefault(item.kind, []).append(item)
            if item.owner is None:
                self._by_name.setdefault((item.kind, item.name), []).append(item)

    def of_kind(self, kind: str) -> tuple[Item, ...]:
        """All items of a kind; "Pod" includes the pod templates of workloads."""
        return tuple(self._by_kind.get(kind, ()))

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of the objects of a kind, each once, without pod templates."""
        known = self._names.get(kind)
        if known is None:
            names = dict.fromkeys(item.name for item in self._by_kind.get(kind, ()) if item.owner is None)
            known = self._names[kind] = tuple(names)
        return known

    def find(self, kind: str, name: str, namespace: str = "") -> tuple[Item, ...]:
        """The objects of a name. One without a namespace is found from every namespace, and vice versa."""
        key = (kind, name, namespace)
        items = self._found.get(key)
        if items is None:
            named = self._by_name.get((kind, name), ())
            items = tuple([item for item in named if not namespace or item.namespace in ("", namespace)])
            self._found[key] = items
        return items

    def classes(self, name: str) -> tuple[Item, ...]:
        """DeviceClasses of a name."""
        return self.find("DeviceClass", name)


Stored = Mapping[tuple[str, str, str, str], Mapping[str, Any]]
"""Stored objects by ``stored_key``."""


def stored_key(raw: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What names an object in a cluster, whatever its version: group, kind, namespace, name."""
    metadata = fields_at(raw, "metadata")
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    return group, str(raw.get("kind")), str(metadata.get("namespace") or "default"), str(metadata.get("name"))


class AssumedCluster(Struct, frozen=True, eq=False):
    """The assumed cluster. ``snapshot`` is set with ``--snapshot`` or ``--live``, ``stored`` with ``--old``,
    ``upgrade`` with ``--from``: the cluster is then the one after it.
    """

    release: Release
    features: frozenset[str]
    snapshot: Snapshot | None = None
    stored: Stored | None = None
    upgrade: Upgrade | None = None

    def has(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate in self.features


class WrittenSelector(Struct, frozen=True):
    """A CEL selector of an item: its path (in v1's shape), its text, and the result of compiling it."""

    path: FieldPath
    expression: str
    program: Program | None
    error: CompileError | None


T = TypeVar("T")


class Context:
    """The input of ``Rule.check``."""

    def __init__(self, item: Item, target: AssumedCluster, given: GivenObjects | None = None) -> None:
        self.item: Final = item
        self.target: Final = target
        self.given: Final = given or GivenObjects()
        # What ``once`` has found out about the object, by function.
        self.known: Final[dict[object, Any]] = {}

    def nearest(self, kind: str, name: str) -> tuple[Item, ...]:
        """The objects of a name that are meant here, where several environments have one.

        They are in the same file, else in the same directory, else in the nearest one above both. A patch is a part of
        one elsewhere.
        """
        found = self.given.find(kind, name, "" if kind == "DeviceClass" else self.item.namespace)
        if len(found) < 2:
            return found
        whole = [item for item in found if not item.is_patch] or found
        steps = [_steps(self.item.place.file, item.place.file) for item in whole]
        return tuple(item for item, distance in zip(whole, steps, strict=True) if distance == min(steps))

    @property
    def raw(self) -> Mapping[str, Any]:
        """The object as written."""
        return self.item.raw

    @property
    def v1(self) -> Mapping[str, Any]:
        """The object in v1's shape; empty if it has none."""
        return self.item.v1 or {}

    @property
    def release(self) -> Release:
        """The assumed release."""
        return self.target.release

    @property
    def features(self) -> frozenset[str]:
        """The enabled feature gates."""
        return self.target.features

    @property
    def snapshot(self) -> Snapshot | None:
        """The cluster, if one was given."""
        return self.target.snapshot

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """``spec`` in v1's shape; for a ResourceClaimTemplate the claim's (``spec_path`` leads there)."""
        return fields_at(self.v1, *self.spec_path)

    @property
    def spec_path(self) -> FieldPath:
        """The path of ``spec``."""
        return self.item.spec_path

    @cached_property
    def selectors(self) -> tuple[WrittenSelector, ...]:
        """The CEL selectors of a claim, claim template, class or taint rule, compiled for the target.

        Those beyond ``_MOST_TEXT`` characters in total are left out: the API server's checks cover all of
        them, but examining that much text more closely would take too long.
        """
        texts = tuple(selector_texts(self.v1, self.spec_path))
        totals = accumulate(len(expression) for _, expression in texts)
        short = (text for text, total in zip(texts, totals, strict=True) if total <= _MOST_TEXT)
        return tuple(compiled_selectors(short, self.target))


def _steps(here: str, there: str) -> int:
    """How many directories up from a file the other one is; -1 for the same file."""
    if here == there:
        return -1
    own, other = PurePath(here).parent.parts, PurePath(there).parent.parts
    shared = takewhile(lambda parts: parts[0] == parts[1], zip(own, other, strict=False))
    return len(own) - len(list(shared))


def compiled_selectors(texts: Iterable[tuple[FieldPath, str]], target: AssumedCluster) -> Iterator[WrittenSelector]:
    """Selectors with what compiling them gives."""
    for path, expression in texts:
        result = compile_selector(expression, target)
        if isinstance(result, Exception):
            yield WrittenSelector(path, expression, None, result)
        else:
            yield WrittenSelector(path, expression, result, None)


def once(find: Callable[[Context], T]) -> Callable[[Context], T]:
    """Make a function examine each object once, however many rules call it."""

    @wraps(find)
    def known(context: Context) -> T:
        if find not in context.known:
            context.known[find] = find(context)
        value: T = context.known[find]
        return value

    return known


def selector_texts(raw: Mapping[str, Any], spec_path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Paths and texts of the CEL expressions of an object in v1's shape: every ``cel.expression`` below spec."""
    # Opaque parameters belong to the driver, whatever they hold.
    for path, value in walked(value_at(raw, spec_path), spec_path, ("opaque",)):
        if path[-2:] == ("cel", "expression") and isinstance(value, str) and value:
            yield path, value


_MOST_TEXT: Final = 20_000


def compile_selector(expression: str, target: AssumedCluster) -> Program | CompileError:
    """The program of a new selector in the target's environment, or why there is none; cached."""
    from kubectl_dra.admission.server.selectors import compiled
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.errors import CompileError, Issue

    if (
        len(expression) * 4 > MAX_EXPRESSION_BYTES
        and len(expression.encode("utf-8", "surrogatepass")) > MAX_EXPRESSION_BYTES
    ):
        message = f"longer than {MAX_EXPRESSION_BYTES} bytes"
        return CompileError((Issue(message),), message)
    return compiled(Environment.for_release(target.release, target.features), expression)
