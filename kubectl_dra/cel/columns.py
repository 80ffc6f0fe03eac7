"""Which parts of a device an expression reads, and groups of devices that look alike to it.

A selector usually reads two or three attributes, and a cluster may have a hundred thousand devices but only a
dozen kinds of hardware. ``columns_of`` finds what is read without evaluating anything. ``DeviceTable`` reads
those columns of all devices once, so that each distinct combination is evaluated only once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.quantity import BLANKS, Quantity, QuantityError, nanos_of
from kubectl_dra.cel import ast
from kubectl_dra.cel.ast import Call, Expression, Identifier, Literal, Select, children
from kubectl_dra.cel.device import broken_devices, device_value, narrow_value, read_column
from kubectl_dra.cel.errors import EvaluationError

if TYPE_CHECKING:
    from kubectl_dra.cel.device import DeviceInput
    from kubectl_dra.cel.values import Value


class Column(NamedTuple):
    """One thing that an expression reads of a device.

    ``kind`` is "driver", "allowMultipleAllocations", "attribute" or "capacity". For the last two, ``domain``
    None means the domain named like the device's driver (``device.attributes[device.driver]``), and ``id``
    None means all entries of the domain.
    """

    kind: str
    domain: str | None = ""
    id: str | None = ""


DRIVER = Column("driver")
ALLOW_MULTIPLE = Column("allowMultipleAllocations")


def columns_of(expression: Expression) -> frozenset[Column] | None:
    """Everything the expression may read; None if that is known only at run time (``attributes.exists(d, …)``)."""
    reader = _Reader()
    try:
        reader.consume(reader.read(expression, {"device": _DEVICE}))
    except _DynamicRead:
        return None
    return frozenset(reader.columns)


class _DynamicRead(Exception):
    """No finite set of columns describes what the expression reads."""


class _Reference(NamedTuple):
    """The place in the device that a sub-expression stands for, while its use is still unknown."""

    level: str
    kind: str = ""
    domain: str | None = ""


_DEVICE = _Reference("device")
_DRIVER_NAME = _Reference("driver")
_MAPS = {"attributes": _Reference("map", "attribute"), "capacity": _Reference("map", "capacity")}
_LOOKUPS = frozenset({"_[_]", "_[?_]", "_?._"})

_Scope = dict[str, "_Reference | None"]


class _Reader:
    def __init__(self) -> None:
        self.columns: set[Column] = set()

    def consume(self, reference: _Reference | None) -> None:
        """The value itself is used, so everything below it is read."""
        if reference is None:
            return
        if reference.level == "driver":
            self.columns.add(DRIVER)
        elif reference.level == "domain":
            self.columns.add(Column(reference.kind, reference.domain, None))
        else:
            raise _DynamicRead

    def read(self, node: Expression, scope: _Scope) -> _Reference | None:
        """Record what is read. Returns the node's place in the device if its use is still unknown."""
        if isinstance(node, ast.Identifier):
            return scope.get(node.name)
        if isinstance(node, ast.Select):
            return self._step(self.read(node.operand, scope), node.field, node.test_only)
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Comprehension):
            return self._comprehension(node, scope)
        for child in children(node):
            self.consume(self.read(child, scope))
        return None

    def _step(self, at: _Reference | None, key: str, test_only: bool = False) -> _Reference | None:
        if at is None:
            return None
        if at.level == "device":
            return None if test_only else self._field(key)
        if at.level == "map":
            domain = _Reference("domain", at.kind, key)
            if test_only:
                self.consume(domain)
                return None
            return domain
        if at.level == "domain":
            self.columns.add(Column(at.kind, at.domain, key))
            return None
        self.consume(at)
        return None

    def _field(self, name: str) -> _Reference | None:
        if name == "driver":
            return _DRIVER_NAME
        if name in _MAPS:
            return _MAPS[name]
        self.columns.add(ALLOW_MULTIPLE)
        return None

    def _call(self, node: ast.Call, scope: _Scope) -> _Reference | None:
        if node.function in _LOOKUPS:
            return self._lookup(node.arguments[0], node.arguments[1], scope)
        if node.function == "@in":
            self.consume(self._lookup(node.arguments[1], node.arguments[0], scope))
            return None
        if node.function == "dyn":
            return self.read(node.arguments[0], scope)
        if node.function == "value" and node.target is not None:
            return self.read(node.target, scope)
        references = [self.read(child, scope) for child in children(node)]
        if node.function == "_?_:_" and references[1] == references[2]:
            self.consume(references[0])
            return references[1]
        for reference in references:
            self.consume(reference)
        return None

    def _lookup(self, container: Expression, key: Expression, scope: _Scope) -> _Reference | None:
        at = self.read(container, scope)
        if isinstance(key, ast.Literal) and isinstance(key.value, str):
            return self._step(at, key.value)
        by = self.read(key, scope)
        if at is not None and at.level == "map" and by == _DRIVER_NAME:
            return _Reference("domain", at.kind, None)
        self.consume(by)
        self.consume(at)
        return None

    def _comprehension(self, node: ast.Comprehension, scope: _Scope) -> _Reference | None:
        self.consume(self.read(node.iter_range, scope))
        start = self.read(node.accu_init, scope)
        if isinstance(node.iter_range, ast.ListLiteral) and not node.iter_range.elements:
            # cel.bind and its relatives never loop: the variable is the value it was given, but for attributes or
            # capacities as a whole, which answer otherwise where a device has none.
            if start is not None and start.level == "map":
                raise _DynamicRead
            return self.read(node.result, {**scope, node.accu_var: start})
        self.consume(start)
        inner: _Scope = {**scope, node.accu_var: None, node.iter_var: None}
        if node.iter_var2:
            inner[node.iter_var2] = None
        self.consume(self.read(node.loop_condition, inner))
        self.consume(self.read(node.loop_step, inner))
        self.consume(self.read(node.result, {**scope, node.accu_var: None}))
        return None


