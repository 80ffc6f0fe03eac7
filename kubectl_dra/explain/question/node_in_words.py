"""A node that is not there yet, described in words: a driver or a product, and how many devices it has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node, NodeStatus
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import Device, NodeScope, PoolID, ResourceSlice
from kubectl_dra.cluster.cluster import NodeCopy
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.clouds import MachineType, machine_types
from kubectl_dra.data.drivers import STANDARD, Driver, Kind, catalogue, vendor_files
from kubectl_dra.data.product_names import alike, meant
from kubectl_dra.errors import FlagValueError, InputError
from kubectl_dra.explain.question.device_facts import (
    DeviceFacts,
    as_published,
    drivers_of,
    facts_of,
    names_there,
    products_meant,
    products_there,
    typed_value,
)
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME
from kubectl_dra.text import DOCS, edit_distance, nearest, some, whole_number

MOST_DEVICES: Final = 128
"""What one ResourceSlice has at most."""
LABEL: Final = "label:"
"""Prefix of a node's label where it is typed."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_NAME: Final = "new-node"
_ROOM: Final = {"cpu": "1G", "memory": "1Ei", "ephemeral-storage": "1Ei", "pods": "110"}
"""More than any number of pods asks for: of a node in words, only the devices are known."""
_OF_SYSTEM: Final = {"cpu": Quantity.parse("60m"), "memory": Quantity.parse("100Mi")}
"""What the system of a machine takes at least: EKS, GKE and AKS reserve as much of the first CPU, and the kubelet ends
pods where less memory is left (evictionHard). So no machine has all of its size for pods.
"""
ARCH: Final = "kubernetes.io/arch"
_OS: Final = "kubernetes.io/os"
_BETA: Final = "beta."
"""Prefix of the former names of labels, which the kubelet still sets."""
USUAL_LABELS: Final = frozenset((HOSTNAME, *(prefix + key for key in (ARCH, _OS) for prefix in ("", _BETA))))
"""The labels that each node in words has."""
FILE: Final = "write a file with the Node and its ResourceSlices"
_PAGE: Final = f"{DOCS}/fit.md#nodes-that-nobody-has-yet"
USUAL: Final = "8"
"""Number of devices that is proposed for a node."""


class Described(Struct, frozen=True):
    """What was typed of a node: ``first`` stands for the ``base``, and ``words`` follow it.

    ``first`` is a short form, such as 8xH100 or a machine type; empty where everything is NAME=VALUE. ``end`` is what
    follows about the number of nodes. ``resource`` is what a device plugin calls the devices, where that was typed.
    """

    first: str
    base: Mapping[str, str]
    words: Mapping[str, str]
    end: str = ""
    machine: str = ""
    resource: str = ""

    @property
    def all(self) -> dict[str, str]:
        """All NAME=VALUE that it stands for."""
        return {**self.base, **self.words}

    @property
    def labels(self) -> dict[str, str]:
        """The labels among what was typed."""
        return {name.removeprefix(LABEL): text for name, text in self.words.items() if name.startswith(LABEL)}

    def written(self, changes: Mapping[str, str], without: str = "") -> str:
        """The value of the flag with other or further words; the short form goes where it says something else."""
        stays = self.first and not changes.keys() & self.base.keys() and without not in self.base
        words = self.words if stays else self.all
        kept = {name: text for name, text in words.items() if name != without}
        first = self.first if stays else ""
        pairs = (f"{name}={text}" for name, text in {**kept, **changes}.items())
        return ",".join(filter(None, (first, *pairs))) + self.end


class NodeInWords(Struct, frozen=True):
    """A node with devices that are all like ``device``, and their ``kind``.

    ``products`` are those that may be meant; empty where none was named. ``facts`` are what is known of them besides
    what was typed. ``others`` are products that may be meant as well, with which the answer is the same. Those that are
    ``not_there`` are called so, too, but the cluster has others.
    """

    node: NodeCopy
    device: Device
    driver: Driver
    kind: Kind
    products: Sequence[str]
    facts: DeviceFacts
    described: Described
    others: Sequence[str] = ()
    not_there: Sequence[str] = ()

    @property
    def machine(self) -> MachineType | None:
        """The machine type, where its CPUs and memory are known."""
        found = machine_types().get(self.described.machine)
        return found if found is not None and found.room else None


def of_first_product(words: NodeInWords, snapshot: Snapshot) -> NodeInWords:
    """The same node with devices of the first of the products that may be meant."""
    first, *others = words.products
    return replace(with_product(words, first, snapshot), others=others)


def with_product(words: NodeInWords, product: str, snapshot: Snapshot) -> NodeInWords:
    """The same node with devices of exactly this product."""
    described = words.described
    exact = replace(described, first="", base={}, words={**described.all, "product": product})
    return node_in_words(exact, (), snapshot, words.node.node.name)


