"""The pages in a real browser: looks, keyboard, filters, accessibility, and that nothing gets out or in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.browser import EVERY, SCHEMES, WIDTHS, Watched, accessibility, opened, overflow
from tests.report.html import hostile
from tests.report.html.support import ROOT, Dra, words_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("browser")
MIXED = ROOT / "examples" / "explain" / "mixed-fleet"
# Phone, tablet, desk: axe looks at each width once, and at each of dark and light.
LOOKS = ((390, "light"), (800, "dark"), (1400, "light"), (1400, "dark"))
PARTITIONS = ROOT / "examples" / "explain" / "amd-partitions-in-use"
FITTING = ROOT / "examples" / "fit" / "deployment-in-part"
Open = Callable[..., Watched]


@pytest.fixture
def show(browser: Browser, dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Runs a command in an example's folder and opens the page that it writes."""

    def call(folder: Path, *words: str, width: int = 1280, scheme: str = "light", script: bool = True) -> Watched:
        monkeypatch.chdir(folder)
        (tmp_path / "page.html").write_text(dra(*words, "-o", "html").out)
        url = (tmp_path / "page.html").as_uri()
        return opened(browser, url, width, scheme, java_script_enabled=script)

    return call


def devices(page: Page) -> list[str]:
    """The labels of the cells that are shown."""
    return list(page.locator(".grid .c:visible .name").all_inner_texts())


@pytest.mark.parametrize("command", ["explain", "devices", "overview", "fit"])
def test_pages_are_accessible_and_fit(show: Open, browser: Browser, command: str) -> None:
    folder = FITTING if command == "fit" else MIXED
    words = {
        "explain": [*words_of(MIXED), "--trace", "h100-1/gpu-0", "--verify"],
        "devices": ["devices", "--snapshot", "cluster.yaml", "--driver", "gpu.amd.com"],
        "overview": ["explain", "-A", "--snapshot", "cluster.yaml"],
        "fit": words_of(FITTING),
    }[command]
    url = show(folder, *words).page.url
    for width, scheme in LOOKS:
        page, complaints = opened(browser, url, width, scheme)
        assert accessibility(page, EVERY) == [], (width, scheme)
        assert overflow(page) <= 0, (width, scheme)
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark is (scheme == "dark")
        assert complaints == []


def test_the_checks_see_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    bad = "<img src='https://example.com/x.png'><p style='width:3000px'>x</p><script>undefined.x</script>"
    (tmp_path / "bad.html").write_text(f"<!DOCTYPE html><html lang='en'><title>x</title>{bad}</html>")
    page, complaints = opened(browser, (tmp_path / "bad.html").as_uri())
    assert overflow(page) > 0
    assert any(complaint.startswith("request: https://example.com") for complaint in complaints)
    assert any(complaint.startswith("error: ") for complaint in complaints)
    assert any("image-alt" in each for each in accessibility(page))


def test_the_grid_is_one_for_screen_readers(show: Open) -> None:
    page, _ = show(MIXED, *words_of(MIXED))
    grid = page.get_by_role("grid", name="Devices by node")
    rows = grid.get_by_role("row")
    assert rows.count() == 4
    row = rows.filter(has=page.get_by_role("rowheader", name="h100-1"))
    cells = row.get_by_role("gridcell")
    assert cells.count() == 4
    tree = row.aria_snapshot()
    assert "State held" in tree and "Held by ml/pretrain-0-gpu-w2d5c (pod pretrain-0)" in tree
    assert "request accelerator/h100: asked for, but cannot be allocated (held)" in tree
    free = row.get_by_role("gridcell").last.aria_snapshot()
    assert "State free" in free and "request accelerator/h100: it would do" in free
    # Of several funnels each is folded.
    funnel = page.get_by_role("table").filter(has_text='request "accelerator/h100"')
    assert funnel.count() == 0
    page.locator(".claim summary", has_text='request "accelerator/h100"').click()
    assert funnel.count() == 1 and "not held by other claims" in funnel.inner_text()
    assert page.get_by_role("main").count() == 1 and page.get_by_role("heading", level=1).count() == 1


