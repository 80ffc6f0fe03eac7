"""Looser selector terms: constants are replaced with values that devices have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from heapq import nsmallest
from string import hexdigits
from typing import Any, Final, NamedTuple

from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.quantity import QuantityError, nanos_of
from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.api.slices import Device, identifies
from kubectl_dra.cel import CompileError, Program, ast, compile_expression
from kubectl_dra.cel.columns import Column, DeviceTable, columns_of
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice, distinct
from kubectl_dra.explain.funnel.selector_terms import counted_values, own_values_in, values_of
from kubectl_dra.explain.remedies.change import ReplaceTerm
from kubectl_dra.explain.remedies.claim_edits import RequestPlace
from kubectl_dra.text import nearest, whole_number

MAX_VALUES = 8
MAX_OFFERS = 3
MAX_DEVICES = 1000
"""Up to this many different devices, all are examined; of more, only some of those with the value in question."""
CARRIERS = 8
MAX_TEXTS = 50
"""If devices have more different texts than this, the texts are names, and only a similar one is worth offering."""
_COMPARISONS: Final = frozenset(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"))
_TEXT_CALLS: Final = frozenset(("startsWith", "endsWith", "contains"))
_LONG_NAME: Final = 18
"""Shorter names, with their quotes, differ in few places anyway."""
_NOT_STRICT: Final = {"isGreaterThan": ">=", "isLessThan": "<="}
_BOOLEANS: Final = frozenset(("true", "false"))
_MAKERS: Final = {"quantity": "quantity", "semver": "version"}


class Offer(NamedTuple):
    """One constant of a term replaced: as written, the replacement, and the term before and after.

    ``amount``: it is a number, an amount or a version, so the change is more or less of the same thing.
    ``carriers`` are some of the devices with the value, one of each object unless they have values of their own.
    """

    old: str
    new: str
    old_term: str
    new_term: str
    amount: bool
    carriers: Sequence[PublishedDevice] = ()


class Slot(NamedTuple):
    """A constant in an expression that is compared with a device's value."""

    kind: str
    start: int
    end: int
    value: Any
    comparison: ast.Expression


def loosened_term(
    view: DeviceView,
    place: RequestPlace,
    index: int,
    spec: DeviceRequest,
    term: int,
    refused: Sequence[PublishedDevice],
) -> Iterator[ReplaceTerm]:
    """Changes of one term of a request's selector ``index`` with which it holds on some of the devices it rejects."""
    selectors, expression = view.cycle.selectors, spec.selectors[index] or ""
    written = " ".join(text for text in spec.selectors if text)
    terms = selectors.terms(expression)
    single = terms and any(names_single(slot.comparison) for slot in slots(terms[term]))
    for offer in loosened(selectors, expression, term, refused):
        # Another device is no way to get this one, nor is the opposite of what is wanted.
        if offer.old in _BOOLEANS or (single and not _misspelt(offer.old, offer.new)):
            continue
        yield ReplaceTerm(
            place,
            selectors,
            index,
            term,
            offer.old_term,
            offer.new_term,
            offer.old,
            offer.new,
            near=tuple(view.near(_like(view, offer.carriers, refused))),
            amount=offer.amount,
            once=len(re.findall(rf"(?<![\w-]){re.escape(offer.old)}(?![\w.-])", written)) == 1,
        )


def _misspelt(written: str, other: str) -> bool:
    """Whether an identifier is another one with a slip of the pen: a sign in one place that no such number has.

    Where that sign were a digit as well, it may be the next device of the series.
    """
    slips = [own for own, right in zip(written, other, strict=False) if own != right]
    alike = len(written) == len(other) >= _LONG_NAME
    return alike and len(slips) == 1 and slips[0] not in hexdigits


def _like(
    view: DeviceView, carriers: Sequence[PublishedDevice], items: Sequence[PublishedDevice]
) -> Iterable[PublishedDevice]:
    """Those of the devices that are the same objects as the carriers; of a carrier with its own values only itself."""
    own = {id(item) for item in carriers if view.differs(item.slice)}
    if len(own) == len(carriers):
        return carriers
    shared = {id(item.device) for item in carriers if id(item) not in own}
    return (item for item in items if id(item) in own or (id(item.device) in shared and not view.differs(item.slice)))


