"""Selectors on many devices: which ``&&`` term rejects a device, what it requires, and what devices have instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from msgspec import Struct

from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.shared_devices import OwnValues
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import CompileError, EvaluationError, Program, ast
from kubectl_dra.cel.columns import Column, columns_of
from kubectl_dra.explain.funnel.device_view import PublishedDevice, in_slices
from kubectl_dra.explain.funnel.shown import Observation
from kubectl_dra.explain.phrase import Joined, Statement, Words, say


class RefusingTerm(Struct, frozen=True):
    """The first term that decides against a device: its index, and its error if it raised one."""

    term: int
    error: EvaluationError | None


def term_texts(selectors: Selectors, expression: str) -> tuple[str, ...]:
    """The ``&&`` terms of an expression as written; the whole text if it does not compile."""
    return tuple(" ".join(term.expression.split()) for term in selectors.terms(expression)) or (expression,)


def judge(selectors: Selectors, expression: str, devices: Sequence[Device]) -> list[RefusingTerm | None]:
    """For each device None if the expression holds, else the term that rejects it.

    As in the scheduler, the whole expression decides: an error in one term does not count if another term is
    false.
    """
    program = selectors.program(expression)
    if isinstance(program, CompileError):
        # Where it does not, is said once: by the cause.
        return [RefusingTerm(0, EvaluationError("it does not compile"))] * len(devices)
    if len(set(map(id, devices))) < len(devices):
        different = dict(zip(map(id, devices), devices, strict=True))
        answers = dict(zip(different, judge(selectors, expression, list(different.values())), strict=True))
        return [answers[key] for key in map(id, devices)]
    verdicts = selectors.verdicts(expression, devices)
    refused = [index for index, verdict in enumerate(verdicts) if verdict is not True]
    out: list[RefusingTerm | None] = [None] * len(devices)
    if not refused:
        return out
    terms = selectors.terms(expression)
    # Asked about all devices, the terms share what the whole expression has already read of them.
    table = selectors.table(devices)
    plain = [RefusingTerm(term, None) for term in range(max(1, len(terms)))]
    for position, term in enumerate(terms if len(terms) > 1 else ()):
        if not refused:
            break
        values = term.evaluate_devices(table)
        undecided: list[int] = []
        for index in refused:
            verdict, answer = verdicts[index], values[index]
            if verdict is False:
                if answer is False:
                    out[index] = plain[position]
                    continue
            elif isinstance(verdict, EvaluationError) and isinstance(answer, EvaluationError):
                out[index] = RefusingTerm(position, verdict)
                continue
            undecided.append(index)
        refused = undecided
    for index in refused:
        verdict = verdicts[index]
        out[index] = RefusingTerm(0, verdict) if isinstance(verdict, EvaluationError) else plain[0]
    return out


# What a selector term requires of a device, as a value that can be put into words.
#
# Only comparisons of one attribute, capacity or the driver with constants have such a value; everything else is
# shown as written.

MAX_VALUES = 4
_LOOKUPS = frozenset(("_[_]", "_?._", "_[?_]"))
_TURNED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_", "_==_": "_==_", "_!=_": "_!=_"}


class Is(Statement, frozen=True):
    """What a device has of a name."""

    TEXT = "{name} {value}"
    name: str
    value: str


class Has(Statement, frozen=True):
    """The device has an attribute or capacity at all."""

    TEXT = "attribute {name}"
    name: str


_OTHER = "a {name} other than {value}"
_ABOVE, _BELOW = "{name} above {value}", "{name} below {value}"
_ORDER = {
    "_==_": None,
    "_!=_": _OTHER,
    "_>_": _ABOVE,
    "_<_": _BELOW,
    "_>=_": "{name} of at least {value}",
    "_<=_": "{name} of at most {value}",
}
_CALLS = {
    "isGreaterThan": _ABOVE,
    "isLessThan": _BELOW,
    "startsWith": "a {name} that starts with {value}",
    "endsWith": "a {name} that ends with {value}",
    "contains": "a {name} with {value} in it",
    "matches": "a {name} that matches {value}",
}


def plain(program: Program) -> Words | None:
    """What a term requires; None if words cannot express all of it."""
    return _plain(program.ast.expression)


def _plain(node: ast.Expression) -> Words | None:
    if isinstance(node, ast.Select) and node.test_only:
        name = _name(node)
        return Has(name) if name else None
    if not isinstance(node, ast.Call):
        name = _read(node)
        return Is(name, "true") if name else None
    if node.function == "_||_":
        parts = tuple(_plain(side) for side in node.arguments)
        return Joined(tuple(part for part in parts if part), " or ") if all(parts) else None
    if node.function == "!_":
        return _negated(node.arguments[0])
    if node.function == "@in":
        return _among(node)
    if node.function in _ORDER:
        return _compared(node)
    if node.function in _CALLS and node.target is not None and len(node.arguments) == 1:
        (value,) = node.arguments
        return _wish(_CALLS[node.function], node.target, _made(value) or _constant(value))
    name = _read(node)
    return Is(name, "true") if name else None


def _negated(node: ast.Expression) -> Words | None:
    wish = _plain(node)
    if isinstance(wish, Is):
        return Is(wish.name, "false") if wish.value == "true" else say(_OTHER, name=wish.name, value=wish.value)
    return say("no attribute {name}", name=wish.name) if isinstance(wish, Has) else None


def _among(node: ast.Call) -> Words | None:
    """``x in [a, b]``, or ``"name" in device.attributes["domain"]``."""
    operand, options = node.arguments
    if isinstance(options, ast.ListLiteral):
        values = [value for option in options.elements if (value := _constant(option))]
        name = _read(operand)
        if not name or len(values) != len(options.elements) or not 0 < len(values) <= MAX_VALUES:
            return None
        *first, last = values
        return Is(name, f"{', '.join(first)} or {last}" if first else last)
    name = _constant(operand)
    return Has(name) if name and len(columns_of(node) or ()) == 1 else None


def _compared(node: ast.Call) -> Words | None:
    left, right = node.arguments
    function = node.function
    if _constant(left) or _made(left) or _is_zero(left):
        left, right, function = right, left, _TURNED[function]
    if isinstance(left, ast.Call) and left.function == "compareTo":
        if left.target is None or len(left.arguments) != 1 or not _is_zero(right):
            return None
        return _wish(_ORDER[function], left.target, _made(left.arguments[0]))
    return _wish(_ORDER[function], left, _made(right) or _constant(right))


def _wish(text: str | None, read: ast.Expression, value: str) -> Words | None:
    name = _read(read)
    if not name or not value:
        return None
    return Is(name, value) if text is None else say(text, name=name, value=value)


def _read(node: ast.Expression) -> str:
    """What an expression reads, if reading is all it does; otherwise empty."""
    at: ast.Expression | None = node
    while at is not None and not isinstance(at, ast.Identifier):
        if isinstance(at, ast.Select) and not at.test_only:
            at = at.operand
        elif isinstance(at, ast.Call) and at.function in _LOOKUPS:
            at = at.arguments[0]
        else:
            return ""
    return _name(node)


def _name(node: ast.Expression) -> str:
    columns = columns_of(node) or frozenset[Column]()
    if len(columns) != 1:
        return ""
    (column,) = columns
    return column.kind if column.kind in ("driver", "allowMultipleAllocations") else column.id or ""


def _is_zero(node: ast.Expression) -> bool:
    return isinstance(node, ast.Literal) and node.value == 0 and not isinstance(node.value, bool)


def _constant(node: ast.Expression) -> str:
    """A constant as people write it; empty for anything else."""
    if not isinstance(node, ast.Literal) or node.value is None or isinstance(node.value, bytes):
        return ""
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    return str(node.value)


def _made(node: ast.Expression) -> str:
    """The text of ``quantity("…")`` or ``semver("…")``."""
    is_call = isinstance(node, ast.Call) and node.function in ("quantity", "semver") and node.arguments
    return _constant(node.arguments[0]) if is_call and isinstance(node, ast.Call) else ""


# What devices have instead: the values of the attributes and capacities that an expression reads.

MAX_NAMES = 4


def observations(program: Program, items: Sequence[PublishedDevice]) -> tuple[Observation, ...]:
    """Values with device counts for each name that the program reads, most frequent first.

    Empty if only evaluation can tell which names the program reads.
    """
    if not program.columns:
        return ()
    readable = [column for column in program.columns if column.id is not None]
    out: list[Observation] = []
    for column in sorted(readable, key=lambda column: (column.kind, column.domain or "", column.id or ""))[:MAX_NAMES]:
        counts = counted_values(items, column)
        absent = counts.pop(None, 0)
        ranked = _ranked(counts)
        del counts
        if absent:
            ranked.append((None, absent))
        out.append(Observation(_label(column, items), tuple(ranked)))
    return tuple(out)


def _ranked(counts: Counter[str | None]) -> list[tuple[str | None, int]]:
    """By frequency, then by value. Empties the counts, which may be as many as devices."""
    if len(counts) == counts.total():
        texts = sorted(map(str, counts))
        counts.clear()
        return [(text, 1) for text in texts]
    # One sort after the other is faster than pairs as keys.
    ranked: list[tuple[str | None, int]] = sorted(counts.items(), key=itemgetter(0))
    ranked.sort(key=itemgetter(1), reverse=True)
    return ranked


def _label(column: Column, items: Iterable[PublishedDevice]) -> str:
    if not column.id:
        return column.kind
    own = column.domain is None or {item.device.driver for item in items} <= {column.domain}
    return column.id if own else f"{column.domain}/{column.id}"


def counted_values(items: Sequence[PublishedDevice], column: Column) -> Counter[str | None]:
    """Number of devices by value. Devices that are one object without values of their own are counted at once."""
    if own_values_in(items, (column,)) or len({id(item.device) for item in items}) == len(items):
        return Counter(values_of(items, column))
    keys = [id(item.device) for item in items]
    different = dict(zip(keys, items, strict=True))
    counts: Counter[str | None] = Counter()
    times = Counter(keys).values()
    for value, number in zip(values_of(different.values(), column), times, strict=True):
        counts[value] += number
    return counts


def own_values_in(items: Iterable[PublishedDevice], columns: Iterable[Column]) -> bool:
    """Whether some of the devices share an object, but have values of their own in these columns."""
    every = [_own(column) for column in columns]
    return any(
        own.of(slice_.driver, slice_.devices, slice_.individual) for slice_, _ in in_slices(items) for own in every
    )


def _own(column: Column) -> OwnValues:
    return OwnValues(column.kind, column.domain, column.id or "")


def values_of(items: Iterable[PublishedDevice], column: Column) -> Iterator[str | None]:
    """``value_of`` for each device; fast for a text attribute, or a capacity, in the devices' own domain."""
    usual_place = column.kind in ("attribute", "capacity") and column.domain and column.id
    attributes = column.kind == "attribute"
    usual = "string" if attributes else "value"
    domain, name, qualified = column.domain, column.id or "", f"{column.domain}/{column.id}"
    per_device = _own(column)
    for slice_, group in in_slices(items):
        if own := per_device.of(slice_.driver, slice_.devices, slice_.individual):
            yield from [own[item.position] for item in group]
            continue
        for item in group:
            device = item.device
            table = device.attributes if attributes else device.capacity
            raw = table.get(name) if usual_place and device.driver == domain and qualified not in table else None
            text = raw.get(usual) if raw is not None and len(raw) == 1 else None
            yield text if text.__class__ is str else value_of(device, column)


def value_of(device: Device, column: Column) -> str | None:
    """The value of one attribute or capacity as text; None if the device lacks it."""
    if column.kind == "driver":
        return device.driver
    if column.kind == "allowMultipleAllocations":
        return "true" if device.allow_multiple_allocations else "false"
    table = device.attributes if column.kind == "attribute" else device.capacity
    domain = device.driver if column.domain is None else column.domain
    raw = table.get(f"{domain}/{column.id}")
    if raw is None and domain == device.driver:
        raw = table.get(column.id or "")
    if raw is None:
        return None
    if column.kind == "capacity":
        return str(raw.get("value", "0"))
    for value in raw.values():
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)
    return None
