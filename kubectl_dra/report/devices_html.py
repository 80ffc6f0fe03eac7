"""Devices as one HTML file: the fleet as a picture."""

from __future__ import annotations

from kubectl_dra.explain.devices.inventory import Inventory
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.report.devices_text import summary
from kubectl_dra.report.html.fleet import fleet_html
from kubectl_dra.report.html.funnel import narrowed_html
from kubectl_dra.report.html.lines import fleet_of
from kubectl_dra.report.html.markup import Markup, tag
from kubectl_dra.report.html.origin import PageOrigin
from kubectl_dra.report.html.page import notes_html, page
from kubectl_dra.report.phrases import written


def to_html(inventory: Inventory, settings: Settings, origin: PageOrigin) -> str:
    """The page: the selection, the picture, and notes."""
    parts: list[Markup] = [tag("header", tag("h1", "Devices"))]
    if len(inventory.narrowed) > 1:
        parts.append(tag("section", tag("h2", "Selection"), narrowed_html(inventory.narrowed)))
    if inventory.rows:
        picture = fleet_html(fleet_of(inventory.rows), "fleet", summary(inventory))
        parts.append(tag("section", tag("h2", "Fleet"), picture))
    else:
        sentence = "No device matches." if inventory.narrowed[0][1] else "No device is published."
        parts.append(tag("section", tag("p", sentence, class_="answer")))
    source = f" ({settings.release_source})" if settings.release_source else ""
    parts.append(notes_html([f"assumed: Kubernetes {settings.release}{source}", *map(written, inventory.notes)]))
    return page("Devices", parts, origin)
