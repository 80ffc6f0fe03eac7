"""Which attributes an answer can depend on: only these are restored to the devices of a large snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.cel import CompileError, Environment, compile_expression
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.names import nearest


def complete(question: Question, snapshot: Snapshot, settings: Settings) -> Snapshot:
    """The snapshot with every value that a selector or constraint of the question, or a class, reads.

    Individual attributes (``Snapshot.individual``) that are read, or have a similar name, are restored to the
    devices; all of them if only evaluation tells what is read.
    """
    if not snapshot.individual:
        return snapshot
    read: set[str] = set()
    for name in _read(question, snapshot, settings):
        if name is None:
            return snapshot.exact()
        read.update(own for own in snapshot.individual if _alike(name, _identifier(own)))
    return snapshot.exact(read) if read else snapshot


def _read(question: Question, snapshot: Snapshot, settings: Settings) -> Iterator[str | None]:
    """Identifiers of attributes that are read, without their domain; None if it could be any of them."""
    expressions = {text for entry in snapshot.classes.values() for text in entry.selectors}
    derived: set[str] = set()
    for state in question.claims:
        claim = state.claim
        if claim is None:
            continue
        for constraint in claim.constraints:
            yield _identifier(constraint.match_attribute or constraint.distinct_attribute)
        for request in claim.requests:
            for spec in request.alternatives():
                expressions.update(spec.selectors)
                derived.update(spec.derived_attributes.values())
    environment = Environment.for_release(settings.release, features=settings.gates, stored=True)
    asked = [(text, False) for text in expressions if text] + [(text, True) for text in derived]
    for expression, derives in sorted(asked):
        try:
            columns = compile_expression(environment, expression, derived=derives).columns
        except CompileError:
            yield None
            return
        if columns is None:
            yield None
            return
        for column in columns:
            if column.kind == "attribute":
                yield column.id


def _identifier(name: str) -> str:
    return name.rpartition("/")[2]


def _alike(name: str, own: str) -> bool:
    """Whether a name is an individual attribute's, or may be a misspelling of one."""
    return name == own or bool(nearest(name, [own]))
