"""A selector does not compile: the attempt ends on all nodes."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.cel import CompileError
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.selector_error import class_of, expression_of, number_of
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.trial import Trial

_CONTAINER = " (in container '')"
"""An addition of the compiler that means nothing here."""

SELECTOR_COMPILE = CauseKind(code="selector-does-not-compile", family=Family.REQUEST, look=Look.AS_WRITTEN)


def _compile(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    problem = error.detail.get("error")
    message: Words = ""
    remedy = None
    if isinstance(problem, CompileError):
        issue = problem.issues[0] if problem.issues else None
        if issue is None:
            message = str(problem).partition("\n")[0]
        else:
            text = "{text} (line {line}, column {column})" if issue.line > 1 else "{text} (column {column})"
            words = issue.message.removesuffix(_CONTAINER)
            message = say(text, text=words, line=issue.line, column=issue.column)
            if issue.undeclared.isidentifier():
                text = 'Write "{name}" with quotes if the text is meant; there is no such name.'
                remedy = Remedy(say(text, name=issue.undeclared))
    text = "selector {number} of {subject} does not compile: {message}"
    yield Finding(
        SELECTOR_COMPILE,
        say(text, number=number_of(error), subject=error.subject, message=message),
        (expression_of(error),),
        remedy,
        object=str(error.detail.get("claim") or ""),
        device_class=class_of(error),
    )


FINDERS = (Finder(When.ERROR, _compile, of="cel-compile"),)