def node_in_words(described: Described, names: Iterable[str], snapshot: Snapshot, called: str = "") -> NodeInWords:
    """The node; its name is none of ``names``, unless it is ``called`` in a certain way.

    Raises:
        UsageError, InputError: a driver, product, attribute or value that nobody knows.
    """
    typed = {name: text for name, text in described.all.items() if not name.startswith(LABEL)}
    driver = _driver(described, snapshot)
    typed.pop("driver", None)
    count = whole_number(typed.pop("devices", ""))
    if not count or count > MOST_DEVICES:
        raise FlagValueError(
            f"say how many devices a node has: devices=N, from 1 to {MOST_DEVICES}, the most of a ResourceSlice",
            instead=[(f"With {USUAL} devices", described.written({"devices": USUAL}))],
        )
    products: tuple[str, ...] = ()
    if "product" in typed:
        products = _products(driver, typed.pop("product"), described, snapshot)
    elif (exact := typed.get(driver.product_attribute, "")) and exact in (
        *products_there(driver, snapshot),
        *driver.products,
    ):
        products = (exact,)
    kind = _kind(driver, typed)
    partitions, profile = driver.profile_attribute in kind.always, typed.get(driver.profile_attribute, "")
    if partitions:
        named = products
        products = tuple(product for product in named if driver.has_mig_profile(product, profile) is not False)
        if named and not products:
            raise no_partition(driver, named, profile, described)
    said = typed_facts(driver, typed, described, snapshot)
    certain = {
        name: next(iter(known.values))
        for name in sorted(kind.always)
        if (known := driver.attributes.get(name)) is not None and len(known.values) == 1
    }
    # What no attribute of the catalogue describes is text.
    types = {name: known.type for name, known in driver.attributes.items()}
    given = {**certain, **kind.given}.items()
    shape = DeviceFacts({name: of_type(name, types.get(name, "string"), str(value)) for name, value in given})
    facts = _of_size(count, driver, facts_of(driver, kind, products, snapshot), snapshot)
    full = said.over(shape).over(facts)
    device = Device(driver.name, kind.name, full.attributes, full.capacity)
    name, used = called or _NAME, set(names)
    while name in used:
        name = f"{_NAME}-{len(used)}"
    system = _system(driver, products)
    by_class = any(known.extended_resource_name == described.resource for known in snapshot.classes.values())
    offered = {described.resource: str(count)} if described.resource and not by_class else {}
    node = _node(name, as_published(device, driver, kind, snapshot), kind, count, described, system, offered)
    beside = DeviceFacts(
        {name: value for name, value in facts.attributes.items() if full.attributes[name] is value},
        {name: value for name, value in facts.capacity.items() if full.capacity[name] is value},
        facts.like,
    )
    called_so = meant(described.all.get("product", ""), driver.product_names) if products else ()
    not_there = [
        name
        for name in called_so
        if name not in products and not (partitions and driver.has_mig_profile(name, profile) is False)
    ]
    return NodeInWords(node, device, driver, kind, products, beside, described, not_there=not_there)


def _of_size(count: int, driver: Driver, facts: DeviceFacts, snapshot: Snapshot) -> DeviceFacts:
    """The facts without those that depend on a node's size, where no node that is there has so many devices."""
    of_node = {name for name, known in driver.attributes.items() if known.of_node}
    sizes = Counter[str]()
    for slice_ in snapshot.slices if of_node else ():
        sizes[slice_.scope.node_name] += len(slice_.devices) if slice_.driver == driver.name else 0
    if count in sizes.values():
        return facts
    attributes = {name: value for name, value in facts.attributes.items() if name not in of_node}
    return replace(facts, attributes=attributes)


def _system(driver: Driver, products: Sequence[str]) -> dict[str, str]:
    """The labels of the operating system and the architecture; without the latter where products differ in it."""
    arm = [product in driver.arm64 for product in products]
    system = {_OS: "linux"}
    if not any(arm) or all(arm):
        system[ARCH] = "arm64" if any(arm) else "amd64"
    return {prefix + key: value for key, value in system.items() for prefix in ("", _BETA)}


