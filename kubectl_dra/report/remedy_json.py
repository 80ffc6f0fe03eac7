"""What ends a cause, as data: the changes with their targets and values, the proof, and the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from string import Formatter
from typing import Any, Final, NamedTuple

from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.command import ClusterFlags, CommandLine
from kubectl_dra.explain.cause_kinds import NextStep
from kubectl_dra.explain.diagnosis import Evidence, Finding, NodeDevices, Remedy, RemedyPlan
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Statement, Subject, Words
from kubectl_dra.explain.question.what_if_flag import WITH_NODE
from kubectl_dra.explain.remedies.proof import ChangeStep, Price, Proof, StepHolder, StepTarget, StepValue
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.unread import gaps_of
from kubectl_dra.report.explain_commands import Invocation, command, making, supposing
from kubectl_dra.report.explain_words import fix
from kubectl_dra.report.json_shapes import (
    device_json,
    given_json,
    key_json,
    not_starting_json,
    object_json,
    owner_json,
    pool_json,
)
from kubectl_dra.report.phrases import commands_of, fields_of, template_of, written
from kubectl_dra.report.structured import gap_json

# A fact as data: its words, and the objects, devices and numbers that they are made of; and what was not read.

_LISTS: Final = {"Pod": "pods", "ResourceClaim": "claims"}
"""Kinds with a list of their own; all others are in ``objects``, with their kind."""
_NANO: Final = 10**9
_FORMATTER: Final = Formatter()


class TypedPart(NamedTuple):
    """A typed value among words: its name in the phrase, and the noun that it counts, where it has them."""

    value: object
    name: str = ""
    unit: str = ""


def evidence_json(fact: Evidence) -> dict[str, Any]:
    """The fact as text, what it is about, and what was found there."""
    out: dict[str, Any] = {
        "what": written(fact.object),
        "field": written(fact.field),
        "value": written(fact.value),
        "about": _listed([*_parts(fact.object), *_parts(fact.field)]),
        "found": _listed(_parts(fact.value)),
    }
    if fact.is_cel:
        out["language"] = "cel"
    return out


def _parts(words: object, name: str = "", unit: str = "") -> Iterator[TypedPart]:
    """The typed values that words are made of, in the order in which they are said."""
    if isinstance(words, Phrase | Statement):
        fields = fields_of(words)
        for _, field, how, _ in _FORMATTER.parse(template_of(words)):
            # With a bar the number only decides about a word.
            if field is not None and "|" not in (how or ""):
                value, _ = _FORMATTER.get_field(field, (), fields)
                yield from _parts(value, field.rpartition(".")[2], how or "")
    elif isinstance(words, Joined):
        for part in words.parts:
            yield from _parts(part)
    elif isinstance(words, Subject):
        yield from _parts(words.name)
    elif isinstance(words, tuple) and not hasattr(words, "_fields"):
        for part in words:
            yield from _parts(part, name)
    elif isinstance(words, ObjectName | DeviceID | PoolID | Quantity | int) and not isinstance(words, bool):
        yield TypedPart(words, name, unit if unit.isalpha() else "")


def _listed(parts: Iterable[TypedPart]) -> dict[str, list[Any]]:
    """The values by what they are, each once."""
    out: dict[str, list[Any]] = {}
    for part in parts:
        kind, value = _entry(part)
        entries = out.setdefault(kind, [])
        if value not in entries:
            entries.append(value)
    return out


def _entry(part: TypedPart) -> tuple[str, dict[str, Any] | str]:
    value = part.value
    if isinstance(value, DeviceID):
        return "devices", device_json(value)
    if isinstance(value, PoolID):
        return "pools", pool_json(value)
    if isinstance(value, ObjectName):
        where = {"namespace": value.namespace} if value.namespace else {}
        if value.kind == "Node":
            return "nodes", value.name
        if value.kind in _LISTS:
            return _LISTS[value.kind], {**where, "name": value.name}
        return "objects", {"kind": value.kind, **where, "name": value.name}
    named = {"name": part.name} if part.name else {}
    if isinstance(value, Quantity):
        return "quantities", {**named, "quantity": str(value), "number": _number(value.nanos)}
    return "numbers", {**named, "number": value, **({"unit": part.unit} if part.unit else {})}


def _number(nanos: int) -> int | float:
    whole, rest = divmod(nanos, _NANO)
    return nanos / _NANO if rest else whole


def unread_json(said: Iterable[Words]) -> list[dict[str, Any]]:
    """The gaps among what is said about an answer; ``decides`` tells whether the answer depends on it."""
    return [{**gap_json(gap), "decides": decides} for gap, decides in gaps_of(said).items()]


def notes_json(notes: Sequence[Words], where: ClusterFlags) -> dict[str, Any]:
    """Notes, and the commands that text has beside them."""
    beside = (command for commands in commands_of(notes).values() for command in commands)
    shown = commands_json(*beside, where=where)
    return {"notes": [written(note) for note in notes], **({"noteCommands": shown} if shown else {})}


def fix_json(finding: Finding, asked: Invocation, rank: int | None) -> dict[str, Any]:
    """What ends a cause: its text, its ``rank`` among all fixes, and if it was proved the changes and the proof."""
    remedy, out = finding.remedy, {"text": fix(finding), **({"rank": rank} if rank else {})}
    changes = remedy.made if remedy is not None else ()
    how = _how(changes, remedy, asked, finding.place_of_fix)
    if remedy is None or remedy.proof is None:
        return out | how
    return out | _changes(changes, remedy.steps, remedy.price, remedy.proof) | how


def plan_json(plan: RemedyPlan, asked: Invocation, rank: int) -> dict[str, Any]:
    """Changes that help together, in the same shape."""
    text = {"text": ", and ".join(written(change) for change in plan.changes), "rank": rank}
    return (
        text | _changes(plan.changes, plan.steps, plan.price, plan.proof) | _how(plan.changes, plan, asked, plan.place)
    )


def placement_json(placement: NodeDevices) -> dict[str, Any]:
    """What the claims get on a node."""
    return {"node": placement.node, "devices": given_json(placement.claims)}


def commands_json(*commands: CommandLine | None, where: ClusterFlags) -> list[dict[str, Any]]:
    """Commands as words and as a line for a shell, with what they do to the cluster; none where a name is none."""
    given = [where.asks(command) for command in commands if command is not None]
    if any(command.misnamed for command in given):
        return []
    return [
        {"argv": list(command_line.argv), "text": str(command_line), "effect": command_line.effect.value}
        for command_line in given
    ]


def _changes(changes: Sequence[Change], steps: Sequence[ChangeStep], price: Price, proof: Proof) -> dict[str, Any]:
    steps_told = [_step(step, written(change)) for change, step in zip(changes, steps, strict=True)]
    priced = {"price": price.name.lower().replace("_", "-"), "changes": steps_told} if steps_told else {}
    return {**priced, "proof": _proof(proof)}


def _how(
    changes: Sequence[Change], remedy: Remedy | RemedyPlan | None, invocation: Invocation, place: NextStep | None
) -> dict[str, Any]:
    """Commands that make the changes or suppose them; without either, what to look at."""
    out: dict[str, Any] = {}
    what_if = remedy.what_if if remedy is not None else ()
    if supposed := [str(change) for change in what_if if change.kind != WITH_NODE]:
        out["whatIf"] = supposed
    own = remedy.commands if isinstance(remedy, Remedy) else ()
    if commands := commands_json(*making(changes), *own, where=invocation.where):
        out["commands"] = commands
    elif not what_if and (seen := commands_json(command(place, invocation), where=invocation.where)):
        out["commands"] = seen
    if tried := commands_json(supposing(what_if, invocation), where=invocation.where):
        (out["tryWith"],) = tried
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
            yield name, [key_json(key) for key in keys]
    if target.nodes:
        yield "nodes", list(target.nodes)
    if target.pool is not None:
        yield "pools", [pool_json(target.pool)]
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
    claim = key_json(holder.claim)
    pods = [object_json(claim["namespace"], pod) for pod in holder.pods]
    out: dict[str, Any] = {"claim": claim, "state": holder.state, "pods": pods}
    if holder.owner:
        out["owner"] = owner_json(holder.owner_kind, holder.owner)
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
        out["devices"] = given_json(proof.claims)
    if proof.nodes:
        out["nodes"] = list(proof.nodes)
        out["moreNodesMayFit"] = proof.more
    if proof.not_starting:
        out["notStarting"] = [not_starting_json(node) for node in proof.not_starting]
    if proof.beside is not None:
        beside = proof.beside
        if beside.aside or beside.changed:
            out["otherRequests"] = "set-aside" if beside.aside else "changed-as-well"
        for name, requests in (("changedAsWell", beside.changed), ("setAside", beside.aside)):
            if requests:
                out[name] = [{"claim": key_json(other.claim), "request": other.request} for other in requests]
        if beside.causes:
            out["otherCauses"] = list(beside.causes)
        if beside.rivals:
            out["rivals"] = [key_json(key) for key in beside.rivals]
        if beside.successor:
            out["successorOf"] = beside.successor
    return out
