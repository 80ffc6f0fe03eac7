"""The alerts and the dashboard: every name is one that something exposes."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.monitoring.exposed import DRIVERS, IMAGINED, KUBELET, from_sources, grouped, uses
from tests.monitoring.files import DASHBOARD, ROOT, RULE, alerts, expressions
from tools.docs import dashboard

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
# What the control plane exposes is scraped in test_scraped.py.
CONTROL_PLANE = ("scheduler_", "resourceclaim_controller_", "device_taint_eviction_controller_", "apiserver_")


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_names_that_no_test_can_scrape_are_in_the_sources(where: str, expression: str) -> None:
    known = from_sources()
    found = list(uses(expression))
    assert found
    for use in found:
        if not use.name.startswith(CONTROL_PLANE):
            assert use.name in known, f"{where}: nothing exposes {use.name}"
            assert use.labels <= known[use.name], f"{where}: {use.name} has {sorted(known[use.name])}"
            assert grouped(expression) <= known[use.name] | {"instance"}, where


def test_the_reader_of_expressions_finds_names_and_labels() -> None:
    found = list(
        uses('sum by (le, node) (rate(a_b_bucket{x="sum(c)", y!~"d"}[5m])) > 1e3 and on (z) e unless f offset 5m')
    )
    assert [(use.name, sorted(use.labels)) for use in found] == [("a_b_bucket", ["x", "y"]), ("e", []), ("f", [])]
    assert not list(uses("1 + 2e5"))


def test_the_dashboard_is_the_generated_one() -> None:
    expected = dashboard.text()
    assert DASHBOARD.read_text(encoding="utf-8") == expected, f"run: python -m tools.docs.dashboard {DASHBOARD}"


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard.dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert all(x < 24 for x, _ in cells)
        taken |= cells


def test_the_rule_is_one() -> None:
    rule = yaml.safe_load(RULE.read_text(encoding="utf-8"))
    assert (rule["apiVersion"], rule["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    names = [alert["alert"] for alert in alerts()]
    assert len(set(names)) == len(names)
    for alert in alerts():
        assert alert["annotations"]["summary"]
        assert alert["labels"]["severity"] in ("info", "warning", "critical")
        # A template may only name labels that are left after grouping.
        templated = set(re.findall(r"\$labels\.(\w+)", str(alert["annotations"])))
        bare = not re.search(r"\b(sum|increase)\b", alert["expr"])
        assert bare or templated <= grouped(alert["expr"]), alert["alert"]


def test_the_page_lists_every_alert_and_every_source() -> None:
    for alert in alerts():
        assert f"`{alert['alert']}`" in PAGE
    for repository, commit, _ in DRIVERS:
        assert repository in PAGE
        assert commit in PAGE
    for name in (*KUBELET, *IMAGINED):
        assert f"`{name}`" in PAGE


def test_what_is_imagined_is_not_used() -> None:
    for where, expression in expressions():
        assert not {use.name for use in uses(expression)} & set(IMAGINED), where
