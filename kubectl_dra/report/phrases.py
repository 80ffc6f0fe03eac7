"""Writes out what ``explain/`` says as values (``explain/phrase.py``).

What stands in a field after the colon:

==================  =====================================================================
nothing             the value; of several values all, with commas
``,``               a number with separators of thousands
``device``          a number with this noun: 1 device, 2 devices
``is|are``          the first word for the number 1, else the second
``some``            the first four of several values, and how many more; ``some 6``: the first six
``flat``            on one line
``short``           a device without its driver
``bare``            the name alone of a device, or of an object in a namespace
``shell``           as a word of a shell command
``capital``         with a capital at the start
``… else none``     this word where there is nothing to write
==================  =====================================================================
"""

from __future__ import annotations

import shlex
from string import Formatter
from typing import Any

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Statement, Subject
from kubectl_dra.text import amount, some

_SHOWN = 4


class _Writer(Formatter):
    """Fills templates."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return written(value, format_spec)


_WRITER = _Writer()


def written(value: object, how: str = "") -> str:
    """The text of a phrase, a reason, or any value in one; ``how`` as in a template."""
    how, _, otherwise = how.partition(" else ")
    return _written(value, how) or otherwise


def _written(value: object, how: str) -> str:
    if isinstance(value, int) and how:
        if how == ",":
            return f"{value:,}"
        one, several, more = how.partition("|")
        return amount(value, how) if not several else (one if value == 1 else more)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        names = [written(entry) for entry in value]
        if how.startswith("some"):
            return some(names, int(how[4:] or _SHOWN))
        return ", ".join(names)
    text = _name(value, how) if how in ("short", "bare") else _plain(value)
    if how == "shell":
        return shlex.quote(text)
    if how == "flat":
        return " ".join(text.split())
    return text[:1].upper() + text[1:] if how == "capital" else text


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Phrase) and not value.values:
        return value.template
    if isinstance(value, Phrase | Statement):
        return _WRITER.vformat(template_of(value), (), fields_of(value))
    if isinstance(value, Subject):
        return f"{value.kind} {written(value.name)}"
    if isinstance(value, Joined):
        return value.separator.join(written(part) for part in value.parts)
    return "" if value is None else str(value)


def template_of(words: Phrase | Statement) -> str:
    """The text with fields in braces."""
    return words.template if isinstance(words, Phrase) else words.TEXT


def fields_of(words: Phrase | Statement) -> dict[str, Any]:
    """The values for the fields."""
    return dict(words.values) if isinstance(words, Phrase) else _Fields(words)


def _name(value: object, how: str) -> str:
    if isinstance(value, DeviceID):
        return value.device if how == "bare" else f"{value.pool}/{value.device}"
    return value.name if isinstance(value, ObjectName) else _plain(value)


class _Fields(dict[str, Any]):
    """The fields of a reason, for the writer."""

    def __init__(self, reason: Statement) -> None:
        super().__init__()
        self._reason = reason

    def __missing__(self, name: str) -> Any:
        return getattr(self._reason, name)
