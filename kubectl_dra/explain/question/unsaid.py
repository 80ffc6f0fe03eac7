"""What claims read of devices in words and nobody has said, and values of the flag that say it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import CompileError, compile_expression
from kubectl_dra.cel.columns import Column
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.clouds import machine_types
from kubectl_dra.data.drivers import catalogue, name_in
from kubectl_dra.errors import FlagValueError, InputError, UsageError
from kubectl_dra.explain.question.device_facts import DeviceFacts, facts_of, names_there, plausible, products_there
from kubectl_dra.explain.question.node_in_words import NodeInWords, node_in_words, typed_facts, with_product
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import join

_MOST_PRODUCTS: Final = 3
"""Largest number of products that are proposed."""
_LITERAL: Final = re.compile(r"""==\s*(?:"([^"\\,]+)"|'([^'\\,]+)'|([0-9]+|true|false)\b)""")
"""What something is compared with in a selector."""
_MOST_VALUES: Final = 6
_MOST_TRIED: Final = 64
"""Largest number of values of a name, and of examples, that are tried."""


class QuestionInCluster(NamedTuple):
    """A question, with the cluster and the scheduler of which it is asked."""

    question: Question
    snapshot: Snapshot
    scheduler: Scheduler

    @property
    def specs(self) -> list[DeviceRequest]:
        """What its claims ask for."""
        return [spec for claim in self.question.existing_claims for spec in claim.alternatives()]

    def selectors(self, spec: DeviceRequest) -> list[str]:
        """The selectors of a request and of its class."""
        known = self.snapshot.classes.get(spec.device_class)
        return [text for text in (*(known.selectors if known is not None else ()), *spec.selectors) if text]

    @property
    def expressions(self) -> list[str]:
        """All selectors, each once."""
        return list(dict.fromkeys(text for spec in self.specs for text in self.selectors(spec)))

    def taken(self, devices: Sequence[Device], specs: Sequence[DeviceRequest] | None = None) -> list[Device]:
        """The devices that one of these requests takes, or any of the question's."""
        selectors = self.scheduler.sees(Cluster(self.snapshot)).cycle.selectors
        wanted = self.specs if specs is None else specs
        accepted = [selectors.accepted(self.selectors(spec), devices) for spec in wanted]
        return [device for device in devices if any(device in group for group in accepted)]

    def columns(self) -> Iterator[Column]:
        """What its claims read of devices."""
        for claim in self.question.existing_claims:
            for constraint in claim.constraints:
                domain, _, name = constraint.attribute.rpartition("/")
                yield Column("attribute", domain or None, name)
        for spec in self.specs:
            for name in spec.capacity or ():
                domain, _, name = name.rpartition("/")
                yield Column("capacity", domain or None, name)
        for expression in self.expressions:
            try:
                yield from compile_expression(self.scheduler.environment, expression).columns or ()
            except CompileError:
                continue


class Completion(NamedTuple):
    """Values of the flag, each after a label; whether they differ in ``products``."""

    values: Sequence[tuple[str, str]]
    products: bool = False


def missing(words: NodeInWords, asking: QuestionInCluster) -> dict[str, str]:
    """The attributes and capacities that a question's selectors and constraints read and nobody has said.

    Each with its kind, as in ``Column``.
    """
    device, kind = words.device, words.kind
    unsaid: dict[str, str] = {}
    there = names_there(device.driver, asking.snapshot)
    for column in asking.columns():
        if column.id is None or column.kind not in ("attribute", "capacity"):
            continue
        name = name_in(device.driver, column)
        # Of some drivers nobody knows which kind of device has which capacity.
        capacities = kind.capacities or words.driver.capacities
        of_kind = name in (kind.attributes if column.kind == "attribute" else capacities)
        unique = name in kind.attributes and kind.attributes[name].unique
        said = name in (device.capacity if column.kind == "capacity" else device.attributes)
        published = of_kind and kind.publishes(column)
        if (published or there.get(name, ("",))[0] == column.kind) and not unique and not said:
            unsaid[name] = column.kind
    return dict(sorted(unsaid.items()))


def of_other_drivers(words: NodeInWords, asking: QuestionInCluster) -> dict[str, str]:
    """The requests that only devices of other drivers serve, each with one of these; empty if words may be enough.

    They are enough for a no where none of the requests is served by the driver of the words, or where devices that are
    not of a node serve the others.
    """
    own, others = False, dict[str, str]()
    published: dict[tuple[str, bool], list[Device]] = {}
    for slice_ in asking.snapshot.slices:
        published.setdefault((slice_.driver, not slice_.scope.node_name), []).extend(slice_.devices)
    for claim in asking.question.existing_claims:
        for request in claim.requests if claim.allocation is None else ():
            served = _serving(request.alternatives(), words, published, asking)
            if words.driver.name in served:
                own = True
            elif served and not any(served.values()):
                others[request.name] = next(iter(served))
    return others if own else {}


def _serving(
    specs: Sequence[DeviceRequest],
    words: NodeInWords,
    published: Mapping[tuple[str, bool], Sequence[Device]],
    asking: QuestionInCluster,
) -> dict[str, bool]:
    """The drivers whose devices a request takes, each with whether some are not of one node alone, as they are
    ``published`` by drivers and by that.

    A class of which there are no devices is taken for that of the driver that is known to bring it.
    """
    served: dict[str, bool] = {}
    for (driver, shared), devices in published.items():
        if asking.taken(devices, specs):
            served[driver] = served.get(driver, False) or shared
    if asking.taken([words.device], specs):
        served.setdefault(words.driver.name, False)
    for spec in specs if not served else ():
        if (brings := catalogue().of_class(spec.device_class)) is not None:
            served[brings.name] = False
    return served


