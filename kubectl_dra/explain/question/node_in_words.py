"""A node in words: devices of a driver as the catalogue knows them, and what is typed besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node, NodeStatus
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import Device, NodeScope, PoolID, ResourceSlice
from kubectl_dra.cel import CompileError, compile_expression
from kubectl_dra.cel.columns import Column
from kubectl_dra.cluster.cluster import NodeCopy
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import Driver, Kind, catalogue, name_in
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import nearest, some, whole_number

_MOST_DEVICES: Final = 128
"""What one ResourceSlice has at most."""
_NAME: Final = "new-node"
_ROOM: Final = {"cpu": "1000", "memory": "100Ti", "ephemeral-storage": "1000Ti", "pods": "110"}
"""More than pods ask for: of a node in words, only the devices are known."""
_SYSTEM: Final = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
_FILE: Final = "write a file with the Node and its ResourceSlices"


class NodeInWords(Struct, frozen=True):
    """A node with devices that are all like ``device``, and their ``kind``.

    ``open`` are attributes of which what was typed leaves several values.
    """

    node: NodeCopy
    device: Device
    kind: Kind
    open: Mapping[str, Sequence[str]] = {}


def node_in_words(words: Mapping[str, str], names: Iterable[str]) -> NodeInWords:
    """The node; its name is none of ``names``.

    Raises:
        UsageError, InputError: a driver, product, attribute or value that the catalogue does not know.
    """
    typed = dict(words)
    driver = _driver(typed.pop("driver"))
    count = whole_number(typed.pop("devices", ""))
    if not count or count > _MOST_DEVICES:
        raise UsageError(f"say how many devices a node has: devices=N, from 1 to {_MOST_DEVICES}")
    attribute, products = _products(driver, typed.pop("product")) if "product" in typed else ("", ())
    if len(products) == 1:
        typed[attribute] = products[0]
    attributes, capacity = _typed(driver, typed)
    kind = next((kind for kind in driver.kinds if all(typed.get(k, v) == v for k, v in kind.given.items())), None)
    if kind is None:
        kinds = some([" ".join(f"{k}={v}" for k, v in each.given.items()) or each.name for each in driver.kinds])
        raise InputError(f"driver {driver.name} has no such kind of device; it has: {kinds}")
    always = {name: known for name in sorted(kind.always) if (known := driver.attributes.get(name)) is not None}
    certain = {name: known.values[0] for name, known in always.items() if len(known.values) == 1} | dict(kind.given)
    device = Device(
        driver.name,
        kind.name,
        {**{name: _value(driver, name, str(value)) for name, value in certain.items()}, **attributes},
        capacity,
    )
    own = [name for name, known in always.items() if known.unique and name not in device.attributes]
    name, used = _NAME, set(names)
    while name in used:
        name = f"{_NAME}-{len(used)}"
    devices = tuple(
        replace(
            device,
            name=f"{kind.name}-{place}",
            attributes={**{each: {"string": f"{name}-{place}"} for each in own}, **device.attributes},
        )
        for place in range(count)
    )
    slice_ = ResourceSlice(
        f"{name}-{driver.name}", driver.name, PoolID(driver.name, name), 1, 1, NodeScope(name), None, (), devices
    )
    meta = ObjectMeta(name=name, labels={HOSTNAME: name, **_SYSTEM})
    copy = NodeCopy("", 0, Node(meta, status=NodeStatus(allocatable=dict(_ROOM))), slices=(slice_,))
    return NodeInWords(copy, device, kind, {attribute: products} if len(products) > 1 else {})


def _driver(name: str) -> Driver:
    driver = catalogue().driver(name)
    if driver is not None and driver.kinds:
        return driver
    near = nearest(name, catalogue().names) if driver is None else ()
    hint = f" (did you mean {near[0]}?)" if near else ""
    what = "does not know it" if driver is None else "does not say which devices it has"
    raise InputError(f"driver {name}: the catalogue {what}{hint}; {_FILE}")


def _products(driver: Driver, wanted: str) -> tuple[str, Sequence[str]]:
    """The attribute that says which product a device is, and the products that may be meant."""
    attribute = next((name for name, known in driver.attributes.items() if known.names == "products"), "")
    if not attribute:
        names = some([name for name, known in driver.attributes.items() if not known.unique])
        text = f"the catalogue lists no products of driver {driver.name}; write attributes of its devices instead"
        raise InputError(f"{text}: {names or 'it knows none'}")
    if wanted in driver.products:
        return attribute, (wanted,)
    words = wanted.lower().split()
    products = [name for name in driver.products if all(word in name.lower().split() for word in words)]
    products = products or [name for name in driver.products if wanted.lower() in name.lower()]
    if not products:
        near = nearest(wanted, driver.products) or driver.products
        raise InputError(f'product "{wanted}" is not in the catalogue; the nearest are: {some(near)}')
    return attribute, products


def _typed(driver: Driver, typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Attributes and capacities that were typed."""
    attributes: dict[str, Any] = {}
    capacity: dict[str, Any] = {}
    for name, value in typed.items():
        if name in driver.attributes:
            attributes[name] = _value(driver, name, value)
        elif name in driver.capacities:
            try:
                Quantity.parse(value)
            except QuantityError as error:
                raise InputError(f"{name}: {error}") from None
            capacity[name] = {"value": value}
        else:
            near = nearest(name, (*driver.attributes, *driver.capacities))
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise InputError(f"devices of driver {driver.name} have no {name}{hint}")
    return attributes, capacity


def _value(driver: Driver, name: str, text: str) -> dict[str, Any]:
    """A value of an attribute in the shape of the API."""
    kind = driver.attributes[name].type if name in driver.attributes else "string"
    value: Any = {"int": whole_number(text), "bool": {"true": True, "false": False}.get(text.lower())}.get(kind, text)
    if value is None:
        raise InputError(f'{name} is of type {kind}, not "{text}"')
    return {kind or "string": value}


def missing(described: NodeInWords, question: Question, snapshot: Snapshot, scheduler: Scheduler) -> list[str]:
    """The attributes and capacities that a question's selectors and constraints read and nobody has said."""
    device, kind = described.device, described.kind
    unsaid: dict[str, None] = {}
    for column in _columns(question, snapshot, scheduler):
        if column.id is None or column.kind not in ("attribute", "capacity"):
            continue
        name = name_in(device.driver, column)
        of_kind = name in kind.attributes if column.kind == "attribute" else name in kind.capacities
        unique = name in kind.attributes and kind.attributes[name].unique
        said = name in (device.capacity if column.kind == "capacity" else device.attributes)
        if of_kind and not unique and not said and kind.publishes(column):
            unsaid[name] = None
    return sorted(unsaid)


def _columns(question: Question, snapshot: Snapshot, scheduler: Scheduler) -> Iterator[Column]:
    """What the claims of a question read of devices."""
    expressions: dict[str, None] = {}
    for claim in question.existing_claims:
        for constraint in claim.constraints:
            name = constraint.attribute
            domain, _, name = name.rpartition("/")
            yield Column("attribute", domain or None, name)
        for spec in claim.alternatives():
            known = snapshot.classes.get(spec.device_class)
            selectors = (*spec.selectors, *(known.selectors if known is not None else ()))
            expressions.update(dict.fromkeys(filter(None, selectors)))
            yield from (Column("capacity", None, name) for name in spec.capacity or ())
    for expression in expressions:
        try:
            yield from compile_expression(scheduler.environment, expression).columns or ()
        except CompileError:
            continue
