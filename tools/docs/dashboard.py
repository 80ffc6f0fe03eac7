"""Writes the Grafana dashboard. ``python -m tools.docs.dashboard examples/monitoring/grafana-dashboard.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, convert

_HEIGHT = 8
_COLUMNS = 24


class Panel(Struct, frozen=True, forbid_unknown_fields=True):
    """One panel; ``queries`` are by their legends, ``kind`` is Grafana's type of panel."""

    title: str
    about: str
    queries: dict[str, str]
    width: int = 12
    kind: str = "timeseries"
    unit: str = "short"


class Row(Struct, frozen=True):
    """A title, and the panels below it."""

    title: str
    panels: tuple[Panel, ...]


def rows() -> tuple[Row, ...]:
    """What ``dashboard.yaml`` says."""
    return convert(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")), tuple[Row, ...])


def dashboard() -> dict[str, Any]:
    """The dashboard in Grafana's JSON model."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in rows():
        panels.append(
            {"type": "row", "title": row.title, "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": y}, "panels": []}
        )
        y, x = y + 1, 0
        for panel in row.panels:
            if x + panel.width > _COLUMNS:
                x, y = 0, y + _HEIGHT
            panels.append(_panel(panel, x, y))
            x += panel.width
        y += _HEIGHT
    for number, one in enumerate(panels, start=1):
        one["id"] = number
    return {
        "uid": "kubectl-dra",
        "title": "Dynamic Resource Allocation",
        "description": "What waits and why, devices, claims, taints, what kubelets and drivers do: docs/monitoring.md.",
        "tags": ["kubernetes", "dra"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {
            "list": [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }


def _panel(panel: Panel, x: int, y: int) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": source,
        "gridPos": {"h": _HEIGHT, "w": panel.width, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": source, "expr": query, "legendFormat": legend}
            for number, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def text() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
