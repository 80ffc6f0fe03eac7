"""What the kubelet, drivers, queues and other schedulers say, and what it means: in ``messages/``, read when needed.

A pattern is RE2 and searched in the message, so that no text takes long. Each entry has an example, which is its test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.data.drivers import parsed


class Speaker(StrEnum):
    """A writer of events and conditions about pods: its name for people, which the files of messages use as well."""

    KUBE_SCHEDULER = "kube-scheduler"
    KUBELET = "kubelet"
    CLUSTER_AUTOSCALER = "cluster-autoscaler"
    KARPENTER = "Karpenter"
    KAI = "KAI"
    KUEUE = "Kueue"
    VOLCANO = "Volcano"
    YUNIKORN = "YuniKorn"
    KUBERNETES = "Kubernetes"
    """A controller, or nobody known."""


_COMPONENTS: Final = {
    "default-scheduler": Speaker.KUBE_SCHEDULER,
    "karpenter": Speaker.KARPENTER,
    "kai-scheduler": Speaker.KAI,
    "binder": Speaker.KAI,
    "volcano": Speaker.VOLCANO,
    "yunikorn": Speaker.YUNIKORN,
    **{speaker.value: speaker for speaker in (Speaker.KUBELET, Speaker.CLUSTER_AUTOSCALER)},
}
"""By the component that an event names, which a scheduler's is called as in ``spec.schedulerName``."""


def speaker_of(component: str) -> Speaker:
    """The speaker that has this name in its events."""
    return _COMPONENTS.get(component, Speaker.KUBERNETES)


FOLDER: Final = Path(__file__).with_name("messages")
KUBELET: Final = Speaker.KUBELET
ANY: Final = "any"
CLUSTER_AUTOSCALER: Final = Speaker.CLUSTER_AUTOSCALER
KARPENTER: Final = Speaker.KARPENTER
AUTOSCALERS: Final = (CLUSTER_AUTOSCALER, KARPENTER)
COMING: Final = "coming"
LATER: Final = "later"
NEVER: Final = "never"
UNKNOWN: Final = "unknown"
DRIVER: Final = "driver"
"""Result of an autoscaler's message: a node, perhaps one later, none until something changes, none because it does
not know that a new one would have such devices; or one is there and its driver is late.
"""
LAYERS: Final = (*AUTOSCALERS, Speaker.KAI, Speaker.KUEUE, Speaker.VOLCANO, Speaker.YUNIKORN)
"""The other speakers: autoscalers, queues and schedulers."""
LONGEST: Final = 16_384
"""Characters of a message that are searched: those of an event have at most 1,024, last words 4,096."""
_LONGEST_PART: Final = 120


class KnownMessage(Struct, frozen=True):
    """A message: ``says`` are the drivers that write it, or KUBELET, ANY driver, or one of LAYERS.

    ``means``, ``do`` and ``gate``, the feature gate that it is about, have parts of the message in braces. ``since``
    and ``fixed`` are releases of whoever says it, ``until`` the last that has it; ``known`` is the number of a defect
    of Kubernetes, or OWNER/NAME#NUMBER of a driver's. ``normal``: it passes by itself. ``generic``: another entry says
    more, if one fits. ``maps``: about deviceClassMappings of Kueue's configuration. Of an autoscaler's ``scale`` says
    what comes of it, and ``why`` that is, as a part of a sentence.
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
    maps: bool = False
    scale: str = ""
    why: str = ""


class Understood(Struct, frozen=True):
    """A message that is known, with its own words in place."""

    entry: KnownMessage
    means: str
    do: str
    gate: str = ""
    why: str = ""

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
    return tuple(known for file in files for known in _entries(parsed(file.read_text("utf-8"))))


def _entries(raw: Mapping[str, Any]) -> Iterator[KnownMessage]:
    says = tuple(raw["says"].split())
    for row in raw["messages"]:
        yield KnownMessage(says=says, **row)


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
    for known in known_messages():
        if drivers and known.scale and not any(name in drivers for name in known.says):
            # No driver says what autoscalers do.
            continue
        rank = _rank(known, drivers)
        if best is not None and rank >= best[0]:
            continue
        if (meaning := _in(known, text)) is not None:
            best = rank, meaning
    return best[1] if best is not None else None


def all_understood(text: str, says: str) -> list[Understood]:
    """All that is known in a message of one speaker, in the order of its entries: it may give several reasons."""
    text = text[:LONGEST]
    return [meaning for known in known_messages() if says in known.says and (meaning := _in(known, text)) is not None]


def _in(known: KnownMessage, text: str) -> Understood | None:
    match = _compiled(known.pattern).search(text)
    if match is None:
        return None
    parts = {name: _short(value) for name, value in match.groupdict().items()}
    return Understood(known, *(_filled(text, parts) for text in (known.means, known.do, known.gate, known.why)))


def _rank(known: KnownMessage, drivers: Collection[str]) -> int:
    if known.generic:
        return 4
    if any(name in drivers for name in known.says):
        return 0
    if drivers:
        return 1 if known.says[0] in (KUBELET, ANY) else 2
    return 1 if known.says[0] not in (KUBELET, ANY) else 2


def _short(value: str | None) -> str:
    text = (value or "").strip().rstrip(",.;")
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]}..."


def _filled(template: str, parts: Mapping[str, str]) -> str:
    for name, value in parts.items():
        template = template.replace(f"{{{name}}}", value)
    return template
