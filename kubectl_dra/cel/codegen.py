"""One Python function per expression: the fast back end.

The function is *optimistic*. It is written with Python's own operators and lookups, and only valid while
every value has the type that makes the native operator mean what CEL means. Where that is not known
beforehand the code checks it; wherever a check fails, a key is missing or a library function refuses, the
function raises, and the caller evaluates that device again with the closures, which know all the rules about
errors. Python's left-to-right short circuit without any error gives the same answer as CEL's error-absorbing
logic.

Expressions with parts that have no short translation get no function: most of optional values, map literals,
arithmetic on quantities.

The text of the function contains nothing of the expression but ``repr()`` of its strings and numbers; all
names are made here and start with an underscore.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.semver import Semver
from kubectl_dra.cel.ast import (
    Call,
    Comprehension,
    Expression,
    Identifier,
    ListLiteral,
    Literal,
    Select,
    walk,
)
from kubectl_dra.cel.closures import in_container, in_list, step, unequal
from kubectl_dra.cel.dispatch import dispatcher
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.recursion import with_room
from kubectl_dra.cel.shared_quantity import SENSITIVE_OVERLOADS
from kubectl_dra.cel.values import Uint, equals

if TYPE_CHECKING:
    from kubectl_dra.cel.checker import Checked
    from kubectl_dra.cel.declarations import Overload
    from kubectl_dra.cel.environment import Environment

Function = Callable[..., Any]

_LONGEST = 3000
"""Nodes of an expression worth generating code for."""


class NotTranslatable(Exception):
    """The expression has a part without a short translation."""


def generate(checked: Checked, environment: Environment) -> Function | None:
    """A function of a device value (see ``device.device_value``) that returns a bool or raises.

    None if the expression has no translation. Any exception of the function means: evaluate this device some
    other way. Not for expressions whose cost has to be counted.
    """
    writer = _Writer(checked.overloads, environment)
    try:
        text = with_room(lambda: writer.function(checked.expression))
        code = compile(text, "<cel>", "exec")
    except (NotTranslatable, RecursionError, SyntaxError, MemoryError):
        return None
    names = writer.names
    exec(code, names)
    function: Function = names["_cel"]
    return function


def source(checked: Checked, environment: Environment) -> str | None:
    """The text of the function that ``generate`` makes, for tests and curiosity."""
    try:
        return _Writer(checked.overloads, environment).function(checked.expression)
    except NotTranslatable:
        return None


class _Code(NamedTuple):
    """A Python expression.

    ``kind`` is the class its value is certain to have ("str", "int", "bool", "float", "Quantity", "Semver",
    "list", "computed" for a Quantity from arithmetic) or "" if only running it tells. ``constant`` holds the
    value of a constant in a 1-tuple.
    """

    text: str
    kind: str = ""
    constant: tuple[Any, ...] = ()


class _Place(NamedTuple):
    """A part of the device that is not read yet: ``map`` or ``domain`` (its text gives the dict)."""

    level: str
    attribute: bool = True
    text: str = ""


class _Maybe(NamedTuple):
    """An optional entry of a domain (``domain.?id``)."""

    domain: _Place
    key: str


_Result = _Code | _Place | _Maybe
_DEVICE = _Place("device")
_SIMPLE = {str: "str", int: "int", bool: "bool", float: "float"}
_PLAIN = frozenset({str, int, bool, float, Uint, bytes})
_NUMBERS = frozenset({"int", "float"})
_QUANTITIES = frozenset({"Quantity", "computed"})
_RELATIONS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_METHODS = {"isGreaterThan": ">", "isLessThan": "<"}
_RESULT_KINDS = {
    "bool": "bool",
    "int": "int",
    "string": "str",
    "double": "float",
    "kubernetes.Quantity": "computed",
    "kubernetes.Semver": "Semver",
}
# These need an evaluator around them: errors as operands, or values that change in place.
_NOT_CALLED = frozenset({"@not_strictly_false", "cel.@mapInsert", "value", "orValue"})
_SORT_KEY = {"Quantity": "nanos", "computed": "nanos", "Semver": "precedence"}


def _refuse() -> Any:
    raise NotTranslatable


def _element(container: Any, key: Any) -> Any:
    return step(container, key, False)[0]


def _truth(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise NotTranslatable


def _iterable(value: Any) -> Any:
    if isinstance(value, list | tuple | dict):
        return value
    raise NotTranslatable


class _Writer:
    def __init__(self, overloads: Mapping[int, Sequence[Overload]], environment: Environment) -> None:
        self._overloads = overloads
        self._environment = environment
        self._scope: dict[str, _Result] = {"device": _DEVICE}
        self._statements: list[str] = []
        self._domains: dict[tuple[bool, str], str] = {}
        self._count = 0
        self.names: dict[str, Any] = {
            "_empty": {},
            "_iterable": _iterable,
            "_refuse": _refuse,
            "_truth": _truth,
            "_Semver": Semver,
            "_str": str,
            "_int": int,
            "_bool": bool,
            "_any": any,
            "_all": all,
            "_sum": sum,
            "_len": len,
            "_enumerate": enumerate,
        }

    def function(self, expression: Expression) -> str:
        if sum(1 for _ in walk(expression)) > _LONGEST:
            raise NotTranslatable
        if any(one.id in SENSITIVE_OVERLOADS for some in self._overloads.values() for one in some):
            raise NotTranslatable
        for attribute, domain in sorted(_repeated_domains(expression)):
            self._domains[attribute, repr(domain)] = self._name("d")
        # A bind around everything becomes a statement instead of a nested assignment.
        while isinstance(expression, Comprehension) and _is_bind(expression):
            self._refuse_growing(expression)
            self._declare(expression)
            expression = expression.result
        result = self._bool(self._value(expression))
        prelude = [
            f"{name} = {'_attributes' if attribute else '_capacity'}.get({domain}, _empty)"
            for (attribute, domain), name in self._domains.items()
        ]
        body = [*prelude, *self._statements, f"return {result}"]
        text = "\n    ".join(body)
        containers = [
            f"{name} = _device[{field!r}]"
            for name, field in (("_attributes", "attributes"), ("_capacity", "capacity"))
            if name in text
        ]
        return "\n    ".join(["def _cel(_device):", *containers, text, ""])

    def _declare(self, node: Comprehension) -> None:
        start = self._visit(node.accu_init)
        if isinstance(start, _Code) and not start.constant:
            name = self._name("v")
            self._statements.append(f"{name} = {start.text}")
            start = _Code(name, start.kind)
        elif isinstance(start, _Place) and start.level == "domain" and not start.text.isidentifier():
            name = self._name("d")
            self._statements.append(f"{name} = {start.text}")
            start = start._replace(text=name)
        self._scope[node.accu_var] = start

    # Values.

    def _value(self, node: Expression) -> _Code:
        result = self._visit(node)
        if not isinstance(result, _Code):
            raise NotTranslatable
        return result

    def _bool(self, code: _Code) -> str:
        return code.text if code.kind == "bool" else f"_truth({code.text})"

    def _visit(self, node: Expression) -> _Result:
        if isinstance(node, Literal):
            return self._constant(node.value)
        if isinstance(node, Identifier):
            found = self._scope.get(node.name)
            if found is None:
                raise NotTranslatable
            return found
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, Comprehension):
            return self._comprehension(node)
        raise NotTranslatable

    def _constant(self, value: Any) -> _Code:
        kind = value.__class__
        if kind in (str, int, bool):
            text = f"({value!r})" if kind is int and value < 0 else repr(value)
            return _Code(text, _SIMPLE[kind], (value,))
        name = self._name("c")
        self.names[name] = value
        kind_name = "Quantity" if kind is Quantity else "Semver" if kind is Semver else _SIMPLE.get(kind, "")
        if kind is Quantity and value.computed:
            kind_name = "computed"
        return _Code(name, "list" if kind in (list, tuple) else kind_name, (value,))

    def _select(self, node: Select) -> _Result:
        at = self._visit(node.operand)
        if not node.test_only:
            return self._step(at, node.field)
        if isinstance(at, _Place) and at.level == "domain":
            return _Code(f"({node.field!r} in {at.text})", "bool")
        raise NotTranslatable

    def _step(self, at: _Result, key: str) -> _Result:
        if not isinstance(at, _Place):
            raise NotTranslatable
        if at.level == "device":
            if key == "driver":
                return _Code("_device['driver']", "str")
            if key == "allowMultipleAllocations":
                return _Code("_device['allowMultipleAllocations']", "bool")
            return _Place("map", key == "attributes", "_attributes" if key == "attributes" else "_capacity")
        if at.level == "map":
            return self._domain(at, repr(key))
        return _Code(f"{at.text}[{key!r}]", "" if at.attribute else "Quantity")

    def _domain(self, at: _Place, key: str) -> _Place:
        text = self._domains.get((at.attribute, key), f"{at.text}.get({key}, _empty)")
        return _Place("domain", at.attribute, text)

    def _list(self, node: ListLiteral) -> _Code:
        if node.optional_indices:
            raise NotTranslatable
        elements = [self._value(element) for element in node.elements]
        if all(element.constant for element in elements):
            return self._constant([element.constant[0] for element in elements])
        return _Code(f"[{', '.join(element.text for element in elements)}]", "list")

    # Calls.

    def _call(self, node: Call) -> _Result:
        function = node.function
        if function in ("_[_]", "_?._", "_[?_]"):
            return self._lookup(node)
        if function == "@in":
            return self._membership(node)
        if node.target is not None:
            target = self._visit(node.target)
            if isinstance(target, _Maybe):
                return self._optional(node, target)
            if isinstance(target, _Place):
                return self._place_call(node, target)
            operands = [target, *map(self._value, node.arguments)]
        else:
            if function == "size":
                only = self._visit(node.arguments[0])
                if isinstance(only, _Place):
                    return self._place_call(node, only)
            operands = [self._value(argument) for argument in node.arguments]
        if function in ("_&&_", "_||_"):
            word = "and" if function == "_&&_" else "or"
            return _Code(f"({self._bool(operands[0])} {word} {self._bool(operands[1])})", "bool")
        if function == "!_":
            return _Code(f"(not {self._bool(operands[0])})", "bool")
        if function == "_?_:_":
            kind = operands[1].kind if operands[1].kind == operands[2].kind else ""
            return _Code(f"({operands[1].text} if {self._bool(operands[0])} else {operands[2].text})", kind)
        return self._strict(node, operands)

    def _strict(self, node: Call, operands: list[_Code]) -> _Code:
        """A function of evaluated operands: folded, native where the classes allow it, or called."""
        if operands and all(operand.constant for operand in operands):
            return self._folded(node, operands)
        function = node.function
        if function in ("_==_", "_!=_"):
            return self._equality(node, *operands)
        if function in _RELATIONS:
            return self._relation(node, *operands)
        if function in _METHODS:
            left, right = operands
            order = self._order(left, right, _METHODS[function])
            if order is not None:
                return order
        elif function in ("startsWith", "endsWith", "contains") and operands[1].kind == "str":
            return self._text_test(function, *operands)
        elif function == "size" and operands[0].kind in ("str", "list"):
            return _Code(f"_len({operands[0].text})", "int")
        elif function == "_%_" and operands[0].kind in ("", "int") and _is_positive(operands[1]):
            left, divisor = operands
            value, guard = self._checked(left, "int")
            guard = f"{guard} and {value} >= 0" if guard else f"{value} >= 0"
            fallback = self._called(node, [_Code(value), divisor]).text
            return _Code(f"({value} % {divisor.text} if {guard} else {fallback})", "int")
        return self._called(node, operands)

    def _folded(self, node: Call, operands: list[_Code]) -> _Code:
        run = self._callable(node)
        try:
            return self._constant(run(*(operand.constant[0] for operand in operands)))
        except EvaluationError:
            return _Code("_refuse()")

    def _called(self, node: Call, operands: Sequence[_Code]) -> _Code:
        name = self._name("f")
        self.names[name] = self._callable(node)
        kinds = {_RESULT_KINDS.get(overload.result.name, "") for overload in self._overloads.get(node.id, ())}
        kind = kinds.pop() if len(kinds) == 1 else ""
        return _Code(f"{name}({', '.join(operand.text for operand in operands)})", kind)

    def _callable(self, node: Call) -> Function:
        """What the closures run on the evaluated operands of a call."""
        name = node.function
        candidates = self._overloads.get(node.id, ())
        if name == "_==_":
            return equals
        if name == "_!=_":
            return unequal
        if name == "@in":
            return in_list if [candidate.id for candidate in candidates] == ["in_list"] else in_container
        if name == "_[_]":
            return _element
        declared = self._environment.function(name)
        if declared is None or name in _NOT_CALLED:
            raise NotTranslatable
        return dispatcher(declared, candidates, len(node.arguments) + (node.target is not None))

    def _checked(self, code: _Code, kind: str) -> tuple[str, str]:
        """The value's text, to be used after the condition that its class is right (empty if certain)."""
        if code.kind == kind:
            return code.text, ""
        name = code.text if code.text.isidentifier() else self._name("t")
        first = name if name == code.text else f"({name} := {code.text})"
        return name, f"{first}.__class__ is _{kind}"

    def _equality(self, node: Call, left: _Code, right: _Code) -> _Code:
        sign = "==" if node.function == "_==_" else "!="
        if left.kind == right.kind and left.kind in ("str", "int", "bool", "float"):
            return _Code(f"({left.text} {sign} {right.text})", "bool")
        if left.kind in _NUMBERS and right.kind in _NUMBERS:
            return _Code(f"({left.text} {sign} {right.text})", "bool")
        if left.kind == "str" and left.constant and right.kind == "":
            # A text on the left is unequal to everything that is not a text.
            return _Code(f"({left.text} {sign} {right.text})", "bool")
        if (left.kind in _QUANTITIES and right.kind == "Quantity") or left.kind == right.kind == "Semver":
            return _Code(f"({self._key(left)} {sign} {self._key(right)})", "bool")
        if left.kind == "" and right.constant and right.kind in ("str", "int", "bool", "Semver"):
            value, guard = self._checked(left, right.kind)
            otherwise = self._called(node, [_Code(value), right]).text
            if right.kind == "Semver":
                test = f"{value}.precedence {sign} {self._key(right)}"
            else:
                test = f"{value} {sign} {right.text}"
            return _Code(f"({test} if {guard} else {otherwise})", "bool")
        return self._called(node, [left, right])

    def _key(self, code: _Code) -> str:
        """What quantities and versions are compared by."""
        field = _SORT_KEY[code.kind]
        if not code.constant:
            return f"{code.text}.{field}"
        return self._named(getattr(code.constant[0], field))

    def _named(self, value: Any) -> str:
        if value.__class__ is int:
            return f"({value!r})" if abs(value) < 10**100 else _refusal()
        name = self._name("c")
        self.names[name] = value
        return name

    def _order(self, left: _Code, right: _Code, sign: str) -> _Code | None:
        if (left.kind in _QUANTITIES and right.kind in _QUANTITIES) or left.kind == right.kind == "Semver":
            return _Code(f"({self._key(left)} {sign} {self._key(right)})", "bool")
        if left.kind == "" and right.kind == "Semver":
            value, guard = self._checked(left, "Semver")
            return _Code(f"({value}.precedence {sign} {self._key(right)} if {guard} else _refuse())", "bool")
        return None

    def _relation(self, node: Call, left: _Code, right: _Code) -> _Code:
        sign = _RELATIONS[node.function]
        first = node.arguments[0]
        if (
            isinstance(first, Call)
            and first.function == "compareTo"
            and first.target is not None
            and right.constant == (0,)
            and right.kind == "int"
        ):
            order = self._order(self._value(first.target), self._value(first.arguments[0]), sign)
            if order is not None:
                return order
        if left.kind == right.kind and left.kind in ("str", "int", "bool"):
            return _Code(f"({left.text} {sign} {right.text})", "bool")
        if left.kind == "" and right.kind in ("str", "int") and right.constant:
            value, guard = self._checked(left, right.kind)
            fallback = self._called(node, [_Code(value), right]).text
            return _Code(f"({value} {sign} {right.text} if {guard} else {fallback})", "bool")
        return self._called(node, (left, right))

    def _text_test(self, function: str, text: _Code, part: _Code) -> _Code:
        value, guard = self._checked(text, "str")
        method = "__contains__" if function == "contains" else function.lower()
        test = f"{value}.{method}({part.text})"
        return _Code(f"({test} if {guard} else _refuse())" if guard else f"({test})", "bool")

    def _lookup(self, node: Call) -> _Result:
        container, key = node.arguments
        at = self._visit(container)
        if isinstance(at, _Place):
            by = self._value(key)
            if by.kind == "str" and at.level == "map":
                return self._domain(at, by.text)
            if not by.constant or by.kind != "str" or at.level not in ("domain", "device"):
                raise NotTranslatable
            if node.function == "_[_]" or at.level == "device":
                return self._step(at, by.constant[0])
            return _Maybe(at, by.text)
        if node.function != "_[_]" or not isinstance(at, _Code):
            raise NotTranslatable
        return self._strict(node, [at, self._value(key)])

    def _optional(self, node: Call, target: _Maybe) -> _Code:
        domain = target.domain
        if node.function == "orValue":
            other = self._value(node.arguments[0])
            kind = "" if domain.attribute or other.kind != "Quantity" else "Quantity"
            return _Code(f"{domain.text}.get({target.key}, {other.text})", kind)
        if node.function == "hasValue":
            return _Code(f"({target.key} in {domain.text})", "bool")
        if node.function == "value":
            return _Code(f"{domain.text}[{target.key}]", "" if domain.attribute else "Quantity")
        raise NotTranslatable

    def _place_call(self, node: Call, at: _Place) -> _Code:
        if node.function == "size" and at.level in ("map", "domain"):
            return _Code(f"_len({at.text})", "int")
        raise NotTranslatable

    def _membership(self, node: Call) -> _Code:
        container = self._visit(node.arguments[1])
        element = self._value(node.arguments[0])
        if isinstance(container, _Place):
            if element.kind != "str" or container.level == "device":
                raise NotTranslatable
            return _Code(f"({element.text} in {container.text})", "bool")
        if not isinstance(container, _Code):
            raise NotTranslatable
        if container.constant and container.kind == "list":
            if element.constant:
                return self._folded(node, [element, container])
            members = container.constant[0]
            kinds = {member.__class__ for member in members}
            if len(kinds) == 1 and (kind := _SIMPLE.get(kinds.pop())) in ("str", "int"):
                value, guard = self._checked(element, kind or "")
                test = f"{value} in {self._named(frozenset(members))}"
                return _Code(f"({test} if {guard} else _refuse())" if guard else f"({test})", "bool")
            if kinds <= _PLAIN:
                # A set lookup with rules of its own about types.
                raise NotTranslatable
        return self._called(node, [element, container])

    # Macros.

    def _comprehension(self, node: Comprehension) -> _Result:
        if _is_bind(node):
            return self._bind(node)
        names = [node.iter_var] + ([node.iter_var2] if node.iter_var2 else [])
        loop, kinds = self._loop(node)
        before = self._scope
        variables = [self._name("v") for _ in names]
        self._scope = {**before}
        for name, variable, kind in zip(names, variables, kinds, strict=True):
            self._scope[name] = _Code(variable, kind)
        try:
            return self._fold(node, f"for {', '.join(variables)} in {loop}")
        finally:
            self._scope = before

    def _loop(self, node: Comprehension) -> tuple[str, tuple[str, ...]]:
        """What to iterate over and the kinds of the loop variables."""
        over = self._visit(node.iter_range)
        two = bool(node.iter_var2)
        if isinstance(over, _Place):
            if over.level == "map" and not two:
                return over.text, ("str",)
            if over.level == "domain":
                if not two:
                    return over.text, ("str",)
                return f"{over.text}.items()", ("str", "" if over.attribute else "Quantity")
            raise NotTranslatable
        if not isinstance(over, _Code):
            raise NotTranslatable
        if two:
            if over.kind != "list":
                raise NotTranslatable
            return f"_enumerate({over.text})", ("int", "")
        element = ""
        if over.constant and over.kind == "list":
            kinds = {member.__class__ for member in over.constant[0]}
            element = _SIMPLE.get(kinds.pop(), "") if len(kinds) == 1 else ""
        return (over.text if over.kind == "list" else f"_iterable({over.text})"), (element,)

    def _fold(self, node: Comprehension, loop: str) -> _Code:
        """Recognise the macro by the shape of its expansion."""
        step, start = node.loop_step, node.accu_init
        if not isinstance(step, Call):
            raise NotTranslatable
        if isinstance(start, Literal) and step.function in ("_&&_", "_||_"):
            word = "_all" if step.function == "_&&_" else "_any"
            return _Code(f"{word}({self._bool(self._value(step.arguments[1]))} {loop})", "bool")
        condition = ""
        if step.function == "_?_:_":
            condition = f" if {self._bool(self._value(step.arguments[0]))}"
            if isinstance(start, Literal) and start.value == 0 and isinstance(node.result, Call):
                return _Code(f"(_sum([1 {loop}{condition}]) == 1)", "bool")
            taken = step.arguments[1]
            if not isinstance(taken, Call):
                raise NotTranslatable
            step = taken
        if step.function == "_+_" and isinstance(start, ListLiteral) and isinstance(node.result, Identifier):
            addend = step.arguments[1]
            if isinstance(addend, ListLiteral) and len(addend.elements) == 1 and not addend.optional_indices:
                return _Code(f"[{self._value(addend.elements[0]).text} {loop}{condition}]", "list")
        raise NotTranslatable

    def _refuse_growing(self, bind: Comprehension) -> None:
        """What is added to an empty list that has a name stays in it (see the closures): not for us."""
        for call in walk(bind.result):
            if isinstance(call, Call) and call.function == "_+_":
                grown = call.arguments[0]
                ids = [one.id for one in self._overloads.get(call.id, ())]
                if "add_list" in ids and not (isinstance(grown, Identifier) and grown.name == "@result"):
                    raise NotTranslatable

    def _bind(self, node: Comprehension) -> _Result:
        self._refuse_growing(node)
        start = self._visit(node.accu_init)
        before = self._scope
        name = ""
        if isinstance(start, _Code) and not start.constant:
            name = self._name("v")
            self._scope = {**before, node.accu_var: _Code(name, start.kind)}
        else:
            self._scope = {**before, node.accu_var: start}
        try:
            result = self._visit(node.result)
        finally:
            self._scope = before
        if not name or not isinstance(start, _Code):
            return result
        if not isinstance(result, _Code):
            raise NotTranslatable
        return _Code(f"(({name} := {start.text}), {result.text})[1]", result.kind)

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"_{kind}{self._count}"


def _refusal() -> str:
    raise NotTranslatable


def _is_positive(code: _Code) -> bool:
    return code.kind == "int" and bool(code.constant) and code.constant[0] > 0


def _is_bind(node: Comprehension) -> bool:
    return (
        isinstance(node.iter_range, ListLiteral)
        and not node.iter_range.elements
        and isinstance(node.loop_condition, Literal)
        and node.loop_condition.value is False
    )


def _repeated_domains(expression: Expression) -> frozenset[tuple[bool, str]]:
    """Literal domains looked up more than once: (attributes or capacity, domain)."""
    seen: set[tuple[bool, str]] = set()
    repeated: set[tuple[bool, str]] = set()
    for node in walk(expression):
        if not isinstance(node, Call) or node.function not in ("_[_]", "_[?_]", "_?._"):
            continue
        container, key = node.arguments
        if not (isinstance(container, Select) and isinstance(container.operand, Identifier)):
            continue
        if container.operand.name != "device" or not (isinstance(key, Literal) and key.value.__class__ is str):
            continue
        found = container.field == "attributes", key.value
        (repeated if found in seen else seen).add(found)
    return frozenset(repeated)