Answer = bool | EvaluationError


class Part(NamedTuple):
    """An expression or one of its terms: what it reads (None: everything) and how it is evaluated.

    ``by_key`` answers keys of the only column that is read, where that can be told without evaluating; else None.
    """

    columns: frozenset[Column] | None
    evaluate: Callable[[Value], Answer]
    by_key: Callable[[Hashable], bool | None] | None


class DeviceTable:
    """Columns of many devices, each read once and shared by all expressions evaluated on them.

    Readers of large snapshots represent equal devices by one object, which is evaluated once.
    """

    def __init__(self, devices: Sequence[DeviceInput]) -> None:
        self.devices = devices
        self._different: DeviceTable | None = None
        self._places: list[int] = []
        if len(set(map(id, devices))) < len(devices):
            different = dict(zip(map(id, devices), devices, strict=True))
            numbers = dict(zip(different, range(len(different)), strict=True))
            self._places = [numbers[key] for key in map(id, devices)]
            self._different = DeviceTable(list(different.values()))
        self._columns: dict[Column, list[Hashable]] = {}
        self._broken: dict[bool, dict[int, EvaluationError]] = {}
        self._values: dict[tuple[int, bool], Value] = {}
        # By the part: what it answers for each distinct key of its columns.
        self._answers: dict[tuple[Callable[[Value], Answer], bool], dict[Hashable, Answer]] = {}

    def broken(self, list_attributes: bool = False) -> Mapping[int, EvaluationError]:
        """Devices on which every expression fails because an attribute cannot be converted."""
        errors = self._broken.get(list_attributes)
        if errors is None:
            errors = self._broken[list_attributes] = broken_devices(self.devices, list_attributes)
        return errors

    def column(self, column: Column) -> list[Hashable]:
        """One hashable per device. Devices with equal hashables have equal values in this column."""
        values = self._columns.get(column)
        if values is None:
            values = self._columns[column] = read_column(self.devices, *column)
        return values

    def keys(self, columns: Iterable[Column]) -> Sequence[Hashable]:
        """One hashable per device. Devices with equal keys look alike to any expression that reads only ``columns``."""
        lists = [self.column(column) for column in sorted(columns, key=repr)]
        if not lists:
            return [()] * len(self.devices)
        return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))

    def groups(self, columns: Iterable[Column]) -> list[list[int]]:
        """Indices of devices that look alike, by first appearance."""
        groups: dict[Hashable, list[int]] = {}
        for index, key in enumerate(self.keys(columns)):
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def value(self, index: int, list_attributes: bool = False) -> Value:
        """The CEL value of one device, converted on first use. See ``device.device_value``."""
        key = (index, list_attributes)
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = device_value(self.devices[index], list_attributes)
        return value

    def _view(self, columns: Iterable[Column], list_attributes: bool) -> Callable[[int], Value]:
        """A function from a device's index to its value, for an expression that reads only ``columns``."""
        names = [column for column in columns if column.id != ""]
        if any(column.id is None or "/" in (column.domain or "") + column.id for column in names):
            return lambda index: self.value(index, list_attributes)
        devices = self.devices
        return lambda index: narrow_value(devices[index], names, list_attributes)

    def evaluate(
        self, terms: Sequence[Part], whole: Part, list_attributes: bool = False, *, complete: bool
    ) -> list[Answer]:
        """The outcome on every device. ``terms`` are the first operands of a conjunction, or all if ``complete``.

        A false term makes the whole false, unless an earlier term fails fatally. The whole is evaluated only
        where the terms do not decide: one of them fails, or some are not given. Devices on which every expression
        fails get their error without evaluation.
        """
        if self._different is not None:
            answers = self._different.evaluate(terms, whole, list_attributes, complete=complete)
            return [answers[place] for place in self._places]
        broken = self.broken(list_attributes)
        outcomes: list[Answer] = [False] * len(self.devices)
        pending = [index for index in range(len(self.devices)) if index not in broken]
        failed: set[int] = set()
        for term in terms:
            answers = self._by_key(pending, term, list_attributes)
            undecided: list[int] = []
            for index, answer in zip(pending, answers, strict=True):
                if answer is False:
                    failed.discard(index)
                    continue
                if answer is not True:
                    failed.add(index)
                    if answer.fatal:
                        continue
                undecided.append(index)
            pending = undecided
        for index, error in broken.items():
            outcomes[index] = error
        if complete:
            for index in pending:
                outcomes[index] = True
        unknown = sorted(failed if complete else failed.union(pending)) if failed or complete else pending
        for index, answer in zip(unknown, self._by_key(unknown, whole, list_attributes), strict=True):
            outcomes[index] = answer
        return outcomes

    def _by_key(self, indices: Sequence[int], part: Part, list_attributes: bool) -> list[Answer]:
        """The outcome on some devices, evaluated once for each distinct key of the columns."""
        if part.columns is None:
            return [part.evaluate(self.value(index, list_attributes)) for index in indices]
        keys = self.keys(part.columns)
        if len(indices) < len(keys):
            keys = [keys[index] for index in indices]
        known = self._answers.setdefault((part.evaluate, list_attributes), {})
        missing = set(keys).difference(known)
        if part.by_key is not None and missing:
            answers = {key: answer for key in missing if (answer := part.by_key(key)) is not None}
            known.update(answers)
            missing.difference_update(answers)
        if missing:
            # Later pairs win, so each key ends up with the first device that has it.
            first = dict(zip(reversed(keys), reversed(indices), strict=True))
            value, evaluate = self._view(part.columns, list_attributes), part.evaluate
            known.update({key: evaluate(value(index)) for key, index in first.items() if key in missing})
        return list(map(known.__getitem__, keys))


