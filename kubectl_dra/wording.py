"""Building blocks of sentences: numbers with nouns, short lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def amount(count: int, noun: str = "device") -> str:
    """``1 device``, ``2 devices``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def are(count: int) -> str:
    """``is`` for one, ``are`` for any other number."""
    return "is" if count == 1 else "are"


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
    """A kind with ``a`` or ``an``, as it is spoken."""
    spelled = kind.startswith(("HTTP", "LLM", "MPI", "XGBoost"))
    return f"{'an' if spelled or kind[:1] in 'AEIO' else 'a'} {kind}"
