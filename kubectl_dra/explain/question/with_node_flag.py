"""Nodes that are not there yet, with their slices: from a file, like one that exists, or in words.

A copy is what cluster-autoscaler takes for the next node of a group that has one: the node, its ResourceSlices in pools
of new names, and the pods that run on each such node (docs/dra_support.md of cluster-autoscaler). But that takes over
taints of devices, which tell the state of those that are there; ``explain.autoscaling`` says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node, NodeStatus
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import Device, NodeScope, PoolID, ResourceSlice
from kubectl_dra.cel import CompileError, compile_expression
from kubectl_dra.cel.columns import Column
from kubectl_dra.cluster.cluster import Cluster, NodeCopy
from kubectl_dra.cluster.snapshot import DRA_KINDS, Snapshot
from kubectl_dra.command import is_name
from kubectl_dra.data.drivers import Driver, Kind, catalogue, name_in
from kubectl_dra.errors import InputError, UndeterminedError, UsageError
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.scheduling.node_copy import copies_of
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import did_you_mean_or_known, nearest, some, whole_number

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


def _with_a_word_like(wanted: str, products: Sequence[str]) -> Sequence[str]:
    """The products of which a word is near to what is wanted, the nearest first."""
    words = {word for name in products for word in re.split("[ _-]", name) if len(word) > 1}
    return [name for word in nearest(wanted, words) for name in products if word in re.split("[ _-]", name)]


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
        near = nearest(wanted, driver.products) or _with_a_word_like(wanted, driver.products)
        known = f"the nearest are: {some(near)}" if near else f"it knows {some(driver.products)}"
        raise InputError(f'product "{wanted}" is not in the catalogue; {known}')
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


FLAG: Final = f"--{WITH_NODE}"
GRAMMAR: Final = (
    "FILE[,count=N], [like=]NODE[,count=N] or driver=NAME[,product=NAME],devices=N[,ATTRIBUTE=VALUE]...[,count=N]"
)
MOST: Final = 1_000
"""How many nodes one flag adds at most."""


class NewNodes(Struct, frozen=True):
    """A value of the flag, as written in ``text``: a ``file``, a node that they are ``like``, or ``words``.

    A ``file`` that does not exist is a node that they are like. ``count`` is None where nobody said how many.
    """

    text: str
    file: str = ""
    like: str = ""
    words: tuple[tuple[str, str], ...] = ()
    count: int | None = None

    @property
    def change(self) -> WhatIfChange:
        """It as one of the changes under which an answer holds."""
        return WhatIfChange("", WITH_NODE, self.text)


def parse(text: str) -> NewNodes:
    """Read a value of the flag. Raises UsageError: an unknown form."""
    parts = [part.strip() for part in text.split(",")]
    first = parts[0]
    if "=" not in first or first.startswith((".", "/")):
        pairs, file = _pairs(parts[1:], text), first
    else:
        pairs, file = _pairs(parts, text), ""
    count = _number(pairs.pop("count"), "count", text, MOST) if "count" in pairs else None
    like = "" if file else pairs.pop("like", "")
    if not file and not like and not pairs.get("driver"):
        near = nearest(next(iter(pairs), ""), ("like", "driver", "count"))
        hint = f' (did you mean "{near[0]}="?)' if near else ""
        raise UsageError(f'{FLAG} "{text}" is not understood{hint}; write one of: {GRAMMAR}')
    if pairs and (file or like):
        what = "a file" if file else "like="
        raise UsageError(f'{FLAG} "{text}": only count=N goes with {what}, not {next(iter(pairs))}=')
    return NewNodes(text, file, like, tuple(pairs.items()), count)


def _pairs(parts: Iterable[str], text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in parts:
        key, equal, value = part.partition("=")
        if not equal or not key or not value or key in pairs:
            what = f'"{key}" is there twice' if key in pairs else f'"{part}" is not NAME=VALUE'
            raise UsageError(f'{FLAG} "{text}": {what}; write one of: {GRAMMAR}')
        pairs[key.strip()] = value.strip()
    return pairs


def _number(value: str, key: str, text: str, most: int) -> int:
    number = whole_number(value)
    if not number or number > most:
        raise UsageError(f'{FLAG} "{text}": {key} is a number from 1 to {most:,}, not "{value}"')
    return number


class Addition(Struct, frozen=True):
    """New nodes that are ready to be added: those of a file or in words, each once, or the node that they are like.

    ``words`` is what is known of a node in words.
    """

    new: NewNodes
    like: str
    nodes: tuple[NodeCopy, ...] = ()
    words: NodeInWords | None = None

    @property
    def countable(self) -> bool:
        """Whether it may be any number of nodes: those of a file with several are all added once."""
        return len(self.nodes) < 2

    @property
    def local(self) -> bool:
        """Whether each slice is for one node alone."""
        return all(slice_.scope.node_name for copy in self.nodes for slice_ in copy.slices)

    def added(self, cluster: Cluster, scheduler: Scheduler, count: int) -> Cluster:
        """The cluster with ``count`` of them."""
        for copy in self.nodes if count else ():
            cluster = cluster.adding_node(copy)
        more = count if not self.nodes else count - 1
        if self.countable and more > 0:
            state = scheduler.sees(cluster)
            for copy in islice(copies_of(self.like, state, as_is=bool(self.nodes)), more):
                cluster = cluster.adding_node(copy)
        return cluster


def additions(new: Sequence[NewNodes], snapshot: Snapshot) -> list[Addition]:
    """What the flags add to a cluster. A later one may be like a node of an earlier one.

    Raises:
        UsageError, InputError: a node, file, driver or product that is not there, or names that are taken.
    """
    additions: list[Addition] = []
    names = dict.fromkeys(snapshot.nodes)
    pools = {slice_.pool for slice_ in snapshot.slices}
    for new_nodes in new:
        try:
            addition = _addition(new_nodes, names, snapshot)
            for copy in addition.nodes:
                if copy.node.name in names:
                    raise InputError(
                        f"Node {copy.node.name} is there already; rename it, or write like={copy.node.name}"
                    )
                if (same := next((slice_.pool for slice_ in copy.slices if slice_.pool in pools), None)) is not None:
                    raise InputError(f"pool {same} is there already; rename it")
            if new_nodes.count is not None and not addition.countable:
                raise UsageError(f"{new_nodes.file} holds {len(addition.nodes)} nodes; count=N goes with one")
        except (InputError, UsageError) as error:
            raise type(error)(f'{FLAG} "{new_nodes.text}": {error}') from None
        names.update(dict.fromkeys(copy.node.name for copy in addition.nodes))
        pools.update(slice_.pool for copy in addition.nodes for slice_ in copy.slices)
        additions.append(addition)
    return additions


def _addition(new: NewNodes, names: Collection[str], snapshot: Snapshot) -> Addition:
    named = new.file.removeprefix("node/")
    if new.file and (Path(new.file).exists() or not is_name(named)):
        return _of_file(new)
    if new.words:
        described = node_in_words(dict(new.words), names)
        return Addition(new, described.node.node.name, (described.node,), described)
    like = new.like or named
    if like not in names:
        if (gap := snapshot.missing("Node")) is not None:
            raise UndeterminedError(f'{FLAG} "{new.text}": {gap}, so whether there is a Node {like} is unknown')
        what = f"neither a file {new.file} nor a Node of that name" if new.file else f"no Node {like}"
        raise InputError(f"there is {what}; {did_you_mean_or_known(like, names)}")
    return Addition(new, like)


def with_nodes(
    snapshot: Snapshot, wanted: Sequence[Addition], scheduler: Scheduler, searched: int | None = None
) -> Snapshot:
    """The cluster with new nodes: of each as many as it says, or ``searched``, which is one by default."""
    if not wanted:
        return snapshot
    cluster = Cluster(snapshot).with_named_nodes()
    for addition in wanted:
        count = (
            addition.new.count
            if addition.new.count is not None
            else 1
            if searched is None or not addition.countable
            else searched
        )
        cluster = addition.added(cluster, scheduler, count)
    return cluster.snapshot


def assumed_of(wanted: Sequence[Addition]) -> Iterator[Phrase]:
    """What is taken for granted of nodes in words."""
    if any(addition.words is not None for addition in wanted):
        yield say(
            "of a node in words only the devices are known: it is taken to have enough CPU and memory, Linux on amd64, "
            "no taints and no other labels; a file of the Node and its ResourceSlices says more"
        )


def require_known(
    wanted: Sequence[Addition], questions: Iterable[Question], snapshot: Snapshot, scheduler: Scheduler
) -> None:
    """Raise InputError where what is asked reads of devices in words what nobody has said."""
    described = [(addition, addition.words) for addition in wanted if addition.words is not None]
    if not described:
        return
    for question in questions:
        for each, words in described:
            if names := missing(words, question, snapshot, scheduler):
                given = ",".join(f"{name}=..." for name in names)
                may_be = "".join(f"; {name} may be {some(words.open[name])}" for name in names if name in words.open)
                raise InputError(
                    f'{FLAG} "{each.new.text}": the claims of {question.kind} {question.namespace}/{question.name} '
                    f"read {some(names)} of devices, which the catalogue does not know of these{may_be}; add {given}, "
                    "or write a file with the Node and its ResourceSlices"
                )


def _of_file(new: NewNodes) -> Addition:
    from kubectl_dra.cluster.files import read_snapshot

    read = read_snapshot([new.file])
    others = [kind for kind in (*DRA_KINDS[1:], "Pod") if not read.is_gap(kind)]
    if not read.nodes or others:
        what = f"holds a {others[0]}" if others else "holds no Node"
        raise InputError(f"it {what}; it has to hold Nodes and their ResourceSlices alone")
    slices: dict[str, list[ResourceSlice]] = {name: [] for name in read.nodes}
    for slice_ in read.slices:
        home = slice_.scope.node_name or next(iter(slices))
        if home not in slices:
            raise InputError(f"ResourceSlice {slice_.name} is of node {home}, which is not in the file")
        slices[home].append(slice_)
    copies = tuple(NodeCopy("", 0, read.nodes[name], slices=own) for name, own in slices.items())
    return Addition(new, copies[0].node.name, copies)