def test_arrow_keys_walk_the_grid(show: Open) -> None:
    page, complaints = show(MIXED, *words_of(MIXED))
    assert page.locator('.grid .c[tabindex="0"]').count() == 1

    def focused() -> str:
        return str(
            page.evaluate("(document.activeElement.querySelector('.name') || document.activeElement).textContent")
        )

    page.get_by_role("button", name="Show all").focus()
    # Over the link that skips the devices.
    page.keyboard.press("Tab")
    assert focused() == "Skip the devices"
    page.keyboard.press("Tab")
    assert focused() == "0000-3a-00-0-0x56c0"
    page.keyboard.press("ArrowRight")
    assert focused() == "0000-5e-00-0-0x56c0"
    page.keyboard.press("ArrowRight")
    assert focused() == "0000-5e-00-0-0x56c0"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused() == "gpu-1"
    page.keyboard.press("End")
    assert focused() == "gpu-3"
    facts = page.locator(".c:focus > .facts")
    box = facts.bounding_box()
    assert box is not None and box["width"] > 300 and "State free" in facts.inner_text()
    page.keyboard.press("Escape")
    assert facts.bounding_box() is None
    page.keyboard.press("Home")
    assert focused() == "gpu-0" and facts.bounding_box() is not None
    page.keyboard.press("Control+Home")
    assert focused() == "0000-3a-00-0-0x56c0"
    page.keyboard.press("PageDown")
    # Names say what their box does not.
    assert focused() == "cpx-nps1"
    page.keyboard.press("Shift+Tab")
    assert focused() == "Skip the devices"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.grid')") is None
    assert complaints == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_panel_does_not_hide_its_device(show: Open, width: int) -> None:
    page, _ = show(MIXED, *words_of(MIXED), width=width)
    page.locator(".grid .c").first.focus()
    for key in ("Control+End", "ArrowUp", "ArrowUp", "Control+Home", "PageDown"):
        page.keyboard.press(key)
        cell, facts = page.locator(".c:focus").bounding_box(), page.locator(".c:focus > .facts").bounding_box()
        assert cell is not None and facts is not None
        assert cell["y"] >= 0 and cell["y"] + cell["height"] <= facts["y"]


def test_filters_work_by_keyboard(show: Open) -> None:
    page, complaints = show(MIXED, *words_of(MIXED))
    said = page.get_by_role("status")
    assert said.inner_text() == "46 devices shown, in 4 rows"
    page.get_by_label("Find").focus()
    page.keyboard.type("H100")
    assert devices(page) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert said.inner_text() == "4 of 46 devices shown, in 1 row"
    page.get_by_label("State").focus()
    page.keyboard.type("free")
    assert devices(page) == ["gpu-3"]
    page.get_by_role("button", name="Show all").focus()
    page.keyboard.press("Enter")
    assert len(devices(page)) == 46
    page.get_by_label("Driver").select_option(label="gaudi.intel.com")
    assert len(devices(page)) == 8
    page.get_by_label("Asked for by").select_option(label="request accelerator/h100")
    assert devices(page) == []
    assert page.get_by_text("No device passes the filters.").is_visible()
    page.get_by_label("Driver").select_option(label="all")
    assert devices(page) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    page.get_by_label("Asked for by").select_option(label="any request")
    assert len(devices(page)) == 4 + 8 + 8
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("Class", exact=True).select_option(label="gpu.intel.com")
    assert devices(page) == ["0000-3a-00-0-0x56c0", "0000-5e-00-0-0x56c0"]
    # What the tab key reaches is one of what is shown.
    assert page.locator('.grid .c[tabindex="0"]:visible').count() == 1
    assert complaints == []


@pytest.fixture
def wide(show: Open, tmp_path: Path) -> Watched:
    """The devices of 300 nodes that are alike, of each of which a claim holds two."""
    slices = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"node-{at:03}"},
            "spec": {
                "driver": "gpu.example.com",
                "pool": {"name": f"node-{at:03}", "generation": 1, "resourceSliceCount": 1},
                "nodeName": f"node-{at:03}",
                "devices": [{"name": f"gpu-{number}"} for number in range(8)],
            },
        }
        for at in range(300)
    ]
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{at:03}"}} for at in range(300)]
    claims = [
        hostile.claim_of(
            f"c-{at}",
            "ml",
            [
                {"request": "r", "driver": "gpu.example.com", "pool": f"node-{at:03}", "device": device}
                for device in ("gpu-0", "gpu-5")
            ],
            [{"resource": "pods", "name": f"c-{at}", "uid": str(at)}],
        )
        for at in range(300)
    ]
    items = [*slices, *nodes, *claims]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    watched = show(tmp_path, "devices", "--snapshot", "cluster.json", "--complete")
    watched.page.wait_for_selector(".fleet[data-ready]", state="attached")
    return watched


