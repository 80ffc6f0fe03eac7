"""Prometheus' own checker: it reads every expression, and each alert fires when it should and only then."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.monitoring.files import RULE, alerts, expressions
from tests.packaging import toolbox


class Case(NamedTuple):
    """Series with one sample a minute (promtool's notation), and the labels with which the alert fires at a minute.

    Without labels it must be silent.
    """

    alert: str
    series: dict[str, str]
    minute: int
    fires: tuple[dict[str, str], ...] = ()
    value: str = ""


PENDING = 'resourceclaim_controller_resource_claims{allocated="false", admin_access="false", source="%s"}'
TURNED_AWAY = 'scheduler_unschedulable_pods{plugin="%s", profile="default-scheduler"}'
CREATES = 'resourceclaim_controller_creates_total{status="%s", admin_access="false"}'
PREPARES = 'dra_operations_duration_seconds_count{instance="%s", operation_name="%s", is_error="%s"}'
CALLS = (
    'dra_grpc_operations_duration_seconds_count{instance="n1", driver_name="gpu", method_name="prepare", '
    'grpc_status_code="%s"}'
)
NVIDIA = 'nvidia_dra_node_prepare_errors_total{instance="n1", driver="gpu.nvidia.com", error_type="x"}'
DRANET = 'dranet_driver_dra_plugin_requests_total{instance="n1", method="%s", status="%s"}'
EVICTED = "device_taint_eviction_controller_pod_deletions_total"
CASES = (
    Case("DRAClaimsPending", {PENDING % "template": "2+0x40", PENDING % "user": "1+0x40"}, 29),
    Case("DRAClaimsPending", {PENDING % "template": "2+0x40", PENDING % "user": "1+0x40"}, 31, ({},), "3"),
    Case("DRAClaimsPending", {PENDING % "template": "2+0x20 0 2+0x20"}, 40),
    Case("DRAClaimsPending", {PENDING.replace('"false"', '"true"', 1) % "template": "9+0x60"}, 60),
    Case("DRAPodsUnschedulable", {TURNED_AWAY % "DynamicResources": "0+0x4 4+0x30"}, 19),
    Case("DRAPodsUnschedulable", {TURNED_AWAY % "DynamicResources": "0+0x4 4+0x30"}, 21, ({},), "4"),
    Case("DRAPodsUnschedulable", {TURNED_AWAY % "NodeResourcesFit": "4+0x30"}, 30),
    Case("DRAClaimCreationFails", {CREATES % "failure": "0+0x5 1+1x10"}, 10, ({},)),
    Case("DRAClaimCreationFails", {CREATES % "failure": "7+0x40", CREATES % "success": "0+3x40"}, 40),
    # A series that begins with its only failure has not increased.
    Case("DRAClaimCreationFails", {CREATES % "failure": "_x5 1+0x30"}, 10),
    Case("DRAEvictionInProgress", {EVICTED: "0+0x5 3+0x30"}, 7, ({},)),
    Case("DRAEvictionInProgress", {EVICTED: "0+0x5 3+0x30"}, 20),
    Case("DRACPUDriverHasNoneLeft", {'dra_cpu_available_cpus{instance="n1"}': "0+0x20"}, 16, ({"instance": "n1"},)),
    Case("DRACPUDriverHasNoneLeft", {'dra_cpu_available_cpus{instance="n1"}': "1+0x20"}, 16),
    Case("DRAPrepareFails", {PREPARES % ("n1", "PrepareResources", "true"): "1+1x20"}, 10, ({"instance": "n1"},)),
    Case("DRAPrepareFails", {PREPARES % ("n1", "PrepareResources", "false"): "1+1x20"}, 10),
    Case("DRAPrepareFails", {PREPARES % ("n1", "UnprepareResources", "true"): "1+1x20"}, 10),
    Case("DRAUnprepareFails", {PREPARES % ("n2", "UnprepareResources", "true"): "1+1x40"}, 20, ({"instance": "n2"},)),
    Case("DRAUnprepareFails", {PREPARES % ("n2", "PrepareResources", "true"): "1+1x40"}, 20),
    Case(
        "DRADriverCallsFail",
        {CALLS % "Unavailable": "1+1x20", CALLS % "OK": "1+1x20"},
        10,
        ({"instance": "n1", "driver_name": "gpu", "method_name": "prepare", "grpc_status_code": "Unavailable"},),
    ),
    Case("DRADriverCallsFail", {CALLS % "OK": "1+1x20"}, 10),
    Case(
        "DRANvidiaPrepareFails",
        {NVIDIA: "1+1x20"},
        10,
        ({"instance": "n1", "driver": "gpu.nvidia.com", "error_type": "x"},),
    ),
    Case("DRANvidiaPrepareFails", {NVIDIA: "5+0x40"}, 40),
    Case("DRANetPrepareFails", {DRANET % ("PrepareResourceClaims", "failed"): "1+1x20"}, 10, ({"instance": "n1"},)),
    Case("DRANetPrepareFails", {DRANET % ("PrepareResourceClaims", "success"): "1+1x20"}, 10),
)


@pytest.fixture(scope="module")
def promtool() -> Path:
    """The program. Skips where it cannot be had."""
    try:
        return toolbox.promtool()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_reads_the_rules_and_the_queries(promtool: Path, tmp_path: Path) -> None:
    spec = yaml.safe_load(RULE.read_text(encoding="utf-8"))["spec"]
    # As Grafana sends them: it fills in its own variable.
    records = [
        {"record": f"query:{number}", "expr": text.replace("$__rate_interval", "5m")}
        for number, (_, text) in enumerate(expressions())
    ]
    both = {"groups": [*spec["groups"], {"name": "queries", "rules": records}]}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(both))
    told = run(promtool, "check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yaml")
    assert f"SUCCESS: {len(alerts()) + len(records)} rules found" in told


def test_every_alert_fires_and_is_silent() -> None:
    """Those of ``kubectl dra metrics`` in ``test_situations``."""
    for alert in alerts():
        if "kubectl_dra_" in alert["expr"]:
            continue
        mine = [case for case in CASES if case.alert == alert["alert"]]
        assert {bool(case.fires) for case in mine} == {True, False}, alert["alert"]


def test_alerts_fire_when_they_should(promtool: Path, tmp_path: Path) -> None:
    spec = yaml.safe_load(RULE.read_text(encoding="utf-8"))["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [rule_test(case) for case in CASES]}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    run(promtool, "test", "rules", tmp_path / "tests.yaml")


def rule_test(case: Case) -> dict[str, Any]:
    alert = next(one for one in alerts() if one["alert"] == case.alert)
    expected = [
        {
            "exp_labels": {**alert["labels"], **labels},
            "exp_annotations": {key: _filled(text, labels, case.value) for key, text in alert["annotations"].items()},
        }
        for labels in case.fires
    ]
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [{"eval_time": f"{case.minute}m", "alertname": case.alert, "exp_alerts": expected}],
    }


def _filled(text: str, labels: dict[str, str], value: str) -> str:
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: labels[match[1]], text)
    return text.replace("{{ $value }}", value)
