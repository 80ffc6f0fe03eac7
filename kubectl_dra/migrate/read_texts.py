"""Reads the texts of a run, and distinguishes an empty result from unreadable input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubectl_dra.errors import FileError, InputError
from kubectl_dra.manifests.documents import NotAnObject, TemplateError, parse
from kubectl_dra.manifests.inputs import LARGEST, Input, read
from kubectl_dra.manifests.objects import is_object, objects
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.result import MigratedFile, Remark

_WAY_OUT: Final = "let it be read, or leave it out with --exclude"


def check_readable(inputs: Sequence[Input], notes: list[str]) -> None:
    """For a run without objects: find one readable input, and add what is unreadable to ``notes``.

    A template that is not known to request devices counts as readable, and so does YAML that is not a
    manifest; if it was named, a note says what it is.

    Raises:
        InputError: there is none; says where the first input is broken.
    """
    problems: list[InputError] = []
    for found in inputs:
        try:
            documents = parse(decode(read(found), found.name))
            if not any(is_object(document.object) for document in documents):
                return
            # A List may hold what is no object.
            list(objects(document for document in documents if is_object(document.object)))
            return
        except TemplateError as error:
            _note(found, error, notes)
            return
        except NotAnObject as error:
            # A list is YAML that others want; an empty text is what a failed command leaves.
            if _text_of(found).strip():
                _note(found, error, notes)
                return
            problems.append(error)
        except InputError as error:
            problems.append(error)
    if problems:
        others = f" (and {len(problems) - 1} more that cannot be read)" if len(problems) > 1 else ""
        raise InputError(f"{problems[0]}{others}")


def _note(found: Input, error: InputError, notes: list[str]) -> None:
    if found.named and str(error) not in notes:
        notes.append(str(error))


def _text_of(found: Input) -> str:
    """The text of an input without its comments."""
    text = decode(read(found), found.name).text
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#") and line != "---")


def source_of(found: Input, notes: list[str], closed: list[MigratedFile]) -> Source | None:
    """The text of an input; None if it cannot be read.

    A note says why, if it is not text. What the system does not let us read goes to ``closed``; it may be a
    whole directory with much to migrate.

    Raises:
        InputError: it was named and cannot be read.
    """
    try:
        data = read(found)
    except FileError as error:
        if found.named:
            raise
        message = error.problem
        item = Remark("refusal", refusals.UNREADABLE, found.name, 1, 1, "", "", message, _WAY_OUT)
        closed.append(MigratedFile(found.name, None, (item,)))
        return None
    try:
        if len(data) > LARGEST:
            raise InputError(f"{found.name}: larger than {LARGEST:,} bytes")
        return decode(data, found.name)
    except InputError as error:
        if found.named:
            raise
        notes.append(str(error))
        return None