def loosened(selectors: Selectors, expression: str, term: int, items: Sequence[PublishedDevice]) -> Iterator[Offer]:
    """Terms with one constant replaced that hold on some of these devices, the nearest value first."""
    terms = selectors.terms(expression)
    if not terms or not items:
        return
    program = terms[term]
    different = items if own_values_in(items, program.columns or ()) else distinct(items)
    everything = DeviceTable([item.exact for item in different]) if len(different) <= MAX_DEVICES else None
    offered = 0
    for slot in slots(program):
        columns = columns_of(slot.comparison) or program.columns or ()
        read = [column for column in columns if column.id or column.kind in ("driver", "allowMultipleAllocations")]
        seen = Seen(read, different, items)
        texts = list(_made_texts(slot, program, seen) or _texts(slot, program, seen))
        carriers = seen.carriers(value for value, _ in texts)
        for value, text in texts:
            devices = everything or [item.exact for item in carriers[value]]
            # Devices have just this value, so that equal ones have to pass.
            loose = _not_strict(slot, expression, text) if slot.kind in _ORDERED else None
            edit = loose or TermEdit(slot.start, slot.end, text)
            changed = expression[: edit.start] + edit.text + expression[edit.end :]
            if not _holds(selectors, changed, term, devices):
                continue
            new_term = changed[program.start : program.end + len(edit.text) - (edit.end - edit.start)]
            old, amount = expression[edit.start : edit.end], slot.kind in _ORDERED
            yield Offer(old, edit.text, program.expression, new_term, amount, carriers[value])
            offered += 1
            if offered == MAX_OFFERS:
                return


class TermEdit(NamedTuple):
    """A part of an expression, and what to write in its place."""

    start: int
    end: int
    text: str


def _not_strict(slot: Slot, expression: str, value: str) -> TermEdit | None:
    """A strict comparison with this value, as one that equal values pass; None for another comparison."""
    node = slot.comparison
    if not isinstance(node, ast.Call):
        return None
    if (sign := _NOT_STRICT.get(node.function)) and node.target is not None:
        # It becomes a comparison of its own.
        call = expression.index(node.function, node.target.end)
        argument = expression[call + len(node.function) : slot.start] + value + expression[slot.end : node.end]
        return TermEdit(call, node.end, f"compareTo{argument} {sign} 0")
    if node.function in ("_<_", "_>_", "_==_"):
        left, right = node.arguments
        sign = node.function.strip("_")
        gap, rest = expression[left.end : right.start], expression[right.start : node.end]
        if sign == "==":
            if rest not in ("1", "-1") or slot.end > left.end:
                return None
            gap, rest = gap.replace(sign, ">=" if rest == "1" else "<=", 1), "0"
        else:
            gap = gap.replace(sign, f"{sign}=", 1)
        if slot.start >= right.start:
            own = rest[: slot.start - right.start] + value + rest[slot.end - right.start :]
            start = left.end + len(gap) - len(gap.lstrip())
            return TermEdit(start, node.end, f"{gap.lstrip()}{own}")
        # Of a call what stands before it stays.
        start = left.target.end + 1 if isinstance(left, ast.Call) and left.target is not None else left.start
        own = expression[start : slot.start] + value + expression[slot.end : left.end]
        return TermEdit(start, node.end, f"{own}{gap}{rest}")
    return None


def names_single(comparison: ast.Expression) -> bool:
    """Whether a comparison asks for one single device: by its serial number, its name on the node or its address."""
    return any(column.kind == "attribute" and _tells_apart(column) for column in columns_of(comparison) or ())


def _tells_apart(column: Column) -> bool:
    if identifies(column.id or ""):
        return True
    from kubectl_dra.data.drivers import catalogue, name_in

    driver = catalogue().driver(column.domain or "")
    if driver is None:
        return False
    known = driver.attributes.get(name_in(driver.name, column))
    return known is not None and (known.single or known.unique)


def _holds(selectors: Selectors, expression: str, term: int, devices: Sequence[Device] | DeviceTable) -> bool:
    try:
        program = compile_expression(selectors.environment, expression)
    except CompileError:
        return False
    terms = program.terms()
    return term < len(terms) and any(value is True for value in terms[term].evaluate_devices(devices))


