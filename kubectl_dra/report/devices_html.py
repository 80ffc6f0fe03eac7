"""Devices as one HTML file: the fleet as a picture."""

from __future__ import annotations

from kubectl_dra.command import ClusterFlags
from kubectl_dra.explain.devices.inventory import Inventory
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.blocks import FunnelStep, Section, Steps, noted
from kubectl_dra.report.devices import nothing, summary
from kubectl_dra.report.html.blocks_html import blocks_html
from kubectl_dra.report.html.fleet import fleet_html
from kubectl_dra.report.html.lines import fleet_of
from kubectl_dra.report.html.page import Markup, PageOrigin, join, page, tag
from kubectl_dra.report.html.shares import bars_html, spaces_html
from kubectl_dra.report.phrases import commands_of, sentences


def to_html(inventory: Inventory, settings: Settings, origin: PageOrigin, where: ClusterFlags) -> str:
    """The page: the selection, the picture, and notes."""
    parts: list[Markup] = [tag("header", tag("h1", "Devices"))]
    if inventory.rows:
        top = join([tag("p", summary(inventory), class_="answer"), bars_html(inventory.rows)])
        parts.append(tag("section", tag("h2", "Fleet"), fleet_html(fleet_of(inventory.rows), "fleet", top)))
        parts.append(spaces_html(inventory.rows))
    else:
        parts.append(tag("section", tag("p", nothing(inventory), class_="answer")))
    if len(inventory.narrowed) > 1:
        counts = [remaining for _, remaining in inventory.narrowed]
        lost = [before - remaining for before, remaining in zip((counts[0], *counts), counts, strict=False)]
        steps = tuple(
            FunnelStep(remaining, gone, what) for (what, remaining), gone in zip(inventory.narrowed, lost, strict=True)
        )
        parts += blocks_html([Section("Selection", (Steps("What was asked for", "", steps),))], 2)
    source = f" ({settings.release_source})" if settings.release_source else ""
    notes = (*sentences(inventory.notes), f"assumed: Kubernetes {settings.scheduler.version}{source}")
    parts += blocks_html([noted(notes, commands_of(inventory.notes), where)], 2)
    return page("Devices", parts, origin)
