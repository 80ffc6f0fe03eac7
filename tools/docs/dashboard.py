"""Writes the Grafana dashboard. ``python -m tools.docs.dashboard examples/monitoring/grafana-dashboard.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

_HEIGHT = 8
_COLUMNS = 24


class Panel(NamedTuple):
    """One panel; ``queries`` are (expression, legend), ``kind`` is Grafana's type of panel."""

    title: str
    about: str
    queries: tuple[tuple[str, str], ...]
    width: int = 12
    kind: str = "timeseries"
    unit: str = "short"


def _quantile(metric: str, by: str) -> str:
    return f"histogram_quantile(0.99, sum by (le, {by}) (rate({metric}_bucket[$__rate_interval])))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Fleet (kubectl dra metrics)",
        (
            Panel(
                "Pods that wait, by cause",
                "The cause is the code that kubectl dra explain names; docs/causes has a page for each.",
                (("sum by (cause) (kubectl_dra_pending_pods) > 0", "{{cause}}"),),
            ),
            Panel(
                "Longest wait by namespace and cause",
                "The age of the oldest pod.",
                (
                    (
                        "max by (namespace, cause) (time() - kubectl_dra_pending_pods_oldest_timestamp_seconds)",
                        "{{namespace}} {{cause}}",
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Devices by state",
                "Each device once. Unpublished ones are held, and no ResourceSlice has them.",
                (("sum by (state) (kubectl_dra_devices)", "{{state}}"),),
            ),
            Panel(
                "Free devices by class",
                "A device of several classes counts in each.",
                (('sum by (device_class) (kubectl_dra_device_class_devices{state="free"})', "{{device_class}}"),),
            ),
            Panel(
                "Largest request that fits, by class",
                "How many devices one node can still serve at once: free ones on many nodes are no use to a large pod.",
                (("kubectl_dra_device_class_largest_request", "{{device_class}}"),),
            ),
            Panel(
                "Idle devices, by namespace",
                "Held by claims that are unused, or whose pods have ended.",
                (("kubectl_dra_namespace_devices_idle > 0", "{{namespace}}"),),
            ),
            Panel(
                "Drivers that are not well",
                "Nodes by driver and state.",
                (('sum by (driver, state) (kubectl_dra_driver_nodes{state!="healthy"}) > 0', "{{driver}} {{state}}"),),
            ),
            Panel(
                "Lag",
                "How old the oldest change is that these panels do not show.",
                (("kubectl_dra_lag_seconds", "lag"),),
                unit="s",
            ),
        ),
    ),
    (
        "Claims and pods",
        (
            Panel(
                "Claims without devices",
                "ResourceClaims that are not allocated, also those that no pod uses.",
                (('sum(resourceclaim_controller_resource_claims{allocated="false"})', "claims"),),
                width=6,
                kind="stat",
            ),
            Panel(
                "Pods that claims keep pending",
                "Pods that the scheduler's plugin for claims turned away. kubectl dra explain -A says why.",
                (('sum(scheduler_unschedulable_pods{plugin="DynamicResources"})', "pods"),),
                width=6,
                kind="stat",
            ),
            Panel(
                "Claims",
                "By where they come from: a template, an extended resource, or a user.",
                (
                    (
                        "sum by (allocated, source) (resourceclaim_controller_resource_claims)",
                        "allocated={{allocated}} {{source}}",
                    ),
                ),
            ),
            Panel(
                "Claims created from templates",
                "Creations of the resource claim controller.",
                (
                    (
                        "sum by (status) (rate(resourceclaim_controller_creates_total[$__rate_interval]))",
                        "{{status}}",
                    ),
                ),
                unit="ops",
            ),
            Panel(
                "Pods pending, all reasons",
                "The scheduler's queues.",
                (("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),),
            ),
        ),
    ),
    (
        "Taints",
        (
            Panel(
                "Pods deleted for a device's taint",
                "By the device taint eviction controller.",
                (("sum(rate(device_taint_eviction_controller_pod_deletions_total[$__rate_interval]))", "pods"),),
                unit="ops",
            ),
            Panel(
                "Time from taint to deletion, 99th percentile",
                "Long ones have tolerationSeconds, or the controller is behind.",
                (
                    (
                        "histogram_quantile(0.99, sum by (le) "
                        "(rate(device_taint_eviction_controller_pod_deletion_duration_seconds_bucket[$__rate_interval])))",
                        "p99",
                    ),
                ),
                unit="s",
            ),
        ),
    ),
    (
        "Nodes (kubelet)",
        (
            Panel(
                "Claims in use",
                "By driver. <any> counts each claim once.",
                (("sum by (driver_name) (dra_resource_claims_in_use)", "{{driver_name}}"),),
            ),
            Panel(
                "Preparing fails",
                "Pods whose devices the kubelet could not prepare or give back.",
                (
                    (
                        "sum by (instance, operation_name) "
                        '(rate(dra_operations_duration_seconds_count{is_error="true"}[$__rate_interval]))',
                        "{{instance}} {{operation_name}}",
                    ),
                ),
                unit="ops",
            ),
            Panel(
                "Time to prepare, 99th percentile",
                "All claims of a pod together.",
                ((_quantile("dra_operations_duration_seconds", "operation_name"), "{{operation_name}}"),),
                unit="s",
            ),
            Panel(
                "Calls to drivers, 99th percentile",
                "By driver and method.",
                (
                    (
                        _quantile("dra_grpc_operations_duration_seconds", "driver_name, method_name"),
                        "{{driver_name}} {{method_name}}",
                    ),
                ),
                unit="s",
            ),
        ),
    ),
    (
        "Drivers (empty where a driver is not installed, or its metrics are off)",
        (
            Panel(
                "NVIDIA: prepared devices",
                "dra-driver-nvidia-gpu.",
                (("sum by (driver, device_type) (nvidia_dra_prepared_devices)", "{{driver}} {{device_type}}"),),
            ),
            Panel(
                "NVIDIA: errors",
                "dra-driver-nvidia-gpu.",
                (
                    (
                        "sum by (driver, error_type) (rate(nvidia_dra_node_prepare_errors_total[$__rate_interval]))",
                        "prepare {{driver}} {{error_type}}",
                    ),
                    (
                        "sum by (driver, error_type) (rate(nvidia_dra_node_unprepare_errors_total[$__rate_interval]))",
                        "unprepare {{driver}} {{error_type}}",
                    ),
                ),
                unit="ops",
            ),
            Panel(
                "CPUs",
                "dra-driver-cpu.",
                (
                    ("sum(dra_cpu_allocated_cpus)", "allocated"),
                    ("sum(dra_cpu_available_cpus)", "available"),
                    ("sum(dra_cpu_reserved_cpus)", "reserved"),
                ),
            ),
            Panel(
                "DRANET: requests",
                "By method and status.",
                (
                    (
                        "sum by (method, status) (rate(dranet_driver_dra_plugin_requests_total[$__rate_interval]))",
                        "{{method}} {{status}}",
                    ),
                ),
                unit="ops",
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The dashboard in Grafana's JSON model."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append({"type": "row", "title": title, "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": y}, "panels": []})
        y, x = y + 1, 0
        for panel in row:
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
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }


def text() -> str:
    """The file."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
