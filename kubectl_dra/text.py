"""Building blocks of sentences: numbers with nouns, short lists, names that may be meant, and addresses of pages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

_VOWELS: Final = "aeiou"


def amount(count: int, noun: str = "device") -> str:
    """``1 device``, ``2 devices``, ``3 DeviceClasses``."""
    end = "" if count == 1 else "es" if noun.endswith(("s", "x", "ch", "sh")) else "s"
    if end == "s" and noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{end}"


def out_of(count: int, total: int, noun: str) -> str:
    """So many of all, or all: ``2 of 5 files``, ``5 files``."""
    return amount(total, noun) if count == total else f"{count:,} of {amount(total, noun)}"


def are(count: int) -> str:
    """``is`` for one, ``are`` for any other number."""
    return "is" if count == 1 else "are"


def whole_number(text: str, digits: int = 18) -> int | None:
    """The number that ASCII digits stand for, of which so many may follow the leading zeros; None for any other text.

    ``isdigit`` takes ``²`` for a digit, and ``int`` neither reads that nor more than 4300 digits.
    """
    if not text.isascii() or not text.isdigit():
        return None
    significant = text.lstrip("0")
    return int(significant or "0") if len(significant) <= digits else None


def did_you_mean(names: Sequence[str]) -> str:
    """The question after a name that nothing has; of several, whether it was one of them. Empty without any."""
    return f"did you mean {either(names)}?" if names else ""


def did_you_mean_or_known(name: str, known: Collection[str]) -> str:
    """What to say after a name that nothing has: the names that are like it, else the first of those that there are."""
    return did_you_mean(nearest(name, known)) or f"there are: {some(sorted(known), 3) or 'none'}"


def either(names: Sequence[str]) -> str:
    """Several names, of which one is meant."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def ended(text: str) -> str:
    """The text with its full stop, unless it ends with a question."""
    return text if text.endswith("?") else f"{text}."


def some(names: Sequence[str], limit: int = 4) -> str:
    """The first names, and how many more there are."""
    return listed(names[:limit], len(names))


def listed(names: Sequence[str], total: int) -> str:
    """The names shown, and how many more there are."""
    return ", ".join(names) + (f" and {total - len(names):,} more" if total > len(names) else "")


def join(names: Iterable[str]) -> str:
    """All names, separated by commas."""
    return ", ".join(names)


def with_article(kind: str) -> str:
    """A kind, or any other word, with ``a`` or ``an``, as it is spoken."""
    spelled = kind.startswith(("HTTP", "LLM", "MPI", "XGBoost"))
    return f"{'an' if spelled or kind[:1] in 'AEIOaeio' else 'a'} {kind}"


_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_CODE: Final = re.compile(r"`([^`]+)`")
_EMPHASIS: Final = re.compile(r"\*\*([^*]+)\*\*")


def unmarked(text: str) -> str:
    """A text without Markdown's marks: of a link its words, and where it leads if that is an address."""
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else link[1], text)
    return _EMPHASIS.sub(r"\1", _CODE.sub(r"\1", text))


# Suggests names that a user may have meant.

_LONGEST: Final = 253
"""Characters of the longest name there is in Kubernetes: what is longer is no misspelling of a name."""


def nearest(name: str, candidates: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The candidates most similar to the name, best first: for "did you mean".

    Case does not matter. A candidate is near if one contains the other, or if few enough letters differ (a
    third of the longer one, at least one). A one-letter name is never a misspelling of another.
    """
    wanted = name.lower()
    scored: list[tuple[float, str]] = []
    for candidate in dict.fromkeys(other for other in candidates if other != name):
        score = _distance(wanted, candidate.lower())
        if score is not None:
            scored.append((score, candidate))
    scored.sort()
    return tuple(candidate for _, candidate in scored[:limit])


def _distance(wanted: str, candidate: str) -> float | None:
    """0 for equal names, higher the more they differ; None if they are not alike."""
    if wanted == candidate:
        return 0.0
    if not wanted or not candidate:
        return None
    longer = max(len(wanted), len(candidate))
    edits = edit_distance(wanted, candidate, max(1, longer // 3)) if 1 < longer <= _LONGEST else None
    best: float | None = None if edits is None else float(edits)
    # Half a name that is contained is a better hint than many edits.
    if min(len(wanted), len(candidate)) >= 3:
        if candidate.startswith(wanted) or wanted.startswith(candidate):
            best = min(1.5 if best is None else best, 1.5)
        elif wanted in candidate or candidate in wanted:
            best = min(2.5 if best is None else best, 2.5)
    return best


def edit_distance(left: str, right: str, bound: int) -> int | None:
    """Insertions, deletions, replacements and swaps of neighbours between two texts; None above the bound."""
    # An edit adds or takes one letter, or does both.
    if abs(len(left) - len(right)) > bound or len(set(left) ^ set(right)) > 2 * bound:
        return None
    far = bound + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, char in enumerate(left, 1):
        # Outside this band more than the bound is needed in any case.
        first, last = max(1, i - bound), min(len(right), i + bound)
        following = [far] * (len(right) + 1)
        following[0] = i
        for j in range(first, last + 1):
            other = right[j - 1]
            cost = row[j - 1] + (char != other)
            if row[j] < cost:
                cost = row[j] + 1
            if following[j - 1] < cost:
                cost = following[j - 1] + 1
            if i > 1 and j > 1 and char == right[j - 2] and left[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            following[j] = cost
        if i > bound and min(following[first - 1 : last + 1]) > bound:
            return None
        before, row = row, following
    return row[-1] if row[-1] <= bound else None


@lru_cache(maxsize=4096)
def slip_of(name: str, names: tuple[str, ...]) -> str:
    """The name that was probably meant by a misspelled one; empty if there is none."""
    bound = _bound(name)
    near = [other for other in names if abs(len(other) - len(name)) <= bound and is_slip(name, other)]
    return next(iter(nearest(name, near)), "")


def is_slip(name: str, other: str) -> bool:
    """Whether two names differ only by a slip: a letter or two, not another word."""
    if len(name) < 4 > len(other):
        # c is not a misspelling of j, nor cpu of gpu.
        return False
    first, second = name.partition(".")[0], other.partition(".")[0]
    if "." in name and first != second and len(first) == len(second) and sorted(first) != sorted(second):
        # cpu.example.com is not a misspelling of gpu.example.com.
        return False
    if any(char.isdigit() for char in name + other) and _digits(name) != _digits(other):
        return False
    return name != other and edit_distance(name, other, _bound(name)) is not None


def _bound(name: str) -> int:
    return 1 if len(name) < 8 else 2


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


# Where the project's pages are on the web.

REPOSITORY: Final = "https://github.com/kubectl-dra/kubectl-dra"
DOCS: Final = f"{REPOSITORY}/blob/main/docs"
"""The base of all links to the documentation: its pages, as they are in the repository."""


def page_of(folder: str, code: str) -> str:
    """The address of a code's page in ``causes``, ``rules`` or ``changes``."""
    return f"{DOCS}/{folder}/{code}.md"


def page_of_causes() -> str:
    """The list of all causes."""
    return f"{DOCS}/causes/README.md"


def page_of_cause(code: str) -> str:
    """The page of a cause of ``explain``."""
    return page_of("causes", code)
