"""What the names in a generated function stand for: constants, and the library functions it calls.

All names are made here and start with an underscore.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.semver import Semver
from kubectl_dra.cel.ast import Call
from kubectl_dra.cel.closures.membership import in_container, in_list
from kubectl_dra.cel.closures.qualifiers import step
from kubectl_dra.cel.codegen.fragments import SIMPLE, Code, NotTranslatable
from kubectl_dra.cel.dispatch import dispatcher
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.values import equals, unequal

if TYPE_CHECKING:
    from kubectl_dra.cel.declarations import Overload
    from kubectl_dra.cel.environment import Environment

Function = Callable[..., Any]

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


class Namespace:
    """The globals of one function."""

    def __init__(self, overloads: Mapping[int, Sequence[Overload]], environment: Environment) -> None:
        self._overloads = overloads
        self._environment = environment
        self._count = 0
        self.objects: dict[str, Any] = {
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

    def fresh(self, kind: str) -> str:
        """A name not used yet."""
        self._count += 1
        return f"_{kind}{self._count}"

    def constant(self, value: Any) -> Code:
        """A value known beforehand."""
        kind = value.__class__
        if kind in (str, int, bool):
            text = f"({value!r})" if kind is int and value < 0 else repr(value)
            return Code(text, SIMPLE[kind], (value,))
        name = self.fresh("c")
        self.objects[name] = value
        kind_name = "Quantity" if kind is Quantity else "Semver" if kind is Semver else SIMPLE.get(kind, "")
        if kind is Quantity and value.computed:
            kind_name = "computed"
        return Code(name, "list" if kind in (list, tuple) else kind_name, (value,))

    def named(self, value: Any) -> str:
        """The text of a value: a name, or the number itself."""
        if value.__class__ is int:
            if abs(value) >= 10**100:
                raise NotTranslatable
            return f"({value!r})"
        name = self.fresh("c")
        self.objects[name] = value
        return name

    def folded(self, node: Call, operands: Sequence[Code]) -> Code:
        """The outcome of a call of constants."""
        run = self._callable(node)
        try:
            return self.constant(run(*(operand.constant[0] for operand in operands)))
        except EvaluationError:
            return Code("_refuse()")

    def called(self, node: Call, operands: Sequence[Code]) -> Code:
        """A call of what the closures would run, too."""
        name = self.fresh("f")
        self.objects[name] = self._callable(node)
        kinds = {_RESULT_KINDS.get(overload.result.name, "") for overload in self._overloads.get(node.id, ())}
        kind = kinds.pop() if len(kinds) == 1 else ""
        return Code(f"{name}({', '.join(operand.text for operand in operands)})", kind)

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
