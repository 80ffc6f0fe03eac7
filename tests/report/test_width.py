"""Text that fits: prose, tables, CEL and pages on screens of any width."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cel.lexer import tokenize
from kubectl_dra.explain.devices.wanted import single_names
from kubectl_dra.explain.phrase import say
from kubectl_dra.report.color import PIPE_WIDTH, PROSE_WIDTH, Painter, limit_of, tell, wrap, write_page
from kubectl_dra.report.phrases import compressed, devices_named, folded, names_of_devices, written
from kubectl_dra.report.table import aligned, fitted, narrowed, shortened

GOLDEN = Path(__file__).parents[1] / "golden"
ROWS = [
    ("NODE", "DEVICE", "STATE", "HELD-BY", "REASON"),
    ("n1", "gpu-0", "held", "team/a-claim-with-a-name (pod a)", "-"),
    ("n1", "gpu-1", "free", "-", "-"),
    ("n2", "gpu-2", "unusable", "-", "pool d/n2 is incomplete: generation 4 has 2 of 3 slices"),
]


@pytest.mark.parametrize(
    ("columns", "terminal", "limit"),
    [("", False, None), ("80", False, 80), ("10", False, 40), ("0", False, None), ("x", False, None), ("", True, 110)],
)
def test_what_limits_a_line(columns: str, terminal: bool, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setenv("COLUMNS", columns)
    assert limit_of(Stream()) == limit


def test_prose_in_a_pipe_and_on_a_wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "word " * 60
    for columns, most in (("", PIPE_WIDTH), ("80", 80), ("300", PROSE_WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        out = io.StringIO()
        Painter(out).paragraph(text, indent="    ", first="  - ")
        assert most - 5 < max(map(len, out.getvalue().splitlines())) <= most


def test_messages_are_one_line_where_programs_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text, more = "error: " + "word " * 30 + "end", ("  a selector", "    ^")
    monkeypatch.delenv("COLUMNS", raising=False)
    out = io.StringIO()
    tell(text, out, more)
    assert out.getvalue() == "\n".join((text, *more, ""))
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    tell(text, out, more)
    assert max(map(len, out.getvalue().splitlines())) <= 60
    assert out.getvalue().endswith("end\n  a selector\n    ^\n")


def test_values_in_quotes_and_counts_stay_whole() -> None:
    assert wrap('write "Tesla T4 on a card" in place of "NVIDIA L40S"', 24)[:2] == ["write", '"Tesla T4 on a card" in']
    assert wrap("there are in all 16 devices", 20) == ["there are in all", "16 devices"]
    assert wrap("on gpu-0, gpu-1 and gpu-2", 20) == ["on gpu-0, gpu-1 and", "gpu-2"]


@given(st.text('ab=,"7 ', min_size=1, max_size=150), st.integers(20, 60))
def test_only_what_cannot_be_broken_is_wider(text: str, width: int) -> None:
    """A word without commas, a few words in quotes, a number with its noun: everything else fits."""
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    for line in lines:
        assert len(line) <= width or not re.search(r',.|[^ "\d] +[^ "]', line.strip('"')) or '"' in line, line


def test_answers_fit_on_eighty_columns() -> None:
    """All recorded ones; a command stays on its line, and so do metrics, which programs read."""
    for path in sorted(GOLDEN.glob("*.80.txt")):
        if path.name != "metrics.80.txt":
            wide = [line for line in path.read_text().splitlines() if len(line) > 80 and "kubectl " not in line]
            assert not wide, path.name


def test_a_note_with_a_long_change_is_broken_after_its_commas() -> None:
    pods = [f"inference/llama-7c9d5b8f6-{number:05}" for number in range(4)]
    lines = wrap(f"Note: supposed: end={','.join(pods)}", 78)
    assert max(map(len, lines)) <= 78 and "".join(lines).endswith(",".join(pods)) and lines[0].endswith(",")


def test_a_table_that_fits_is_left_alone() -> None:
    for limit in (None, 120):
        blocks = fitted(ROWS, limit, ("REASON", "HELD-BY"))
        assert [len(block) for block in blocks] == [1] * 4
        assert blocks[0][0].split() == list(ROWS[0])


def test_less_important_columns_go_below() -> None:
    assert fitted(ROWS, 80, ("REASON", "HELD-BY")) == [
        ["NODE   DEVICE   STATE      HELD-BY"],
        ["n1     gpu-0    held       team/a-claim-with-a-name (pod a)"],
        ["n1     gpu-1    free       -"],
        [
            "n2     gpu-2    unusable   -",
            "    reason: pool d/n2 is incomplete: generation 4 has 2 of 3 slices",
        ],
    ]
    assert fitted(ROWS, 50, ("REASON", "HELD-BY"))[1] == [
        "n1     gpu-0    held",
        "    held by: team/a-claim-with-a-name (pod a)",
    ]


def test_a_column_with_nothing_in_it_goes_first() -> None:
    rows = [(*row[:4], "-") for row in ROWS[1:]]
    assert [len(block) for block in fitted([ROWS[0], *rows], 60, ("HELD-BY", "REASON"))] == [1] * 4


def test_a_sentence_in_the_last_column_is_wrapped_in_its_place() -> None:
    blocks = fitted(ROWS, 120, ("REASON",), prose=True)
    assert [len(block) for block in blocks] == [1] * 4
    long = [*ROWS, ("n3", "gpu-3", "unusable", "-", "one word after the other " * 6)]
    found = fitted(long, 120, ("REASON",), prose=True)[-1]
    start = found[0].index("one word")
    assert len(found) > 1 and all(line[:start].isspace() and line[start] != " " for line in found[1:])


@given(
    st.lists(st.tuples(*[st.text("ab-, ", max_size=30).map(lambda text: text.strip() or "-")] * 5), min_size=1),
    st.integers(40, 120),
)
def test_nothing_is_cut(rows: list[tuple[str, ...]], limit: int) -> None:
    blocks = fitted([ROWS[0], *rows], limit, ("REASON", "HELD-BY", "STATE"))
    for row, block in zip(rows, blocks[1:], strict=True):
        shown = "".join("".join(block).split())
        for cell in row:
            assert cell == "-" or "".join(cell.split()) in shown


TERM = 'device.attributes["gpu.example.com"].productName == "NVIDIA A100 && more"'
LONG = f'{TERM} && (has(device.capacity["gpu.example.com"].memory) || device.driver in ["a", "b"])'


def test_cel_begins_lines_with_its_operators() -> None:
    assert folded(LONG, 80) == [
        TERM,
        '&& (has(device.capacity["gpu.example.com"].memory)',
        '  || device.driver in ["a", "b"])',
    ]
    assert folded(LONG, 90) == [
        TERM,
        '&& (has(device.capacity["gpu.example.com"].memory) || device.driver in ["a", "b"])',
    ]
    assert folded("a ? b : c", 80) == ["a ? b : c"]
    assert folded('device.attributes["d"].?x.orValue(false)', 20) == ['device.attributes["d"]', "  .?x.orValue(false)"]


def test_what_is_written_on_lines_stays_on_them() -> None:
    assert folded("  a == 1 &&\n    b == 2 // why\n", 80) == ["a == 1 &&", "  b == 2 // why"]
    assert folded("not $ cel " * 9, 40) == [("not $ cel " * 9).strip()]


@given(st.integers(20, 120))
def test_cel_stays_the_same_expression(width: int) -> None:
    lines = folded(LONG, width)
    assert [(t.kind, t.text) for t in tokenize("\n".join(lines))] == [(t.kind, t.text) for t in tokenize(LONG)]
    assert width < 80 or max(map(len, lines)) <= width


PAGE = "# Title\n\n" + "word " * 30 + "\n\n- " + "item " * 30 + "\n\n```yaml\nkey: " + "x " * 60 + "\n```\n"


def test_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    out = io.StringIO()
    write_page(PAGE, "auto", out)
    piped = out.getvalue().splitlines()
    assert piped[0] == "Title" and len(max(piped, key=len)) > 120 and not {"#", "`", "*"} & set(out.getvalue())
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    write_page(PAGE, "auto", out)
    lines = out.getvalue().splitlines()
    assert [line for line in lines if len(line) > 60] == [("  key: " + "x " * 60).rstrip()]
    assert "  item item" in "\n".join(lines) and lines[0] == "Title"
    out = io.StringIO()
    write_page("# A `title`\n\n`--write` and [a page](page.md) of [a site](https://a.example)\n", "always", out)
    assert out.getvalue() == "\x1b[1mA title\x1b[0m\n\n--write and a page of a site (https://a.example)\n"


def test_headings_are_wrapped_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the label has the style."""
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    Painter(stream, "always").heading("a-cause", ": a title that is longer than one line is", "     ", "  1. ", "bold")
    assert stream.getvalue() == "  1. \x1b[1ma-cause\x1b[0m: a title that is longer\n     than one line is\n"


