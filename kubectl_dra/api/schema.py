"""The row of one field of the API, and the walks over raw objects by rows.

A type is written as in the API's Go types: ``T`` is always printed, ``T?`` left out when empty, ``*T``
printed when set; ``[]T`` and ``{}T`` are a list and a map, left out when empty. A ``!`` after a list or
pointer: printed as null instead of left out. A second word says what an anonymized copy has in place of a text, or
of the keys of a map (see ``cluster.anonymize``). ``row`` adds the rest: a field newer than 1.31, removed,
behind gates, or with a default or a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.releases import OLDEST_MODELLED, UNTOLD, Release, Releases

FieldPath = tuple[str | int, ...]
"""Keys and list indices from the object's root."""

_SCALARS: Final = frozenset(("string", "int", "bool", "quantity", "time", "any", "object"))


class Field(Struct, frozen=True):
    """A field: ``type`` is a scalar or a struct's name, ``container`` is "", "list" or "map".

    ``since`` and ``until`` are the first and last minor release of Kubernetes 1 that have it; 31 includes all
    earlier ones, None means no last one. The API server drops the field from new objects unless all ``gates``
    are on; a release before ``dropped_since`` forgets to. ``default`` is what the server sets if the field is
    missing or empty. ``most`` are limits on its items or bytes, each from a release on. ``anonymize`` is what an
    anonymized copy has in place of its text; empty for nothing. ``saved``: a snapshot keeps it. ``read``: answers take
    it into account, or the scheduler does not read it either. ``values`` are the texts that it takes, if these are
    few. ``check`` is what validation says of it by the row alone: the rule's name, then the form of its text, and
    "set" where no item may be there twice (see ``admission.server.names``).
    """

    type: str
    container: str
    pointer: bool
    omit_empty: bool
    scalar: bool
    since: int = OLDEST_MODELLED.minor
    until: int | None = None
    gates: tuple[str, ...] = ()
    default: str | int | None = None
    most: tuple[tuple[int, int], ...] = ()
    dropped_since: int = OLDEST_MODELLED.minor
    anonymize: str = ""
    saved: bool = True
    read: bool = True
    values: tuple[str, ...] = ()
    check: str = ""

    def limit(self, release: Release = UNTOLD) -> int | None:
        """The most items in a list or map, or bytes in a text; None if there is no limit."""
        return next((most for since, most in reversed(self.most) if release.at_least(since)), None)

    @property
    def releases(self) -> Releases:
        """The releases that have the field."""
        return Releases(self.since, self.until)

    def exists(self, release: Release) -> bool:
        """Whether a release has the field."""
        return release in self.releases

    def is_newer(self, release: Release) -> bool:
        """Whether the release did not have the field yet."""
        return not release.at_least(self.since)

    def is_dropped(self, release: Release, features: Set[str]) -> bool:
        """Whether the server of a release drops the field where just these gates are on."""
        return release.at_least(self.dropped_since) and not features >= {*self.gates}


def row(
    text: str,
    *gates: str,
    since: int = OLDEST_MODELLED.minor,
    until: int | None = None,
    default: str | int | None = None,
    most: int | Mapping[int, int] | None = None,
    dropped_since: int = OLDEST_MODELLED.minor,
    read: bool = True,
    values: tuple[str, ...] = (),
    check: str = "",
) -> Field:
    """The field of a type in this notation, with further facts about it."""
    text, _, anonymize = text.partition(" ")
    always, text = text.endswith("!"), text.removesuffix("!")
    container = "list" if text.startswith("[]") else "map" if text.startswith("{}") else ""
    pointer = text.startswith("*")
    omit_empty = not always and (bool(container) or pointer or text.endswith("?"))
    name = text.lstrip("[]{}*").removesuffix("?")
    limits = {since: most} if isinstance(most, int) else most or {}
    more = (since, until, gates, default, tuple(limits.items()), dropped_since, anonymize)
    return Field(name, container, pointer, omit_empty, name in _SCALARS, *more, read=read, values=values, check=check)


def items(value: Any, field: Field) -> Iterator[tuple[FieldPath, Any]]:
    """What is in a field: the items of its list or map, each with its index or key, or its one value."""
    if not field.container:
        yield (), value
    elif isinstance(value, dict) and field.container == "map":
        yield from (((key,), item) for key, item in value.items())
    elif isinstance(value, list) and field.container == "list":
        yield from (((index,), item) for index, item in enumerate(value))


def change_items(value: Any, field: Field, change: Callable[..., Any], *more: Any) -> Any:
    """The value of a field with ``change(item, *more)`` for each item of its list or map, or for its one value."""
    if not field.container:
        return change(value, *more)
    if field.container == "list":
        return [change(item, *more) for item in value]
    return {key: change(item, *more) for key, item in value.items()}


def path_text(path: FieldPath) -> str:
    """A path as Kubernetes writes it: ``spec.devices[0].capacity[example.com/memory].value``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or not part or not part.replace("_", "a").replace("-", "a").isalnum():
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else part)
    return "".join(out)
