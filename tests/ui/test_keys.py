"""Every key does something or says why not; and what the keys for going, sorting, copying and describing do."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from threading import Event
from typing import Any, Final

import pytest

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.command import CURRENT, CommandEffect
from kubectl_dra.errors import InputError
from kubectl_dra.ui import key_help
from kubectl_dra.ui.commands import Going, goal, of_row
from kubectl_dra.ui.tables import Asked, Row, ScreenColumn, ScreenTable, Table, Within, ordered
from kubectl_dra.usage.choices import UseBy
from tests.taint.world import claim, device_class, gpu, node, pod, slice_of
from tests.ui.test_pages import Changing
from tools.screen import NAMED, Person, before, example

ENDS: Final = {"q"}
UNUSED: Final = ("x", "z", "Q", "@", "f5", "ctrl+a", "delete")
OTHERS: Final = ("tab", "shift+tab", "left", "backspace", "enter", "escape", "S", "2", "3", "4")
NAMES: Final = {"Esc": "escape", "Enter": "enter"}
PLACES: Final[dict[str, Sequence[str]]] = {
    "fleet": ("1",),
    "pending": ("2",),
    "claims": ("3",),
    "devices": ("4",),
    "explained": ("2", "enter"),
    "device": ("4", "enter"),
    "notes": ("n",),
    "keys": ("?",),
    "described": ("2", "d"),
}


async def begin(person: Person, place: str) -> None:
    """Come to a place with nothing filtered, sorted or said, from wherever one is."""
    screens, done = person.screens, Event()
    # What the key before asked of the worker comes first.
    screens.worker.do(lambda: screens.tell(done.set))
    await person.until(done.is_set, "the worker", 120)
    while len(screens.screen_stack) > 1:
        await screens.pop_screen()
    if screens._prompt.shown:
        screens._prompt.action_leave()
    screens._view, screens._words = ScreenTable.FLEET, dict.fromkeys(ScreenTable, "")
    screens._came_from.clear()
    screens._orders.clear()
    screens._draw()
    await person.press(*PLACES[place])
    pages = 1 if place in ("fleet", "pending", "claims", "devices") else 2
    await person.until(lambda: len(screens.screen_stack) == pages, "the page")
    await person.until(lambda: "explaining" not in person.text and "reading" not in person.text, "its text", 120)


def of_help() -> list[str]:
    """The keys that the help names."""
    names = (name for _, group in key_help.ALL for key in group for name in key.name.split())
    return [NAMES.get(name, name) for name in names if name not in ENDS]


@pytest.mark.parametrize("place", PLACES)
async def test_every_key_does_something_or_says_why_not(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoken: list[str] = []
    async with before(example("mixed-fleet"), 100, 40) as person:
        await person.sees("2 Pending 1")
        say = person.screens.say

        def heard(sentence: str) -> None:
            spoken.append(sentence)
            say(sentence)

        monkeypatch.setattr(person.screens, "say", heard)
        progress = person.screens._show_progress

        def working(sentence: str) -> None:
            # It may be over before anybody looks.
            if sentence.startswith("reading"):
                spoken.append(sentence)
            progress(sentence)

        monkeypatch.setattr(person.screens, "_show_progress", working)
        for key in dict.fromkeys((*of_help(), *OTHERS, *UNUSED)):
            await begin(person, place)
            spoken.clear()
            old = person.text
            await person.press(key)

            def other(old: str = old) -> bool:
                return bool(spoken) or person.text != old

            await person.until(other, f"{key} on {place}")
            if key in UNUSED:
                await person.until(lambda: bool(spoken), f"{key} on {place}")
                assert "does nothing here" in spoken[0]


async def test_every_key_of_the_help_works_somewhere() -> None:
    async with before(example("mixed-fleet"), 100, 40) as person:
        await person.sees("2 Pending 1")
        for key in of_help():
            places = ("devices", "explained") if key in "tuwf" else ("devices",)
            bound = False
            for place in places:
                await begin(person, place)
                bound = bound or NAMED.get(key, key) in person.screens.active_bindings
            assert bound, key


async def test_esc_goes_back_to_where_one_came_from() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("h100-1")
        await person.press("b", "down", "enter")
        await person.sees("[4 Devices 46]", "filter: =")
        await person.press("enter")
        await person.sees("device gpu")
        await person.press("escape")
        await person.sees("[4 Devices 46]", "filter: =")
        await person.press("escape")
        await person.sees("[1 Fleet]", "CLASS")
        await person.press("escape")
        await person.sees("[1 Fleet]", "NODE ")
        await person.press("escape")
        await person.sees("This is where you began")


async def test_words_lead_to_tables() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("2 Pending 1")
        for word, seen in (("claims", "[3 Claims"), ("no", "[1 Fleet]"), ("po", "[2 Pending"), ("q", "")):
            await person.press(":")
            await person.type(word)
            await person.press("enter")
            if seen:
                await person.sees(seen)
        await person.until(lambda: person.screens.return_code == 0)


async def test_a_word_that_leads_nowhere_says_what_was_meant() -> None:
    async with before(example("mixed-fleet")) as person:
        await person.sees("2 Pending 1")
        await person.press(":", *"clams", "enter")
        await person.sees("there is no :clams; did you mean claims?")
        await person.press(":", *"ns", " ", *"mll", "enter")
        await person.sees("no claim or pod is in namespace mll; did you mean ml?")


@pytest.mark.parametrize(
    ("typed", "going"),
    [
        ("nodes", Going(ScreenTable.FLEET, UseBy.nodes)),
        ("deviceclasses", Going(ScreenTable.FLEET, UseBy.classes)),
        ("ns", Going(ScreenTable.FLEET, UseBy.namespaces)),
        ("ns ml", Going(namespace="ml")),
        ("claims ml", Going(ScreenTable.CLAIMS, namespace="ml")),
        ("pods all", Going(ScreenTable.PENDING, namespace="")),
        ("pods -A", Going(ScreenTable.PENDING, namespace="")),
    ],
)
def test_where_words_lead(typed: str, going: Going) -> None:
    assert goal(typed) == going


def test_two_namespaces_are_refused() -> None:
    with pytest.raises(InputError, match="takes one namespace"):
        goal("claims a b")


async def test_another_namespace() -> None:
    other = claim("d")
    other["metadata"]["namespace"] = "other"
    source = Changing(
        node("n1"), device_class(), slice_of("n1", gpu("gpu-0")), claim("c"), pod("p", "c", node_name=""), other
    )
    async with before(source) as person:
        await person.sees("3 Claims 2")
        await person.press(":", *"claims", " ", *"other", "enter")
        await person.sees("[3 Claims 1]", "other")
        await person.press(":", *"ns", " ", *"all", "enter")
        await person.sees("[3 Claims 2]")


async def test_tables_are_sorted() -> None:
    async with before(example("mixed-fleet"), 120, 40) as person:
        await person.sees("46 devices")

        def nodes() -> list[str]:
            return [line.split()[0] for line in person.lines if line.split() and line.split()[0].endswith(("-1", "-2"))]

        await person.press("s")
        await person.sees("by NODE")
        assert len(nodes()) == 4 and nodes() == sorted(nodes())
        await person.press("S")
        await person.sees("by NODE, backwards")
        assert nodes() == sorted(nodes(), reverse=True)


def test_numbers_and_ages_are_sorted_by_size() -> None:
    def sorted_cells(*cells: str) -> list[str]:
        table = Table("", (ScreenColumn("X", 1),), tuple(Row((cell,), Asked("pod", "", cell), cell) for cell in cells))
        return [row.cells[0] for row in ordered(table, table.rows, "X", backwards=False)]

    assert sorted_cells("3d", "19h", "-", "5m") == ["5m", "19h", "3d", "-"]
    assert sorted_cells("10", "9", "1,000", "50%") == ["9", "10", "50%", "1,000"]
    assert sorted_cells("gpu-10", "gpu-9", "Gpu-1") == ["Gpu-1", "gpu-9", "gpu-10"]


async def test_a_command_is_copied_to_the_terminal() -> None:
    async with before(example("mixed-fleet"), 200, 40) as person:
        await person.sees("2 Pending 1")
        await person.press("2", "y")
        await person.sees("copied: kubectl dra explain pod/serve-0 -n ml --snapshot")
        assert person.screens.clipboard.startswith("kubectl dra explain pod/serve-0 -n ml --snapshot")
        await person.press("enter")
        await person.until(lambda: "explaining" not in person.text and "count" in person.text)
        await person.press("y")
        await person.sees("copied")
        assert person.screens.clipboard in person.text.replace("\n", "")


async def test_osc_52(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    async with before(example("mixed-fleet")) as person:
        await person.sees("2 Pending 1")
        monkeypatch.setattr(person.screens._driver, "write", written.append)
        await person.press("3", "y")
        await person.sees("copied")
    (sequence,) = [text for text in written if text.startswith("\x1b]52;c;")]
    assert base64.b64decode(sequence.removeprefix("\x1b]52;c;").rstrip("\a")).startswith(b"kubectl dra explain claim/")


def test_every_row_has_a_command_that_only_reads() -> None:
    rows: list[Any] = [
        Asked("claim", "ns", "c"),
        DeviceID("d", "p", "x"),
        Within(UseBy.nodes, "=n1"),
        Within(UseBy.owners, "=ml =x"),
    ]
    said = [str(command) for row in rows for command in of_row(row, CURRENT) if command.effect is CommandEffect.READS]
    assert said == [
        "kubectl dra explain claim/c -n ns",
        "kubectl dra explain device/p/x",
        "kubectl dra devices --node n1",
        "kubectl dra claims -n ml",
    ]


async def test_objects_are_described_and_logs_named() -> None:
    async with before(example("mixed-fleet"), 120, 50) as person:
        await person.sees("2 Pending 1")
        await person.press("2", "d")
        await person.sees("Pod ml/serve-0", "apiVersion: v1", "resourceClaims:")
        await person.press("escape", "4", "d")
        await person.sees("ResourceSlice ", "kind: ResourceSlice")
        await person.press("escape", "l")
        await person.sees("no pod was read that looks like it")


async def test_what_if_from_any_row() -> None:
    async with before(example("mixed-fleet"), 120, 50) as person:
        await person.sees("2 Pending 1")
        await person.press("2", "w")
        await person.sees("pod/serve-0 of namespace ml", "What if count=2")
        await person.press(*"free=nobody", "enter")
        await person.until(lambda: "nobody" in person.text and "explaining" not in person.text)
        # What cannot be supposed stays to be corrected.
        await person.press(*["backspace"] * 11, *"count=1", "enter")
        await person.sees("could be scheduled with this change")
        await person.press("escape", "4", "/", *"H100", " ", *"held", "enter", "w")
        await person.sees("pod/serve-0 of namespace ml", "What if free=")
