"""The expressions in examples/monitoring, with where they stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "monitoring"
RULE = FOLDER / "prometheus-rule.yaml"
DASHBOARD = FOLDER / "grafana-dashboard.json"


def alerts() -> list[dict[str, Any]]:
    """The alerts of the PrometheusRule."""
    groups = yaml.safe_load(RULE.read_text(encoding="utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """(alert or panel, expression)."""
    for alert in alerts():
        yield alert["alert"], alert["expr"]
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
