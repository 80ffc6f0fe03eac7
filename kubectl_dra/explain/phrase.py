"""Things to say, as values: a constant template with typed values. Only ``report/`` writes them out.

Fields in braces are the values' names; what may stand after a colon is described in ``report/phrases.py``. Nothing
in ``explain/`` reads a text: what decides is the type of a statement, or the kind of a finding.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct


class Phrase(Struct, frozen=True):
    """A sentence or a part of one."""

    template: str
    values: tuple[tuple[str, object], ...] = ()

    def saying(self, **values: object) -> Phrase:
        """The same phrase with other values."""
        return Phrase(self.template, tuple({**dict(self.values), **values}.items()))


class Statement(Struct, frozen=True):
    """A fact that something may be decided by: each is a frozen struct, and ``TEXT`` says it by its fields."""

    TEXT: ClassVar[str] = ""


class Joined(Struct, frozen=True):
    """Parts of a sentence with something other than a comma between them."""

    parts: tuple[object, ...]
    separator: str = "; "


class Subject(Struct, frozen=True):
    """An object by its kind (as it is to be written) and its name."""

    kind: str
    name: object


Words: TypeAlias = str | Phrase | Statement | Joined | Subject
"""Whatever can be said. A plain text is a constant, or was read from an object."""


def say(template: str, /, **values: object) -> Phrase:
    """A phrase; lists among the values become tuples, so that phrases compare and hash by value."""
    fixed = ((name, tuple(value) if isinstance(value, list) else value) for name, value in values.items())
    return Phrase(template, tuple(fixed))
