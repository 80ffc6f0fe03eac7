"""The keys of the screen, once: bindings, the line at the bottom and the page of ``?`` are made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from rich.text import Text

from kubectl_dra.ui.tables import ClusterView
from kubectl_dra.ui.worker import BackgroundWorker, ScreenSource

T = TypeVar("T")


class ScreenKey(NamedTuple):
    """What a key is called and what it does; ``short`` is for the line at the bottom."""

    name: str
    does: str
    short: str = ""
    writes: bool = False


EVERYWHERE: Final = (
    ScreenKey("?", "show the keys", "keys"),
    ScreenKey("q", "end", "end"),
    ScreenKey("Esc", "clear the filter, or go back to where you came from", "back"),
    ScreenKey("r", "read again now"),
    ScreenKey("n", "show the notes: what was not seen, and what is assumed"),
)
TABLES: Final = (
    ScreenKey("1 2 3 4", "fleet, pending, claims, devices; Tab and Shift+Tab turn", "table"),
    ScreenKey("Enter", "open: explain a pod or claim, show a device, list what a node has", "open"),
    ScreenKey("/", "filter: rows with all of the words; =word stands alone", "filter"),
    ScreenKey(":", "go to nodes, classes, owners, pods, claims, ...; :ns NAME or all", "go to"),
    ScreenKey("s", "sort by the next column; S: the other way round", "sort"),
    ScreenKey("b", "count the fleet by node, class, namespace or owner", "count by"),
)
ROW: Final = (
    ScreenKey("d", "describe: the object as YAML"),
    ScreenKey("l", "the commands that show the logs of its drivers"),
    ScreenKey("y", "copy the suggested command; again: the next one", "copy command"),
)
POD: Final = (
    ScreenKey("w", "what if something were different? As --what-if of explain", "what if"),
    ScreenKey("f", "on an answer: all that is behind it, or the short answer", "full"),
)
DEVICE: Final = (
    ScreenKey("t", "taint the device: says whom it hits, and asks", "taint", writes=True),
    ScreenKey("u", "take back the taints of kubectl dra: says which, and asks", "untaint", writes=True),
)
CONFIRM: Final = (ScreenKey("y", "yes, write it", "write it"),)
ALL: Final = (
    ("Everywhere", EVERYWHERE),
    ("On the tables", TABLES),
    (
        "On a row, and on what it opens",
        (
            *ROW,
            *POD,
            ScreenKey("t u", "taint the device, take it back: says whom it hits, and asks"),
        ),
    ),
)


def line(*groups: Sequence[ScreenKey], source: ScreenSource | None = None) -> Text:
    """Keys with their short words, for the bottom of a screen."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for key in (key for group in groups for key in group if key.short):
        if key.writes and source is not None and not source.live:
            continue
        text.append(f"{'  ' if text else ''}{key.name}", "bold").append(f" {key.short}")
    return text


def page() -> Text:
    """All keys with what they do."""
    text = Text()
    for title, keys in ALL:
        text.append(f"{title}\n", "bold")
        for key in keys:
            text.append(f"  {key.name:9}", "bold").append(f"{key.does}\n")
    return text


# What a page over the tables needs of the application.


class ScreenHost(Protocol):
    """The application; ``cluster_view`` is the newest one of the cluster, ``tell`` has something done in its thread."""

    source: ScreenSource
    worker: BackgroundWorker
    cluster_view: ClusterView | None

    def tell(self, do: Callable[[], None]) -> None:
        """Have something done in the screen's own thread."""

    def compute(self, work: Callable[[], T], done: Callable[[T | None, str], None]) -> None:
        """Have something worked out in the worker's thread, and its result, or why there is none, told in this one."""
