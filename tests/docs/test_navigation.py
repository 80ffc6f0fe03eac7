"""The navigation of the site, without building it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kubectl_dra.explain.causes.registry import families
from tools.docs.links import DOCS, ROOT
from tools.docs.site import expanded, places, relinked


def test_causes_are_grouped_by_stage() -> None:
    (entry,) = expanded([{"Causes": "causes/"}], DOCS)
    first, *groups = entry["Causes"]
    assert first == "causes/README.md"
    assert groups == [
        {family.value: [f"causes/{kind.code}.md" for kind in kinds]} for family, kinds in families() if kinds
    ]


@pytest.mark.parametrize("folder", ["causes", "changes", "commands", "rules"])
def test_every_page_is_there_once(folder: str) -> None:
    (entry,) = expanded([f"{folder}/"], DOCS)
    pages = [page for each in entry for page in (next(iter(each.values())) if isinstance(each, dict) else [each])]
    assert sorted(pages) == sorted(f"{folder}/{path.name}" for path in (DOCS / folder).glob("*.md"))


def test_every_written_page_is_in_the_navigation() -> None:
    named = set(re.findall(r": (\S+\.md|\S+/)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {place for place in places().values() if place.endswith(".md")}
    assert {name for name in named if name.endswith(".md")} <= pages
    folders = tuple(name for name in named if name.endswith("/"))
    assert {page for page in pages if not page.startswith(folders)} <= named


NAMED = re.compile(r"`(?:\.\./)?([\w/.-]+)`")
"""A path, or another word, as pages for developers write it."""
FOR_DEVELOPERS = (ROOT / "CONTRIBUTING.md", DOCS / "architecture.md", *sorted((DOCS / "decisions").glob("*.md")))


@pytest.mark.parametrize("page", FOR_DEVELOPERS, ids=lambda path: path.name)
def test_modules_that_a_page_names_are_there(page: Path) -> None:
    """One that is named without its folder is in a folder that the same section names."""
    places = (ROOT, ROOT / "kubectl_dra")
    for section in re.split(r"\n(?=##)", page.read_text(encoding="utf-8")):
        names = NAMED.findall(section)
        paths = [place / name for place in places for name in names]
        folders = {*places, *(path if path.is_dir() else path.parent for path in paths if path.exists())}
        modules = [name for name in names if name.endswith(".py")]
        assert [name for name in modules if not any((folder / name).is_file() for folder in folders)] == []


def test_the_configuration_is_plain() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["plugins"] == ["search"]
    assert "hooks" not in settings


def test_links_lead_to_the_site_where_it_has_the_file() -> None:
    site = places()
    text = (
        "[a](../README.md) [b](../examples/explain/fits/README.md) [c](start.md#install) [d](#here) "
        "[e](https://example.com/x.md)\n```sh\n[f](../README.md)\n```\n[g](../schemas/cause.json) [h](../tests)"
    )
    found = relinked(text, "docs/faq.md", site)
    web = "https://github.com/kubectl-dra/kubectl-dra"
    assert re.findall(r"\]\(([^)]*)\)", found) == [
        f"{web}/blob/main/README.md",
        "gallery/fits.md",
        "start.md#install",
        "#here",
        "https://example.com/x.md",
        "../README.md",
        "schemas/cause.json",
        f"{web}/tree/main/tests",
    ]
    below = relinked("[a](../../../docs/faq.md) [b](../fits/README.md)", "examples/explain/all-held/README.md", site)
    assert below == "[a](../faq.md) [b](fits.md)"
