"""Sentences as values: a constant template with typed values. Only ``report/`` writes them out.

Fields in braces are the names of the values; ``report/phrases.py`` describes what may follow a colon. Nothing
in ``explain/`` reads a text: decisions depend on the type of a statement, or the kind of a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol, TypeAlias

from msgspec import Struct

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.snapshot import StandIn


class Phrase(Struct, frozen=True):
    """A sentence or a part of one."""

    template: str
    values: tuple[tuple[str, object], ...] = ()

    def saying(self, **values: object) -> Phrase:
        """The same phrase with other values."""
        return Phrase(self.template, tuple({**dict(self.values), **values}.items()))


class Statement(Struct, frozen=True):
    """A fact on which decisions may depend: each is a frozen struct, and ``TEXT`` describes it by its fields."""

    TEXT: ClassVar[str] = ""


class Joined(Struct, frozen=True):
    """Parts of a sentence joined by something other than a comma."""

    parts: tuple[object, ...]
    separator: str = "; "


class Subject(Struct, frozen=True):
    """An object by its kind (as it is to be written) and its name."""

    kind: str
    name: object


class ObjectName(Struct, frozen=True):
    """An object of the cluster: written as namespace/name, or as its name if it has no namespace."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class HasMetadata(Protocol):
    """An object as the cluster has it."""

    @property
    def metadata(self) -> ObjectMeta: ...


def named(kind: str, of: HasMetadata) -> ObjectName:
    """The name of an object."""
    return ObjectName(kind, of.metadata.name, of.metadata.namespace)


def subject(kind: str, of: HasMetadata) -> Subject:
    """An object of the cluster; of a pod that is not made yet, the workload in the manifest that makes it."""
    stands_for = StandIn.of(of.metadata.annotations)
    if stands_for is not None:
        maker = ObjectName(stands_for.kind, stands_for.name, of.metadata.namespace)
        return Subject(f"a pod of {stands_for.kind}", maker)
    return Subject(kind, named(kind, of))


def by_key(kind: str, key: str) -> ObjectName:
    """An object by its key in the form of ``ObjectMeta.key``."""
    namespace, _, name = key.rpartition("/")
    return ObjectName(kind, name, namespace)


def by_name(kind: str, name: str, namespace: str = "") -> Subject:
    """An object by its kind and its name."""
    return Subject(kind, ObjectName(kind, name, namespace))


def the_node(name: str) -> Subject:
    """A node by its name."""
    return Subject("node", ObjectName("Node", name))


def pods_named(keys: Iterable[str]) -> tuple[ObjectName, ...]:
    """Pods by their keys."""
    return tuple(by_key("Pod", key) for key in keys)


def nodes_named(names: Iterable[str]) -> tuple[ObjectName, ...]:
    """Nodes by their names."""
    return tuple(ObjectName("Node", name) for name in names)


Words: TypeAlias = str | Phrase | Statement | Joined | Subject
"""Anything that can be written out. A plain text is a constant, or was read from an object."""


def say(template: str, /, **values: object) -> Phrase:
    """A phrase. Lists among the values become tuples, so that phrases compare and hash by value."""
    fixed = ((name, tuple(value) if isinstance(value, list) else value) for name, value in values.items())
    return Phrase(template, tuple(fixed))


def with_owner(taint: DeviceTaint) -> Phrase:
    """A taint, and who sets it: a DeviceTaintRule, or the driver in its slice."""
    owner = Subject("DeviceTaintRule", ObjectName("DeviceTaintRule", taint.rule)) if taint.rule else "driver"
    return say("{taint} ({owner})", taint=str(taint), owner=owner)


def with_since(taint: DeviceTaint) -> Phrase:
    """A taint, who sets it, and since when the device has it, where that is known."""
    since = say(" since {time}", time=taint.time_added) if taint.time_added else ""
    return say("{taint}{since}", taint=with_owner(taint), since=since)


def known_defect(number: str, *fixes: str) -> Phrase:
    """A known defect: where it is described, and the first releases without it (as far as not empty)."""
    known = tuple(filter(None, fixes))
    fixed = say(", fixed in {fixes:some}", fixes=known) if known else ""
    return say("a known defect ({number}){fixed}", number=number, fixed=fixed)
