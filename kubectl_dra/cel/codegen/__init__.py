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

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cel.ast import Call, Comprehension, Expression, Identifier, ListLiteral, Literal, Select, walk
from kubectl_dra.cel.codegen.fragments import SIMPLE, Code, Maybe, NotTranslatable, Place, Result
from kubectl_dra.cel.codegen.namespace import Function, Namespace
from kubectl_dra.cel.codegen.operators import RELATIONS, guarded, native, order
from kubectl_dra.cel.recursion import with_room
from kubectl_dra.cel.shared_quantity import SENSITIVE_OVERLOADS
from kubectl_dra.cel.values import Uint

if TYPE_CHECKING:
    from kubectl_dra.cel.checker import Checked
    from kubectl_dra.cel.declarations import Overload
    from kubectl_dra.cel.environment import Environment

_LONGEST = 3000
"""Nodes of an expression worth generating code for."""


def generate(checked: Checked, environment: Environment) -> Function | None:
    """A function of a device value (see ``device.device_value``) that returns a bool or raises.

    None if the expression has no translation. Any exception of the function means: evaluate this device some
    other way. Not for expressions whose cost has to be counted.
    """
    names = Namespace(checked.overloads, environment)
    writer = _Writer(checked.overloads, names)
    try:
        text = with_room(lambda: writer.function(checked.expression))
        code = compile(text, "<cel>", "exec")
    except (NotTranslatable, RecursionError, SyntaxError, MemoryError):
        return None
    exec(code, names.objects)
    function: Function = names.objects["_cel"]
    return function


def source(checked: Checked, environment: Environment) -> str | None:
    """The text of the function that ``generate`` makes, for tests and curiosity."""
    try:
        names = Namespace(checked.overloads, environment)
        return _Writer(checked.overloads, names).function(checked.expression)
    except NotTranslatable:
        return None


_PLAIN = frozenset({str, int, bool, float, Uint, bytes})
_DEVICE = Place("device")


