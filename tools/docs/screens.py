"""The pictures of ``docs/ui.md``, made by the screen itself: ``python -m tools.docs.screens docs/images``."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.event_loop import ran
from tools.screen import Person, before, example

COLUMNS, ROWS = 96, 20
SHOWN: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "ui-fleet.svg": ((), ("1 of 4",)),
    "ui-explain.svg": (("2", "enter"), ("pod/serve-0 of namespace ml", "lower count to 1 (in a new template)")),
}
"""Each file: the keys that lead to the picture, and words that are in sight then."""
_FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_IDS: Final = re.compile(r"terminal-\d+")


def pictures() -> dict[str, str]:
    """Every picture by its name. They load nothing from elsewhere."""
    return ran(_pictures())


async def _pictures() -> dict[str, str]:
    found = {}
    async with before(example("mixed-fleet"), COLUMNS, ROWS) as person:
        await person.sees("2 Pending 1", "saved")
        for name, (keys, words) in SHOWN.items():
            await person.press(*keys)
            await person.sees(*words)
            found[name] = await _settled(person)
    return found


async def _settled(person: Person) -> str:
    """The picture once it does not change any more."""
    before, drawn = "", person.screens.export_screenshot()
    while before != drawn or "explaining" in person.text:
        await asyncio.sleep(0.3)
        before, drawn = drawn, person.screens.export_screenshot()
    drawn = _FONTS.sub("", drawn).replace("Fira Code", "DejaVu Sans Mono")
    return "".join(f"{line.rstrip()}\n" for line in _IDS.sub("t", drawn).splitlines() if line.strip())


def main(folder: Path) -> None:
    """Write them."""
    for name, drawn in pictures().items():
        (folder / name).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
