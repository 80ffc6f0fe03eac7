"""Who uses what as JSON or YAML (``schemas/top.json``), and as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.report.evidence_json import unread_json
from kubectl_dra.report.phrases import written
from kubectl_dra.usage.choices import UseBy
from kubectl_dra.usage.claim_use import ClaimUse, OwnerName
from kubectl_dra.usage.counts import DeviceDemand, DeviceSupply, UseReport

SCHEMA_VERSION: Final = "1"


def to_json(report: UseReport) -> dict[str, Any]:
    """A UseReport."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "UseReport",
        "by": report.by.value,
        "summary": {
            "devices": report.devices,
            "nodes": report.nodes,
            "states": {state.value: count for state, count in report.states.items()},
            "unused": report.unused,
            "pendingClaims": report.pending,
        },
        "items": [
            *(_supply(row) for row in report.supply),
            *(_demand(row) for row in report.demand),
            *(_claim(row) for row in report.claims),
        ],
        "notes": [written(note) for note in report.notes],
        "unread": unread_json((*report.unread, *report.notes)),
    }


def _supply(row: DeviceSupply) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": row.name,
        "devices": row.tally.devices,
        "states": {state.value: count for state, count in row.tally.states.items()},
        "unused": row.unused,
        "nodes": row.tally.nodes,
    }
    if row.largest is not None:
        out["largestRequest"] = {
            "count": row.largest.count,
            "node": row.largest.node,
            "atLeast": row.largest.at_least,
        }
    return out


def _demand(row: DeviceDemand) -> dict[str, Any]:
    out: dict[str, Any] = {
        "namespace": row.namespace,
        "devices": row.devices,
        "unused": row.unused,
        "claims": row.claims,
        "pendingClaims": row.pending,
        "nodes": row.nodes,
    }
    if row.owner is not None:
        out["owner"] = row.owner._asdict()
    if row.largest is not None:
        out["largestOwner"] = row.largest._asdict()
    return out


def _claim(item: ClaimUse) -> dict[str, Any]:
    out: dict[str, Any] = {
        "namespace": item.claim.metadata.namespace,
        "name": item.claim.metadata.name,
        "devices": len(item.results),
        "state": item.state.value,
    }
    if item.node:
        out["node"] = item.node
    if item.owner is not None:
        out["owner"] = item.owner._asdict()
    if item.claim.metadata.creation_timestamp:
        out["created"] = item.claim.metadata.creation_timestamp
    return out


# Who uses what in Prometheus' text format, for the textfile collector of its node exporter.


class Sample(NamedTuple):
    """One value of a metric: its name without prefix, labels, and what the metric is."""

    name: str
    help: str
    labels: tuple[tuple[str, str], ...]
    value: int


def to_metrics(reports: Sequence[UseReport]) -> str:
    """All samples, those of one metric together, as the format wants it."""
    families: dict[str, list[Sample]] = {}
    for report in reports:
        for sample in _samples(report):
            families.setdefault(sample.name, []).append(sample)
    lines: list[str] = []
    for name, samples in families.items():
        full = f"kubectl_dra_{name}"
        lines += [f"# HELP {full} {samples[0].help}", f"# TYPE {full} gauge"]
        lines += [f"{full}{{{_labels(sample)}}} {sample.value}" for sample in samples]
    return "".join(f"{line}\n" for line in lines)


def _samples(report: UseReport) -> Iterator[Sample]:
    label = "node" if report.by is UseBy.nodes else "device_class"
    for supply in report.supply:
        yield from _of_supply(supply, label)
    for row in report.demand:
        labels: tuple[tuple[str, str], ...] = (("namespace", row.namespace),)
        kind = "namespace"
        if report.by is UseBy.owners:
            kind, labels = "owner", (*labels, *_owner(row.owner))
        yield Sample(f"{kind}_devices_held", f"Devices that the claims of a {kind} hold.", labels, row.devices)
        text = f"Devices that the claims of a {kind} hold, and nobody uses."
        yield Sample(f"{kind}_devices_unused", text, labels, row.unused)
        yield Sample(f"{kind}_claims", f"ResourceClaims of a {kind}.", labels, row.claims)
        text = f"ResourceClaims of a {kind} for which a pod waits."
        yield Sample(f"{kind}_claims_pending", text, labels, row.pending)
    for item in report.claims:
        meta = item.claim.metadata
        labels = (("namespace", meta.namespace), ("claim", meta.name), ("state", item.state.value))
        yield Sample("claim_devices_held", "Devices that a ResourceClaim holds.", labels, len(item.results))


def _of_supply(row: DeviceSupply, label: str) -> Iterator[Sample]:
    what = label.replace("_", " ")
    own = (label, row.name)
    for state in DeviceState:
        labels = (own, ("state", state.value))
        yield Sample(f"{label}_devices", f"Devices of a {what} by state.", labels, row.tally.states.get(state, 0))
    text = f"Devices of a {what} that are held, and nobody uses."
    yield Sample(f"{label}_devices_unused", text, (own,), row.unused)
    if row.largest is not None:
        text = "The largest request for devices of a device class that one node can serve."
        yield Sample(f"{label}_largest_request", text, (own,), row.largest.count)


def _owner(owner: OwnerName | None) -> tuple[tuple[str, str], ...]:
    return (("owner_kind", owner.kind if owner else ""), ("owner_name", owner.name if owner else ""))


def _labels(sample: Sample) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
