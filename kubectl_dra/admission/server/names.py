"""The formats of names in the Kubernetes API: labels, subdomains, drivers, pools, attribute names, versions; and what
the row of a field says of it.

The ``*_problems`` functions return what is wrong with a text, or nothing. The ``check_*`` functions turn that
into violations of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    ServerContext,
    Violations,
    check_list,
    check_set,
    missing,
    size,
    violation,
)
from kubectl_dra.api.behaviour import EMPTY_IS_INVALID, LOWER_CASE_DOMAINS
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.limits import MAX_DRIVER, MAX_IDENTIFIER, MAX_LABEL, MAX_POOL, MAX_SUBDOMAIN
from kubectl_dra.api.releases import UNTOLD, Release
from kubectl_dra.api.schema import Field, FieldPath
from kubectl_dra.command import SUBDOMAIN

Problems = tuple[str, ...]
Format = Callable[[str], Problems]


_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_NAME_PART: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED: Final = 3
"""So many wrong characters are named."""
_PRERELEASE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    r"(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)"
    rf"(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


def with_odd(form: str, value: str, allowed: str) -> str:
    """A form as a text, and what of a value are no characters that it allows; these as in a pattern's brackets."""
    odd = list(dict.fromkeys(re.findall(f"[^{allowed}]+", value)))
    named = " and ".join(map(repr, odd[:_NAMED]))
    return f"{form}; it has {named}{' and others' if odd[_NAMED:] else ''}" if odd else form


def _problems(value: str, limit: int, pattern: re.Pattern[str], form: str, allowed: str) -> Problems:
    """What is wrong with a text of at most ``limit`` bytes and a form."""
    long = (f"is longer than {limit} characters",) if size(value) > limit else ()
    return long if pattern.fullmatch(value) else (*long, with_odd(form, value, allowed))


def label_problems(value: str) -> Problems:
    """DNS label (RFC 1123): lower case letters, digits and hyphens, at most 63."""
    form = "must be lower case letters, digits and '-', with a letter or digit at both ends"
    if SUBDOMAIN.fullmatch(value):
        # Only dots are wrong then.
        return _problems(value, MAX_LABEL, _LABEL, "must not contain dots", "-a-z0-9.")
    return _problems(value, MAX_LABEL, _LABEL, form, "-a-z0-9")


def subdomain_problems(value: str) -> Problems:
    """DNS subdomain (RFC 1123): labels joined by dots, at most 253 characters."""
    form = "must be lower case letters, digits, '-' and '.', with a letter or digit at both ends of each part"
    return _problems(value, MAX_SUBDOMAIN, SUBDOMAIN, form, "-a-z0-9.")


def label_key_problems(value: str) -> Problems:
    """Key of a label or taint: an optional ``subdomain/`` and a name of at most 63 characters."""
    parts = value.split("/")
    if len(parts) > 2:
        return ("must be a name, or a DNS subdomain and a name with one '/' between them",)
    out: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        out.extend(
            f"prefix {problem}" for problem in (subdomain_problems(prefix) if prefix else ("must not be empty",))
        )
    name = parts[-1]
    if not name:
        out.append("name must not be empty")
    elif size(name) > MAX_LABEL:
        out.append(f"name is longer than {MAX_LABEL} characters")
    elif not _NAME_PART.fullmatch(name):
        form = "name must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
        out.append(with_odd(form, name, "-A-Za-z0-9_."))
    return tuple(out)


def label_value_problems(value: str) -> Problems:
    """Value of a label or taint: empty, or at most 63 characters of a label key's name."""
    form = "must be empty, or letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    return _problems(value, MAX_LABEL, _NAME_PART, form, "-A-Za-z0-9_.") if value else ()


def generated(check: Format) -> Format:
    """The format of a generateName: like a name, but it may end with a hyphen."""

    def checked(value: str) -> Problems:
        # Upstream drops the character before the hyphen, too.
        return check(value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value)

    return checked


def is_identifier(value: str) -> bool:
    """Whether it is the name of an attribute or capacity without a domain."""
    return _IDENTIFIER.fullmatch(value) is not None


def is_version(value: str) -> bool:
    """Whether it is a semantic version (2.0.0). Its length is limited elsewhere."""
    return _VERSION.fullmatch(value) is not None


def lower(value: str) -> str:
    """Lower case as in Go: one character for each."""
    return value.lower() if value.isascii() else "".join([character.lower()[:1] for character in value])


def check_format(value: str | None, at: FieldPath, rule: str, problems: Format) -> Violations:
    """A violation for each problem with a text, which is empty where there is none."""
    value = value or ""
    for problem in problems(value):
        yield violation(at, INVALID, rule, f"{value!r} {problem}")


def check_required(value: str, at: FieldPath, rules: tuple[str, str], problems: Format) -> Violations:
    """Like ``check_format``, but an empty text is missing. ``rules``: missing, invalid."""
    if value:
        yield from check_format(value, at, rules[1], problems)
    else:
        yield missing(at, rules[0])


def check_length(value: str, at: FieldPath, limit: int, rule: str, below: FieldPath = ()) -> Violations:
    """A violation if the text has more than ``limit`` bytes."""
    length = size(value)
    if length > limit:
        yield violation(at, TOO_LONG, rule, f"has {length} bytes, at most {limit} are allowed", below=below)


