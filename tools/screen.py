"""The screen in a test: keys in, and what a person would see as lines of text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from kubectl_dra.cli.flags import UiFlags
from kubectl_dra.cli.ui import SavedCluster
from kubectl_dra.ui.app import Screens
from kubectl_dra.ui.worker import ScreenSource

EXAMPLES = Path(__file__).parents[1] / "examples" / "explain"
SECONDS = 30.0
NAMED = {" ": "space", "/": "slash", "?": "question_mark", "=": "equals_sign", ":": "colon", "-": "minus"}


class Person:
    """Somebody before the screen."""

    def __init__(self, screens: Screens, pilot: Pilot[None]) -> None:
        self.screens = screens
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys by their names, or as what they type.

        Not by the pilot, which waits after each until the whole process is idle.
        """
        for key in keys:
            name = NAMED.get(key, key)
            self.screens.post_message(events.Key(name, key if len(key) == 1 else None))
            await self._pilot.pause(0)

    async def type(self, text: str) -> None:
        """Type a text."""
        await self.press(*text)

    @property
    def lines(self) -> list[str]:
        """The lines in sight."""
        return [strip.text.rstrip() for strip in self.screens.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        """All that is in sight."""
        return "\n".join(self.lines)

    async def sees(self, *words: str) -> str:
        """Wait until all of these are in sight; gives the text. Raises AssertionError with it."""
        return await self.until(lambda: all(word in self.text for word in words), f"{words} in sight")

    async def until(self, holds: Callable[[], bool], what: str = "it", seconds: float = SECONDS) -> str:
        """Wait until something holds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not holds():
            assert loop.time() < end, f"{what} did not come:\n{self.text}"
            await asyncio.sleep(0.01)
        return self.text


def saved(*paths: str | Path) -> ScreenSource:
    """A saved cluster."""
    return SavedCluster(UiFlags(snapshots=tuple(map(str, paths))))


def example(name: str) -> ScreenSource:
    """The cluster of an example."""
    return saved(EXAMPLES / name / "cluster.yaml")


@asynccontextmanager
async def before(source: ScreenSource, columns: int = 100, rows: int = 30) -> AsyncIterator[Person]:
    """A person before a screen of this size."""
    screens = Screens(source)
    async with screens.run_test(size=(columns, rows)) as pilot:
        yield Person(screens, pilot)