# Terms that compare one property of a device with a constant: answered from the column, without the device's value.
#
# Where every device has its own value there is nothing to group, and this is five times as fast as evaluating.


KeyAnswer = Callable[[Hashable], bool | None]
"""The answer for devices with this key in the column; None where only evaluation can tell."""

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "_==_": operator.eq,
    "_!=_": operator.ne,
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_MAP_NAMES: Final[Mapping[str, str]] = {"attribute": "attributes", "capacity": "capacity"}


def key_answer(node: Expression, columns: frozenset[Column] | None) -> KeyAnswer | None:
    """A function that answers an expression from the keys of its only column; None for other expressions.

    ``attribute == "text"``, or ``!=``, and ``capacity.compareTo(quantity("…")) >= 0``, with any order.
    """
    if columns is None or len(columns) != 1 or not isinstance(node, Call) or node.function not in _ORDERS:
        return None
    (column,) = columns
    if not column.id or not column.domain or "/" in column.domain + column.id:
        return None
    left, right = node.arguments
    order = _ORDERS[node.function]
    if column.kind == "attribute":
        text = right.value if isinstance(right, Literal) else None
        if text.__class__ is str and node.function in ("_==_", "_!=_") and _is_entry(left, column):
            return lambda key: order(key, text) if key.__class__ is str else None
        return None
    zero = isinstance(right, Literal) and right.value.__class__ is int and right.value == 0
    amount = _compared_with(left, column) if zero and column.kind == "capacity" else None
    if amount is None:
        return None
    nanos = amount.nanos

    def compared(key: Hashable) -> bool | None:
        if not isinstance(key, str):
            return None
        try:
            return order(nanos_of(key.strip(BLANKS)), nanos)
        except QuantityError:
            return None

    return compared


def _is_entry(node: Expression, column: Column) -> bool:
    """Whether an expression is the column's attribute or capacity itself.

    A step further, such as ``.string`` or ``[0]``, reads the same column, but fails or has another value.
    """
    for name in (column.id, column.domain, _MAP_NAMES[column.kind]):
        step: Any
        if isinstance(node, Select) and not node.test_only:
            step, node = node.field, node.operand
        elif isinstance(node, Call) and node.function == "_[_]" and isinstance(key := node.arguments[1], Literal):
            step, node = key.value, node.arguments[0]
        else:
            return False
        if step != name:
            return False
    return isinstance(node, Identifier) and node.name == "device"


def _compared_with(node: Expression, column: Column) -> Quantity | None:
    """The quantity of ``capacity.compareTo(quantity("…"))``, where the capacity is the column's."""
    if not isinstance(node, Call) or node.function != "compareTo" or node.target is None or len(node.arguments) != 1:
        return None
    quantity = node.arguments[0]
    if not isinstance(quantity, Call) or quantity.function != "quantity" or quantity.target is not None:
        return None
    text = quantity.arguments[0] if len(quantity.arguments) == 1 else None
    if not isinstance(text, Literal) or not isinstance(text.value, str) or not _is_entry(node.target, column):
        return None
    try:
        return Quantity.parse(text.value)
    except QuantityError:
        return None
