"""Writes out what ``explain/`` says as values (``explain/phrase.py``).

What stands in a field after the colon:

==================  =====================================================================
nothing             the value; of several values all, with commas
``,``               a number with separators of thousands
``device``          a number with this noun: 1 device, 2 devices
``is|are``          the first word for the number 1, else the second
``or``              several values, the last after "or"
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

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from string import Formatter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.claims import DeviceResult
from kubectl_dra.api.meta import kind_plural
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.command import CommandLine
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Statement, Subject, Words
from kubectl_dra.explain.unread_kind import NotSeen, Unread
from kubectl_dra.grouped import grouped
from kubectl_dra.text import amount, either, some

if TYPE_CHECKING:
    from kubectl_dra.explain.diagnosis import Diagnosis
    from kubectl_dra.fit.result import FitAnswer


MAX_VIEW: Final = 220
"""What an autoscaler makes of new nodes stands on the full page where it is longer: two lines."""


def sentences(notes: Iterable[Words], alone: Sequence[Words] = ()) -> list[str]:
    """The notes, each once; one stands for all kinds that files lack, in the place of the first of them.

    What is ``alone`` is among the notes and stays by itself.
    """
    notes_once = tuple(dict.fromkeys(notes))
    lacking = (note for note in notes_once if isinstance(note, (Unread, NotSeen)) and note not in alone)
    absent = [note for note in lacking if note.gap.reason == ABSENT]
    if len(absent) < 2:
        return [written(note) for note in notes_once]
    kinds = dict.fromkeys(note.gap.kind for note in absent)
    unknown = dict.fromkeys(written(note.unknown) for note in absent if isinstance(note, Unread))
    together = "; ".join((f"not read: {', '.join(kinds)}", *unknown)) + absent[0].gap.help
    return [together if note is absent[0] else written(note) for note in notes_once if note not in absent[1:]]


def commands_of(notes: Iterable[Words]) -> dict[str, list[CommandLine]]:
    """The commands that notes have beside their texts, by these: of forbidden kinds the first has one for all."""
    notes = tuple(notes)
    phrases = (note for note in notes if isinstance(note, Phrase))
    unread = (note for note in notes if isinstance(note, Unread) and note.gap.permission is not None)
    allowed = {written(note): [CommandLine(("kubectl", "dra", "can"))] for note in islice(unread, 1)}
    found = {note: [value for _, value in note.values if isinstance(value, CommandLine)] for note in phrases}
    return allowed | {written(note): commands for note, commands in found.items() if commands}


def reason(why: Words) -> str:
    """A reason as the cell of a table: of a kind that was not read, what a note says in full."""
    if not isinstance(why, Unread):
        return written(why)
    part = why.gap.namespace or why.gap.read_in
    kinds = kind_plural(why.gap.kind)
    return f"not all {kinds} were read" if part else f"{kinds} were not read"


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
        singular, several, more = how.partition("|")
        return amount(value, how) if not several else (singular if value == 1 else more)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        if how.startswith("some") and value and all(isinstance(item, DeviceID) for item in value):
            return devices_named(value, int(how[4:] or _SHOWN))
        names = [written(item) for item in value]
        if how.startswith("some"):
            return some(names, int(how[4:] or _SHOWN))
        return either(names) if how == "or" else ", ".join(names)
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


# The Kubernetes assumed by an answer, in words.


def assumed(answer: Diagnosis | FitAnswer) -> str:
    """Release, feature gates that differ from the defaults, and the source of the release."""
    defaults, gates = default_features(parse_release(answer.release)), frozenset(answer.gates)
    other = [f"{gate} {'on' if gate in gates else 'off'}" for gate in sorted(defaults ^ gates)]
    source = f" ({answer.release_source.removeprefix('assumed: ')})" if answer.release_source else ""
    but = f" but {', '.join(other)}" if other else ""
    return f"assumed: Kubernetes {answer.release}, default feature gates{but}{source}"


# CEL on several lines: broken where a reader would break it, without changing the expression.

_OPEN, _CLOSE = ("(", "[", "{"), (")", "]", "}")
_COMPARISONS = frozenset(("==", "!=", "<=", ">=", "<", ">", "in"))
_JOINED = {"?": 0, "||": 1, "&&": 2}
_DEEPEST = 30
"""Deeper nesting is not broken into lines, so that the time stays proportional to the text."""
INDENT = "  "


class _Piece(NamedTuple):
    """A token, whether a blank precedes it, and how well a line can begin with it (lower is better)."""

    text: str
    blank: bool
    rank: tuple[int, int, int] | None


def folded(expression: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters if possible, never broken inside a string or name.

    Lines begin with ``&&``, ``||`` or ``?``, outermost first. Only if that is not enough do they begin with a
    comparison, an argument or a call, as many per line as fit. A text that is not CEL stays unchanged.
    """
    lines = [line for line in expression.expandtabs(2).splitlines() if line.strip()]
    if len(lines) > 1 and '"""' not in expression and "'''" not in expression:
        margin = min(len(line) - len(line.lstrip()) for line in lines)
        return [part for line in lines for part in _line(line[margin:].rstrip(), width)]
    return _line(expression.strip(), width)


