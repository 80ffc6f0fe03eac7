"""What a search works on: the node's devices, its budget, and its observer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.capacity import CapacityShortage, fault
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import Pool, scope_matches
from kubectl_dra.allocation.request import Alternative
from kubectl_dra.allocation.selectors import Selectors, matches
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, ResourceSlice


class CandidateDevice(NamedTuple):
    """A device of a usable pool on the node, in the order in which devices are tried."""

    position: int
    device: Device
    id: DeviceID
    pool: Pool
    slice: ResourceSlice
    shareable: bool


class PickedDevice(Struct, frozen=True):
    """A device picked for an alternative; ``consumed`` is None for a device that is not shareable.

    ``shared_before``: the pod already had a share of the device.
    """

    alternative: Alternative
    candidate: CandidateDevice
    consumed: dict[str, Quantity] | None
    charged: bool
    shared_before: bool


Lack = CapacityShortage | CounterShortage | GroupClash
"""What a device lacks because of others that were picked or are in use."""


class Observer(Protocol):
    """Learns of each device that the search refuses for what it lacks."""

    def lacks(self, alternative: Alternative, candidate: CandidateDevice, lack: Lack) -> None: ...


class SearchContext(Struct):
    """What stays constant during an attempt on one node.

    Where an invalid pool ends the search, ``barrier`` has the first one, and how many candidates come before it.
    """

    node: Node
    features: Features
    defects: KnownDefects
    selectors: Selectors
    state: AllocatedState
    candidates: Sequence[CandidateDevice]
    budget: Budget
    observer: Observer | None = None
    barrier: tuple[int, Pool] | None = None
    _selectable: dict[tuple[int, int, int], list[bool | None]] = field(default_factory=dict)

    @property
    def lacks_node_operations(self) -> bool:
        """Whether devices that skip operations on their node are refused here."""
        features = self.features
        return features.experimental and not (features.node_operations and self.node.skips_operations)

    def selectable(self, alternative: Alternative, candidate: CandidateDevice, *, listing: bool = False) -> bool:
        """Whether class, request and node scope admit the device; computed once per attempt.

        Raises:
            AllocationError: a selector fails on the device.
        """
        answers = self._selectable.get(alternative.indices)
        if answers is None:
            answers = self._selectable[alternative.indices] = [None] * len(self.candidates)
        answer = answers[candidate.position]
        if answer is None:
            answer = answers[candidate.position] = self._selects(alternative, candidate, listing)
        return answer

    def _selects(self, alternative: Alternative, candidate: CandidateDevice, listing: bool) -> bool:
        if not self._admits(alternative, candidate):
            return False
        # The scheduler looks at the capacity next. What cannot be computed is fatal whatever else is taken.
        if self.features.consumable_capacity and not self.defects.capacity_wraps:
            why = fault(candidate.device, alternative.spec.capacity, fractional=self.features.fractional_capacity)
            if why:
                owner = f"{alternative.selectors[1].owner}, request {alternative.spec.name}"
                name = candidate.id.device if listing else candidate.id
                message = f"{owner}: checking capacity for device {name}: {why}"
                raise AllocationError(message, check=AllocationCheck.CAPACITY_FAULT, subject=str(candidate.id))
        return True

    def _admits(self, alternative: Alternative, candidate: CandidateDevice) -> bool:
        device = candidate.device
        if device.binding_conditions and not self.features.binding_conditions:
            return False
        named = self.features.errors_name_device
        if not matches(alternative.selectors, self.selectors, device, candidate.id, named=named):
            return False
        if not candidate.slice.per_device_node_selection:
            return True
        try:
            return scope_matches(device.scope, self.node)
        except InvalidNodeSelector as error:
            raise AllocationError(
                str(error), check=AllocationCheck.DEVICE_NODE_SELECTOR, subject=str(candidate.id)
            ) from error