class _Writer:
    def __init__(self, overloads: Mapping[int, Sequence[Overload]], names: Namespace) -> None:
        self._overloads = overloads
        self._names = names
        self._scope: dict[str, Result] = {"device": _DEVICE}
        self._statements: list[str] = []
        self._domains: dict[tuple[bool, str], str] = {}

    def function(self, expression: Expression) -> str:
        if sum(1 for _ in walk(expression)) > _LONGEST:
            raise NotTranslatable
        if any(one.id in SENSITIVE_OVERLOADS for some in self._overloads.values() for one in some):
            raise NotTranslatable
        for attribute, domain in sorted(_repeated_domains(expression)):
            self._domains[attribute, repr(domain)] = self._names.fresh("d")
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
        if isinstance(start, Code) and not start.constant:
            name = self._names.fresh("v")
            self._statements.append(f"{name} = {start.text}")
            start = Code(name, start.kind)
        elif isinstance(start, Place) and start.level == "domain" and not start.text.isidentifier():
            name = self._names.fresh("d")
            self._statements.append(f"{name} = {start.text}")
            start = start._replace(text=name)
        self._scope[node.accu_var] = start

    # Values.

    def _value(self, node: Expression) -> Code:
        result = self._visit(node)
        if not isinstance(result, Code):
            raise NotTranslatable
        return result

    def _bool(self, code: Code) -> str:
        return code.text if code.kind == "bool" else f"_truth({code.text})"

    def _visit(self, node: Expression) -> Result:
        if isinstance(node, Literal):
            return self._names.constant(node.value)
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

    def _select(self, node: Select) -> Result:
        at = self._visit(node.operand)
        if not node.test_only:
            return self._step(at, node.field)
        if isinstance(at, Place) and at.level == "domain":
            return Code(f"({node.field!r} in {at.text})", "bool")
        raise NotTranslatable

    def _step(self, at: Result, key: str) -> Result:
        if not isinstance(at, Place):
            raise NotTranslatable
        if at.level == "device":
            if key == "driver":
                return Code("_device['driver']", "str")
            if key == "allowMultipleAllocations":
                return Code("_device['allowMultipleAllocations']", "bool")
            return Place("map", key == "attributes", "_attributes" if key == "attributes" else "_capacity")
        if at.level == "map":
            return self._domain(at, repr(key))
        return Code(f"{at.text}[{key!r}]", "" if at.attribute else "Quantity")

    def _domain(self, at: Place, key: str) -> Place:
        text = self._domains.get((at.attribute, key), f"{at.text}.get({key}, _empty)")
        return Place("domain", at.attribute, text)

    def _list(self, node: ListLiteral) -> Code:
        if node.optional_indices:
            raise NotTranslatable
        elements = [self._value(element) for element in node.elements]
        if all(element.constant for element in elements):
            return self._names.constant([element.constant[0] for element in elements])
        return Code(f"[{', '.join(element.text for element in elements)}]", "list")

    # Calls.

    def _call(self, node: Call) -> Result:
        function = node.function
        if function in ("_[_]", "_?._", "_[?_]"):
            return self._lookup(node)
        if function == "@in":
            return self._membership(node)
        if node.target is not None:
            target = self._visit(node.target)
            if isinstance(target, Maybe):
                return self._optional(node, target)
            if isinstance(target, Place):
                return self._place_call(node, target)
            operands = [target, *map(self._value, node.arguments)]
        else:
            if function == "size":
                only = self._visit(node.arguments[0])
                if isinstance(only, Place):
                    return self._place_call(node, only)
            operands = [self._value(argument) for argument in node.arguments]
        if function in ("_&&_", "_||_"):
            word = "and" if function == "_&&_" else "or"
            return Code(f"({self._bool(operands[0])} {word} {self._bool(operands[1])})", "bool")
        if function == "!_":
            return Code(f"(not {self._bool(operands[0])})", "bool")
        if function == "_?_:_":
            kind = operands[1].kind if operands[1].kind == operands[2].kind else ""
            return Code(f"({operands[1].text} if {self._bool(operands[0])} else {operands[2].text})", kind)
        return self._strict(node, operands)

    def _strict(self, node: Call, operands: list[Code]) -> Code:
        """A function of evaluated operands: folded, native where the classes allow it, or called."""
        names = self._names
        if operands and all(operand.constant for operand in operands):
            return names.folded(node, operands)
        return self._compared(node, operands) or native(names, node, operands) or names.called(node, operands)

    def _compared(self, node: Call, operands: list[Code]) -> Code | None:
        """``a.compareTo(b) >= 0`` and the like as a comparison of a and b."""
        first = node.arguments[0] if node.arguments else None
        if (
            node.function in RELATIONS
            and isinstance(first, Call)
            and first.function == "compareTo"
            and first.target is not None
            and operands[1].constant == (0,)
            and operands[1].kind == "int"
        ):
            left, right = self._value(first.target), self._value(first.arguments[0])
            return order(self._names, left, right, RELATIONS[node.function])
        return None

    def _lookup(self, node: Call) -> Result:
        container, key = node.arguments
        at = self._visit(container)
        if isinstance(at, Place):
            by = self._value(key)
            if by.kind == "str" and at.level == "map":
                return self._domain(at, by.text)
            if not by.constant or by.kind != "str" or at.level not in ("domain", "device"):
                raise NotTranslatable
            if node.function == "_[_]" or at.level == "device":
                return self._step(at, by.constant[0])
            return Maybe(at, by.text)
        if node.function != "_[_]" or not isinstance(at, Code):
            raise NotTranslatable
        return self._strict(node, [at, self._value(key)])

    def _optional(self, node: Call, target: Maybe) -> Code:
        domain = target.domain
        if node.function == "orValue":
            other = self._value(node.arguments[0])
            kind = "" if domain.attribute or other.kind != "Quantity" else "Quantity"
            return Code(f"{domain.text}.get({target.key}, {other.text})", kind)
        if node.function == "hasValue":
            return Code(f"({target.key} in {domain.text})", "bool")
        if node.function == "value":
            return Code(f"{domain.text}[{target.key}]", "" if domain.attribute else "Quantity")
        raise NotTranslatable

    def _place_call(self, node: Call, at: Place) -> Code:
        if node.function == "size" and at.level in ("map", "domain"):
            return Code(f"_len({at.text})", "int")
        raise NotTranslatable

    def _membership(self, node: Call) -> Code:
        container = self._visit(node.arguments[1])
        element = self._value(node.arguments[0])
        if isinstance(container, Place):
            if element.kind != "str" or container.level == "device":
                raise NotTranslatable
            return Code(f"({element.text} in {container.text})", "bool")
        if not isinstance(container, Code):
            raise NotTranslatable
        if container.constant and container.kind == "list":
            if element.constant:
                return self._names.folded(node, [element, container])
            members = container.constant[0]
            kinds = {member.__class__ for member in members}
            if len(kinds) == 1 and (kind := SIMPLE.get(kinds.pop())) in ("str", "int"):
                value, guard = guarded(self._names, element, kind or "")
                test = f"{value} in {self._names.named(frozenset(members))}"
                return Code(f"({test} if {guard} else _refuse())" if guard else f"({test})", "bool")
            if kinds <= _PLAIN:
                # A set lookup with rules of its own about types.
                raise NotTranslatable
        return self._names.called(node, [element, container])

    # Macros.

    def _comprehension(self, node: Comprehension) -> Result:
        if _is_bind(node):
            return self._bind(node)
        names = [node.iter_var] + ([node.iter_var2] if node.iter_var2 else [])
        loop, kinds = self._loop(node)
        before = self._scope
        variables = [self._names.fresh("v") for _ in names]
        self._scope = {**before}
        for name, variable, kind in zip(names, variables, kinds, strict=True):
            self._scope[name] = Code(variable, kind)
        try:
            return self._fold(node, f"for {', '.join(variables)} in {loop}")
        finally:
            self._scope = before

    def _loop(self, node: Comprehension) -> tuple[str, tuple[str, ...]]:
        """What to iterate over and the kinds of the loop variables."""
        over = self._visit(node.iter_range)
        two = bool(node.iter_var2)
        if isinstance(over, Place):
            if over.level == "map" and not two:
                return over.text, ("str",)
            if over.level == "domain":
                if not two:
                    return over.text, ("str",)
                return f"{over.text}.items()", ("str", "" if over.attribute else "Quantity")
            raise NotTranslatable
        if not isinstance(over, Code):
            raise NotTranslatable
        if two:
            if over.kind != "list":
                raise NotTranslatable
            return f"_enumerate({over.text})", ("int", "")
        element = ""
        if over.constant and over.kind == "list":
            kinds = {member.__class__ for member in over.constant[0]}
            element = SIMPLE.get(kinds.pop(), "") if len(kinds) == 1 else ""
        return (over.text if over.kind == "list" else f"_iterable({over.text})"), (element,)

    def _fold(self, node: Comprehension, loop: str) -> Code:
        """Recognise the macro by the shape of its expansion."""
        step, start = node.loop_step, node.accu_init
        if not isinstance(step, Call):
            raise NotTranslatable
        if isinstance(start, Literal) and step.function in ("_&&_", "_||_"):
            word = "_all" if step.function == "_&&_" else "_any"
            return Code(f"{word}({self._bool(self._value(step.arguments[1]))} {loop})", "bool")
        condition = ""
        if step.function == "_?_:_":
            condition = f" if {self._bool(self._value(step.arguments[0]))}"
            if isinstance(start, Literal) and start.value == 0 and isinstance(node.result, Call):
                return Code(f"(_sum([1 {loop}{condition}]) == 1)", "bool")
            taken = step.arguments[1]
            if not isinstance(taken, Call):
                raise NotTranslatable
            step = taken
        if step.function == "_+_" and isinstance(start, ListLiteral) and isinstance(node.result, Identifier):
            addend = step.arguments[1]
            if isinstance(addend, ListLiteral) and len(addend.elements) == 1 and not addend.optional_indices:
                return Code(f"[{self._value(addend.elements[0]).text} {loop}{condition}]", "list")
        raise NotTranslatable

    def _refuse_growing(self, bind: Comprehension) -> None:
        """What is added to an empty list that has a name stays in it (see the closures): not for us."""
        for call in walk(bind.result):
            if isinstance(call, Call) and call.function == "_+_":
                grown = call.arguments[0]
                ids = [one.id for one in self._overloads.get(call.id, ())]
                if "add_list" in ids and not (isinstance(grown, Identifier) and grown.name == "@result"):
                    raise NotTranslatable

    def _bind(self, node: Comprehension) -> Result:
        self._refuse_growing(node)
        start = self._visit(node.accu_init)
        before = self._scope
        name = ""
        if isinstance(start, Code) and not start.constant:
            name = self._names.fresh("v")
            self._scope = {**before, node.accu_var: Code(name, start.kind)}
        else:
            self._scope = {**before, node.accu_var: start}
        try:
            result = self._visit(node.result)
        finally:
            self._scope = before
        if not name or not isinstance(start, Code):
            return result
        if not isinstance(result, Code):
            raise NotTranslatable
        return Code(f"(({name} := {start.text}), {result.text})[1]", result.kind)


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