def test_a_filter_takes_what_matches_out_of_a_row_of_nodes_that_are_alike(wide: Watched) -> None:
    page, complaints = wide
    said, find = page.get_by_role("status"), page.get_by_label("Find")
    heads, states = page.locator(".row:visible .node b"), page.locator(".row:visible .node small")
    assert heads.all_inner_texts() == ["300 nodes alike"]
    assert said.inner_text() == "2,400 devices shown, in 1 row"
    assert devices(page) == ["6 × gpu.example.com", "2 × gpu.example.com"]
    find.fill("node-008")
    assert (heads.all_inner_texts(), said.inner_text()) == (["node-008"], "8 of 2,400 devices shown, in 1 row")
    assert devices(page) == [f"gpu-{at}" for at in range(8)]
    assert states.all_inner_texts() == ["8 devices: 2 held, 6 free"]
    cell = page.locator(".c:visible", has_text="gpu-5")
    assert "Held by ml/c-8 (pod c-8)" in cell.locator(".facts").inner_text()
    assert "gpu.example.com/node-008/gpu-5" in cell.locator(".facts").inner_text()
    # The holder is found as well as the device.
    find.fill("C-17 gpu-0")
    assert heads.all_inner_texts() == ["node-017", *(f"node-17{at}" for at in range(10))]
    assert devices(page) == ["gpu-0"] * 11
    page.get_by_label("State").select_option("free")
    assert devices(page) == [] and page.get_by_text("No device passes the filters.").is_visible()
    page.get_by_label("State").select_option("")
    # Of more nodes than can be drawn one by one, the row says how many they are.
    find.fill("gpu-3")
    assert (heads.all_inner_texts(), states.all_inner_texts()) == (["300 nodes alike"], ["300 devices: 300 free"])
    assert devices(page) == ["300 of 1,800 × gpu.example.com"]
    page.get_by_role("button", name="Show all").click()
    assert (heads.all_inner_texts(), len(devices(page))) == (["300 nodes alike"], 2)
    assert accessibility(page, EVERY) == [] and overflow(page) <= 0
    assert complaints == []


def test_a_row_of_nodes_that_are_alike_unfolds(wide: Watched) -> None:
    page, complaints = wide
    page.locator(".grid .c").first.focus()
    page.keyboard.press("Enter")
    rows = page.locator(".row.member")
    assert rows.count() == 60 and "and 240 more" in page.locator(".grid").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.querySelector('.name').textContent") == "gpu-0"
    page.get_by_label("Find").fill("node-29")
    assert rows.count() == 10
    page.get_by_role("button", name="Fold").click()
    page.get_by_label("Find").fill("")
    assert rows.count() == 0 and devices(page) == ["6 × gpu.example.com", "2 × gpu.example.com"]
    assert complaints == []


@pytest.mark.parametrize("width", WIDTHS)
def test_it_reads_without_javascript(show: Open, width: int) -> None:
    page, complaints = show(PARTITIONS, *words_of(PARTITIONS), width=width, script=False)
    assert len(devices(page)) == 64
    assert not page.locator("form").is_visible()
    cell = page.locator(".grid .c").nth(3)
    cell.focus()
    facts = cell.locator(".facts")
    box = facts.bounding_box()
    assert box is not None and box["width"] > 300 and box["x"] >= 0 and box["x"] + box["width"] <= width
    assert "gpu.amd.com/mi300x-1/gpu-0-spx-nps1" in facts.inner_text()
    assert "takes partition-mode 1 of counter set gpu-0-mutex" in facts.inner_text()
    assert complaints == []