def _line(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    lead = text[: len(text) - len(text.lstrip())]
    pieces = _pieces(text)
    if pieces is None:
        return [text]
    return [lead + line for line in _broken(pieces, width - len(lead))]


def _pieces(text: str) -> list[_Piece] | None:
    """The tokens of CEL without comments; None for anything else."""
    from kubectl_dra.cel.lexer import END, LexicalError, tokenize

    if "//" in text:
        return None
    try:
        tokens = tokenize(text)
    except LexicalError:
        return None
    pieces: list[_Piece] = []
    depth, end, before = 0, 0, ""
    for token in tokens:
        if token.kind == END:
            break
        if token.kind in _CLOSE:
            depth -= 1
        pieces.append(
            _Piece(text[token.start : token.end], token.start > end and end > 0, _rank(token.kind, before, depth))
        )
        if token.kind in _OPEN:
            depth += 1
        before, end = token.kind, token.end
    return pieces


def _rank(kind: str, before: str, depth: int) -> tuple[int, int, int] | None:
    if depth > _DEEPEST:
        return None
    if kind in _JOINED and before not in (".", "["):
        return 0, depth, _JOINED[kind]
    if kind in _COMPARISONS:
        return 1, depth, 0
    if before == ",":
        return 2, depth, 0
    if kind == "." and before in (")", "]"):
        return 3, depth, 0
    return None


def _text(pieces: Sequence[_Piece]) -> str:
    return "".join((" " if piece.blank and index else "") + piece.text for index, piece in enumerate(pieces))


def _broken(pieces: Sequence[_Piece], width: int) -> list[str]:
    text = _text(pieces)
    places = [(piece.rank, index) for index, piece in enumerate(pieces) if index and piece.rank is not None]
    if len(text) <= width or not places:
        return [text]
    best = min(rank for rank, _ in places)
    parts = [*_split(pieces, [index for rank, index in places if rank == best])]
    inner = INDENT if best[0] or best[1] else ""
    if best[0]:
        parts = _filled(parts, width, len(inner))
    out = _broken(parts[0], width)
    for part in parts[1:]:
        out += [inner + line for line in _broken(part, width - len(inner))]
    return out


def _split(pieces: Sequence[_Piece], at: Sequence[int]) -> Iterator[Sequence[_Piece]]:
    for start, end in zip((0, *at), (*at, len(pieces)), strict=True):
        yield pieces[start:end]


def _filled(parts: Iterable[Sequence[_Piece]], width: int, inner: int) -> list[Sequence[_Piece]]:
    """The parts joined as far as lines can hold them. Lines after the first are indented by ``inner``."""
    lines: list[list[_Piece]] = []
    room = 0
    for part in parts:
        size = len(_text(part)) + part[0].blank
        if not lines or size > room:
            lines.append([])
            room = width - inner if lines[1:] else width
            size -= part[0].blank
        lines[-1] += part
        room -= size
    return [*lines]


# Names of devices on little room.

_DIGITS: Final = re.compile(r"(0|[1-9][0-9]{0,17})(?![0-9A-Za-z])", re.ASCII)
"""A number in a name that ends there or goes on with a sign."""


def compressed(names: Sequence[str]) -> str:
    """``gpu-0``, ``gpu-0..2,5``, ``gpu-0..7-spx``, or of others ``gpu-a + 2 more``, as kubectl writes it."""
    return _ranged(names) or f"{names[0]} + {len(names) - 1:,} more"


def devices_named(devices: Sequence[DeviceID], limit: int = _SHOWN) -> str:
    """``gpu.nvidia.com/node-1/gpu-0..3``: devices by their pools; where names do not allow it, one by one.

    Of several pools so many are named, and how many devices there are besides.
    """
    parts: list[tuple[str, int]] = []
    for pool, names in grouped((f"{device.driver}/{device.pool}", device.device) for device in devices).items():
        short = _ranged(names)
        ranges = [(short, len(names))] if short else [(name, 1) for name in names]
        parts += [(f"{pool}/{name}", count) for name, count in ranges]
    left = sum(count for _, count in parts[limit:])
    return ", ".join(text for text, _ in parts[:limit]) + (f" and {left:,} more" if left else "")


def shares_of(result: DeviceResult) -> str:
    """How much of a shared device a claim has: ``10Gi of memory``."""
    return ", ".join(f"{amount} of {name}" for name, amount in result.consumed_capacity.items())


def names_of_devices(names: Sequence[str], limit: int = _SHOWN) -> str:
    """``gpu-0..3``, or the first names and how many more there are."""
    return (_ranged(names) if names else "") or some(names, limit)


def _ranged(names: Sequence[str]) -> str:
    """Names that differ in one number as one; empty where they differ in more."""
    first, *others = names
    if not others:
        return first
    for match in _DIGITS.finditer(first):
        before, after = first[: match.start()], first[match.end() :]
        if before[-1:].isdigit():
            continue
        # In a name of the same ends, what is between them must be a number, too.
        ends = [len(name) - len(after) for name in names]
        if not all(name.startswith(before) and name.endswith(after) for name in names):
            continue
        numbers = [_DIGITS.fullmatch(name, len(before), end) for name, end in zip(names, ends, strict=True)]
        if all(numbers):
            return f"{before}{_runs(sorted(int(number[1]) for number in numbers if number))}{after}"
    return ""


def _runs(numbers: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}..{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
