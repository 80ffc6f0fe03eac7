"""All functions that a device selector may call, for Kubernetes 1.34 to 1.37.

One module per family. Each lists its functions with every overload: its types, its implementation, its special costs
and the releases that have it. What they do is said in ``reference.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from kubectl_dra.cel.functions import Function

# Which functions a family has, so that only the families an expression uses are loaded. The order is the one
# in which Kubernetes adds the families: it decides which overload of a shared name is tried first.
_FAMILIES = {
    "operators": "_?_:_ _&&_ _||_ !_ @not_strictly_false _==_ _!=_ _+_ _/_ _%_ _*_ -_ _-_ _<_ _<=_ _>_ _>=_ "
    "_[_] _[?_] _?._ @in",
    "conversions": "size type bool bytes double duration dyn int string timestamp uint",
    "numbers": "getFullYear getMonth getDayOfYear getDayOfMonth getDate getDayOfWeek getHours getMinutes "
    "getSeconds getMilliseconds",
    "urls": "url getScheme getHost getHostname getPort getEscapedPath getQuery isURL",
    "regex": "find findAll",
    "lists": "isSorted sum max min indexOf lastIndexOf includes slice flatten sort @sortByAssociatedKeys lists.range "
    "reverse distinct sets.contains sets.equivalent sets.intersects",
    "optionals": "optional.of optional.ofNonZeroValue optional.none value hasValue or orValue last first "
    "optional.unwrap unwrapOpt cel.@mapInsert",
    "quantities": "quantity isQuantity sign isGreaterThan isLessThan compareTo asApproximateFloat asInteger "
    "isInteger add sub",
    "strings": "contains endsWith startsWith matches charAt indexOf lastIndexOf lowerAscii upperAscii replace "
    "split substring trim format strings.quote join",
    "addresses": "ip family ip.isCanonical isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast "
    "isGlobalUnicast isIP string cidr containsIP containsCIDR prefixLength masked isCIDR",
    "named_formats": "validate format.named format.dns1123Label format.dns1123Subdomain format.dns1035Label "
    "format.qualifiedName format.dns1123LabelPrefix format.dns1123SubdomainPrefix format.dns1035LabelPrefix "
    "format.labelValue format.uri format.uuid format.byte format.date format.datetime",
    "semvers": "semver isSemver isGreaterThan isLessThan compareTo major minor patch",
}
_UNREACHABLE = {
    "authorization": "path group serviceAccount resource subresource namespace name fieldSelector labelSelector check "
    "errored error allowed reason"
}
"""Families that Kubernetes declares although no value of a device selector has their types: found, but not listed."""


@cache
def family(name: str) -> tuple[Function, ...]:
    """The functions of one family, that is, of one module in this package."""
    module = import_module(f"{__name__}.{name}")
    return tuple(module.functions())


def families() -> tuple[Function, ...]:
    """Every function of every family. A name shared by families (`indexOf`, `ip` ...) occurs once in each."""
    return tuple(function for name in _FAMILIES for function in family(name))


class _Table(Mapping[str, Function]):
    """The functions by name, listed without unreachable ones. A family is loaded when a function is looked up."""

    def __init__(self) -> None:
        self._homes: dict[str, list[str]] = {}
        for name, functions in (_FAMILIES | _UNREACHABLE).items():
            for function in functions.split():
                self._homes.setdefault(function, []).append(name)
        self._functions: dict[str, Function] = {}
        self._listed = [name for name, homes in self._homes.items() if homes[0] not in _UNREACHABLE]

    def __getitem__(self, name: str) -> Function:
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = _merged(name, self._homes[name])
        return function

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


def _merged(name: str, homes: list[str]) -> Function:
    """One function with the overloads from all its families, in declaration order."""
    # An address inside a network is asked for by the same name as an address itself, within one family.
    parts = [function for home in homes for function in family(home) if function.name == name]
    if len(parts) == 1:
        return parts[0]
    overloads = tuple(overload for part in parts for overload in part.overloads)
    return Function(name, overloads, parts[0].implementation, parts[0].library)


@cache
def table() -> Mapping[str, Function]:
    """The functions by name. Overloads of a shared name are merged in declaration order."""
    return _Table()


class FunctionReference(NamedTuple):
    """What a function does, as a sentence, and examples: expressions that are true."""

    documentation: str
    examples: tuple[str, ...]


def reference(name: str, library: str | None = None) -> FunctionReference:
    """What a function does: the one of a library, or whatever has that name."""
    entries = [reference for home, reference in _references().get(name, ()) if library in (None, home)]
    if not entries:
        return FunctionReference("", ())
    return FunctionReference(
        entries[0].documentation, tuple(example for reference in entries for example in reference.examples)
    )


@cache
def _references() -> Mapping[str, list[tuple[str, FunctionReference]]]:
    """By name: the library and the entry, in the order of the families."""
    text = Path(__file__).with_name("reference.txt").read_text(encoding="utf-8")
    references: dict[str, list[tuple[str, FunctionReference]]] = {}
    library = ""
    for block in re.split(r"\n(?! )", text.rstrip("\n")):
        first, *examples = block.split("\n")
        if first.startswith("["):
            library = first[1:-1]
        else:
            name, _, documentation = first.partition(": ")
            reference = FunctionReference(documentation, tuple(example.strip() for example in examples))
            references.setdefault(name, []).append((library, reference))
    return references
