"""The page about vendors is what the files say, and its example loads."""

from __future__ import annotations

from pathlib import Path

from kubectl_dra.migrate.vendors.catalogue import load
from tools.docs.vendors import EXAMPLE, page

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "vendors.md").read_text("utf-8") == page(), "run make docs"


def test_every_vendor_is_on_the_page() -> None:
    text = page()
    for vendor in load().vendors.values():
        assert f"## {vendor.title}\n" in text
        for rule in vendor.resources:
            assert rule.pattern is not None or f"`{rule.name}`" in text


def test_the_example_loads(tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text(EXAMPLE)
    found = load([str(file)]).resource("acme.io/npu-x2")
    assert found is not None
    assert found.selectors == ('device.attributes["npu.acme.io"].model == "x2"',)
