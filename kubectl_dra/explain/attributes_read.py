"""What of each device's own an answer can depend on: only that is restored to the devices of a large snapshot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.shared_devices import PerDeviceColumn
from kubectl_dra.cel import CompileError, Program, compile_expression
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.question.resolve import Question, about_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.gang_scheduling import members
from kubectl_dra.text import nearest

if TYPE_CHECKING:
    from kubectl_dra.cel.columns import KeyAnswer

    _Reads = tuple[PerDeviceColumn | None, KeyAnswer | None]
    "An attribute or capacity without its domain, None if it could be any, and how its reader answers from it."


def complete(question: Question | None, snapshot: Snapshot, settings: Settings) -> Snapshot:
    """The snapshot with every value that a selector or constraint of the question, or a class, can tell apart.

    Individual attributes and capacities (``Snapshot.individual``) that are read, or have a similar name, are restored
    to the devices; all if only evaluation tells what is read. Where selectors only compare one with constants,
    devices that get the same answers stay shared (``Snapshot.judged``). Names stay where they are. Without a question,
    classes count alone.
    """
    if not snapshot.individual:
        return snapshot
    answers: dict[PerDeviceColumn, list[KeyAnswer | None]] = {}
    for read, answer in _read(question, snapshot, settings):
        if read is None:
            return snapshot.exact()
        answers.setdefault(read, []).append(answer)
    whole: set[PerDeviceColumn] = set()
    compared: dict[PerDeviceColumn, Callable[[str], Hashable]] = {}
    for own in snapshot.individual:
        known = [every for read, every in answers.items() if _alike(read, _without_domain(own))]
        told = _together(answers.get(_without_domain(own), ())) if len(known) == 1 else None
        if told is not None:
            compared[own] = told
        elif known:
            whole.add(own)
    exact = snapshot.exact(whole) if whole else snapshot
    return exact.told_apart(compared) if compared else exact


def _together(answers: Sequence[KeyAnswer | None]) -> Callable[[str], Hashable] | None:
    """What all readers of an attribute answer to a text; the text itself where one of them has to evaluate."""
    told = [answer for answer in answers if answer is not None]
    if not told or len(told) < len(answers):
        return None

    if len(told) == 1:
        (only,) = told
        return lambda text: text if (found := only(text)) is None else found

    def answered(text: str) -> Hashable:
        found = tuple([answer(text) for answer in told])
        return text if None in found else found

    return answered


def _read(question: Question | None, snapshot: Snapshot, settings: Settings) -> Iterator[_Reads]:
    """What is read of devices."""
    expressions = {text for entry in snapshot.classes.values() for text in entry.selectors}
    derived: set[str] = set()
    for claim in _claims(question, snapshot):
        for constraint in claim.constraints:
            name = constraint.attribute
            yield _without_domain(PerDeviceColumn("attribute", name)), None
        for spec in claim.alternatives():
            expressions.update(spec.selectors)
            derived.update(spec.derived_attributes.values())
            for name in spec.capacity or ():
                yield _without_domain(PerDeviceColumn("capacity", name)), None
    environment = settings.scheduler.environment
    asked = [(text, False) for text in expressions if text] + [(text, True) for text in derived]
    for expression, derives in sorted(asked):
        try:
            program = compile_expression(environment, expression, derived=derives)
        except CompileError:
            yield None, None
            return
        # Terms of an expression that may cost too much are not evaluated by themselves.
        yield from _read_by((program,) if derives or not program.cheap else program.terms())


def _claims(question: Question | None, snapshot: Snapshot) -> Iterator[ResourceClaim]:
    """The claims of the question, and of all pods of its pod's group, which may be placed together."""
    if question is None:
        return
    yield from question.existing_claims
    pod = question.pod
    if pod is not None and (pod.pod_group or pod.spec.workload_ref):
        for member in members(pod, snapshot):
            yield from about_pod(member, snapshot, exists=True).existing_claims


def _read_by(programs: Sequence[Program]) -> Iterator[_Reads]:
    for program in programs:
        if program.columns is None:
            yield None, None
            return
        for column in program.columns:
            if column.kind == "attribute" or column.kind == "capacity":
                yield PerDeviceColumn(column.kind, column.id) if column.id is not None else None, program.by_key


def _without_domain(column: PerDeviceColumn) -> PerDeviceColumn:
    return column._replace(name=column.name.rpartition("/")[2])


def _alike(read: PerDeviceColumn, own: PerDeviceColumn) -> bool:
    """Whether what is read is an individual column, or may be meant to be."""
    return read.kind == own.kind and (read.name == own.name or bool(nearest(read.name, [own.name])))