def slots(program: Program) -> Iterator[Slot]:
    """The constants of a term that are compared with devices' values."""
    pending: list[ast.Expression] = [program.ast.expression]
    while pending:
        node = pending.pop(0)
        pending.extend(ast.children(node))
        if isinstance(node, ast.Call) and program.start <= node.start and node.end <= program.end:
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[Slot]:
    if node.function in _COMPARISONS:
        for side in node.arguments:
            # The 0 of x.compareTo(y) >= 0 says how to compare, not with what.
            if any(isinstance(other, ast.Call) and other.function == "compareTo" for other in node.arguments):
                yield from (slot for call in node.arguments for slot in _made(_argument(call), node))
                return
            if isinstance(side, ast.Literal) and isinstance(side.value, bool | int | str):
                kind = {bool: "bool", int: "int"}.get(type(side.value), "string")
                yield Slot(kind, side.start, side.end, side.value, node)
            yield from _made(side, node)
    elif node.function in ("isGreaterThan", "isLessThan"):
        yield from _made(_argument(node), node)
    elif node.function in _TEXT_CALLS:
        text = _argument(node)
        if isinstance(text, ast.Literal) and isinstance(text.value, str):
            yield Slot("string", text.start, text.end, text.value, node)
    elif node.function == "@in":
        options = node.arguments[1]
        if isinstance(options, ast.ListLiteral):
            values = [element.value for element in options.elements if isinstance(element, ast.Literal)]
            if values and len(values) == len(options.elements):
                yield Slot("list", options.start, options.end, values, node)


def _argument(node: ast.Expression) -> ast.Expression | None:
    return node.arguments[0] if isinstance(node, ast.Call) and len(node.arguments) == 1 else None


def _made(node: ast.Expression | None, comparison: ast.Expression) -> Iterator[Slot]:
    """The constant of ``quantity("…")`` or ``semver("…")``."""
    if not isinstance(node, ast.Call) or node.function not in _MAKERS or not node.arguments:
        return
    text = node.arguments[0]
    if isinstance(text, ast.Literal) and isinstance(text.value, str):
        yield Slot(_MAKERS[node.function], text.start, text.end, text.value, comparison)


class Seen:
    """The values of some columns of devices, read anew each time: a million serial numbers take 0.1 GB.

    ``different`` are ``items`` without those that are the same to the question.
    """

    def __init__(
        self, columns: Sequence[Column], different: Sequence[PublishedDevice], items: Sequence[PublishedDevice]
    ) -> None:
        self._columns = columns
        self._different = different
        self._items = items

    def values(self) -> Iterator[str]:
        """The values, column by column, each as often as it is there."""
        for column in self._columns:
            yield from (value for value in values_of(self._different, column) if value is not None)

    @cached_property
    def many(self) -> bool:
        """Whether they are more than ``MAX_TEXTS``."""
        return len(_first(MAX_TEXTS + 1, self.values())) > MAX_TEXTS

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of devices with each value."""
        totals: Counter[str] = Counter()
        for column in self._columns:
            counts = counted_values(self._items, column)
            totals.update({value: number for value, number in counts.items() if value is not None})
        return totals

    def carriers(self, values: Iterable[str]) -> Mapping[str, Sequence[PublishedDevice]]:
        """The first few devices that have each of these values."""
        carriers: dict[str | None, list[PublishedDevice]] = {value: [] for value in values}
        for column in self._columns:
            for item, value in zip(self._different, values_of(self._different, column), strict=True):
                having = carriers.get(value)
                if having is not None and len(having) < CARRIERS:
                    having.append(item)
        return {value: having for value, having in carriers.items() if value is not None}


def _first(number: int, values: Iterable[str]) -> Collection[str]:
    """The first different values, in their order."""
    distinct: dict[str, None] = {}
    for value in values:
        distinct[value] = None
        if len(distinct) == number:
            break
    return distinct


def _texts(slot: Slot, program: Program, seen: Seen) -> Iterator[tuple[str, str]]:
    """A value, and the text to write in place of the constant; the nearest or most frequent first."""
    source = program.ast.source[slot.start : slot.end]
    quote = "'" if source.lstrip("[").startswith("'") else '"'
    order = _ORDERED.get(slot.kind)
    if order is not None:
        yield from order(slot.value, list(seen.counts), quote)
        return
    for value in _ranked(slot, seen):
        if slot.kind == "bool" and value in ("true", "false"):
            yield value, value
        elif slot.kind == "string":
            yield value, _text(value, quote)
            yield value, _text(value.lower(), quote)
        elif slot.kind == "list" and source.endswith("]"):
            number = isinstance(slot.value[0], int)
            if not number or _integer(value) is not None:
                yield value, f"{source[:-1].rstrip()}, {value if number else _text(value, quote)}]"


def _made_texts(slot: Slot, program: Program, seen: Seen) -> list[tuple[str, str]]:
    """The same where a function makes of devices' values what is compared: what it makes of them, the nearest first."""
    from kubectl_dra.explain.remedies.made_values import made_side, made_values

    side = made_side(slot.comparison, slot.start, slot.end)
    if side is None or slot.kind not in ("string", "list", "int"):
        return []
    values = _ranked(slot, seen) if seen.many else _first(MAX_TEXTS, seen.values())
    made = dict(made_values(program, side, seen.carriers(values)))
    source = program.ast.source[slot.start : slot.end]
    quote = "'" if source.lstrip("[").startswith("'") else '"'
    if slot.kind == "int":
        numbers = {value: number for value, number in made.items() if isinstance(number, int)}
        near = sorted(numbers, key=lambda value: abs(numbers[value] - slot.value))
        return [(value, str(numbers[value])) for value in near[:MAX_VALUES]]
    texts = {value: text for value, text in made.items() if isinstance(text, str)}
    wanted = slot.value if slot.kind == "string" else str(slot.value[0])
    near = sorted(texts, key=lambda value: (-_likeness(texts[value], wanted), -seen.counts[value], value))[:MAX_VALUES]
    written = {value: _text(texts[value], quote) for value in near}
    if slot.kind == "string":
        return list(written.items())
    return [(value, f"{source[:-1].rstrip()}, {text}]") for value, text in written.items() if source.endswith("]")]


