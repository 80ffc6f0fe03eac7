"""What a claim needs of its driver's feature gates, and whether they are on: the scheduler knows nothing of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.phrase import Words, say

if TYPE_CHECKING:
    from kubectl_dra.data.driver_releases import DriverGate
    from kubectl_dra.drivers.health import NodeDriver


class GateNeeded(NamedTuple):
    """A claim needs a gate of its driver, as ``needing`` in its configuration says."""

    driver: str
    gate: DriverGate
    claim: str
    needing: str

    def off_on(self, node: str, snapshot: Snapshot) -> tuple[str, ...]:
        """The node, or all nodes of the driver without one, if the gate is known to be off there; else nothing."""
        return tuple(row.node for row in gate_off(snapshot, self.driver, self.gate, node))

    def known_on(self, node: str, snapshot: Snapshot) -> bool:
        """Whether the driver's pod on a node was seen, which tells its gates."""
        if not snapshot.has_plugins:
            return False
        from kubectl_dra.drivers.drivers_on_nodes import joined

        on = self.driver, node
        return any(row.pod is not None for row in joined(snapshot).rows if (row.driver, row.node) == on)


def gates_needed(claim: ResourceClaim) -> Iterator[GateNeeded]:
    """The gates that a claim's configurations need."""
    for config in claim.config:
        opaque = config.get("opaque") or {}
        driver, parameters = str(opaque.get("driver") or ""), opaque.get("parameters")
        if isinstance(parameters, dict):
            for gate, needing in _needed(driver, parameters):
                yield GateNeeded(driver, gate, claim.key, needing)


def gate_named(message: str, drivers: Sequence[str]) -> DriverGate | None:
    """The feature gate of one of the drivers that its error names, where that is off by default."""
    from kubectl_dra.data.drivers import catalogue

    known = filter(None, map(catalogue().driver, drivers))
    gates = (gate for driver in known for gate in driver.gates if not gate.on)
    return next((gate for gate in gates if re.search(rf"\b{gate.name}\b", message)), None)


def without_gate(gate: DriverGate) -> Words:
    """What ends a driver's refusal for want of a gate."""
    text = (
        "Install the driver with the Helm value featureGates.{gate}=true, or make a new claim or template without "
        "{does} in its config."
    )
    return say(text, gate=gate.name, does=gate.does)


def gate_off(snapshot: Snapshot, driver: str, gate: DriverGate, node: str) -> Sequence[NodeDriver]:
    """The driver on the node, or on all nodes, if its pod was seen there and has the gate off; else nothing."""
    if not snapshot.has_plugins:
        return ()
    from kubectl_dra.drivers.drivers_on_nodes import joined

    rows = [row for row in joined(snapshot).rows if row.driver == driver and row.pod is not None]
    rows = [row for row in rows if node in ("", row.node)]
    off = [row for row in rows if row.pod is not None and not dict(row.pod.gates).get(gate.name, gate.on)]
    return off if len(off) == len(rows) else ()


def _needed(driver: str, parameters: dict[str, object]) -> Iterator[tuple[DriverGate, str]]:
    from kubectl_dra.data.drivers import catalogue

    known = catalogue().driver(driver)
    if known is not None:
        yield from known.gates_needed(parameters)
