"""The site as it is built, and as a browser shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.browser import WIDTHS, Watched, accessibility, opened, overflow
from tools.docs.links import ROOT
from tools.docs.site import places
from tools.examples import examples, fit_examples

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("browser")
LOOKED_AT = (
    "index.html",
    "start.html",
    "pending.html",
    "messages.html",
    "gallery/README.html",
    "gallery/no-device-matches.html",
    "comparison.html",
    "dra.html",
    "migration.html",
    "monitoring.html",
    "commands/explain.html",
    "causes/README.html",
    "causes/devices-held.html",
    "rules/DRA101.html",
    "cel.html",
    "features.html",
)
_TARGET = re.compile(r'(?:href|src)="([^"]*)"')


def shown(path: str) -> str:
    """README pages are the index of their directory."""
    return path.replace("README.html", "index.html")


def unwanted(watched: Watched, address: str) -> list[str]:
    """What the page did that it should not do; requests to its own site are fine."""
    return [text for text in watched.complaints if not text.startswith(f"request: {address}/")]


def cut_off(page: Page) -> list[str]:
    """The beginnings of the samples that are wider than their blocks."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('article pre, article pre > code')]"
        ".filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.innerText.slice(0, 60))"
    )
    return found


def test_every_page_is_built(site: Path) -> None:
    for place in places().values():
        if place.endswith(".md"):
            assert (site / shown(f"{place.removesuffix('.md')}.html")).exists(), place
    for path in (ROOT / "schemas").rglob("*.json"):
        assert (site / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_every_example_has_its_picture(site: Path) -> None:
    gallery = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    shown_examples = [*examples(), *fit_examples()]
    assert gallery.count('class="fleet"') == len(shown_examples)
    for example in shown_examples:
        text = (site / "gallery" / f"{example.name}.html").read_text(encoding="utf-8")
        assert "<svg" in text[text.index('class="fleet"') :] or "No devices are published" in text


def test_links_of_the_site_lead_to_files_and_places_of_it(site: Path) -> None:
    wrong = []
    ids = {page: set(re.findall(r'\bid="([^"]+)"', page.read_text())) for page in site.rglob("*.html")}
    for page in ids:
        # The page for addresses that do not exist is shown at any depth, so its links begin at the root.
        if page.name == "404.html":
            continue
        for target in set(_TARGET.findall(page.read_text())):
            if re.match(r"(https?|mailto|data|javascript):", target):
                continue
            where, _, anchor = unquote(target).partition("#")
            file = (page.parent / where).resolve() if where else page
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (
                anchor and file in ids and not anchor.startswith("__") and anchor not in ids[file]
            ):
                wrong.append(f"{page.relative_to(site)}: {target}")
    assert not wrong


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", LOOKED_AT)
def test_pages_fit_and_ask_nobody_else(browser: Browser, address: str, page: str, width: int) -> None:
    watched = opened(browser, f"{address}/{shown(page)}", width)
    assert not unwanted(watched, address)
    assert overflow(watched.page) <= 0
    for wide in (800, 1400) if width == WIDTHS[0] else ():
        watched.page.set_viewport_size({"width": wide, "height": 900})
        assert overflow(watched.page) <= 0
        assert not cut_off(watched.page), wide
    assert watched.page.locator("h1").count() == 1


FOUND = {
    "cannot allocate all claims": "messages.html#cannot-allocate-all-claims",
    "0/6 nodes are available: 5 cannot allocate all claims.": "messages.html#cannot-allocate-all-claims",
    "FailedPrepareDynamicResources": "messages.html#failedpreparedynamicresources",
    "devices-held": "causes/devices-held.html",
    "DRA101": "rules/DRA101.html",
    "MIG308": "changes/MIG308.html",
}
"""What people look for, and what has to be the first hit."""


def test_search_finds_the_right_page_first(browser: Browser, address: str) -> None:
    from playwright.sync_api import expect

    watched = opened(browser, f"{address}/index.html")
    watched.page.locator(".md-search__button").first.click()
    box = watched.page.get_by_role("combobox", name="Search")
    first = watched.page.get_by_role("option").first
    for words, page in FOUND.items():
        box.fill(words)
        # The index of all pages is built in the browser first. Hits carry the words, to be marked on the page.
        path, mark, place = page.partition("#")
        where = re.compile(rf"{re.escape(f'{address}/{path}')}(\?[^#]*)?{re.escape(mark + place)}$")
        expect(first).to_have_attribute("href", where, timeout=60_000)
    watched.page.wait_for_load_state("networkidle")
    assert not unwanted(watched, address)


def test_the_tree_of_causes_is_walked_by_clicks(browser: Browser, address: str) -> None:
    page = opened(browser, f"{address}/pending.html", 390).page
    for text in ("No node has devices for it", "Are they available?", "devices-held"):
        page.locator("article").get_by_role("link", name=text, exact=True).first.click()
    page.wait_for_url("**/causes/devices-held.html")
    assert page.locator("h1").inner_text().startswith("devices-held: The matching devices are held")


@pytest.mark.parametrize(
    ("page", "scheme"),
    [
        ("index.html", "light"),
        ("index.html", "dark"),
        ("start.html", "light"),
        ("causes/devices-held.html", "dark"),
        ("gallery/README.html", "light"),
    ],
)
def test_no_serious_accessibility_violation(browser: Browser, address: str, page: str, scheme: str) -> None:
    assert not accessibility(opened(browser, f"{address}/{shown(page)}", scheme=scheme).page)
