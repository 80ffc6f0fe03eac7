"""Text for a terminal or a pipe: a few styles, wrapped lines, and colour only if wanted."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Final, TextIO

from kubectl_dra.safe_output import one_line, painted
from kubectl_dra.text import unmarked, whole_number

# Whether a terminal shows hyperlinks (OSC 8): others may print what they do not understand.

_PROGRAMS: Final = frozenset(("Hyper", "Tabby", "WezTerm", "ghostty", "iTerm.app", "mintty", "rio", "vscode"))
"""What TERM_PROGRAM says in them."""
_TERMINALS: Final = ("alacritty", "contour", "foot", "xterm-ghostty", "xterm-kitty")
"""Prefixes of their TERM."""
_VARIABLES: Final = ("DOMTERM", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "WT_SESSION")
"""Set by nobody else."""
_MULTIPLEXERS: Final = ("screen", "tmux")
_VTE: Final = 5000
"""VTE 0.50, the first with links. Terminals of GNOME, Xfce, MATE and others are made of it."""


def shows_links(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether links may be written; FORCE_HYPERLINK decides about a terminal that is not known (0: none)."""
    if not stream.isatty():
        return False
    forced = environment.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    term = environment.get("TERM", "")
    # A multiplexer passes links on only where it is set up for it, and its variables tell of the terminal around it.
    if term == "dumb" or term.startswith(_MULTIPLEXERS) or environment.get("TMUX") or environment.get("STY"):
        return False
    vte = environment.get("VTE_VERSION", "")
    return (
        environment.get("TERM_PROGRAM") in _PROGRAMS
        or term.startswith(_TERMINALS)
        or any(environment.get(name) for name in _VARIABLES)
        or (whole_number(vte) or 0) >= _VTE
    )


PIPE_WIDTH = 110
PROSE_WIDTH = 120
"""Sentences are not wider than this even where there is room: longer lines are hard to follow."""
MIN_WIDTH = 40
# What stands for a blank that must not become the end of a line; textwrap knows it as a letter.
_GLUE = "\x1f"
_BREAK = ",\x1e "
"""A comma of a long word, after which a line may end."""
_QUOTED = re.compile(r'"[^"\n]{1,40}"')
_COUNTED = re.compile(r"(?<![\w.:/-])(\d+(?:,\d{3})*) (?=[A-Za-z])")


