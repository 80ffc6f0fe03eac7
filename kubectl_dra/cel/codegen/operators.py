"""Calls that a generated function makes with Python's own operators, where the classes of the operands allow it."""

from __future__ import annotations

from kubectl_dra.cel.ast import Call
from kubectl_dra.cel.codegen.fragments import Code
from kubectl_dra.cel.codegen.namespace import Namespace

_NUMBERS = frozenset({"int", "float"})
_QUANTITIES = frozenset({"Quantity", "computed"})
RELATIONS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_METHODS = {"isGreaterThan": ">", "isLessThan": "<"}
_SORT_KEY = {"Quantity": "nanos", "computed": "nanos", "Semver": "precedence"}


def native(names: Namespace, node: Call, operands: list[Code]) -> Code | None:
    """A call as Python's own operators, or None where the classes of the operands do not allow it."""
    function = node.function
    if function in ("_==_", "_!=_"):
        return _equality(names, node, *operands)
    if function in RELATIONS:
        return _relation(names, node, *operands)
    if function in _METHODS:
        return order(names, operands[0], operands[1], _METHODS[function])
    if function in ("startsWith", "endsWith", "contains") and operands[1].kind == "str":
        return _text_test(names, function, *operands)
    if function == "size" and operands[0].kind in ("str", "list"):
        return Code(f"_len({operands[0].text})", "int")
    if function == "_%_" and operands[0].kind in ("", "int") and _is_positive(operands[1]):
        left, divisor = operands
        value, guard = guarded(names, left, "int")
        guard = f"{guard} and {value} >= 0" if guard else f"{value} >= 0"
        fallback = names.called(node, [Code(value), divisor]).text
        return Code(f"({value} % {divisor.text} if {guard} else {fallback})", "int")
    return None


def _equality(names: Namespace, node: Call, left: Code, right: Code) -> Code | None:
    sign = "==" if node.function == "_==_" else "!="
    if left.kind == right.kind and left.kind in ("str", "int", "bool", "float"):
        return Code(f"({left.text} {sign} {right.text})", "bool")
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        return Code(f"({left.text} {sign} {right.text})", "bool")
    if left.kind == "str" and left.constant and right.kind == "":
        # A text on the left is unequal to everything that is not a text.
        return Code(f"({left.text} {sign} {right.text})", "bool")
    if (left.kind in _QUANTITIES and right.kind == "Quantity") or left.kind == right.kind == "Semver":
        return Code(f"({_key(names, left)} {sign} {_key(names, right)})", "bool")
    if left.kind == "" and right.constant and right.kind in ("str", "int", "bool", "Semver"):
        value, guard = guarded(names, left, right.kind)
        otherwise = names.called(node, [Code(value), right]).text
        if right.kind == "Semver":
            test = f"{value}.precedence {sign} {_key(names, right)}"
        else:
            test = f"{value} {sign} {right.text}"
        return Code(f"({test} if {guard} else {otherwise})", "bool")
    return None


def _relation(names: Namespace, node: Call, left: Code, right: Code) -> Code | None:
    sign = RELATIONS[node.function]
    if left.kind == right.kind and left.kind in ("str", "int", "bool"):
        return Code(f"({left.text} {sign} {right.text})", "bool")
    if left.kind == "" and right.kind in ("str", "int") and right.constant:
        value, guard = guarded(names, left, right.kind)
        fallback = names.called(node, [Code(value), right]).text
        return Code(f"({value} {sign} {right.text} if {guard} else {fallback})", "bool")
    return None


def order(names: Namespace, left: Code, right: Code, sign: str) -> Code | None:
    """A comparison by ``<``, ``<=``, ``>`` or ``>=`` of two quantities or two versions."""
    if (left.kind in _QUANTITIES and right.kind in _QUANTITIES) or left.kind == right.kind == "Semver":
        return Code(f"({_key(names, left)} {sign} {_key(names, right)})", "bool")
    if left.kind == "" and right.kind == "Semver":
        value, guard = guarded(names, left, "Semver")
        return Code(f"({value}.precedence {sign} {_key(names, right)} if {guard} else _refuse())", "bool")
    return None


def _text_test(names: Namespace, function: str, text: Code, part: Code) -> Code:
    value, guard = guarded(names, text, "str")
    method = "__contains__" if function == "contains" else function.lower()
    test = f"{value}.{method}({part.text})"
    return Code(f"({test} if {guard} else _refuse())" if guard else f"({test})", "bool")


def guarded(names: Namespace, code: Code, kind: str) -> tuple[str, str]:
    """The value's text, to be used after the condition that its class is right (empty if certain)."""
    if code.kind == kind:
        return code.text, ""
    name = code.text if code.text.isidentifier() else names.fresh("t")
    first = name if name == code.text else f"({name} := {code.text})"
    return name, f"{first}.__class__ is _{kind}"


def _key(names: Namespace, code: Code) -> str:
    """What quantities and versions are compared by."""
    field = _SORT_KEY[code.kind]
    if not code.constant:
        return f"{code.text}.{field}"
    return names.named(getattr(code.constant[0], field))


def _is_positive(code: Code) -> bool:
    return code.kind == "int" and bool(code.constant) and code.constant[0] > 0
