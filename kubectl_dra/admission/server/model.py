"""Violations of the API server's rules, and the server's notation for their positions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.behaviour import LONG_LISTS_UNREAD
from kubectl_dra.api.releases import UNTOLD, Release

Path = tuple[str | int, ...]
"""Keys and list indices from the object's root; a key of a map (not a field's name) is a ``Key``."""

REQUIRED: Final = "Required"
INVALID: Final = "Invalid"
TOO_LONG: Final = "TooLong"
TOO_MANY: Final = "TooMany"
DUPLICATE: Final = "Duplicate"
NOT_SUPPORTED: Final = "NotSupported"
FORBIDDEN: Final = "Forbidden"
NOT_FOUND: Final = "NotFound"
INTERNAL_ERROR: Final = "InternalError"
BAD_REQUEST: Final = "BadRequest"


class Key(str):
    """A key of a map in a path: Kubernetes writes it in brackets."""


class Violation(Struct, frozen=True):
    """One reason for which the API server rejects the manifest.

    ``path`` leads to the place in this manifest's own version; its last steps may be missing there (see
    ``nearest``). ``field`` is the text that the server reports, in v1's shapes whatever the version.
    ``reason`` is the server's, without "FieldValue". ``rule`` names the rule. ``cel_offset`` counts code
    points in the expression at ``path``.
    """

    path: Path
    field: str
    reason: str
    message: str
    rule: str
    cel_offset: int | None = None


class ServerVerdict(Struct, frozen=True):
    """The API server's answer to creating an object.

    ``code`` is 201, 400 for what cannot be decoded, 422 for invalid objects, or 500 if the server fails.
    ``unsure`` are violations that depend on the namespace's unknown labels.
    """

    accepted: bool
    code: int
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    unsure: tuple[Violation, ...] = ()


Violations = Iterator[Violation]


def violation(
    at: Path,
    reason: str,
    rule: str,
    message: str,
    *,
    below: Path = (),
    field: str | None = None,
    cel_offset: int | None = None,
) -> Violation:
    """A violation reported at ``at``; ``below`` is the rest of the path to the culprit, which the server leaves out."""
    return Violation((*at, *below), field_text(at) if field is None else field, reason, message, rule, cel_offset)


def missing(at: Path, rule: str, message: str = "must be set") -> Violation:
    """A required field is missing or empty."""
    return violation(at, REQUIRED, rule, message)


def field_text(path: Path) -> str:
    """A path as the API server writes it: ``spec.devices[0].capacity[memory].value``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or part.__class__ is Key:
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else str(part))
    return "".join(out)


def key_at(at: Path, key: str, limit: int) -> tuple[Path, str]:
    """The path of a map's entry, and its text, in which the server shortens keys over ``limit`` bytes in the middle."""
    encoded = key.encode("utf-8", "surrogatepass")
    limit = max(limit, 16)
    shown = key
    if len(encoded) > limit:
        rest = limit - 3
        cut = encoded[: (rest + 1) // 2] + b"..." + encoded[len(encoded) - rest // 2 :]
        shown = cut.decode("utf-8", "replace")
    return (*at, Key(key)), f"{field_text(at)}[{shown}]"


def nearest(raw: Any, path: Path) -> Path:
    """The longest existing prefix of a path."""
    for index, part in enumerate(path):
        inside = raw if isinstance(raw, dict) else dict(enumerate(raw)) if isinstance(raw, list) else {}
        if part not in inside:
            return path[:index]
        raw = inside[part]
    return path


Check = Callable[[Any, Path], Iterable[Violation]]


def check_list(
    values: Sequence[Any] | None,
    at: Path,
    limit: int | None,
    rule: str,
    check: Check,
    *,
    release: Release = UNTOLD,
) -> Violations:
    """Check each item. Since 1.35 the items of a list over its limit are not checked."""
    values = values or ()
    if limit is not None and len(values) > limit:
        yield violation(at, TOO_MANY, rule, f"has {len(values)} items, at most {limit} are allowed")
        if release in LONG_LISTS_UNREAD:
            return
    for index, value in enumerate(values):
        yield from check(value, (*at, index))


def check_set(
    values: Sequence[Any] | None,
    at: Path,
    limit: int | None,
    rules: tuple[str, str],
    check: Check,
    key: Callable[[Any], Hashable],
    repeated: Path = (),
    *,
    release: Release = UNTOLD,
) -> Violations:
    """Like ``check_list``, and report items with a repeated key, at ``repeated`` below them. ``rules``: too many,
    duplicate.
    """
    values = values or ()
    yield from check_list(values, at, limit, rules[0], check, release=release)
    if limit is not None and len(values) > limit and release in LONG_LISTS_UNREAD:
        return
    seen: set[Hashable] = set()
    for index, value in enumerate(values):
        identity = key(value)
        if identity in seen:
            yield violation((*at, index, *repeated), DUPLICATE, rules[1], f"{identity!r} is already in the list")
        seen.add(identity)


def struct(raw: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """A struct field that is not a pointer: missing and null mean the empty struct."""
    found: Mapping[str, Any] = (raw or {}).get(name) or {}
    return found


def text(raw: Mapping[str, Any] | None, name: str) -> str:
    """A string field that is not a pointer: missing and null mean the empty string."""
    return (raw or {}).get(name) or ""


def size(value: str) -> int:
    """The length of a text in bytes, which the API limits."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
