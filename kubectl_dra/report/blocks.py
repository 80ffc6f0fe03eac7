"""The parts that a report is made of. ``blocks_text`` writes them in full or in brief, ``blocks_html`` as a page."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from kubectl_dra.command import CURRENT, LIVE, ClusterFlags, CommandEffect, CommandLine
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import TraceStep
from kubectl_dra.text import amount, ended

MAX_FOLDED: Final = 200
"""Entries that a page shows below a fold."""
IN_JSON: Final = " (all of them with -o json)"
"""Where text finds the entries that it leaves out."""


class WordMark(Enum):
    """What a few words are: in text only the first words of a paragraph show it."""

    CAUSE = auto()
    """The code of a cause, which leads to its page."""
    STRONG = auto()
    LABEL = auto()
    """Strong on a page, as everything else in text."""


class Marked(NamedTuple):
    """Words that are more than text."""

    text: str
    mark: WordMark


Spans: TypeAlias = tuple[str | Marked, ...]


class Tone(Enum):
    """What a sentence means to the reader."""

    PLAIN = auto()
    GOOD = auto()
    WARNING = auto()
    BAD = auto()
    QUIET = auto()


TONES: Final = {
    Verdict.ALLOCATED: Tone.GOOD,
    Verdict.SCHEDULABLE: Tone.GOOD,
    Verdict.PARTLY: Tone.WARNING,
    Verdict.UNSCHEDULABLE: Tone.BAD,
    Verdict.NOT_STARTING: Tone.BAD,
    Verdict.UNDETERMINED: Tone.WARNING,
}


class Brief(NamedTuple):
    """Rank of a block in brief text: always (0), else the lower first while there is room; never for None.

    It is said whole or not at all. ``spans`` stand for those of the block where there are any. ``is_note``: left out,
    it counts as a note. What has no brief form is left out as evidence; what is never said (None) stands elsewhere.
    """

    rank: int | None = 0
    spans: Spans = ()
    hang: int = 2
    is_note: bool = False


SAID: Final = Brief(None)
"""Of a block whose words brief text has at another place."""


class Answer(Struct, frozen=True):
    """The first sentence: the subject with the verdict, and why; the second is empty where the first says it all."""

    lead: str
    reason: str
    tone: Tone

    @property
    def text(self) -> str:
        """The sentence."""
        return ended(f"{self.lead}: {self.reason}" if self.reason else self.lead)


class Para(Struct, frozen=True):
    """A sentence or two; further lines are indented by ``hang``. Without ``full`` only brief text has it."""

    spans: Spans
    tone: Tone = Tone.PLAIN
    hang: int = 0
    brief: Brief | None = None
    full: bool = True


class Fact(Struct, frozen=True):
    """What a fact is about, and its value, which may be an expression."""

    about: str
    value: str
    is_cel: bool = False
    brief: Brief | None = None


class Facts(Struct, frozen=True):
    """What something rests on."""

    facts: tuple[Fact, ...]


_INPUT: Final = "with the same standard input"
"""Note on a command that reads the same standard input as the question."""


class ShellCommand(Struct, frozen=True):
    """Commands, each to be run only if the one before it worked.

    ``elsewhere``: the question was asked of a snapshot, and they are for the cluster that it was made of. ``has_rest``:
    they show what brief text leaves out, which it says before the command. ``shows_place``: they only show what a fix
    is made in, and brief text leaves them out where it has no room for another fix.
    """

    commands: tuple[CommandLine, ...]
    label: str = ""
    elsewhere: bool = False
    has_rest: bool = False
    shows_place: bool = False
    brief: Brief | None = None
    full: bool = True

    @property
    def text(self) -> str:
        """One line for a shell."""
        return " && ".join(map(str, self.commands))

    @property
    def effect(self) -> CommandEffect:
        """What the most harmful of them does."""
        return max((command.effect for command in self.commands), key=[*CommandEffect].index)

    @property
    def warning(self) -> str:
        """What stands before them where they change the cluster."""
        if not self.effect.changes:
            return ""
        return self.effect.warning + (f" ({LIVE})" if self.elsewhere else "")

    @property
    def reads_live(self) -> bool:
        """Whether they show the cluster as it is now to somebody who asked about a snapshot."""
        of_files = ("kubectl", "dra", "lint")
        of_cluster = (
            command for command in self.commands if "--snapshot" not in command.argv and command.argv[:3] != of_files
        )
        return self.elsewhere and not self.effect.changes and any(of_cluster)

    @property
    def reads_input(self) -> bool:
        """Whether they wait for what the question had on standard input."""
        return any("-" in command.argv for command in self.commands)

    @property
    def caution(self) -> str:
        """What is to be known before they are run, on a page, where each command stands by itself; else empty."""
        said = [self.warning or (LIVE if self.reads_live else ""), _INPUT if self.reads_input else ""]
        text = ", ".join(filter(None, said))
        return f"{text[:1].upper()}{text[1:]}"

    @property
    def heading(self) -> str:
        """The label, and what is to be known before they are run."""
        label = f"{self.label}, {_INPUT}" if self.reads_input else self.label
        return f"{label}, {self.warning.lower()}" if self.warning else label


PROVED: Final = ", proved by running the scheduler's steps with them"


class FixOffer(Struct, frozen=True):
    """A change that helps. Brief text lists those that have a ``turn``: ``told``, and the command.

    Where there is no room for all, the lowest ``turn`` comes first. ``own``: it ends the first cause; ``instead``: it
    helps instead of that. Those that help only together (``joint``) are told as one.
    """

    blocks: tuple[Para | ShellCommand, ...]
    told: str = ""
    proved: bool = False
    change: Hashable = ()
    joint: bool = False
    instead: bool = False
    turn: int | None = None
    own: bool = False


def order_of(offers: Sequence[FixOffer]) -> str:
    """The order of fixes, for their heading: what changes nothing may cost more than what it stands before."""
    turns = [offer.turn or 0 for offer in offers]
    return ", the mildest first" if turns == sorted(turns) else ", what changes the cluster last"


class Items(Struct, frozen=True):
    """Entries, each after the ``marker``, ``1. `` being the first of numbers.

    Beyond ``shown`` a page folds them; text says ``rest`` instead, and has them all where that is None.
    """

    items: tuple[tuple[Block, ...], ...]
    marker: str = "- "
    shown: int | None = None
    rest: str | None = None


class FunnelStep(NamedTuple):
    """What is left and lost after a step, the expression that it tests if there is one, and remarks."""

    left: int
    lost: int
    label: str
    expression: str = ""
    remarks: tuple[Items, ...] = ()


class Steps(Struct, frozen=True):
    """Number left after each step; ``note`` is said last. ``fold``: a page shows one line of it at first."""

    label: str
    title: str
    steps: tuple[FunnelStep, ...]
    note: str = ""
    fold: bool = False


class Checks(Struct, frozen=True):
    """Which of many pass: whether, what, and why not. A page has them in its picture."""

    checks: tuple[tuple[bool, str, str], ...]
    rest: str = ""


class TableBlock(Struct, frozen=True):
    """Rows, the first of them the headings; ``left`` are left out, and ``how`` shows them.

    What ``below`` names goes below a row that is too long, first to go first. With ``prose`` the last column is a
    sentence. ``marks`` has for each row a word of ``column``, or none for all of the row, and its style. ``omitted``
    are headings of columns for which there is no room, and ``wider`` shows them. A table ``amid`` sentences is no wider
    than they are, also where no terminal limits it.
    """

    rows: Sequence[tuple[str, ...]]
    below: Sequence[str] = ()
    prose: bool = False
    column: str = ""
    marks: Sequence[tuple[str, str]] = ()
    left: int = 0
    how: str = ""
    omitted: Sequence[str] = ()
    wider: str = ""
    amid: bool = False


class Tree(Struct, frozen=True):
    """An expression with the values of its parts."""

    title: str
    expression: str
    steps: tuple[TraceStep, ...]


class Fold(Struct, frozen=True):
    """What only a page has, folded."""

    title: str
    paras: tuple[Para, ...]


class Section(Struct, frozen=True):
    """Blocks below a heading.

    ``foot``: brief text has it in its last lines. ``beside``: a page has it beside its picture. ``name`` is what a
    page's style calls it.
    """

    title: str
    blocks: tuple[Block, ...]
    note: str = ""
    foot: bool = False
    beside: bool = False
    name: str = ""


Block: TypeAlias = (
    Answer | Para | Facts | ShellCommand | FixOffer | Items | Steps | Checks | TableBlock | Tree | Fold | Section
)


def prose(text: str, tone: Tone = Tone.PLAIN, hang: int = 2) -> Para:
    """A paragraph of nothing but text."""
    return Para((text,), tone, hang)


def shell(commands: Sequence[CommandLine], where: ClusterFlags, label: str = "") -> ShellCommand | Para:
    """Commands to paste, which ask the same cluster; a sentence where a name in them is none."""
    for command in commands:
        if command.misnamed:
            text = f"There is no command to paste: no object can be called {command.misnamed}."
            spans = (Marked(label, WordMark.STRONG), f": {text}") if label else (text,)
            return Para(spans, Tone.QUIET, brief=Brief())
    return ShellCommand(tuple(map(where.asks, commands)), label, where.saved)


def noted(
    notes: Sequence[str],
    beside: Mapping[str, Sequence[CommandLine]] = MappingProxyType({}),
    where: ClusterFlags = CURRENT,
) -> Section:
    """What was assumed or not seen, and the commands ``beside`` notes, which ask the cluster of ``where``."""
    items = ((prose(note, hang=0), *([shell(beside[note], where)] if note in beside else [])) for note in notes)
    return Section("Notes", (Items(tuple(items)),))


def left_out(fixes: int, notes: int, *, evidence: bool = False) -> str:
    """What a short text leaves out, as stands before the command that shows it; empty where that is nothing."""
    parts = [f"{fixes:,} more {'fix' if fixes == 1 else 'fixes'}"] if fixes else []
    if evidence:
        parts.append("evidence" if parts else "more evidence")
    if notes:
        parts.append(amount(notes, "note" if parts else "more note"))
    return ", ".join(parts)


def plain(spans: Spans) -> str:
    """The text alone."""
    return "".join(span if isinstance(span, str) else span.text for span in spans)
