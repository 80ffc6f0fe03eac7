"""What the kubelet, drivers, queues and other schedulers say, and what it means: in ``messages/``, read when needed.

A pattern is RE2 and searched in the message, so that no text takes long. Each entry has an example, which is its test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.data.drivers import parsed

FOLDER: Final = Path(__file__).with_name("messages")
KUBELET: Final = "kubelet"
ANY: Final = "any"
LAYERS: Final = ("KAI", "Kueue", "Volcano")
"""Who else says something: queues and schedulers."""
LONGEST: Final = 16_384
"""Characters of a message that are searched: those of an event have at most 1,024, last words 4,096."""
_LONGEST_PART: Final = 120


class KnownMessage(Struct, frozen=True):
    """A message: ``says`` are the drivers that write it, or KUBELET, ANY driver, or one of LAYERS.

    ``means``, ``do`` and ``gate``, the feature gate that it is about, have parts of the message in braces. ``since``
    and ``fixed`` are releases of whoever says it, ``until`` the last that has it; ``known`` is the number of a defect
    of Kubernetes, or OWNER/NAME#NUMBER of a driver's. ``normal``: it passes by itself. ``generic``: another entry says
    more, if one fits.
    """

    pattern: str
    says: tuple[str, ...]
    means: str
    do: str
    example: str
    since: str = ""
    until: str = ""
    fixed: str = ""
    gate: str = ""
    known: str = ""
    normal: bool = False
    generic: bool = False


class Understood(Struct, frozen=True):
    """A message that is known, with its own words in place."""

    entry: KnownMessage
    means: str
    do: str
    gate: str = ""

    @property
    def url(self) -> str:
        """Where the defect is described; empty if it is none."""
        return issue_url(self.entry.known)


def issue_url(known: str) -> str:
    """Where OWNER/NAME#NUMBER, or a NUMBER of Kubernetes, is described; empty for nothing."""
    place, _, number = known.rpartition("#")
    return f"https://github.com/{place or 'kubernetes/kubernetes'}/issues/{number}" if known else ""


@cache
def known_messages() -> tuple[KnownMessage, ...]:
    """All entries: those of the drivers, by file, and the kubelet's last."""
    files = sorted(FOLDER.glob("*.yaml"), key=lambda file: (file.stem in (KUBELET,), file.stem == ANY, file.stem))
    return tuple(entry for file in files for entry in _entries(parsed(file.read_text("utf-8"))))


def _entries(raw: Mapping[str, Any]) -> Iterator[KnownMessage]:
    says = tuple(raw["says"].split())
    for entry in raw["messages"]:
        yield KnownMessage(says=says, **entry)


@cache
def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def understood(text: str, drivers: Collection[str] = ()) -> Understood | None:
    """What a message means; None if it is not known.

    Of several entries that fit, one of these ``drivers`` counts more than the kubelet's, and that more than one of a
    driver that has nothing to do with it.
    """
    text = text[:LONGEST]
    best: tuple[int, Understood] | None = None
    for entry in known_messages():
        rank = _rank(entry, drivers)
        if best is not None and rank >= best[0]:
            continue
        match = _compiled(entry.pattern).search(text)
        if match is not None:
            parts = {name: _short(value) for name, value in match.groupdict().items()}
            best = rank, Understood(entry, *(_filled(text, parts) for text in (entry.means, entry.do, entry.gate)))
    return best[1] if best is not None else None


def _rank(entry: KnownMessage, drivers: Collection[str]) -> int:
    if entry.generic:
        return 4
    if any(name in drivers for name in entry.says):
        return 0
    if drivers:
        return 1 if entry.says[0] in (KUBELET, ANY) else 2
    return 1 if entry.says[0] not in (KUBELET, ANY) else 2


def _short(value: str | None) -> str:
    text = (value or "").strip().rstrip(",.;")
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}..."


def _filled(template: str, parts: Mapping[str, str]) -> str:
    for name, value in parts.items():
        template = template.replace(f"{{{name}}}", value)
    return template
