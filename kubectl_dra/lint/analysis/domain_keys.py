"""What somebody meant who wrote a domain and a name as one key: ``device.attributes["gpu.nvidia.com/productName"]``.

The key can be an attribute with its domain, as constraints write it, a resource of a device plugin, or a domain with
something behind it. Only what the drivers' attributes leave one reading of is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.admission.server.names import is_identifier
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import STANDARD, Driver, catalogue
from kubectl_dra.lint.analysis.published_devices import shared_domains
from kubectl_dra.lint.analysis.selector_targets import drivers_of
from kubectl_dra.lint.context import Context
from kubectl_dra.text import edit_distance, join, nearest, with_article

_VALUE_FIELDS: Final = ("bool", "int", "string", "version", "StringValue", "IntValue", "BoolValue", "VersionValue")
_SHOWN: Final = 5
_PLAIN: Final = "an attribute is read by its domain and then its name, not by both in one key"


class MeantKey(Struct, frozen=True):
    """A key with a domain and a name: where it is read, what is wrong with it, and what to do.

    ``expression`` is what the advice says to read. ``edit`` is the range to replace and the text for it, where one
    reading is possible.
    """

    start: int
    end: int
    told: str
    advice: str
    expression: str
    edit: tuple[int, int, str] | None = None


class _Read(Struct, frozen=True):
    """A reading by such a key. ``field`` is what is read of the result, ``end`` where the key with its value ends."""

    node: ast.Call
    table: str
    kind: str
    domain: str
    name: str
    field: str
    end: int

    @property
    def key(self) -> ast.Expression:
        return self.node.arguments[1]

    def of(self, domain: str, name: str) -> str:
        """The reading of an attribute or capacity in two steps."""
        return f'{self.table}["{domain}"]' + (f".{name}" if is_identifier(name) else f'["{name}"]')

    def meant(self, told: str, advice: str, whole: str, edit: tuple[int, int, str] | None = None) -> MeantKey:
        """What is meant by it."""
        return MeantKey(self.node.start, self.end, told, advice, whole, edit)

    def has(self, driver: Driver, name: str) -> bool:
        """Whether the driver has it, or it is known what does this instead."""
        if driver.knows(Column(self.kind, driver.name, name)):
            return True
        return name in driver.instead or name in driver.removed or name in driver.no_equal


def meant_keys(root: ast.Expression, text: str, context: Context, device_class: str) -> Iterator[MeantKey]:
    """Every key with a domain and a name in an expression, which a request of a class asks."""
    above = {child.id: node for node in ast.walk(root) for child in ast.children(node)}
    for node in ast.walk(root):
        read = _read(node, above, text)
        if read is not None:
            yield _meant(read, text, context, device_class)


def _read(node: ast.Expression, above: Mapping[int, ast.Expression], text: str) -> _Read | None:
    if not isinstance(node, ast.Call) or node.function not in ("_[_]", "_[?_]"):
        return None
    table, key = node.arguments
    if not isinstance(table, ast.Select) or table.field not in ("attributes", "capacity"):
        return None
    if not isinstance(key, ast.Literal) or not isinstance(key.value, str) or "/" not in key.value:
        return None
    domain, _, name = key.value.partition("/")
    field, end = _field(above.get(node.id), node), node.end
    if field in _VALUE_FIELDS:
        written = re.match(rf"\s*\.\s*{field}\b", text[end:])
        field, end = ("", end + written.end()) if written else (field, end)
    kind = "capacity" if table.field == "capacity" else "attribute"
    return _Read(node, text[table.start : table.end], kind, domain, name, field, end)


def _field(parent: ast.Expression | None, node: ast.Expression) -> str:
    """The name that is read of the result of a node; empty if none is."""
    if isinstance(parent, ast.Select):
        return parent.field
    if isinstance(parent, ast.Call) and parent.function in ("_[_]", "_?._", "_[?_]") and parent.arguments[0] is node:
        key = parent.arguments[1]
        return key.value if isinstance(key, ast.Literal) and isinstance(key.value, str) else ""
    return ""


def _meant(read: _Read, text: str, context: Context, device_class: str) -> MeantKey:
    driver = catalogue().driver(read.domain)
    if driver is None or not read.has(driver, read.name):
        offering = catalogue().of_resource(f"{read.domain}/{read.name}")
        if offering is not None:
            return _of_resource(read, offering)
    if driver is not None:
        return _of_driver(read, driver, _PLAIN)
    if read.domain == STANDARD:
        return _plain(read)
    owners = drivers_of(context, read.domain)
    if len(owners) == 1:
        told = f"{_PLAIN}; {read.domain} is a class, and the domain is its driver, {owners[0].name}"
        return _of_driver(read, owners[0], told)
    asked = drivers_of(context, device_class)
    if len(asked) == 1 and asked[0].complete and read.domain not in shared_domains(asked):
        told = f"{_PLAIN}; devices of class {device_class} have them in the domain {asked[0].name}"
        return _of_driver(read, asked[0], told)
    near = [catalogue().driver(name) for name in nearest(read.domain, catalogue().names, 1)]
    if near and near[0] is not None and edit_distance(read.domain, near[0].name, 2) is not None:
        return _of_driver(read, near[0], f"{_PLAIN}; no driver is called {read.domain}, but {near[0].name} is")
    return _plain(read)


def _of_resource(read: _Read, driver: Driver) -> MeantKey:
    told = (
        f"{read.domain}/{read.name} is a resource of a device plugin, not a domain: "
        f"attributes of such devices are in the domain {driver.name}"
    )
    if read.field and read.has(driver, read.field):
        return _in_domain(read, driver.name, told)
    return _listed(read, driver, told)


def _of_driver(key: _Read, driver: Driver, told: str) -> MeantKey:
    """A key whose domain is, or stands for, that of a driver."""
    key = replace(key, name=_right_name(key, driver, key.name))
    named, field = key.has(driver, key.name), bool(key.field) and key.has(driver, key.field)
    if not key.field and (named or not driver.complete):
        return _split(key, driver.name, told)
    if field and not named:
        return _in_domain(key, driver.name, told)
    if named and not field:
        return _without_field(key, driver.name, told)
    return _listed(key, driver, told)


def _right_name(read: _Read, driver: Driver, name: str) -> str:
    """The name under which the driver has what is called otherwise; the same for any other."""
    kind, _, other = driver.instead.get(name, "").partition(" ")
    known = driver.knows(Column(read.kind, driver.name, name))
    return other if not known and kind == read.kind and is_identifier(other) else name


def _plain(read: _Read) -> MeantKey:
    """A key of which only the form is known."""
    if read.field:
        return _without_field(read, read.domain, _PLAIN)
    return _split(read, read.domain, _PLAIN)


def _split(read: _Read, domain: str, told: str) -> MeantKey:
    whole = read.of(domain, read.name)
    # An optional step would have to become two.
    edit = (read.node.start, read.end, whole) if read.node.function == "_[_]" else None
    return read.meant(told, f"Read it as {whole}", whole, edit)


def _in_domain(read: _Read, domain: str, told: str) -> MeantKey:
    whole = read.of(domain, read.field)
    return read.meant(told, f"Read it as {whole}", whole, (read.key.start + 1, read.key.end - 1, domain))


def _without_field(read: _Read, domain: str, told: str) -> MeantKey:
    whole = read.of(domain, read.name)
    return read.meant(told, f"Read it as {whole}, without .{read.field} behind it", whole)


def _listed(read: _Read, driver: Driver, told: str) -> MeantKey:
    own = [name for name in (driver.capacities if read.kind == "capacity" else driver.attributes) if "/" not in name]
    whole, more = read.of(driver.name, "NAME"), ", …" if len(own) > _SHOWN else ""
    return read.meant(told, f"Read what the driver has: {whole}, with {join(own[:_SHOWN])}{more}", whole)


# Selectors that read something else than a domain where the domain of attributes stands.

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
