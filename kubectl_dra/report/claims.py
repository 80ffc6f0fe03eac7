"""Claims as a table with a summary before it, and the command that explains the first that waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from kubectl_dra.command import ClusterFlags, CommandLine, kubectl
from kubectl_dra.explain.phrase import Words
from kubectl_dra.grouped import grouped
from kubectl_dra.report.blocks import TableBlock, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import device_json, object_json, owner_json
from kubectl_dra.report.phrases import compressed, written
from kubectl_dra.report.remedy_json import notes_json, unread_json
from kubectl_dra.report.table import EMPTY, narrowed, owned_by
from kubectl_dra.taint import times
from kubectl_dra.text import amount, some
from kubectl_dra.usage.choices import ClaimState
from kubectl_dra.usage.claim_use import ClaimUse, ClaimUses

HEADER: Final = ("NAMESPACE", "CLAIM", "STATE", "DEVICES", "NODE", "POD", "OWNER", "AGE")
BELOW: Final = ("WAITS-FOR", "CLASSES", "OWNER", "POD", "NODE", "DEVICES")
"""What goes below a row that is too long, first to go first."""
STATE_STYLES: Final = {
    ClaimState.PENDING: "red",
    ClaimState.UNUSED: "yellow",
    ClaimState.ENDED: "yellow",
    ClaimState.TERMINATING: "yellow",
    ClaimState.STARTING: "cyan",
    ClaimState.BINDING: "cyan",
}


def nothing(claim_uses: ClaimUses, namespace: str = "") -> str:
    """Note that there is no claim, as far as claims were read."""
    read = " in what was read" if claim_uses.unread else ""
    return f"No claim was found{read}{f' in namespace {namespace}' if namespace else ''}."


def write_claims(
    claim_uses: ClaimUses,
    at: datetime,
    color: str = "auto",
    *,
    wide: bool = False,
    namespace: str = "",
    where: ClusterFlags,
    limit: int | None = None,
    headers: bool = True,
) -> None:
    """Write the table, at most ``limit`` rows, with ages as of ``at``; without ``headers`` only the rows."""
    out = Painter(color=color, bare=not headers)
    if not claim_uses.items:
        out.sentence(nothing(claim_uses, namespace))
        return
    if headers:
        out.sentence(summary(claim_uses))
        out.write("")
    header = (*HEADER, "CLASSES", "WAITS-FOR") if wide else (*HEADER, "WAITS-FOR")
    items = claim_uses.items[:limit]
    every = [header, *(tuple(cells(item, wide, at)) for item in items)]
    rows, _ = narrowed(every, out.limit, (), ("NAMESPACE", "CLAIM"), BELOW)
    marks = [(item.state, STATE_STYLES.get(item.state, "")) for item in items]
    hidden = len(claim_uses.items) - len(items)
    write_blocks(out, [TableBlock(rows, BELOW, True, "STATE", marks, hidden, "leave --limit out")])
    if headers and (following := _next(claim_uses)):
        write_blocks(out, [shell((following,), where, "Next")])


def summary(claim_uses: ClaimUses) -> str:
    """Number of claims, of devices that they hold, and of claims in each state."""
    results = [result for item in claim_uses.items for result in item.results]
    shared = {result.device for result in results if result.share_id}
    whole = {result.device for result in results} - shared
    held = [amount(len(whole))] if whole or not shared else []
    held += [f"shares of {amount(len(shared))}"] if shared else []
    states = ", ".join(f"{count:,} {state}" for state, count in claim_uses.states().items())
    return f"{amount(len(claim_uses.items), 'claim')} with {' and '.join(held)}: {states}"


def cells(item: ClaimUse, wide: bool, at: datetime) -> Iterator[str]:
    """The cells of a claim: those of ``HEADER``, with ``wide`` its classes, and what it waits for."""
    meta = item.claim.metadata
    yield from (meta.namespace, meta.name, item.state)
    yield ",".join(str(result.device) for result in item.results) if wide and item.results else _devices(item)
    yield item.node or EMPTY
    yield some(item.pods, 1) or EMPTY
    yield owned_by(item.owner)
    yield times.age(meta.creation_timestamp, at) if meta.creation_timestamp else EMPTY
    if wide:
        yield ",".join(dict.fromkeys(request.device_class for request in item.claim.alternatives()))
    yield written(item.waits_for) or EMPTY


def _devices(item: ClaimUse) -> str:
    """The names, with the pool where it is not called like the node; until there are any, what is asked for."""
    parts = []
    for pool, names in grouped((result.device.pool, result.device.device) for result in item.results).items():
        shown = compressed(list(dict.fromkeys(names)))
        count = f" ({len(names):,})" if len(names) > 1 and not shown.endswith(" more") else ""
        parts.append(f"{shown}{count}" if pool == item.node else f"{pool}/{shown}{count}")
    return some(parts, 2) or EMPTY


def _next(claim_uses: ClaimUses) -> CommandLine | None:
    """What to ask about the first claim that waits for somebody to do something."""
    for state in (ClaimState.PENDING, ClaimState.ENDED, ClaimState.TERMINATING, ClaimState.STARTING):
        item = next((item for item in claim_uses.items if item.state is state), None)
        if item is None:
            continue
        kind, name = ("pod", item.pods[0]) if item.pods else ("claim", item.claim.metadata.name)
        return kubectl("dra", "explain", kind=kind, name=name, namespace=item.claim.metadata.namespace)
    return None


# Claims as JSON or YAML, in the shape of ``schemas/claims.json``.


def to_json(claim_uses: ClaimUses, notes: Sequence[Words], where: ClusterFlags) -> dict[str, Any]:
    """A ClaimList with notes, whose commands ask the cluster of ``where``."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "ClaimList",
        "summary": {
            "claims": len(claim_uses.items),
            "states": {state.value: count for state, count in claim_uses.states().items()},
        },
        "items": [*map(_claim, claim_uses.items)],
        **notes_json(notes, where),
        "unread": unread_json(claim_uses.unread),
    }


def _claim(item: ClaimUse) -> dict[str, Any]:
    meta = item.claim.metadata
    return {
        **object_json(meta.namespace, meta.name),
        "state": item.state.value,
        "classes": list(dict.fromkeys(request.device_class for request in item.claim.alternatives())),
        "devices": [
            {"request": result.request, **device_json(result.device), **filled(shareID=result.share_id)}
            for result in item.results
        ],
        "pods": [object_json(meta.namespace, pod) for pod in item.pods],
        **filled(
            node=item.node,
            owner=owner_json(*item.owner) if item.owner is not None else None,
            created=meta.creation_timestamp,
            waitsFor=written(item.waits_for),
        ),
    }