NODES = [
    ("NODE", "DEVICES", "FREE", "HELD", "OTHER", "USE", "AGE"),
    *((f"ip-10-0-{n}-17.eu-central-1.compute.internal", "8", "-", "-", "8", "0%", "3d") for n in range(40, 46)),
]


@pytest.mark.parametrize("limit", [60, 80, 120, 160, 200])
def test_a_table_keeps_its_key_and_says_what_it_leaves_out(limit: int) -> None:
    rows, omitted = narrowed(NODES, limit, ("AGE", "USE", "OTHER", "NODE"), ("NODE",))
    assert "NODE" in rows[0] and "NODE" not in omitted
    # What is empty goes unsaid, and the columns that are left add up.
    assert {*NODES[0]} - {*rows[0]} - {*omitted} <= {"FREE", "HELD"}
    assert len({row[0] for row in rows}) == len(NODES), "names stay different"
    assert max(map(len, aligned(rows))) <= limit


def test_names_are_shortened_in_the_middle() -> None:
    assert shortened(["gpu-node-0001-west", "gpu-node-0002-west"], 12) == ["gpu-n…1-west", "gpu-n…2-west"]
    assert shortened(["short", "a-very-long-name-of-a-node"], 12) == ["short", "a-ver…a-node"]
    twins = ["a" * 20 + "x" + "b" * 20, "a" * 20 + "y" + "b" * 20]
    assert shortened(twins, 12) == twins, "what would be the same stays whole"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["gpu-0"], "gpu-0"),
        (["gpu-2", "gpu-0", "gpu-1", "gpu-5"], "gpu-0..2,5"),
        ([f"gpu-{number}-spx-nps1" for number in range(8)], "gpu-0..7-spx-nps1"),
        (["gpu-1-mig-0", "gpu-1-mig-1"], "gpu-1-mig-0,1"),
        (["gpu-1-1", "gpu-11-1"], "gpu-1,11-1"),
        (["0000-0b-00-0", "0000-19-00-0"], "0000-0b-00-0 + 1 more"),
        (["gpu-1", "gpu-01"], "gpu-1 + 1 more"),
        (["gpu-0-mig-0", "gpu-0-mig-1", "gpu-1-mig-0"], "gpu-0-mig-0 + 2 more"),
        (["gpu-1-1", "gpu-1"], "gpu-1-1 + 1 more"),
    ],
)
def test_names_of_several_devices(names: list[str], shown: str) -> None:
    """What is printed can be typed, or says how many more there are."""
    assert compressed(names) == shown
    if " more" not in shown:
        assert sorted(single_names(f"n1/{shown}")) == sorted(f"n1/{name}" for name in names)