def _node(
    name: str,
    device: Device,
    kind: Kind,
    count: int,
    described: Described,
    system: Mapping[str, str],
    offered: Mapping[str, str],
) -> NodeCopy:
    """The node with so many devices. ``offered`` is what a device plugin offers there."""
    known = kind.attributes
    own = [
        attribute for attribute in sorted(kind.always) if known[attribute].unique and attribute not in device.attributes
    ]
    devices = tuple(
        replace(
            device,
            name=f"{kind.name.replace(' ', '-')}-{place}",
            attributes={**{attribute: {"string": f"{name}-{place}"} for attribute in own}, **device.attributes},
        )
        for place in range(count)
    )
    driver = device.driver
    slice_ = ResourceSlice(f"{name}-{driver}", driver, PoolID(driver, name), 1, 1, NodeScope(name), None, (), devices)
    machine = described.machine
    labels = {HOSTNAME: name, **system, **({INSTANCE_TYPE: machine} if machine else {}), **described.labels}
    meta = ObjectMeta(name=name, labels=labels)
    allocatable: dict[str, str | int | float] = {
        **_ROOM,
        **(_allocatable(machine_types()[machine]) if machine else {}),
        **offered,
    }
    return NodeCopy("", 0, Node(meta, status=NodeStatus(allocatable=allocatable)), slices=(slice_,))


def _allocatable(machine: MachineType) -> dict[str, str]:
    """The most that a machine has for pods."""
    whole = {name: Quantity.parse(size) for name, size in machine.room.items()}
    return {name: str(size - _OF_SYSTEM[name] if name in _OF_SYSTEM else size) for name, size in whole.items()}


def _driver(described: Described, snapshot: Snapshot) -> Driver:
    name, product = described.all.get("driver", ""), described.all.get("product", "")
    if not name:
        drivers = drivers_of(product, snapshot)
        if not drivers:
            raise unknown_product(product, every_product(snapshot), described, there=all_there(snapshot))
        return drivers[0]
    driver = catalogue().driver(name)
    if driver is not None and driver.kinds:
        return driver
    instead: list[tuple[str, str]] = []
    hint = ""
    there = sorted({slice_.scope.node_name for slice_ in snapshot.slices if slice_.driver == name} - {""})
    if driver is None and not there:
        file = vendor_files().get(name.lower())
        known = [known_name for known_name in file.drivers if has_kinds(known_name)] if file is not None else []
        near = known or nearest(name, filter(has_kinds, catalogue().names))
        hint = f" (did you mean {near[0]}?)" if near else ""
        instead = [("Write", described.written({"driver": near_name})) for near_name in near[:1]]
    instead += [("Like a node that has such devices", f"{node}{described.end}") for node in there[:1]]
    what = "does not know it" if driver is None else "does not say which devices it has"
    raise FlagValueError(f"driver {name}: the catalogue {what}{hint}; {FILE}", instead=instead)


def has_kinds(name: str) -> bool:
    """Whether the catalogue says which devices a driver has."""
    driver = catalogue().driver(name)
    return driver is not None and bool(driver.kinds)


def all_there(snapshot: Snapshot) -> tuple[str, ...]:
    """The products of which the cluster has devices."""
    drivers = catalogue().drivers.values()
    return tuple(dict.fromkeys(name for driver in drivers for name in products_there(driver, snapshot)))


def every_product(snapshot: Snapshot) -> tuple[str, ...]:
    """All products that are known, first those of the cluster."""
    known = (name for driver in catalogue().drivers.values() for name in driver.products)
    return tuple(dict.fromkeys((*all_there(snapshot), *known)))


def _kind(driver: Driver, typed: Mapping[str, str]) -> Kind:
    kind = next((kind for kind in driver.kinds if all(typed.get(k, v) == v for k, v in kind.given.items())), None)
    if kind is None:
        kinds = some(
            [" ".join(f"{k}={v}" for k, v in hardware.given.items()) or hardware.name for hardware in driver.kinds]
        )
        raise InputError(f"driver {driver.name} has no such kind of device; it has: {kinds}")
    return kind


def _with_a_word_like(wanted: str, products: Sequence[str]) -> Sequence[str]:
    """The products of which a word is near to what is wanted, the nearest first."""
    words = {word for name in products for word in re.split("[ _-]", name) if len(word) > 1}
    return [name for word in nearest(wanted, words) for name in products if word in re.split("[ _-]", name)]


def _products(driver: Driver, wanted: str, described: Described, snapshot: Snapshot) -> tuple[str, ...]:
    """The products that may be meant."""
    if not driver.product_attribute:
        names = [name for name, known in driver.attributes.items() if not known.unique]
        text = f"the catalogue lists no products of driver {driver.name}; write attributes of its devices instead"
        name = next(
            (other.removeprefix("attribute ") for other in driver.instead.values() if other.startswith("attribute ")),
            "",
        )
        instead = [("Write", described.written({name: wanted}, without="product"))] if name in names else []
        raise FlagValueError(f"{text}: {some(names) or 'it knows none'}", instead=instead)
    products = products_meant(driver, wanted, snapshot)
    if not products:
        raise unknown_product(
            wanted,
            (*products_there(driver, snapshot), *driver.products),
            described,
            driver.product_attribute,
            driver.product_names,
        )
    return products


