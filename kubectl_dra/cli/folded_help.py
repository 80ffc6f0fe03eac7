"""The tables, examples and lists of a help, folded to the width of the terminal; its file has lines of 120 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Final

_VERBATIM: Final = "\b\n"
"""What a paragraph begins with whose lines stay as they are."""
_FILE_WIDTH: Final = 120
_HEAD: Final = re.compile(r"( *)(\S+(?: \S+)*?  +)(?=\S)")
"""The first cell of a row of two columns."""
_EXAMPLES: Final = "Examples:"
_WORD: Final = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")


def folded(text: str, width: int) -> str:
    """The help, with lines of at most so many columns in the paragraphs that are not wrapped anyway."""
    return "\n\n".join(_paragraph(paragraph, width) for paragraph in text.split("\n\n"))


def choices_folded(flag: str, width: int) -> str:
    """A flag with its many values, on lines of at most so many columns."""
    if len(flag) <= width or "|" not in flag:
        return flag
    lines = wrap(flag.replace("|", "| "), width - 6, subsequent_indent="    ", break_long_words=False)
    return "\n  ".join(line.replace("| ", "|") for line in lines)


def _paragraph(text: str, width: int) -> str:
    start, verbatim, body = text.partition(_VERBATIM)
    if not verbatim or start.strip():
        return text
    lines = body.split("\n")
    rows = _example(lines, width) if lines[0].strip() == _EXAMPLES else _rows(lines, width)
    return start + verbatim + "\n".join(rows)


def _example(lines: list[str], width: int) -> Iterator[str]:
    """Comments are wrapped, and commands go on behind a backslash, so that they can be pasted."""
    for line in lines:
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        if len(line) <= width:
            yield line
        elif text.startswith("#"):
            yield from _wrapped(text, width, indent, f"{indent}#   ")
        else:
            words = _WORD.findall(text)
            row = indent + words[0]
            for word in words[1:]:
                if len(row) + len(word) + 3 > width:
                    yield f"{row} \\"
                    row = f"{indent}  {word}"
                else:
                    row += f" {word}"
            yield row


def _rows(lines: list[str], width: int) -> Iterator[str]:
    """Each row, its text in its column."""
    row, last, hang = "", "", 0
    for line in lines:
        text = line.lstrip()
        if last and _goes_on(last, hang, line):
            row, last = f"{row} {text}", line
            continue
        if last:
            yield from _row(row, hang, width)
        head = _HEAD.match(line)
        row, last, hang = line, line, len(head[0]) if head else len(line) - len(text)
    yield from _row(row, hang, width)


def _goes_on(last: str, hang: int, line: str) -> bool:
    """Whether a line is the rest of a row that was too long for the file."""
    text = line.lstrip()
    full = len(last) + 1 + len(text.split(" ")[0]) > _FILE_WIDTH
    return full and len(line) - len(text) == hang and _HEAD.match(line) is None


def _row(row: str, hang: int, width: int) -> list[str]:
    """The lines of a row, of which the head stays as it is."""
    lines = _wrapped(row[hang:], width - hang)
    return [(row[:hang] if number == 0 else " " * hang) + line for number, line in enumerate(lines)] or [row]


def _wrapped(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """The text with its words whole."""
    return wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