def _likeness(text: str, other: str) -> float:
    return SequenceMatcher(None, text.lower(), other.lower()).ratio()


def _ranked(slot: Slot, seen: Seen) -> list[str]:
    """The values most similar to the constant, then the most frequent; of very many texts only similar ones."""
    if slot.kind == "string" and seen.many:
        constant = slot.value.lower()
        half = max(1, len(constant) // 2)
        start, end = constant[:half], constant[-half:]
        alike = (value for value in seen.values() if value.lower().startswith(start) or value.lower().endswith(end))
        return list(nearest(slot.value, _first(MAX_DEVICES, alike), MAX_VALUES))
    constant, counts = slot.value if slot.kind == "string" else "", seen.counts

    def order(value: str) -> tuple[float, int, str]:
        return -_likeness(value, constant) if constant else 0.0, -counts[value], value

    return sorted(counts, key=order)[:MAX_VALUES]


def _quantities(constant: str, values: Sequence[str], quote: str) -> Iterator[tuple[str, str]]:
    try:
        wanted = nanos_of(constant)
        # A zero says that the driver does not know the amount.
        known = {value: nanos for value in values if (nanos := nanos_of(value))}
    except QuantityError:
        return
    for value in nsmallest(MAX_VALUES, known, lambda text: abs(known[text] - wanted)):
        yield value, _text(value, quote)


def _integers(constant: int, values: Sequence[str], quote: str) -> Iterator[tuple[str, str]]:
    known = {text: number for text in values if (number := _integer(text)) is not None}
    for text in sorted(known, key=lambda text: abs(known[text] - constant))[:MAX_VALUES]:
        yield text, str(known[text])


def _integer(text: str) -> int | None:
    number = whole_number(text.removeprefix("-"), 19)
    return number if number is None or text[0] != "-" else -number


def _versions(constant: str, values: Sequence[str], quote: str) -> Iterator[tuple[str, str]]:
    known: dict[str, Semver] = {}
    for value in values:
        try:
            known[value] = Semver.parse(value)
        except SemverError:
            continue
    try:
        wanted = Semver.parse_normalised(constant)
    except SemverError:
        return
    below = sorted((text for text in known if known[text] <= wanted), key=known.__getitem__, reverse=True)
    above = sorted((text for text in known if known[text] > wanted), key=known.__getitem__)
    for value in (below + above)[:MAX_VALUES]:
        yield value, _text(value, quote)


_ORDERED: Final[Mapping[str, Callable[[Any, Sequence[str], str], Iterator[tuple[str, str]]]]] = {
    "quantity": _quantities,
    "int": _integers,
    "version": _versions,
}


def _text(value: str, quote: str) -> str:
    escaped = value.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"
