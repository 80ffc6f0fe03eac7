"""One device: what it is, where, in which state, who holds it, and all that its driver says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TextIO

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.devices.device_state import DeviceState, model_of, taint_owner
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.report.blocks import Section, prose
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.devices_text import STATE_STYLES, plain
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.phrases import written
from kubectl_dra.report.table import EMPTY, fitted
from kubectl_dra.taint import typed as times
from kubectl_dra.text import amount, some
from kubectl_dra.usage.claim_use import ClaimUse

HOLDERS = ("NAMESPACE", "CLAIM", "STATE", "POD", "OWNER", "AGE")
_BELOW = ("OWNER", "AGE", "POD")
_SHOWN_NODES = 4


def write_device(row: DeviceRow, claims: Sequence[ClaimUse], at: datetime, stream: TextIO, color: str = "auto") -> None:
    """Write the page of a device, without its name; ``claims`` are those that are known, among them its holders."""
    out = Painter(stream, color)
    reason = written(row.reason)
    style = STATE_STYLES.get(row.state, "red")
    out.heading(str(row.state), f": {reason}" if reason else "", style=f"bold {style}".strip())
    for label, text in _facts(row):
        out.paragraph(text, indent=" " * 10, first=label.ljust(10))
    out.write("")
    _holders(out, row, claims, at)
    taints = [f"{taint} ({taint_owner(taint)})" for taint in row.taints]
    attributes = [f"{name} = {plain(value)}" for name, value in sorted(row.device.attributes.items())]
    listed = (("Taints", taints), ("Capacity", list(_capacity(row))), ("Attributes", attributes))
    write_blocks(out, [Section(heading, tuple(map(prose, lines))) for heading, lines in listed if lines])


def _facts(row: DeviceRow) -> Iterator[tuple[str, str]]:
    yield "Model", model_of(row.device.attributes) or EMPTY
    yield "Place", row.where
    if len(row.nodes) > 1:
        yield "Nodes", f"{amount(len(row.nodes), 'node')}: {some(row.nodes, _SHOWN_NODES)}"
    yield "Classes", ", ".join(row.classes) or "no DeviceClass selects it"
    yield "Slice", f"{row.slice.name}, generation {row.slice.generation} of pool {row.id.pool}"


def _holders(out: Painter, row: DeviceRow, claims: Sequence[ClaimUse], at: datetime) -> None:
    if not row.holders:
        unknown = row.state is DeviceState.UNKNOWN
        out.write(("Held by ", "bold"), "nobody that is known" if unknown else "nobody")
        return
    out.write((f"Held by {amount(len(row.holders), 'claim')}", "bold"))
    known = {(item.claim.metadata.namespace, item.claim.metadata.name): item for item in claims}
    rows = [
        HOLDERS,
        *(_holder(claim, known.get((claim.metadata.namespace, claim.metadata.name)), at) for claim in row.holders),
    ]
    for block in fitted(rows, out.width - 2, _BELOW):
        for line in block:
            out.write("  ", line)


def _holder(claim: ResourceClaim, use: ClaimUse | None, at: datetime) -> tuple[str, ...]:
    meta = claim.metadata
    age = times.age(meta.creation_timestamp, at) if meta.creation_timestamp else EMPTY
    pods = use.pods if use is not None else tuple(entry.name for entry in claim.reserved_for)
    owner = str(use.owner) if use is not None and use.owner is not None else EMPTY
    return meta.namespace, meta.name, use.state if use is not None else EMPTY, some(pods, 2) or EMPTY, owner, age


def _capacity(row: DeviceRow) -> Iterator[str]:
    for name, entry in sorted(row.device.capacity.items()):
        used = f", {row.consumed[name]} used" if name in row.consumed else ""
        yield f"{name} = {entry.get('value', '0')}{used}"