def check_driver(
    value: str, at: FieldPath, rules: tuple[str, str, str], below: FieldPath = (), *, release: Release = UNTOLD
) -> Violations:
    """A driver's name, which is also the domain of an attribute. ``rules``: missing, invalid, too long."""
    if not value:
        yield missing(at, rules[0])
        if release in EMPTY_IS_INVALID:
            return
    yield from check_length(value, at, MAX_DRIVER, rules[2], below)
    for problem in subdomain_problems(lower(value)):
        yield violation(at, INVALID, rules[1], f"{value!r} {problem}", below=below)


def check_pool(value: str, at: FieldPath, rules: tuple[str, str, str]) -> Violations:
    """A pool's name: subdomains separated by slashes. ``rules``: missing, invalid, too long."""
    if not value:
        yield missing(at, rules[0])
        return
    yield from check_length(value, at, MAX_POOL, rules[2])
    for part in value.split("/"):
        yield from check_format(part, at, rules[1], subdomain_problems)


def check_qualified(
    value: str, at: FieldPath, rules: tuple[str, str], below: FieldPath = (), *, release: Release = UNTOLD
) -> Violations:
    """The name of an attribute or capacity: an identifier, or ``domain/identifier``. ``rules``: invalid, too
    long.

    Like Kubernetes up to 1.37, accepts names with two or more slashes.
    """
    if not value and release not in EMPTY_IS_INVALID:
        yield missing(at, rules[0])
        return
    empty = INVALID if release in EMPTY_IS_INVALID else REQUIRED
    parts = value.split("/")
    if len(parts) > 2:
        return
    if len(parts) == 2:
        if not parts[0]:
            yield violation(at, empty, rules[0], f"{value!r}: the domain before '/' is empty", below=below)
        else:
            yield from check_driver(parts[0], at, (rules[0], *rules), below)
        if not parts[1]:
            yield violation(at, empty, rules[0], f"{value!r}: the name after '/' is empty", below=below)
            return
    yield from check_length(parts[-1], at, MAX_IDENTIFIER, rules[1], below)
    if not is_identifier(parts[-1]):
        form = "must be letters, digits and '_', and must not begin with a digit"
        message = f"{parts[-1]!r} {with_odd(form, parts[-1], 'A-Za-z0-9_')}"
        yield violation(at, INVALID, rules[0], message, below=below)


def check_fully_qualified(
    value: str, at: FieldPath, rules: tuple[str, str], *, release: Release = UNTOLD
) -> Violations:
    """Like ``check_qualified``, but a domain is required."""
    yield from check_qualified(value, at, rules, release=release)
    domain = value.partition("/")[0] if value.count("/") == 1 else ""
    if release in LOWER_CASE_DOMAINS and domain != lower(domain):
        yield violation(at, INVALID, rules[0], f"the domain in {value!r} must be lower case")
    if "/" not in value and (value or release in EMPTY_IS_INVALID):
        yield violation(at, INVALID, rules[0], f"{value!r} must have a domain, as in 'example.com/name'")


def unsupported(value: str, at: FieldPath, rule: str, known: tuple[str, ...]) -> Any:
    """A value that is none of the known ones."""
    return violation(at, NOT_SUPPORTED, rule, f"{value!r} is none of {', '.join(known)}")


def check_choice(value: str | None, at: FieldPath, rule: str, known: tuple[str, ...]) -> Violations:
    """A value that may be missing or empty, and is otherwise one of the known ones."""
    if value and value not in known:
        yield unsupported(value, at, rule, known)


def check_required_choice(value: str, at: FieldPath, rule: str, known: tuple[str, ...]) -> Violations:
    """The same of a value that must be there."""
    if value:
        yield from check_choice(value, at, rule, known)
    else:
        yield missing(at, rule)


# What validation says of a field by its row alone: how many items, how long, in which form, which texts.


_FORMS: Final[Mapping[str, Format]] = {
    "key": label_key_problems,
    "label": label_problems,
    "subdomain": subdomain_problems,
    "value": label_value_problems,
}


def check_rows(raw: Mapping[str, Any] | None, at: FieldPath, struct: str, context: ServerContext) -> Violations:
    """The fields of a struct whose rows say all that is checked of them, in the order of the table."""
    for name, row in _checked(struct):
        value = (raw or {}).get(name)
        if value is not None:
            yield from _check_field(value, (*at, name), row, context)


@cache
def _checked(struct: str) -> tuple[tuple[str, Field], ...]:
    return tuple((name, row) for name, row in fields(struct).items() if row.check)


def _check_field(value: Any, at: FieldPath, row: Field, context: ServerContext) -> Violations:
    rule, *how = row.check.split()
    most = row.limit(context.release)

    def item(value: str | None, at: FieldPath) -> Violations:
        if row.values and value not in row.values:
            yield unsupported(value or "", at, rule, row.values)
        for form in how:
            if form in _FORMS:
                yield from check_format(value, at, rule, _FORMS[form])

    if not row.container:
        if most is not None:
            yield from check_length(value, at, most, rule)
        yield from item(value, at)
    elif "set" in how:
        yield from check_set(value, at, most, (rule, rule), item, context)
    else:
        yield from check_list(value, at, most, rule, item, context)
