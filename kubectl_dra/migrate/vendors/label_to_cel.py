"""Label values as CEL: the value of a device's attribute or capacity if its node has the label."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubectl_dra.migrate.vendors.model import KnownDriver, LabelRule

_INT: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_VERSION: Final = re.compile(r"v?([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([0-9]{1,9}))?", re.ASCII)
_VRAM: Final = re.compile(r"([0-9]{1,9})G", re.ASCII)


class Untranslatable(Exception):
    """No device can be selected by that. The message says why, as the end of a sentence about the label."""

    def __init__(self, message: str, way_out: str = "") -> None:
        super().__init__(message)
        self.way_out = way_out


def text(value: str) -> str:
    """A CEL string."""
    return json.dumps(value, ensure_ascii=False)


def one_of(left: str, values: Sequence[str]) -> str:
    """CEL: the left side is one of the values, which are CEL expressions themselves."""
    return f"{left} == {values[0]}" if len(values) == 1 else f"{left} in [{', '.join(values)}]"


def condition(rule: LabelRule, driver: KnownDriver, operator: str, values: Sequence[str]) -> str:
    """CEL for ``In``, ``NotIn``, ``Gt`` or ``Lt`` on the label; true for devices whose node would have that
    label.

    If some devices of the driver lack the attribute, those count like nodes without the label.

    Raises:
        Untranslatable: a value that the label cannot have, or an operator that does not suit it.
    """
    if operator in ("Gt", "Lt"):
        if len(values) != 1 or not _INT.fullmatch(values[0]):
            raise Untranslatable(f"is compared by {operator} with something other than a whole number")
        if rule.compare not in _ORDERS:
            raise Untranslatable(f"is not a number, so {operator} is true on no node")
    guard, subject = subject_of(rule, driver)
    if operator in ("Gt", "Lt"):
        expression = _ORDERS[rule.compare](_formed(rule, subject, values[0]), operator, int(values[0]))
    else:
        expression = _any_of(rule, subject, values)
    guarded = _and(guard, expression)
    if (operator == "NotIn") == rule.negated:
        return guarded
    return _not(guarded)


def subject_of(rule: LabelRule, driver: KnownDriver) -> tuple[str, str]:
    """(guard, CEL) of the attribute or capacity that a rule compares. The guard is empty if not needed."""
    name = rule.attribute or rule.capacity
    # Without a domain of its own a name is in that of the driver.
    domain, identifier = name.split("/", 1) if "/" in name else (driver.name, name)
    kind = "attributes" if rule.attribute else "capacity"
    place = f"device.{kind}[{text(domain)}]"
    if name in (driver.always if rule.attribute else driver.always_capacities):
        return "", f"{place}.{identifier}"
    if rule.attribute and rule.compare in ("text", "topology", "list", "contains", "pattern"):
        return "", f'{place}.?{identifier}.orValue("")'
    return f"has({place}.{identifier})", f"{place}.{identifier}"


def _any_of(rule: LabelRule, subject: str, values: Sequence[str]) -> str:
    """One of the values, whose forms may differ."""
    by_form: dict[str, list[str]] = {}
    for value in values:
        by_form.setdefault(_formed(rule, subject, value), []).append(value)
    parts = [_EQUALS[rule.compare](left, spelled(rule, group)) for left, group in by_form.items()]
    return " || ".join(parts)


def _formed(rule: LabelRule, subject: str, value: str) -> str:
    form = next((other.form for other in rule.forms if other.values.fullmatch(value)), rule.form)
    return form.replace("{}", subject)


def spelled(rule: LabelRule, values: Sequence[str]) -> list[str]:
    """The label's values in the attribute's spelling, without repeats. Raises Untranslatable for an unknown one."""
    spelling = rule.spelling
    out: dict[str, None] = {}
    for value in values:
        if value in spelling.map:
            out[spelling.map[value]] = None
            continue
        if spelling.only:
            raise Untranslatable(f"has a value, {value}, that is not known here")
        written = value
        for old, new in spelling.replace.items():
            written = written.replace(old, new)
        out[spelling.prefix + written] = None
        if spelling.also_prefix and not (spelling.unless and spelling.unless.fullmatch(value)):
            out[spelling.also_prefix + written] = None
    return list(out)


def _integers(left: str, values: Sequence[str]) -> str:
    for value in values:
        if not _INT.fullmatch(value):
            raise Untranslatable(f"is a whole number, which {value} is not")
    return one_of(left, [str(int(value)) for value in values])


def _versions(left: str, values: Sequence[str]) -> str:
    parts = []
    for value in values:
        match = _VERSION.fullmatch(value)
        if match is None:
            raise Untranslatable(f"is a version, which {value} is not")
        # Semantic versions have three numbers, and no leading zeros.
        parts.append(".".join(str(int(number or 0)) for number in match.groups()))
    return " || ".join(f'{left}.compareTo(semver("{part}")) == 0' for part in parts)


def _quantities(left: str, values: Sequence[str]) -> str:
    return " || ".join(f'{left}.compareTo(quantity("{_natural(value)}")) == 0' for value in values)


def _mebibytes(left: str, values: Sequence[str]) -> str:
    """A label with the number of whole mebibytes."""
    return " || ".join(_window(left, number, number + 1) for number in map(_natural, values))


def _gibibytes(left: str, values: Sequence[str]) -> str:
    """A label with the nearest number of gibibytes, such as 192G."""
    windows = []
    for value in values:
        match = _VRAM.fullmatch(value)
        if match is None:
            raise Untranslatable(f"is a number of gibibytes such as 192G, which {value} is not")
        middle = int(match[1]) * 1024
        windows.append(_window(left, middle - 512, middle + 512))
    return " || ".join(windows)


def _window(left: str, low: int, high: int) -> str:
    return f'{left}.compareTo(quantity("{low}Mi")) >= 0 && {left}.compareTo(quantity("{high}Mi")) < 0'


def _natural(value: str) -> int:
    if not _INT.fullmatch(value) or value.startswith("-"):
        raise Untranslatable(f"is a whole number, which {value or 'an empty text'} is not")
    return int(value)


def _texts(left: str, values: Sequence[str]) -> str:
    return one_of(left, [text(value) for value in values])


def _patterns(left: str, values: Sequence[str]) -> str:
    return " || ".join(f"{left}.matches({text(value)})" for value in values)


def _listed(left: str, values: Sequence[str]) -> str:
    return one_of(left, [text(entry) for entry in _entries(values)])


def _contains(left: str, values: Sequence[str]) -> str:
    """HAMi looks for each entry in its own name of the card, which has another NVIDIA- before it; case is ignored."""
    entries = [item.upper().removeprefix("NVIDIA-") for item in _entries(values)]
    return f"[{', '.join(map(text, entries))}].exists(x, {left}.contains(x))"


def _entries(values: Sequence[str]) -> list[str]:
    entries = [item.strip() for value in values for item in value.split(",")]
    items = [item for item in entries if item]
    if not items:
        raise Untranslatable("is empty")
    return items


def _integer_order(left: str, operator: str, number: int) -> str:
    return f"{left} {'>' if operator == 'Gt' else '<'} {number}"


def _mebibyte_order(left: str, operator: str, number: int) -> str:
    if operator == "Lt":
        return f'{left}.compareTo(quantity("{number}Mi")) < 0'
    return f'{left}.compareTo(quantity("{number + 1}Mi")) >= 0'


def _quantity_order(left: str, operator: str, number: int) -> str:
    return f'{left}.compareTo(quantity("{number}")) {">" if operator == "Gt" else "<"} 0'


_EQUALS: Final[Mapping[str, Callable[[str, Sequence[str]], str]]] = {
    "text": _texts,
    "topology": _texts,
    "integer": _integers,
    "version": _versions,
    "quantity": _quantities,
    "mebibytes": _mebibytes,
    "gibibytes": _gibibytes,
    "pattern": _patterns,
    "list": _listed,
    "contains": _contains,
}
_ORDERS: Final[Mapping[str, Callable[[str, str, int], str]]] = {
    "integer": _integer_order,
    "quantity": _quantity_order,
    "mebibytes": _mebibyte_order,
}


def _and(guard: str, expression: str) -> str:
    if not guard:
        return expression
    return f"{guard} && ({expression})" if " || " in expression else f"{guard} && {expression}"


def _not(expression: str) -> str:
    plain = expression.count(" == ") == 1 and " && " not in expression and " || " not in expression
    return expression.replace(" == ", " != ") if plain else f"!({expression})"


def joined(conditions: Sequence[str], operator: str) -> str:
    """Conditions joined by ``&&`` or ``||``, with brackets around those that have operators of their own."""
    if len(conditions) == 1:
        return conditions[0]
    bracketed = [f"({term})" if " || " in term or " && " in term else term for term in conditions]
    return f" {operator} ".join(bracketed)
