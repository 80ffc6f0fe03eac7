"""What a claim needs of its driver's feature gates, and whether they are on: the scheduler knows nothing of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cluster.snapshot import Snapshot

if TYPE_CHECKING:
    from kubectl_dra.data.driver_releases import DriverGate
    from kubectl_dra.drivers.health import NodeDriver


class GateNeeded(NamedTuple):
    """A claim needs a gate of its driver, as ``needing`` in its configuration says."""

    driver: str
    gate: DriverGate
    claim: str
    needing: str

    def known_on(self, node: str, snapshot: Snapshot) -> bool:
        """Whether the driver's pod on a node was seen, and tells its gates."""
        if not snapshot.has_plugins:
            return False
        from kubectl_dra.drivers.drivers_on_nodes import joined

        on = self.driver, node
        rows = (row for row in joined(snapshot).rows if (row.driver, row.node) == on)
        return any(row.pod is not None and row.pod.gates_known for row in rows)


def gates_needed(claim: ResourceClaim, had: Mapping[str, Collection[str]] | None = None) -> Iterator[GateNeeded]:
    """The gates that a claim's configurations need; with the requests ``had`` of each driver, those that apply to them.

    Of configurations of one kind the last one that names a request, or all of them, applies to it.
    """
    applying: dict[tuple[str, object, str], Mapping[str, object]] = {}
    for number, config in enumerate(claim.config):
        opaque = config.get("opaque") or {}
        driver, parameters = str(opaque.get("driver") or ""), opaque.get("parameters")
        if not isinstance(parameters, dict):
            continue
        named = config.get("requests") or ()
        requests = [str(number)] if had is None else had.get(driver, ())
        for request in requests:
            if had is None or not named or request in named or request.partition("/")[0] in named:
                applying[driver, parameters.get("kind"), request] = parameters
    needed = (
        GateNeeded(driver, gate, claim.key, needing)
        for (driver, _, _), parameters in applying.items()
        for gate, needing in _needed(driver, parameters)
    )
    yield from {(each.driver, each.gate.name): each for each in needed}.values()


def gate_named(message: str, drivers: Sequence[str]) -> DriverGate | None:
    """The feature gate of one of the drivers that its error names, where that is off by default."""
    from kubectl_dra.data.drivers import catalogue

    known = filter(None, map(catalogue().driver, drivers))
    gates = (gate for driver in known for gate in driver.gates if not gate.on)
    return next((gate for gate in gates if re.search(rf"\b{gate.name}\b", message)), None)


def gate_off(snapshot: Snapshot, driver: str, gate: DriverGate, node: str = "") -> Sequence[NodeDriver]:
    """The driver on the node, or on all nodes where its pod tells its gates, if that has the gate off; else nothing."""
    if not snapshot.has_plugins:
        return ()
    from kubectl_dra.drivers.drivers_on_nodes import joined

    own = [row for row in joined(snapshot).rows if row.driver == driver and node in ("", row.node)]
    rows = [row for row in own if row.pod is not None and row.pod.gates_known]
    off = [row for row in rows if row.pod is not None and not dict(row.pod.gates).get(gate.name, gate.on)]
    return off if len(off) == len(rows) else ()


def _needed(driver: str, parameters: Mapping[str, object]) -> Iterator[tuple[DriverGate, str]]:
    from kubectl_dra.data.drivers import catalogue

    known = catalogue().driver(driver)
    if known is not None:
        yield from known.gates_needed(parameters)
