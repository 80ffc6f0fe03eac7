"""Selectors that read something else than a domain where the domain of attributes stands.

``device.attributes.gpu.nvidia.com.architecture`` reads the domain gpu, ``has(device.attributes.uuid)`` the domain uuid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.admission.server.names import is_identifier
from kubectl_dra.cel import ast
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.text import with_article

_TABLES: Final = {"attributes": "attribute", "capacity": "capacity"}


class MisreadDomain(Struct, frozen=True):
    """What is read as a ``domain`` and is none: where, what is wrong, and the ``expression`` that is meant.

    ``node`` is false if it is only ``tested`` whether there is such a thing, and an error otherwise.
    """

    start: int
    end: int
    domain: str
    told: str
    expression: str
    node: ast.Expression
    tested: bool


def misread_domains(root: ast.Expression, text: str, drivers: Sequence[Driver]) -> Iterator[MisreadDomain]:
    """Every such read, given the drivers of the devices that are asked for."""
    above = {child.id: node for node in ast.walk(root) for child in ast.children(node)}
    for node in ast.walk(root):
        table, key = _domain(node)
        if table is None:
            continue
        found = _unquoted(node, above, table, text) or _name(node, table, key, drivers, text)
        if found is not None:
            yield found


def _domain(node: ast.Expression) -> tuple[ast.Select | None, str]:
    """The table of which a node reads a domain, and the domain."""
    table: ast.Expression
    if isinstance(node, ast.Select):
        table, key = node.operand, node.field
    elif isinstance(node, ast.Call) and node.function == "@in" and isinstance(node.arguments[0], ast.Literal):
        table, key = node.arguments[1], node.arguments[0].value
    elif isinstance(node, ast.Call) and node.function == "_[_]" and isinstance(node.arguments[1], ast.Literal):
        table, key = node.arguments[0], node.arguments[1].value
    else:
        return None, ""
    if not isinstance(table, ast.Select) or table.field not in _TABLES or not isinstance(key, str):
        return None, ""
    of_device = isinstance(table.operand, ast.Identifier) and table.operand.name == "device"
    return (table, key) if of_device else (None, "")


def _unquoted(
    node: ast.Expression, above: dict[int, ast.Expression], table: ast.Select, text: str
) -> MisreadDomain | None:
    """A driver's name without the brackets and quotes that a name with dots needs."""
    names: list[str] = []
    top: ast.Expression | None = node
    while isinstance(top, ast.Select) and not top.test_only:
        names.append(top.field)
        written = ".".join(names)
        parent = above.get(top.id)
        driver = catalogue().driver(written) if "." in written else None
        if driver is not None and isinstance(parent, ast.Select):
            read = f'{text[table.start : table.end]}["{driver.name}"].{parent.field}'
            told = f"the dots of {driver.name} are read as steps, and {names[0]} as the domain"
            if parent.test_only:
                return MisreadDomain(parent.start, parent.end, names[0], told, f"has({read})", parent, True)
            return MisreadDomain(table.start, parent.end, names[0], told, read, node, False)
        top = parent
    return None


def _name(
    node: ast.Expression, table: ast.Select, key: str, drivers: Sequence[Driver], text: str
) -> MisreadDomain | None:
    """A name, with or without its domain, in the place of the domain."""
    domain, slash, short = key.rpartition("/")
    kind = _TABLES[table.field]
    owners = [each for each in drivers if short in (each.capacities if kind == "capacity" else each.attributes)]
    member = isinstance(node, ast.Call) and node.function == "@in"
    if slash and member:
        place = domain
    elif is_identifier(key) and len(owners) == len(drivers) == 1 and drivers[0].complete:
        place = owners[0].name
    else:
        return None
    read = f'{text[table.start : table.end]}["{place}"]'
    told = f"{key} is no domain" if slash else f"{key} is {with_article(kind)} of {place}, and no domain"
    if member:
        written = f'"{short}" in {read}'
        return MisreadDomain(node.start, node.end, key, f"{told}: no device has that", written, node, True)
    if isinstance(node, ast.Select) and node.test_only:
        return MisreadDomain(
            node.start, node.end, key, f"{told}: no device has that", f"has({read}.{short})", node, True
        )
    return MisreadDomain(node.start, node.end, key, f"{told}: reading it is an error", f"{read}.{short}", node, False)
