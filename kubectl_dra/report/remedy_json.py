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
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, Proof, StepHolder, StepTarget, StepValue
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.unread_kind import gaps_of
from kubectl_dra.report.explain_commands import Invocation, command, making, supposing
from kubectl_dra.report.explain_words import fix
from kubectl_dra.report.json_output import filled
from kubectl_dra.report.json_shapes import (
    device_json,
    gap_json,
    given_json,
    key_json,
    not_starting_json,
    object_json,
    owner_json,
    pool_json,
)
from kubectl_dra.report.phrases import commands_of, fields_of, template_of, written

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
    return {
        "what": written(fact.object),
        "field": written(fact.field),
        "value": written(fact.value),
        "about": _listed([*_parts(fact.object), *_parts(fact.field)]),
        "found": _listed(_parts(fact.value)),
        **filled(language="cel" if fact.is_cel else ""),
    }


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
        if value.kind == "Node":
            return "nodes", value.name
        named = {**filled(namespace=value.namespace), "name": value.name}
        return (_LISTS[value.kind], named) if value.kind in _LISTS else ("objects", {"kind": value.kind, **named})
    if isinstance(value, Quantity):
        whole, rest = divmod(value.nanos, _NANO)
        number = value.nanos / _NANO if rest else whole
        return "quantities", filled(name=part.name, quantity=str(value), number=number)
    return "numbers", filled(name=part.name, number=value, unit=part.unit)


def unread_json(said: Iterable[Words]) -> list[dict[str, Any]]:
    """The gaps among what is said about an answer; ``decides`` tells whether the answer depends on it."""
    return [{**gap_json(gap), "decides": decides} for gap, decides in gaps_of(said).items()]


def notes_json(notes: Sequence[Words], where: ClusterFlags) -> dict[str, Any]:
    """Notes, and the commands that text has beside them."""
    beside = (command for commands in commands_of(notes).values() for command in commands)
    return {"notes": [*map(written, notes)], **filled(noteCommands=commands_json(*beside, where=where))}


def remedy_json(remedy: Remedy | None, where: ClusterFlags) -> dict[str, Any]:
    """What mends something, and the commands that do it."""
    if remedy is None:
        return {}
    return {"text": written(remedy.change), **filled(commands=commands_json(*remedy.commands, where=where))}


def fix_json(finding: Finding, asked: Invocation, rank: int | None) -> dict[str, Any]:
    """What ends a cause: its text, its ``rank`` among all fixes, and if it was proved the changes and the proof."""
    remedy, out = finding.remedy, {"text": fix(finding), **filled(rank=rank)}
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


def command_json(command: CommandLine | None, *, where: ClusterFlags) -> dict[str, Any] | None:
    """One command in the same shape; None where there is none."""
    return next(iter(commands_json(command, where=where)), None)


def _changes(changes: Sequence[Change], steps: Sequence[ChangeStep], price: Price, proof: Proof) -> dict[str, Any]:
    steps_told = [_step(step, written(change)) for change, step in zip(changes, steps, strict=True)]
    priced = {"price": price.name.lower().replace("_", "-"), "changes": steps_told} if steps_told else {}
    return {**priced, "proof": _proof(proof)}


def _how(
    changes: Sequence[Change], remedy: Remedy | RemedyPlan | None, invocation: Invocation, place: NextStep | None
) -> dict[str, Any]:
    """Commands that make the changes or suppose them; without either, what to look at."""
    what_if, where = remedy.what_if if remedy is not None else (), invocation.where
    own = remedy.commands if isinstance(remedy, Remedy) else ()
    commands = commands_json(*making(changes), *own, where=where)
    return filled(
        whatIf=[str(change) for change in what_if if change.kind != WITH_NODE],
        commands=commands if commands or what_if else commands_json(command(place, invocation), where=where),
        tryWith=command_json(supposing(what_if, invocation), where=where),
    )


def _step(step: ChangeStep, text: str) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": step.kind.value, "text": text, "target": _target(step.target)}
    if step.before is not None:
        out["from"] = _value(step.before)
    if step.after is not None:
        out["to"] = _value(step.after)
    return out | filled(frees=[*map(device_json, step.frees)], holders=[*map(_holder, step.holders)])


def _target(target: StepTarget) -> dict[str, Any]:
    return filled(
        claims=[*map(key_json, target.claims)],
        pods=[*map(key_json, target.pods)],
        nodes=[*target.nodes],
        pools=[pool_json(target.pool)] if target.pool is not None else [],
        request=target.request,
        field=target.field,
        term=target.term,
    )


def _value(value: StepValue) -> Any:
    if isinstance(value, DeviceConstraint):
        match, distinct = value.match_attribute, value.distinct_attribute
        return filled(requests=[*value.requests], matchAttribute=match, distinctAttribute=distinct)
    if isinstance(value, tuple):
        return [filled(key=taint.key, value=taint.value, effect=taint.effect) for taint in value]
    return value


def _holder(holder: StepHolder) -> dict[str, Any]:
    claim = key_json(holder.claim)
    pods = [object_json(claim["namespace"], pod) for pod in holder.pods]
    owner = owner_json(holder.owner_kind, holder.owner) if holder.owner else None
    return {"claim": claim, "state": holder.state, "pods": pods, **filled(owner=owner, priority=holder.priority)}


def _proof(proof: Proof) -> dict[str, Any]:
    """What was run, with what changed, and what came of it."""
    out: dict[str, Any] = {
        "ran": "filters-and-allocation" if proof.filters else "allocation",
        "with": proof.tried.value,
    }
    out |= filled(request=proof.request)
    if proof.like:
        out["newNodeLike"] = proof.like
    else:
        out |= {"node": proof.node, "devices": given_json(proof.claims)}
    if proof.nodes:
        out |= {"nodes": [*proof.nodes], "moreNodesMayFit": proof.more}
    out |= filled(notStarting=[*map(not_starting_json, proof.not_starting)])
    if (beside := proof.beside) is not None:
        changed, aside = (
            [{"claim": key_json(other.claim), "request": other.request} for other in others]
            for others in (beside.changed, beside.aside)
        )
        out |= filled(
            otherRequests="set-aside" if aside else "changed-as-well" if changed else "",
            changedAsWell=changed,
            setAside=aside,
            otherCauses=[*beside.causes],
            rivals=[*map(key_json, beside.rivals)],
            successorOf=beside.successor,
        )
    return out
