"""What pods request of a node, and what it lacks then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.explain.phrase import Phrase, Statement, say

ZERO = Quantity.parse("0")
Amounts = dict[str, Quantity]


@dataclass(frozen=True)
class TooManyPods(Statement):
    """The node runs as many pods as it takes."""

    TEXT = "Too many pods"


@dataclass(frozen=True)
class ResourceShort(Statement):
    """The node has less left of a resource than the pod requests."""

    TEXT = "Insufficient {name}: {numbers}"
    name: str
    needed: Quantity
    left: Quantity
    total: Quantity

    @property
    def numbers(self) -> Phrase:
        """What is needed and what is left."""
        return say("needs {needed}, {left} of {total} left", needed=self.needed, left=self.left, total=self.total)

    @property
    def passes(self) -> bool:
        """Whether room can be made: pods take some of it, and it is nothing that the node does not offer."""
        return bool(self.total) and self.left != self.total and "/" not in self.name


def requests_of(pod: Pod) -> Amounts:
    """What a pod requests as a whole: its long-lived containers, or its largest init container, plus overhead."""
    running: Amounts = {}
    peak: Amounts = {}
    for container in pod.containers:
        amounts = _amounts(container)
        if container.long_lived:
            _add(running, amounts)
            _raise(peak, running)
        else:
            # An init container runs beside the sidecars that were started before it.
            beside = dict(running)
            _add(beside, amounts)
            _raise(peak, beside)
    _raise(peak, running)
    overhead = pod.spec.overhead
    _add(peak, {name: quantity for name, value in overhead.items() if (quantity := _quantity(value))})
    return peak


def _amounts(container: Container) -> Amounts:
    return {name: quantity for name, value in container.requests.items() if (quantity := _quantity(value)) is not None}


def _add(into: Amounts, amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, ZERO) + amount


def _raise(into: Amounts, amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if amount > into.get(name, ZERO):
            into[name] = amount


def _quantity(value: object) -> Quantity | None:
    if value is None:
        return None
    try:
        return Quantity.from_json(value)
    except QuantityError:
        return None
