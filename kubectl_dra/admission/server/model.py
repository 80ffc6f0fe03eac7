"""Violations of the API server's rules, and the server's notation for their positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.behaviour import DECLARED_RULES, LONG_LISTS_UNREAD, REPEATED_AT_ITEM
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import Field, FieldPath

if TYPE_CHECKING:
    from kubectl_dra.cel import Environment

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
    points in the expression at ``path``; ``cel_near`` is a known name like the unknown one there.
    """

    path: FieldPath
    field: str
    reason: str
    message: str
    rule: str
    cel_offset: int | None = None
    cel_near: str = ""


class ServerVerdict(Struct, frozen=True):
    """The API server's answer to creating an object.

    ``code`` is 201, 400 for what cannot be decoded, 403 where an admission plugin refuses it (``violations`` then has
    what validation would say, too), 422 for invalid objects, or 500 if the server fails.
    ``unsure`` are violations that depend on the namespace's unknown labels.
    """

    accepted: bool
    code: int
    violations: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    unsure: tuple[Violation, ...] = ()


Violations = Iterator[Violation]


def violation(
    at: FieldPath,
    reason: str,
    rule: str,
    message: str,
    *,
    below: FieldPath = (),
    field: str | None = None,
) -> Violation:
    """A violation reported at ``at``; ``below`` is the rest of the path to the culprit, which the server leaves out."""
    return Violation((*at, *below), field_text(at) if field is None else field, reason, message, rule)


def missing(at: FieldPath, rule: str, message: str = "must be set") -> Violation:
    """A required field is missing or empty."""
    return violation(at, REQUIRED, rule, message)


