"""A real browser for tests of pages: Chromium of the machine, driven by Playwright.

Without either, tests are skipped; with REQUIRE_BROWSER=1 in the environment they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
SEVERE = ("serious", "critical")
EVERY = ("minor", "moderate", *SEVERE)


def missing() -> str:
    """What is missing to run a browser; empty where nothing is."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if program() else f"no browser on the PATH ({', '.join(NAMES)})"


def program() -> str | None:
    """The path of Chromium."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Headless Chromium; what a test opens is closed after it."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The one process for all tests of a worker."""
    reason = missing()
    if reason:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(f"REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        yield found
        found.close()


class Watched(NamedTuple):
    """A page, and what it did that a page of ours does not do."""

    page: Page
    complaints: list[str]


def opened(browser: Browser, url: str, width: int = 1280, scheme: str = "light", **options: Any) -> Watched:
    """Opens an address, noting console output, errors, dialogs, and requests for anything but files and data."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))

    def refuse(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def note(request: Request) -> None:
        if request.url not in (url, "data:,"):
            complaints.append(f"request: {request.url}")

    page.on("dialog", refuse)
    page.on("request", note)
    page.goto(url)
    return Watched(page, complaints)


def accessibility(page: Page, impacts: Collection[str] = SEVERE) -> list[str]:
    """The violations of these impacts that axe-core finds, each with the first element; skips where it is missing."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{entry['id']} ({entry['impact']}): {entry['help']}; {len(entry['nodes'])} times, as in "
        f"{entry['nodes'][0]['html'][:200]}"
        for entry in found
        if entry["impact"] in impacts
    ]


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