def saying_all(words: NodeInWords, names: Mapping[str, str], asking: QuestionInCluster) -> Completion:
    """The values of the flag that say all: with the products that may be meant, or with examples."""
    candidates: Sequence[str] = words.products if len(words.products) != 1 else ()
    if not candidates and not words.products:
        there = products_there(words.driver, asking.snapshot)
        devices = sum(len(slice_.devices) for slice_ in words.node.slices)
        candidates = tuple(dict.fromkeys((*there, *sorted(words.driver.products, key=_sold(devices)))))
    variants = {}
    for product in candidates:
        facts = facts_of(words.driver, words.kind, (product,), asking.snapshot)
        if all(facts.has(kind, name) for name, kind in names.items()):
            variants[product] = _device(words, facts)
    if not words.products:
        taken = asking.taken(list(variants.values()))
        variants = {product: device for product, device in variants.items() if device in taken}
    if variants:
        shown = list(variants)[:_MOST_PRODUCTS]
        values = [(f"With {product}", words.described.written({"product": product})) for product in shown]
        return Completion(values, products=True)
    examples = _examples(words, names, asking)
    if examples is None and (values := _of_another_kind(words, asking)):
        return Completion(values)
    return Completion([_example(words, _usual(words, names, asking.snapshot) if examples is None else examples)])


def _example(words: NodeInWords, values: Mapping[str, str]) -> tuple[str, str]:
    pairs = join(f"{name}={value}" for name, value in values.items())
    return f"For example with {pairs}", words.described.written(values)


def _sold(devices: int) -> Callable[[str], bool]:
    """Puts the products first of which a known machine type has so many devices."""
    known = {machine.product for machine in machine_types().values() if machine.devices >= devices}
    return lambda product: product not in known


def _examples(words: NodeInWords, names: Mapping[str, str], asking: QuestionInCluster) -> dict[str, str] | None:
    """A value of each name: of those that selectors compare it with, and those of devices, the first that they take;
    None if they take no device with any of these.
    """
    texts, usual = asking.expressions, _usual(words, names, asking.snapshot)
    values = []
    for name, known in usual.items():
        # Each literal of a selector that reads it may be what it is compared with.
        found = ("".join(match.groups("")) for text in texts if name in text for match in _LITERAL.finditer(text))
        values.append(tuple(islice(dict.fromkeys((known, *found)), _MOST_VALUES)))
    for chosen in islice(itertools.product(*values), _MOST_TRIED):
        example = dict(zip(usual, chosen, strict=True))
        try:
            facts = typed_facts(words.driver, example, words.described, asking.snapshot)
        except (InputError, UsageError):
            # It is none of the type.
            continue
        if asking.taken([_device(words, facts)]):
            return example
    return None


def _usual(words: NodeInWords, names: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    return {name: plausible(words.driver, kind, name, snapshot) for name, kind in names.items()}


def _of_another_kind(words: NodeInWords, asking: QuestionInCluster) -> list[tuple[str, str]]:
    """What makes the devices ones of another kind, such as a partition, that requests take; empty if there is none.

    Of a product that has none, the products that have.
    """
    described = words.described
    others: list[tuple[str, str]] = []
    for kind in words.driver.kinds:
        given = {name: str(value) for name, value in kind.given.items() if name not in described.all}
        if not given or len(given) < len(kind.given):
            continue
        changed = replace(described, first="", base={}, words={**described.all, **given})
        try:
            other = node_in_words(changed, (), asking.snapshot, words.node.node.name)
        except FlagValueError as error:
            others += error.instead
            continue
        except (InputError, UsageError):
            continue
        names = missing(other, asking)
        if not names and asking.taken([other.device]):
            return [_example(words, given)]
        if names and (examples := _examples(other, names, asking)) is not None:
            return [_example(words, {**given, **examples})]
    return others


def all_the_same(words: NodeInWords, askings: Sequence[QuestionInCluster]) -> bool:
    """Whether each selector says the same of a device, whichever of the products that may be meant it is."""
    devices = [
        _device(words, facts_of(words.driver, words.kind, (product,), askings[0].snapshot))
        for product in words.products
    ]
    if len(devices) < 2 or any(spec.capacity for asking in askings for spec in asking.specs):
        return False
    selectors = askings[0].scheduler.sees(Cluster(askings[0].snapshot)).cycle.selectors
    for text in dict.fromkeys(text for asking in askings for text in asking.expressions):
        first, *others = selectors.verdicts(text, devices)
        if not isinstance(first, bool) or any(other is not first for other in others):
            return False
    return True


def _device(words: NodeInWords, facts: DeviceFacts) -> Device:
    device = words.device
    attributes, capacity = {**facts.attributes, **device.attributes}, {**facts.capacity, **device.capacity}
    return replace(device, attributes=attributes, capacity=capacity)


def taken_in_its_place(words: NodeInWords, asking: QuestionInCluster) -> dict[str, str]:
    """The products called as typed that the cluster does not have and a request takes, where it takes none of those
    that the cluster has. Each with its value of the flag, after those of the cluster; empty if there is none.
    """
    others = {product: with_product(words, product, asking.snapshot).device for product in words.not_there}
    taken: dict[str, None] = {}
    for request in (request for claim in asking.question.existing_claims for request in claim.requests if others):
        accepted = asking.taken([words.device, *others.values()], request.alternatives())
        if words.device not in accepted:
            taken.update({product: None for product, device in others.items() if device in accepted})
    shown = (*words.products, *list(taken)[:_MOST_PRODUCTS]) if taken else ()
    return {product: words.described.written({"product": product}) for product in shown}