class Sheet(StringIO):
    """Text that is kept to be shown elsewhere, wrapped at a number of columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns


class Painter:
    """Writes text in rich's styles; lines are wrapped, never cut.

    ``limit`` is the terminal's width or COLUMNS, and None in a pipe without COLUMNS. There prose is still
    wrapped at ``width``, but output that programs read line by line (tables, messages) is not. ``lines_put`` counts
    the lines. ``draws``: somebody looks at it, so that pictures help. ``bare``: of tables only the rows are wanted,
    each on a line with all columns, and nothing around them.
    """

    def __init__(self, stream: TextIO | None = None, color: str = "auto", *, bare: bool = False) -> None:
        self.stream = stream or sys.stdout
        self.limit = None if bare else limit_of(self.stream)
        self.width = self.limit or PIPE_WIDTH
        self.lines_put = 0
        self.bare = bare
        self.draws = self.stream.isatty() and not bare
        self._styled = color == "always" or (color == "auto" and _wanted(self.stream.isatty()))

    def write(self, *parts: str | tuple[str, str]) -> None:
        """Write one line. A part may be (text, style) with a style such as ``bold red``, or of ``linked``."""
        self.put(self.line(*parts))

    def paragraph(self, text: str, indent: str = "", first: str | None = None, style: str = "") -> None:
        """Write wrapped text; ``first`` starts the first line instead of ``indent``."""
        self.put(self.lines(text, indent, first, style))

    def put(self, painted_text: str) -> None:
        """Write what ``line`` and ``lines`` made: thousands of them at once take half of the time."""
        self.lines_put += painted_text.count("\n")
        painted(painted_text, self.stream)

    def line(self, *parts: str | tuple[str, str]) -> str:
        """What ``write`` writes."""
        if self._styled:
            out = "".join(
                [one_line(part) if isinstance(part, str) else self._style(one_line(part[0]), part[1]) for part in parts]
            )
        else:
            out = one_line("".join([part if isinstance(part, str) else part[0] for part in parts]))
        return out.rstrip() + "\n"

    def lines(self, text: str, indent: str = "", first: str | None = None, style: str = "") -> str:
        """What ``paragraph`` writes."""
        lead = indent if first is None else first
        width = min(self.width, PROSE_WIDTH)
        begin, *rest = wrap(text, width - len(indent), width - len(lead))
        out = self.line(lead, (begin, style))
        return out + "".join([self.line(indent, (line, style)) for line in rest]) if rest else out

    def heading(self, label: str, text: str = "", indent: str = "  ", first: str = "", style: str = "bold") -> None:
        """Write a heading of which only ``label`` has the style; ``text`` follows it, and both are wrapped."""
        width = min(self.width, PROSE_WIDTH)
        head, *rest = wrap(f"{label}{text}", width - len(indent), width - len(first))
        self.write(first, (head[: len(label)], style), head[len(label) :])
        for line in rest:
            self.write(indent, line)

    def sentence(self, text: str, indent: str = "  ", first: str = "", style: str = "") -> None:
        """Write a message: one line if programs read it, else wrapped with later lines at ``indent``."""
        if self.limit is None:
            self.write(first, (text, style))
        else:
            self.paragraph(text, indent, first, style)

    def _style(self, text: str, style: str) -> str:
        if not text or not style:
            return text
        from rich.color import ColorSystem
        from rich.style import Style

        parsed = Style.parse(style)
        if parsed.link and not shows_links(self.stream):
            parsed = parsed.update_link(None)
        return parsed.render(text, color_system=ColorSystem.STANDARD)


def linked(style: str, url: str) -> str:
    """A style whose text leads to a page, on terminals that show links."""
    return f"{style} link {url}"


def wrap(text: str, width: int, first: int | None = None) -> list[str]:
    """Lines of at most ``width`` characters, the first of at most ``first``. Never empty.

    A longer word is broken after its commas only, and a few words in double quotes, which may be a value to search
    for, stay together as a number with its noun does.
    """
    text = one_line(text)
    lead = width if first is None else first
    if len(text) <= lead and text.isprintable() and text == text.strip(" "):
        return [text]
    glued = _QUOTED.sub(lambda match: match[0].replace(" ", _GLUE), text)
    glued = _COUNTED.sub(rf"\1{_GLUE}", glued)
    if any(len(word) > width for word in glued.split(" ")):
        glued = " ".join(word.replace(",", _BREAK) if len(word) > width else word for word in glued.split(" "))
    # The first line is made as long as the others by what is taken away again.
    short = max(0, max(20, width) - max(20, lead))
    more = max(0, max(20, lead) - max(20, width))
    lines = textwrap.wrap(
        glued,
        max(20, width) + more,
        initial_indent="\x00" * short,
        subsequent_indent="\x00" * more,
        break_long_words=False,
        break_on_hyphens=False,
    )
    whole = (f"{line} ".lstrip("\x00").replace(_BREAK, ",").removesuffix(" ") for line in lines)
    return [line.replace(_GLUE, " ") for line in whole] or [""]


def limit_of(stream: TextIO) -> int | None:
    """The number of columns: a sheet's own, else COLUMNS, else the terminal's; None in a pipe."""
    if isinstance(stream, Sheet):
        return max(MIN_WIDTH, stream.columns)
    columns_set = os.environ.get("COLUMNS", "")
    if columns := whole_number(columns_set):
        return max(MIN_WIDTH, columns)
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(MIN_WIDTH, columns or PIPE_WIDTH)


def tell(text: str, stream: TextIO | None = None, more: Sequence[str] = ()) -> None:
    """Write a message to stderr, wrapped for people; the lines in ``more`` follow as they are."""
    out = Painter(stream or sys.stderr, "never")
    out.sentence(text)
    for line in more:
        out.write(line)
    out.stream.flush()


def _wanted(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return terminal and os.environ.get("TERM") != "dumb"


# A page of the documentation as text: without Markdown's marks, prose wrapped, code and tables as they are.

_LEAD: Final = re.compile(r"(?:[-*>]|\d+\.) ")
_HEADING: Final = re.compile(r"(?P<level>#+) (?P<title>.+)")
_COMMENT: Final = "<!--"


def write_page(page: str, color: str = "auto", stream: TextIO | None = None) -> None:
    """Write the page: headings in bold on a terminal that shows it, prose wrapped where there is a width."""
    out = Painter(stream, color)
    fenced = False
    for line in page.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            out.write(f"  {line}")
        elif heading := _HEADING.fullmatch(line):
            title = unmarked(heading["title"])
            # As kubectl explain does it.
            out.sentence(title if heading["level"] == "#" else title.upper(), "", style="bold")
        elif line.startswith("|"):
            out.write(unmarked(line))
        elif not line.startswith(_COMMENT):
            lead = _LEAD.match(line)
            out.sentence(unmarked(line), " " * len(lead[0]) if lead else "")
