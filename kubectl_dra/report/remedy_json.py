"""What ends a cause, as data: the changes with their targets and values, the proof, and the commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.explain.diagnosis import NodeDevices, Remedy, Way
from kubectl_dra.explain.phrase import by_key
from kubectl_dra.explain.remedies.proof import ChangeStep, PlacedDevice, Price, Proof, StepHolder, StepTarget, StepValue
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.report.blocks import Argv
from kubectl_dra.report.evidence_json import device_json
from kubectl_dra.report.explain_making import making, supposing
from kubectl_dra.report.explain_words import Invocation
from kubectl_dra.report.phrases import written


def remedy_json(remedy: Remedy, asked: Invocation) -> dict[str, Any] | None:
    """What ends a cause; None where there is only its text."""
    if remedy.proof is None:
        return None
    made = remedy.offers[:1]
    return _changes(made, remedy.steps, remedy.price, remedy.proof) | _how(made, remedy, asked)


def way_json(way: Way, asked: Invocation) -> dict[str, Any]:
    """Changes that help together."""
    return _changes(way.changes, way.steps, way.price, way.proof) | _how(way.changes, way, asked)


def placement_json(placement: NodeDevices) -> dict[str, Any]:
    """What the claims get on a node."""
    return {"node": placement.node, "devices": [_placed(one) for one in placement.devices]}


def command_json(argv: Argv) -> dict[str, Any]:
    """A command as its words and as a line for a shell."""
    return {"argv": list(argv), "text": shlex.join(argv)}


def _changes(changes: Sequence[Change], steps: Sequence[ChangeStep], price: Price, proof: Proof) -> dict[str, Any]:
    told = [_step(step, written(change)) for change, step in zip(changes, steps, strict=True)]
    priced = {"price": price.name.lower().replace("_", "-"), "changes": told} if told else {}
    return {**priced, "proof": _proof(proof)}


def _how(made: Sequence[Change], found: Remedy | Way, asked: Invocation) -> dict[str, Any]:
    """How to make the changes, and how to see what would be with them."""
    out: dict[str, Any] = {}
    if found.what_if:
        out["whatIf"] = [str(change) for change in found.what_if]
    if command := making(made, asked):
        out["commands"] = [command_json(argv) for argv in command.commands]
    if supposed := supposing(found.what_if, asked):
        (out["tryWith"],) = map(command_json, supposed.commands)
    return out


def _step(step: ChangeStep, text: str) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": step.kind.value, "text": text, "target": dict(_target(step.target))}
    if step.before is not None:
        out["from"] = _value(step.before)
    if step.after is not None:
        out["to"] = _value(step.after)
    if step.frees:
        out["frees"] = [device_json(device) for device in step.frees]
    if step.holders:
        out["holders"] = [_holder(holder) for holder in step.holders]
    return out


def _target(target: StepTarget) -> Iterator[tuple[str, Any]]:
    for name, keys in (("claims", target.claims), ("pods", target.pods)):
        if keys:
            yield name, [_named(key) for key in keys]
    if target.nodes:
        yield "nodes", list(target.nodes)
    if target.pool is not None:
        yield "pool", {"driver": target.pool.driver, "name": target.pool.name}
    for name, text in (("request", target.request), ("field", target.field), ("term", target.term)):
        if text:
            yield name, text


def _value(value: StepValue) -> Any:
    if isinstance(value, DeviceConstraint):
        parts = (("requests", list(value.requests)), ("matchAttribute", value.match_attribute))
        return {name: part for name, part in (*parts, ("distinctAttribute", value.distinct_attribute)) if part}
    if isinstance(value, tuple):
        named = ([("key", taint.key), ("value", taint.value), ("effect", taint.effect)] for taint in value)
        return [{name: text for name, text in taint if text} for taint in named]
    return value


def _holder(holder: StepHolder) -> dict[str, Any]:
    out: dict[str, Any] = {"claim": _named(holder.claim), "state": holder.state, "pods": list(holder.pods)}
    if holder.owner:
        out["owner"] = {"kind": holder.owner_kind, "name": holder.owner}
    if holder.priority is not None:
        out["priority"] = holder.priority
    return out


def _proof(proof: Proof) -> dict[str, Any]:
    """What was run, with what changed, and what came of it."""
    out: dict[str, Any] = {
        "ran": "filters-and-allocation" if proof.filters else "allocation",
        "with": proof.tried.value,
    }
    if proof.request:
        out["request"] = proof.request
    if proof.like:
        out["newNodeLike"] = proof.like
    else:
        out["node"] = proof.node
        out["devices"] = [_placed(one) for one in proof.devices]
    if proof.beside is not None:
        beside = proof.beside
        if beside.aside or beside.changed:
            out["otherRequests"] = "set-aside" if beside.aside else "changed-as-well"
        for name, requests in (("changedAsWell", beside.changed), ("setAside", beside.aside)):
            if requests:
                out[name] = [{"claim": _named(one.claim), "request": one.request} for one in requests]
        if beside.causes:
            out["otherCauses"] = list(beside.causes)
    return out


def _placed(one: PlacedDevice) -> dict[str, Any]:
    out: dict[str, Any] = {"claim": _named(one.claim), "request": one.request, **device_json(one.device)}
    if one.consumed_capacity:
        out["consumedCapacity"] = dict(one.consumed_capacity)
    return out


def _named(key: str) -> dict[str, str]:
    name = by_key("", key)
    return {"namespace": name.namespace, "name": name.name}
