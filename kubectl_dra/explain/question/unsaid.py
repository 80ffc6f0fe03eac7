"""What claims read of devices in words and nobody has said, and values of the flag that say it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

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
from kubectl_dra.explain.question.device_facts import (
    DeviceFacts,
    facts_of,
    names_there,
    plausible,
    products_there,
    typed_value,
)
from kubectl_dra.explain.question.node_in_words import NodeInWords, is_quantity, node_in_words, with_product
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


class Completion(NamedTuple):
    """Values of the flag, each after a label; whether they differ in ``products``."""

    values: Sequence[tuple[str, str]]
    products: bool = False


def missing(words: NodeInWords, question: Question, snapshot: Snapshot, scheduler: Scheduler) -> dict[str, str]:
    """The attributes and capacities that a question's selectors and constraints read and nobody has said.

    Each with its kind, as in ``Column``.
    """
    device, kind = words.device, words.kind
    unsaid: dict[str, str] = {}
    there = names_there(device.driver, snapshot)
    for column in _columns(question, snapshot, scheduler):
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


def of_other_drivers(
    words: NodeInWords, question: Question, snapshot: Snapshot, scheduler: Scheduler
) -> dict[str, str]:
    """The requests that only devices of other drivers serve, each with one of these; empty if words may be enough.

    They are enough for a no where none of the requests is served by the driver of the words, or where devices that are
    not of a node serve the others.
    """
    own, others = False, dict[str, str]()
    published: dict[tuple[str, bool], list[Device]] = {}
    for slice_ in snapshot.slices:
        published.setdefault((slice_.driver, not slice_.scope.node_name), []).extend(slice_.devices)
    for claim in question.existing_claims:
        for request in claim.requests if claim.allocation is None else ():
            served = _serving(request.alternatives(), words, published, snapshot, scheduler)
            if words.driver.name in served:
                own = True
            elif served and not any(served.values()):
                others[request.name] = next(iter(served))
    return others if own else {}


def _serving(
    specs: Sequence[DeviceRequest],
    words: NodeInWords,
    published: Mapping[tuple[str, bool], Sequence[Device]],
    snapshot: Snapshot,
    scheduler: Scheduler,
) -> dict[str, bool]:
    """The drivers whose devices a request takes, each with whether some are not of one node alone, as they are
    ``published`` by drivers and by that.

    A class of which there are no devices is taken for that of the driver that is known to bring it.
    """
    served: dict[str, bool] = {}
    for (driver, shared), devices in published.items():
        if _taken_by(specs, devices, snapshot, scheduler):
            served[driver] = served.get(driver, False) or shared
    if _taken_by(specs, [words.device], snapshot, scheduler):
        served.setdefault(words.driver.name, False)
    for spec in specs if not served else ():
        if (brings := catalogue().of_class(spec.device_class)) is not None:
            served[brings.name] = False
    return served


def _columns(question: Question, snapshot: Snapshot, scheduler: Scheduler) -> Iterator[Column]:
    """What the claims of a question read of devices."""
    expressions: dict[str, None] = {}
    for claim in question.existing_claims:
        for constraint in claim.constraints:
            domain, _, name = constraint.attribute.rpartition("/")
            yield Column("attribute", domain or None, name)
        for spec in claim.alternatives():
            expressions.update(dict.fromkeys(_selectors(spec, snapshot)))
            for name in spec.capacity or ():
                domain, _, name = name.rpartition("/")
                yield Column("capacity", domain or None, name)
    for expression in expressions:
        try:
            yield from compile_expression(scheduler.environment, expression).columns or ()
        except CompileError:
            continue


def _selectors(spec: DeviceRequest, snapshot: Snapshot) -> list[str]:
    known = snapshot.classes.get(spec.device_class)
    return [text for text in (*(known.selectors if known is not None else ()), *spec.selectors) if text]


def saying_all(
    words: NodeInWords, names: Mapping[str, str], question: Question, snapshot: Snapshot, scheduler: Scheduler
) -> Completion:
    """The values of the flag that say all: with the products that may be meant, or with examples."""
    candidates: Sequence[str] = words.products if len(words.products) != 1 else ()
    if not candidates and not words.products:
        there = products_there(words.driver, snapshot)
        devices = sum(len(slice_.devices) for slice_ in words.node.slices)
        candidates = tuple(dict.fromkeys((*there, *sorted(words.driver.products, key=_sold(devices)))))
    variants = {}
    for product in candidates:
        facts = facts_of(words.driver, words.kind, (product,), snapshot)
        if all(facts.has(kind, name) for name, kind in names.items()):
            variants[product] = _device(words, facts)
    if not words.products:
        taken = _taken(list(variants.values()), question, snapshot, scheduler)
        variants = {product: device for product, device in variants.items() if device in taken}
    if variants:
        shown = list(variants)[:_MOST_PRODUCTS]
        values = [(f"With {product}", words.described.written({"product": product})) for product in shown]
        return Completion(values, products=True)
    examples = _examples(words, names, question, snapshot, scheduler)
    if examples is None and (values := _of_another_kind(words, question, snapshot, scheduler)):
        return Completion(values)
    return Completion([_example(words, _usual(words, names, snapshot) if examples is None else examples)])


def _example(words: NodeInWords, values: Mapping[str, str]) -> tuple[str, str]:
    pairs = join(f"{name}={value}" for name, value in values.items())
    return f"For example with {pairs}", words.described.written(values)


def _sold(devices: int) -> Callable[[str], bool]:
    """Puts the products first of which a known machine type has so many devices."""
    known = {machine.product for machine in machine_types().values() if machine.devices >= devices}
    return lambda product: product not in known


def _examples(
    words: NodeInWords, names: Mapping[str, str], question: Question, snapshot: Snapshot, scheduler: Scheduler
) -> dict[str, str] | None:
    """A value of each name: of those that selectors compare it with, and those of devices, the first that they take;
    None if they take no device with any of these.
    """
    specs = [spec for claim in question.existing_claims for spec in claim.alternatives()]
    texts = list(dict.fromkeys(text for spec in specs for text in _selectors(spec, snapshot)))
    usual = _usual(words, names, snapshot)
    values = []
    for name, known in usual.items():
        # Each literal of a selector that reads it may be what it is compared with.
        found = ("".join(match.groups("")) for text in texts if name in text for match in _LITERAL.finditer(text))
        values.append(tuple(islice(dict.fromkeys((known, *found)), _MOST_VALUES)))
    for chosen in islice(itertools.product(*values), _MOST_TRIED):
        example = dict(zip(usual, chosen, strict=True))
        facts = _said(words, names, example, snapshot)
        if facts is not None and _taken([_device(words, facts)], question, snapshot, scheduler):
            return example
    return None


def _usual(words: NodeInWords, names: Mapping[str, str], snapshot: Snapshot) -> dict[str, str]:
    return {name: plausible(words.driver, kind, name, snapshot) for name, kind in names.items()}


def _of_another_kind(
    words: NodeInWords, question: Question, snapshot: Snapshot, scheduler: Scheduler
) -> list[tuple[str, str]]:
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
            other = node_in_words(changed, (), snapshot, words.node.node.name)
        except FlagValueError as error:
            others += error.instead
            continue
        except (InputError, UsageError):
            continue
        names = missing(other, question, snapshot, scheduler)
        if not names and _taken([other.device], question, snapshot, scheduler):
            return [_example(words, given)]
        if names and (examples := _examples(other, names, question, snapshot, scheduler)) is not None:
            return [_example(words, {**given, **examples})]
    return others


def _said(
    words: NodeInWords, names: Mapping[str, str], values: Mapping[str, str], snapshot: Snapshot
) -> DeviceFacts | None:
    """What devices have with these values; None where one is none of the type."""
    there, known = names_there(words.driver.name, snapshot), words.driver.attributes
    attributes: dict[str, Mapping[str, Any]] = {}
    capacity: dict[str, Mapping[str, Any]] = {}
    for name, text in values.items():
        if names[name] == "capacity":
            if not is_quantity(text):
                return None
            capacity[name] = {"value": text}
            continue
        type_ = known[name].type if name in known else there.get(name, ("", "string"))[1]
        value = typed_value(type_, text)
        if value is None:
            return None
        attributes[name] = value
    return DeviceFacts(attributes, capacity)


def all_the_same(words: NodeInWords, questions: Sequence[Question], snapshot: Snapshot, scheduler: Scheduler) -> bool:
    """Whether each selector says the same of a device, whichever of the products that may be meant it is."""
    products = [facts_of(words.driver, words.kind, (product,), snapshot) for product in words.products]
    devices = [_device(words, facts) for facts in products]
    selectors = scheduler.sees(Cluster(snapshot)).cycle.selectors
    specs = [spec for question in questions for claim in question.existing_claims for spec in claim.alternatives()]
    if len(devices) < 2 or any(spec.capacity for spec in specs):
        return False
    for text in dict.fromkeys(text for spec in specs for text in _selectors(spec, snapshot)):
        first, *others = selectors.verdicts(text, devices)
        if not isinstance(first, bool) or any(other is not first for other in others):
            return False
    return True


def _device(words: NodeInWords, facts: DeviceFacts) -> Device:
    device = words.device
    attributes, capacity = {**facts.attributes, **device.attributes}, {**facts.capacity, **device.capacity}
    return replace(device, attributes=attributes, capacity=capacity)


def taken_in_its_place(
    words: NodeInWords, question: Question, snapshot: Snapshot, scheduler: Scheduler
) -> dict[str, str]:
    """The products called as typed that the cluster does not have and a request takes, where it takes none of those
    that the cluster has. Each with its value of the flag, after those of the cluster; empty if there is none.
    """
    others = {product: with_product(words, product, snapshot).device for product in words.not_there}
    taken: dict[str, None] = {}
    for request in (claim_request for claim in question.existing_claims for claim_request in claim.requests if others):
        found = _taken_by(request.alternatives(), [words.device, *others.values()], snapshot, scheduler)
        if words.device not in found:
            taken.update({product: None for product, device in others.items() if device in found})
    shown = (*words.products, *list(taken)[:_MOST_PRODUCTS]) if taken else ()
    return {product: words.described.written({"product": product}) for product in shown}


def _taken(devices: Sequence[Device], question: Question, snapshot: Snapshot, scheduler: Scheduler) -> list[Device]:
    """The devices that some request of the question takes."""
    specs = [spec for claim in question.existing_claims for spec in claim.alternatives()]
    return _taken_by(specs, devices, snapshot, scheduler)


def _taken_by(
    specs: Sequence[DeviceRequest], devices: Sequence[Device], snapshot: Snapshot, scheduler: Scheduler
) -> list[Device]:
    selectors = scheduler.sees(Cluster(snapshot)).cycle.selectors
    accepted = [selectors.accepted(_selectors(spec, snapshot), devices) for spec in specs]
    return [device for device in devices if any(device in group for group in accepted)]
