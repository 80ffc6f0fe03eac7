"""Aligned columns in kubectl's style; on a narrow screen less important columns go below their row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from kubectl_dra.console import is_hidden, one_line
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.unread import not_read
from kubectl_dra.report.paint import wrap

if TYPE_CHECKING:
    from kubectl_dra.api.pods import Owner
    from kubectl_dra.cluster.snapshot import Gap
    from kubectl_dra.explain.phrase import Words

GAP = "   "
EMPTY = "-"
UNKNOWN: Final = "?"
"""What was not read decides it."""
INDENT = "    "
MIN_NAME: Final = 12
"""A shorter name is not shortened."""
MIN_PROSE = 48
"""The narrowest column in which prose is still read with ease."""
_NEXT_NAME = re.compile(r",(?=[\w./-]+(?:=|/))")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines in which each column is as wide as its longest cell; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    return [
        GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def fitted(
    rows: Sequence[Sequence[str]], limit: int | None, below: Sequence[str], *, prose: bool = False
) -> list[list[str]]:
    """The lines of each row, the header first.

    If a line would be longer than ``limit``, the columns named in ``below`` leave the table one by one, empty
    ones first, then in the given order, until the rest fits. Their cells then stand below the row, each with
    its column name. ``prose``: the last column is a sentence, wrapped in place if there is room. Nothing is
    cut, so the result may still be too wide.
    """
    rows = [[one_line(cell) for cell in row] for row in rows]
    header = rows[0]
    if limit is None or _width(rows, range(len(header))) <= limit:
        return [[line] for line in aligned(rows)]
    shown = [*range(len(header))]
    for name in below:
        index = header.index(name)
        if all(row[index] == EMPTY for row in rows[1:]):
            shown.remove(index)
    under: list[int] = []
    for name in below:
        index = header.index(name)
        if index not in shown:
            continue
        if _width(rows, shown) <= limit:
            break
        if prose and index == len(header) - 1:
            start = _width(rows, shown[:-1]) + len(GAP)
            if limit - start >= MIN_PROSE:
                return _with_prose([[row[at] for at in shown] for row in rows], start, limit)
        shown.remove(index)
        under.append(index)
    lines = aligned([[row[index] for index in shown] for row in rows])
    blocks = [[line] for line in lines]
    for row, block in zip(rows[1:], blocks[1:], strict=True):
        named = [
            f"{header[index].lower().replace('-', ' ')}: {row[index]}" for index in sorted(under) if row[index] != EMPTY
        ]
        block.extend(_below(named, limit))
    return blocks


class NarrowedTable(NamedTuple):
    """The rows, the header first, and the headings of the columns that were left out."""

    rows: list[tuple[str, ...]]
    omitted: list[str]


def narrowed(
    rows: Sequence[tuple[str, ...]],
    limit: int | None,
    omitted: Sequence[str],
    keys: Sequence[str],
    below: Sequence[str] = (),
) -> NarrowedTable:
    """As many columns of ``omitted`` go as have to, all empty ones before them, but none of ``keys``, which say what a
    row is.

    Where that is not enough, names in ``keys`` are shortened, if it is then. ``below`` take no room.
    """
    kept, gone = list(rows), []

    def excess() -> int:
        return width_of(kept, below) - limit if limit is not None else 0

    empty = [name for name, *cells in zip(*kept, strict=True) if {*cells} <= {EMPTY}]
    for name in (*empty, *(name for name in omitted if name not in empty)):
        if excess() <= 0:
            break
        if name in kept[0] and name not in keys:
            at = kept[0].index(name)
            if name not in empty:
                gone.append(name)
            kept = [(*row[:at], *row[at + 1 :]) for row in kept]
    whole = [*kept]
    for name in sorted(keys, key=lambda name: -_width(kept, [kept[0].index(name)])):
        if (more := excess()) > 0:
            at = kept[0].index(name)
            short = shortened([row[at] for row in kept[1:]], max(MIN_NAME, _width(kept, [at]) - more))
            kept[1:] = [(*row[:at], text, *row[at + 1 :]) for row, text in zip(kept[1:], short, strict=True)]
    return NarrowedTable(kept if excess() <= 0 else whole, gone)


def shortened(names: Sequence[str], room: int) -> list[str]:
    """Names of at most ``room`` characters, as different as they were: what goes is in the middle.

    Where nothing in the middle can go they stay as they are.
    """
    for tail in sorted(range(1, room - 1), key=lambda tail: abs(tail - room // 2)):
        short = {name: name if len(name) <= room else f"{name[: room - 1 - tail]}…{name[-tail:]}" for name in names}
        if len({*short.values()}) == len(short):
            return [short[name] for name in names]
    return list(names)


def width_of(rows: Sequence[Sequence[str]], below: Sequence[str] = ()) -> int:
    """The width of a table without the columns that go below its rows."""
    return _width(rows, [index for index, heading in enumerate(rows[0]) if heading not in below])


def _width(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    longest = [max(len(row[index]) for row in rows) for index in columns]
    return sum(longest) + len(GAP) * (len(longest) - 1)


def _with_prose(rows: Sequence[Sequence[str]], start: int, limit: int) -> list[list[str]]:
    cells = [wrap(row[-1], limit - start) for row in rows]
    lines = aligned([[*row[:-1], cell[0]] for row, cell in zip(rows, cells, strict=True)])
    return [[line, *(" " * start + more for more in cell[1:])] for line, cell in zip(lines, cells, strict=True)]


def _below(named: Sequence[str], limit: int) -> list[str]:
    """The cells on as few lines as possible; a longer one has lines of its own."""
    out: list[str] = []
    for text in named:
        if out and len(out[-1]) + len(GAP) + len(text) <= limit:
            out[-1] += GAP + text
        elif len(INDENT) + len(text) <= limit:
            out.append(INDENT + text)
        else:
            first, *rest = wrap(_NEXT_NAME.sub(", ", text), limit - len(INDENT) - 2)
            out += [INDENT + first, *(f"{INDENT}  {line}" for line in rest)]
    return out


# A result for machines, as JSON or YAML.


def write(report: Mapping[str, Any], output: str, stream: TextIO, exit_code: int) -> None:
    """Write a report as ``json`` or ``yaml``, with the exit code of the command, which a pipe swallows."""
    result = with_exit_code(report, exit_code)
    if output == "json":
        stream.write(json_text(result))
        return
    stream.write(yaml_text(result))


def with_exit_code(report: Mapping[str, Any], exit_code: int) -> dict[str, Any]:
    """A report with the exit code after its version and kind."""
    head = {"schemaVersion": report["schemaVersion"], "kind": report["kind"], "exitCode": exit_code}
    return {**head, **{key: value for key, value in report.items() if key not in head}}


def json_text(result: Mapping[str, Any]) -> str:
    """The result as indented JSON, ending in a newline. Much faster than the standard library on large results."""
    from msgspec import json

    try:
        return json.format(json.encode(result), indent=2).decode() + "\n"
    except (OverflowError, TypeError, UnicodeError):
        # Whole numbers beyond 64 bits, and what no text can hold.
        from json import dumps

        return dumps(result, indent=2, ensure_ascii=False) + "\n"


def yaml_text(result: Mapping[str, Any]) -> str:
    """The result as YAML. Text that holds hidden characters is quoted, so that they can be written as escapes."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        if not is_hidden(value):
            return dumper.represent_str(value)
        readable = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return dumper.represent_scalar("tag:yaml.org,2002:str", readable, style='"')

    Dumper.add_representer(str, text)
    return yaml.dump(dict(result), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def gap_json(gap: Gap) -> dict[str, Any]:
    """A kind that was not read whole: why, and the permission that is missing."""
    out: dict[str, Any] = {"kind": gap.kind, "reason": gap.reason}
    more = (("namespace", gap.namespace), ("readNamespace", gap.read_in), ("detail", gap.detail))
    out.update({name: value for name, value in more if value})
    if gap.permission is not None:
        out["permission"] = gap.permission._asdict()
    return out


# Devices as a row of marks, one each or in proportion: a picture that needs no colour and no more than ASCII.

MARKS: Final = {
    DeviceState.FREE: "o",
    DeviceState.SHARED: "+",
    DeviceState.HELD: "#",
    DeviceState.TAINTED: "!",
    DeviceState.BLOCKED: ":",
    DeviceState.UNSERVED: "/",
    DeviceState.UNUSABLE: "x",
    DeviceState.UNKNOWN: "?",
}
CELLS: Final = 40
"""Room for the marks of one row."""


def bar(states: Sequence[DeviceState], cells: int = CELLS) -> str:
    """A mark for each device, in their order; of more devices than ``cells``, each state has its share."""
    if len(states) <= cells:
        return "".join(MARKS[state] for state in states)
    counts = Counter(states)
    # Whatever occurs has a mark, however rare it is; the most frequent one takes what is left.
    most = max(counts, key=lambda state: counts[state])
    shares = {state: max(1, count * cells // len(states)) for state, count in counts.items()}
    shares[most] += cells - sum(shares.values())
    return "".join(MARKS[state] * shares[state] for state in DeviceState if state in shares)


def legend(states: Iterable[DeviceState]) -> str:
    """What the marks mean, of the states that occur."""
    present = {*states}
    return "  ".join(f"{MARKS[state]} {state}" for state in DeviceState if state in present)


def owned_by(owner: Owner | None, nobody: str = EMPTY) -> str:
    """An owner as ``KIND/name``."""
    return f"{owner.kind}/{owner.name}" if owner is not None else nobody


def nameless(what: str, kind: str, notes: Iterable[Words]) -> str:
    """What stands in place of a name: that there is none, or that the kind which has it was not read."""
    return f"({what} not read)" if not_read(kind, notes) else f"(no {what})"