def test_paper_unfolds_what_is_folded(show: Open) -> None:
    page, _ = show(MIXED, *words_of(MIXED))
    funnel = page.get_by_role("table").filter(has_text='request "accelerator/h100"')
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert funnel.is_visible() and page.get_by_text("ml/pretrain-0-gpu-w2d5c (pod pretrain-0): gpu-0").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_long_pictures_show_their_first_rows(show: Open, tmp_path: Path) -> None:
    slices = [hostile.slice_of("d", f"n{at}", [{"name": "gpu-0"}]) for at in range(100)]
    (tmp_path / "many.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": slices}))
    page, complaints = show(tmp_path, "devices", "--snapshot", "many.yaml")
    said = page.get_by_role("status")
    assert said.inner_text() == "100 devices in 100 rows, of which the first 60 are shown"
    page.locator(".grid .c").first.focus()
    page.keyboard.press("Control+End")
    assert page.evaluate("document.activeElement.closest('.row').querySelector('b').textContent") == "n59"
    page.get_by_label("Find").fill("n7")
    assert said.inner_text() == "11 of 100 devices shown, in 11 rows" and len(devices(page)) == 11
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="Show 40 more rows").click()
    assert page.evaluate("document.activeElement.closest('.row').querySelector('b').textContent") == "n60"
    assert len(devices(page)) == 100 and complaints == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_paper_is_white_and_has_every_device(show: Open, scheme: str) -> None:
    page, complaints = show(PARTITIONS, *words_of(PARTITIONS), scheme=scheme)
    shown = devices(page)
    page.emulate_media(media="print", color_scheme=scheme)  # type: ignore[arg-type]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert devices(page) == shown
    assert not page.locator("form").is_visible()
    assert complaints == []


def test_partitions_are_in_boxes_and_shares_have_bars(show: Open) -> None:
    page, _ = show(PARTITIONS, *words_of(PARTITIONS))
    boxes = page.locator(".grid .box")
    assert boxes.count() == 16
    assert boxes.first.locator(".set").inner_text() == "gpu-0 (gpu-0-mutex)"
    assert boxes.first.locator(".c .name").all_inner_texts() == ["cpx-nps1", "cpx-nps4", "dpx-nps2", "spx-nps1"]
    used = [path.get_attribute("d") for path in boxes.first.locator(".used path").all()]
    assert used[0] != "M0 0H0V2H0z" and used[1] == "M0 0H0V2H0z"


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("command", ["explain pod/pod -n ns --devices", "devices", "explain -A"])
def test_hostile_names_stay_text(show: Open, tmp_path: Path, command: str, script: bool) -> None:
    (tmp_path / "hostile.yaml").write_text(yaml.safe_dump_all(hostile.objects()))
    page, complaints = show(tmp_path, *command.split(), "--snapshot", "hostile.yaml", script=script)
    assert complaints == []
    assert hostile.SCRIPT in page.locator("main").inner_text()
    if not script:
        return
    assert page.evaluate("window.hurt") is None
    names = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(each => each.localName))]")
    assert not {"img", "iframe"} & set(names)
    assert page.evaluate("document.querySelectorAll('script, style').length") == 2
    assert "\u202e" not in page.content() and "\\u202e" in page.content()
    for cell in page.locator(".grid .c").all()[:12]:
        cell.hover()
    assert page.evaluate("window.hurt") is None and complaints == []


def test_hostile_names_stay_text_in_rows_that_are_unfolded(show: Open, tmp_path: Path) -> None:
    driver = hostile.name(0)
    model = {"attributes": {"model": {"string": hostile.SCRIPT}}}
    alike = [[{"name": hostile.name(at * 9 + index), **model} for index in range(9)] for at in range(240)]
    slices = [hostile.slice_of(driver, hostile.name(at), alike[at]) for at in range(240)]
    items = [*slices, *(hostile.claim(at, driver) for at in range(240))]
    (tmp_path / "hostile.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    page, complaints = show(tmp_path, "devices", "--snapshot", "hostile.json")
    page.wait_for_selector(".fleet[data-ready]", state="attached")
    page.get_by_label("Find").fill(f"{hostile.name(2151)} {hostile.SCRIPT}")
    facts = page.locator(".row.member .facts").all_text_contents()
    assert len(facts) == 1 and f"{hostile.name(239)}/{hostile.name(2151)}" in facts[0]
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="Show each node").first.click()
    assert page.locator(".row.member").count() == 60
    assert "Held by" in "".join(page.locator(".row.member .facts").all_text_contents())
    assert page.evaluate("document.querySelectorAll('img, iframe').length") == 0
    assert page.evaluate("window.hurt") is None and complaints == []


def test_the_policy_stops_what_would_slip_through(
    browser: Browser, dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(MIXED)
    source = dra("devices", "--snapshot", "cluster.yaml", "-o", "html").out
    slipped = "<script>window.hurt=1</script><img src=https://example.com/x onerror='window.hurt=2'><main"
    (tmp_path / "x.html").write_text(source.replace("<main", slipped, 1))
    page, complaints = opened(browser, (tmp_path / "x.html").as_uri())
    page.wait_for_load_state()
    assert page.evaluate("window.hurt") is None
    assert [complaint for complaint in complaints if "Content Security Policy" in complaint]
