"""The site as MkDocs builds it, and as a browser shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.browser import SCHEMES, WIDTHS, Watched, accessibility, opened, overflow
from tests.docs.links import DOCS, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")
LOOKED_AT = (
    "index.html",
    "start.html",
    "pending.html",
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


def test_every_page_is_built(site: Path) -> None:
    for path in DOCS.rglob("*.md"):
        page = path.relative_to(DOCS).with_suffix(".html").as_posix()
        assert (site / shown(page)).exists(), page
    for path in (ROOT / "schemas").rglob("*.json"):
        assert (site / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    assert not (site / "theme").exists()


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
    assert watched.page.locator("h1").count() == 1


def test_search_finds_a_cause(browser: Browser, address: str) -> None:
    watched = opened(browser, f"{address}/index.html")
    watched.page.wait_for_load_state("networkidle")
    # The theme looks at the box when a key comes up; a value set without keys is seen only by chance.
    # Typed letter by letter, a slow machine asks for "devices-" on the way, which is an error for the search.
    box = watched.page.get_by_role("textbox", name="Search")
    box.fill("devices-held")
    box.press("End")
    # The index of all pages is built in the browser first.
    first = ".md-search-result__item:first-child .md-search-result__link[href*='causes/devices-held']"
    watched.page.locator(first).first.wait_for(timeout=60_000)
    watched.page.wait_for_load_state("networkidle")
    assert not unwanted(watched, address)


def test_the_tree_of_causes_is_walked_by_clicks(browser: Browser, address: str) -> None:
    page = opened(browser, f"{address}/pending.html", 390).page
    for text in ("No node has devices for it", "Are they available?", "devices-held"):
        page.locator("article").get_by_role("link", name=text, exact=True).first.click()
    page.wait_for_url("**/causes/devices-held.html")
    assert page.locator("h1").inner_text().startswith("The matching devices are held")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("page", ["pending.html", "start.html"])
def test_no_serious_accessibility_violation(browser: Browser, address: str, page: str, scheme: str) -> None:
    found = accessibility(opened(browser, f"{address}/{page}", scheme=scheme).page)
    # The theme's search is a dialog without a name, and the theme gives no way to name it.
    assert not [violation for violation in found if not violation.startswith("aria-dialog-name")]