@given(st.lists(st.from_regex(r"[a-c0-2-]{1,6}", fullmatch=True), min_size=1, max_size=4, unique=True))
def test_any_names_of_several_devices(names: list[str]) -> None:
    shown = compressed(names)
    if "," in shown or ".." in shown:
        assert sorted(single_names(shown)) == sorted(names)
    else:
        assert shown == (names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1:,} more")


@pytest.mark.parametrize(
    ("names", "limit", "shown"),
    [
        (["n1/gpu-0"], 4, "drv/n1/gpu-0"),
        (["n1/gpu-0", "n1/gpu-1", "n1/gpu-2", "n1/gpu-3"], 1, "drv/n1/gpu-0..3"),
        (["n1/gpu-0", "n2/gpu-4", "n1/gpu-1"], 4, "drv/n1/gpu-0,1, drv/n2/gpu-4"),
        (["n1/gpu-0", "n2/gpu-4", "n2/gpu-5", "n1/gpu-1"], 1, "drv/n1/gpu-0,1 and 2 more"),
        (["n1/red", "n1/green"], 1, "drv/n1/red and 1 more"),
    ],
)
def test_devices_of_a_pool_are_named_together(names: list[str], limit: int, shown: str) -> None:
    devices = tuple(DeviceID("drv", *name.split("/")) for name in names)
    assert devices_named(devices, limit) == shown
    assert written(say(f"{{devices:some {limit}}}", devices=devices)) == shown


def test_names_of_devices_alone() -> None:
    assert names_of_devices(["gpu-0", "gpu-1", "gpu-2"], 1) == "gpu-0..2"
    assert names_of_devices(["red", "green"], 1) == "red and 1 more"
    assert names_of_devices([]) == ""