def field_text(path: FieldPath) -> str:
    """A path as the API server writes it: ``spec.devices[0].capacity[memory].value``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or part.__class__ is Key:
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else str(part))
    return "".join(out)


def key_at(at: FieldPath, key: str, limit: int) -> tuple[FieldPath, str]:
    """The path of a map's entry, and its text, in which the server shortens keys over ``limit`` bytes in the middle."""
    encoded = key.encode("utf-8", "surrogatepass")
    limit = max(limit, 16)
    shown = key
    if len(encoded) > limit:
        rest = limit - 3
        cut = encoded[: (rest + 1) // 2] + b"..." + encoded[len(encoded) - rest // 2 :]
        shown = cut.decode("utf-8", "replace")
    return (*at, Key(key)), f"{field_text(at)}[{shown}]"


def nearest(raw: Any, path: FieldPath) -> FieldPath:
    """The longest existing prefix of a path."""
    for index, part in enumerate(path):
        inside = raw if isinstance(raw, dict) else dict(enumerate(raw)) if isinstance(raw, list) else {}
        if part not in inside:
            return path[:index]
        raw = inside[part]
    return path


Check = Callable[[Any, FieldPath], Iterable[Violation]]


def check_list(
    values: Sequence[Any] | None, at: FieldPath, limit: int | None, rule: str, check: Check, context: ServerContext
) -> Violations:
    """Check each item. Since 1.35 the items of a list over its limit are not checked."""
    values = values or ()
    if limit is not None and len(values) > limit:
        yield violation(at, TOO_MANY, rule, f"has {len(values)} items, at most {limit} are allowed")
        if context.release in LONG_LISTS_UNREAD:
            return
    for index, value in enumerate(values):
        yield from check(value, (*at, index))


def check_set(
    values: Sequence[Any] | None,
    at: FieldPath,
    limit: int | None,
    rules: tuple[str, str],
    check: Check,
    context: ServerContext,
    *,
    named: str = "",
    key: Callable[[Any], Hashable] | None = None,
) -> Violations:
    """Like ``check_list``, and report repeated items. ``rules``: too many, duplicate.

    ``named`` is the field by which items differ, without one they are texts; ``key`` replaces that comparison. Since
    1.35 a repeated item is reported as a whole, before at this field of it.
    """
    values = values or ()
    yield from check_list(values, at, limit, rules[0], check, context)
    if limit is not None and len(values) > limit and context.release in LONG_LISTS_UNREAD:
        return
    below = (named,) if named and context.release not in REPEATED_AT_ITEM else ()
    seen: set[Hashable] = set()
    for index, value in enumerate(values):
        identity = key(value) if key is not None else text(value, named) if named else value or ""
        if identity in seen:
            yield violation((*at, index, *below), DUPLICATE, rules[1], f"{identity!r} is already in the list")
        seen.add(identity)


def struct(raw: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """A struct field that is not a pointer: missing and null mean the empty struct."""
    content: Mapping[str, Any] = (raw or {}).get(name) or {}
    return content


def text(raw: Mapping[str, Any] | None, name: str) -> str:
    """A string field that is not a pointer: missing and null mean the empty string."""
    return (raw or {}).get(name) or ""


def size(value: str) -> int:
    """The length of a text in bytes, which the API limits."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


# What the server's rules depend on: its release, feature gates and namespaces.


class ServerContext(Struct, frozen=True):
    """The server that receives an object, and the object's namespace.

    ``labels`` are that namespace's, None if unknown.
    """

    release: Release
    features: frozenset[str]
    environment: Environment
    labels: Mapping[str, str] | None = None
    old: Mapping[str, Any] | None = None
    """The stored object that is replaced, in v1's shape; None for an object to be created."""

    def on(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate in self.features

    def as_stored(self) -> ServerContext:
        """The same, but for expressions that the server has stored: they may use more."""
        from kubectl_dra.cel.environment import Environment

        return replace(self, environment=Environment.for_release(self.release, self.features, stored=True))

    def is_declarative(self) -> bool:
        """Whether the checks that the API's types declare are enforced, in the shapes of the object's own version."""
        return self.release in DECLARED_RULES


# Whether the API server finds two parts of objects equal, after decoding.


def same(first: Any, second: Any, struct: str) -> bool:
    """Whether two structs of v1 are equal: fields that are missing, null or empty are, and equal quantities."""
    first, second = first or {}, second or {}
    struct = "ObjectMeta" if struct == "ClaimMetadata" else struct
    return all(_same(first.get(name), second.get(name), field) for name, field in fields(struct).items())


def same_field(first: Mapping[str, Any], second: Mapping[str, Any], struct: str, name: str) -> bool:
    """Whether a field of two structs of v1 is equal."""
    return _same(first.get(name), second.get(name), fields(struct)[name])


def _same(first: Any, second: Any, field: Field) -> bool:
    if field.container:
        first, second = first or (), second or ()
        if len(first) != len(second):
            return False
        if field.container == "list":
            return all(_same_item(first_item, other, field) for first_item, other in zip(first, second, strict=True))
        return all(key in second and _same_item(first[key], second[key], field) for key in first)
    if field.pointer and (first is None or second is None):
        return first is second
    return _same_item(first, second, field)


def _same_item(first: Any, second: Any, field: Field) -> bool:
    if not field.scalar:
        return same(first, second, field.type)
    if field.type == "quantity":
        return bool(Quantity.from_json(first or 0) == Quantity.from_json(second or 0))
    if field.pointer or field.type == "any":
        return bool(first == second)
    return (first or None) == (second or None)


# Rules that the API's types declare, which servers since 1.37 enforce in the shapes of the object's own version.

_DECLARED: Final[Mapping[str, frozenset[str]]] = {
    "allocation-mode-unknown": frozenset((NOT_SUPPORTED,)),
    "attribute-one-value": frozenset((INVALID,)),
    "attribute-string-long": frozenset((TOO_LONG,)),
    "binding-too-many": frozenset((TOO_MANY,)),
    "class-name-invalid": frozenset((INVALID,)),
    "class-name-missing": frozenset((REQUIRED,)),
    "compatibility-groups": frozenset((DUPLICATE, INVALID, TOO_MANY)),
    "consumes-counters": frozenset((INVALID, REQUIRED)),
    "consumes-duplicate": frozenset((DUPLICATE,)),
    "consumes-set": frozenset((INVALID, REQUIRED)),
    "consumes-too-many": frozenset((TOO_MANY,)),
    "derived-attribute": frozenset((INVALID, REQUIRED, TOO_LONG, TOO_MANY)),
    "node-allocatable-empty": frozenset((INVALID,)),
    "selectors-too-many": frozenset((TOO_MANY,)),
    "sub-request-name-duplicate": frozenset((DUPLICATE,)),
    "sub-requests-too-many": frozenset((TOO_MANY,)),
    "taint-effect": frozenset((NOT_SUPPORTED, REQUIRED)),
    "toleration-effect": frozenset((NOT_SUPPORTED,)),
    "toleration-key-invalid": frozenset((INVALID,)),
    "toleration-operator": frozenset((NOT_SUPPORTED, REQUIRED)),
}
"""Of the rules below requests and devices, those that are declared, with the reasons for which they are."""
_EXACTLY: Final = re.compile(r"^((?:spec\.)+devices\.requests\[\d+\])\.exactly\b")
_DEVICE: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")


def beyond_limit(
    values: Sequence[Any] | None, at: FieldPath, limit: int | None, check: Check, context: ServerContext
) -> Violations:
    """What servers since 1.37 find in the items of a list over its limit, where the types do not declare the limit."""
    if context.is_declarative() and limit is not None and len(values or ()) > limit:
        for index, value in enumerate(values or ()):
            yield from (violation for violation in check(value, (*at, index)) if is_declared(violation))


def is_declared(violation: Violation) -> bool:
    """Whether the API's types declare the violated rule."""
    if violation.rule == "class-name-invalid" or violation.rule == "class-name-missing":
        return "firstAvailable" in violation.path
    if violation.rule == "attribute-string-long":
        return "strings" in violation.path
    return violation.reason in _DECLARED.get(violation.rule, ())


def in_v1beta1(field: str) -> str:
    """The text of a field in v1beta1, where requests are flat and devices are inside ``basic``."""
    return _DEVICE.sub(r"\1.basic.", _EXACTLY.sub(r"\1", field))
