"""What opens over the tables: explanations, what-ifs, devices and their holders, keys; and what lives below them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

import pytest

from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.questions import questions_of
from kubectl_dra.cli.flags import UiFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.ui import SavedCluster
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.errors import ClusterError, InputError
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.color import Sheet
from kubectl_dra.report.explain_blocks import write_text
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.ui.row_list import RowList
from tests.taint.world import claim, device_class, gpu, node, pod, result, slice_of
from tools.screen import EXAMPLES, before, example

OBJECTS = [node("n1"), device_class(), slice_of("n1", gpu("gpu-0"), gpu("gpu-1"))]


def explained(path: Path, name: str, namespace: str, columns: int) -> list[str]:
    """The lines that ``explain`` prints of a pod."""
    asked = ExplainFlags(target=(f"pod/{name}",), namespace=namespace, snapshots=(str(path),))
    (posed,) = questions_of(asked, ConnectionFlags(), [])
    sheet = Sheet(columns)
    invocation = Invocation(where=cluster_flags(asked, ConnectionFlags()))
    found = diagnose(posed.question, posed.snapshot, posed.settings)
    write_text([found], "never", sheet, invocation=invocation)
    return sheet.getvalue().splitlines()


def stripped(lines: Sequence[str]) -> list[str]:
    return [line.strip() for line in lines]


async def test_a_pending_pod_is_explained_as_explain_does() -> None:
    path = EXAMPLES / "mixed-fleet" / "cluster.yaml"
    said = explained(path, "serve-0", "ml", 98)
    async with before(example("mixed-fleet"), 100, 40) as person:
        await person.sees("2 Pending 1")
        await person.press("2", "enter")
        await person.until(lambda: stripped(person.lines[2 : 2 + len(said)]) == stripped(said), "\n".join(said))
        await person.press("f")
        await person.sees("lines 1 to", "46  published by drivers")
        await person.press("escape")
        await person.sees("[2 Pending 1]")


async def test_what_if() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("2 Pending 1")
        await person.press("2", "enter", "w", *"size=2", "enter")
        await person.sees('--what-if "size=2" is not understood')
        # The prompt stays, to be corrected.
        await person.press(*["backspace"] * 6, *"count=1", "enter")
        await person.sees("could be scheduled with this change", "supposed: count=1")
        await person.press("w", *["backspace"] * 7, "enter")
        await person.sees("cannot be scheduled")


async def test_a_device_says_who_holds_it() -> None:
    async with before(example("mixed-fleet"), 100, 40) as person:
        await person.sees("46 devices")
        await person.press("4", "/", *"H100", "enter", "enter")
        text = await person.sees("device gpu.nvidia.com/h100-1/gpu-0", "Held by 1 claim", "pretrain-0-gpu-w2d5c")
        assert "StatefulSet/pretrain" in text and "productName = NVIDIA H100" in text
        await person.press("t")
        await person.sees("saved objects cannot be tainted")


async def test_keys_are_shown() -> None:
    async with before(example("mixed-fleet"), 80, 24) as person:
        await person.press("?")
        await person.sees("Everywhere", "what if something were different?", "taint the device")
        await person.press("?", "escape", "q")
        assert person.screens.return_code == 0 and person.screens.failure is None


class Changing(SavedCluster):
    """A live cluster of objects in memory; its server may be slow, and silent."""

    live = True

    def __init__(self, *objects: object) -> None:
        super().__init__(UiFlags(snapshots=("-",)))
        self.objects = list(objects)
        self.answers = Event()
        self.answers.set()
        self.error: Exception | None = None
        self.changed: Callable[[], None] = lambda: None

    def read(self, progress: Progress) -> tuple[Snapshot, Settings, str]:
        """What there is now."""
        from kubectl_dra.cluster.files import read_snapshot

        progress("reading pods [b]1[/b]")
        assert self.answers.wait(60)
        if self.error is not None:
            raise self.error
        data = json.dumps({"apiVersion": "v1", "kind": "List", "items": self.objects}).encode()
        snapshot = read_snapshot(["-"], stdin=data, compact=True, complete=True)
        return snapshot, self.settings(snapshot), self._asked.namespace

    def follow(self, changed: Callable[[], None]) -> None:
        """Remember whom to tell."""
        self.changed = changed


async def test_reading_does_not_stop_the_screen() -> None:
    source = Changing(*OBJECTS)
    source.answers.clear()
    async with before(source) as person:
        await person.sees("reading pods [b]1[/b]")
        await person.press("?")
        await person.sees("Everywhere")
        await person.press("escape", "q")
    assert person.screens.failure is None
    source.answers.set()


async def test_it_follows_the_cluster() -> None:
    source = Changing(*OBJECTS, claim("c"), pod("p", "c", node_name=""))
    async with before(source) as person:
        await person.sees("2 devices on 1 node: 2 free", "live ")
        await person.press("4", "down", "enter")
        await person.sees("gpu-1", "Held by nobody")
        source.objects[3:] = [claim("c", result("gpu-1"), pods=("p",)), pod("p", "c")]
        source.changed()
        await person.sees("Held by 1 claim")
        await person.press("escape")
        await person.sees("1 free, 1 held", "2 of 2")
        source.error = ClusterError("the server is away")
        person.screens.worker.read_again()
        await person.sees("the server is away; asking again", "1 free, 1 held")


async def test_an_error_at_the_beginning_is_the_end() -> None:
    source = Changing()
    source.error = InputError("cluster.json: cannot be read")
    async with before(source) as person:
        await person.until(lambda: person.screens.failure is not None)
    assert person.screens.failure is source.error


async def test_news_while_the_screen_is_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker, and the rows, may speak when the screen's parts are gone and the screen is not."""
    async with before(example("all-held")) as person:
        await person.sees("1 of 3")
        screens = person.screens
        end = screens._close_all

        async def end_late() -> None:
            await screens.screen_stack[0].query("*").remove()
            screens.tell(lambda: pytest.fail("told after the end"))
            screens.post_message(RowList.Moved())
            await asyncio.sleep(0.05)
            await end()

        monkeypatch.setattr(screens, "_close_all", end_late)