def no_partition(driver: Driver, products: Sequence[str], wanted: str, described: Described) -> FlagValueError:
    """Error that products cannot be partitioned like this, with products that can and what these can have."""
    attribute, size = driver.profile_attribute, wanted.partition("g")[0]
    own = dict.fromkeys(profile for product in products for profile in driver.mig_by_product.get(product, ()))
    others = [product for product in driver.product_names if driver.has_mig_profile(product, wanted)]
    alike = [profile for profile in own if profile.partition("g")[0] == size]
    instead = [(f"With {product}", described.written({"product": product})) for product in others[:2]]
    instead += [(f"With {profile}", described.written({attribute: profile})) for profile in alike]
    its, have = ("its", "has") if len(products) == 1 else ("their", "have")
    text = f"{attribute} {wanted}; {its} {attribute}s are {some(list(own), 6)}" if own else "partitions (MIG)"
    return FlagValueError(f"{some(products)} {have} no {text}", instead=instead)


def unknown_product(
    wanted: str, products: Sequence[str], described: Described, attribute: str = "", there: Sequence[str] = ()
) -> FlagValueError:
    """Error that no product is called so, and which are near; else the first of those that are ``there``."""
    products = tuple(dict.fromkeys(products))
    # Of a vendor's or a brand's name, the products that have it.
    products = alike(wanted, products) or products
    # What has no number is no model, but a word such as "gpu".
    model = re.search("[0-9]", wanted) is not None
    near = (nearest(wanted, products) or _with_a_word_like(wanted, products)) if model else ()
    known = f"the nearest are: {some(near)}" if near else f"it knows {some(products)}"
    instead = [(f"With {product}", described.written({"product": product})) for product in near[:2] or there[:1]]
    if attribute:
        other = described.written({attribute: wanted}, without="product")
        instead.append((f"Devices whose {attribute} is exactly {wanted}", other))
    return FlagValueError(f'product "{wanted}" is not in the catalogue; {known}', instead=instead)


def typed_facts(driver: Driver, typed: Mapping[str, str], described: Described, snapshot: Snapshot) -> DeviceFacts:
    """Attributes and capacities that were typed: those of the catalogue, and those that devices of the cluster have."""
    attributes: dict[str, Any] = {}
    capacity: dict[str, Any] = {}
    there = names_there(driver.name, snapshot)
    for name, value in typed.items():
        kind, type_ = there.get(name, ("attribute", "string") if name.startswith(f"{STANDARD}/") else ("", ""))
        if name in driver.attributes:
            attributes[name] = of_type(name, driver.attributes[name].type, value)
        elif name in driver.capacities or kind == "capacity":
            capacity[name] = {"value": amount(name, value)}
        elif kind:
            attributes[name] = of_type(name, type_, value)
        else:
            known = (*there, *driver.attributes, *driver.capacities) if there else ()
            raise unknown_name(name, value, driver, described, f"devices of driver {driver.name}", known)
    return DeviceFacts(attributes, capacity)


def unknown_name(
    name: str, value: str, driver: Driver | None, described: Described, whose: str, there: Sequence[str] = ()
) -> FlagValueError:
    """Error that devices have no such attribute or capacity, with those that may be meant."""
    if name in _ROOM or name.startswith("taint"):
        what = "a taint of the node is" if name.startswith("taint") else f"{name} of the node is"
        return FlagValueError(f"{what} not said in words; {FILE} ({_PAGE} shows one)")
    known = tuple(dict.fromkeys(there)) or ((*driver.attributes, *driver.capacities) if driver is not None else ())
    other = driver.instead.get(name, "").partition(" ")[2] if driver is not None else ""
    near = (other,) if other in known else nearest(name, known) or _of_flag(name)
    if driver is not None and near[:1] == (driver.product_attribute,):
        near = ("product",)
    hint = f" (did you mean {near[0]}?)" if near else f"; they have {some(known, 6)}" if known else ""
    instead = [("Write", described.written({near[0]: value}, without=name))] if near else []
    return FlagValueError(f"{whose} have no {name}{hint}", instead=instead)


def _of_flag(name: str) -> tuple[str, ...]:
    """What is misspelt of the flag itself, where a name is so."""
    key, colon, rest = name.partition(":")
    right = LABEL.removesuffix(":") if colon else "count"
    return (f"{right}{colon}{rest}",) if edit_distance(key, right, 2) is not None else ()


def amount(name: str, text: str) -> str:
    """The text, which is a quantity. Raises InputError if it is none."""
    try:
        Quantity.parse(text)
    except QuantityError:
        raise InputError(f'{name} is an amount such as 80Gi, not "{text}"') from None
    return text


def of_type(name: str, type_: str, text: str) -> dict[str, Any]:
    """A value of an attribute of a type. Raises InputError: the text is none."""
    value = typed_value(type_, text)
    if value is None:
        raise InputError(f'{name} is of type {type_}, not "{text}"')
    return value
