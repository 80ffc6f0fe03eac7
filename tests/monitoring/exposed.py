"""Which metrics there are: scraped from a control plane, and read in sources where nothing can be scraped.

Kubelets and drivers run on real nodes only. Their names are copied from their sources by hand, with the labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_dra.metrics.exposition import fleet_families
from tests.metrics.test_bounds import vast

HISTOGRAM: Final = ("_bucket", "_count", "_sum")


class Use(NamedTuple):
    """A series that an expression reads: the name, and the labels that it filters by."""

    name: str
    labels: frozenset[str]


# k8s.io/kubernetes v1.36.4, pkg/kubelet/metrics/metrics.go. test_sources.py compares it where the module is there.
KUBELET: Final[Mapping[str, tuple[str, ...]]] = {
    "dra_operations_duration_seconds": ("operation_name", "is_error"),
    "dra_grpc_operations_duration_seconds": ("driver_name", "method_name", "grpc_status_code"),
    "dra_resource_claims_in_use": ("driver_name",),
}

# The repository, its commit, the file, and the names in it.
DRIVERS: Final[Mapping[tuple[str, str, str], Mapping[str, tuple[str, ...]]]] = {
    ("kubernetes-sigs/dra-driver-nvidia-gpu", "95932046", "pkg/metrics/dra_requests.go"): {
        "nvidia_dra_requests_total": ("driver", "operation"),
        "nvidia_dra_request_duration_seconds": ("driver", "operation"),
        "nvidia_dra_requests_inflight": ("driver", "operation"),
        "nvidia_dra_prepared_devices": ("node", "driver", "device_type"),
        "nvidia_dra_node_prepare_errors_total": ("driver", "error_type"),
        "nvidia_dra_node_unprepare_errors_total": ("driver", "error_type"),
    },
    ("kubernetes-sigs/dra-driver-cpu", "de98098", "pkg/metrics/metrics.go"): {
        "dra_cpu_allocated_cpus": (),
        "dra_cpu_available_cpus": (),
        "dra_cpu_reserved_cpus": (),
        "dra_cpu_resource_claims_active": (),
        "dra_cpu_prepare_claims_total": ("result",),
        "dra_cpu_unprepare_claims_total": ("result",),
        "dra_cpu_prepare_claim_duration_seconds": (),
        "dra_cpu_claim_allocated_cpus": (),
    },
    ("kubernetes-sigs/dranet", "f258477", "pkg/driver/metrics.go"): {
        "dranet_driver_dra_plugin_requests_total": ("method", "status"),
        "dranet_driver_dra_plugin_requests_latency_seconds": ("method",),
        "dranet_driver_nri_plugin_requests_total": ("method", "status"),
        "dranet_driver_nri_plugin_requests_latency_seconds": ("method", "status"),
        "dranet_driver_published_devices_total": ("feature",),
        "dranet_driver_last_published_time_seconds": (),
    },
    ("kubernetes-sigs/dra-example-driver", "31914ce", "pkg/metrics/driver.go"): {
        "dra_example_driver_prepare_claims_total": ("result",),
        "dra_example_driver_prepare_claim_duration_seconds": ("result",),
        "dra_example_driver_unprepare_claims_total": ("result",),
        "dra_example_driver_unprepare_claim_duration_seconds": ("result",),
        "dra_example_driver_fatal_background_errors_total": (),
    },
}

# Names met in queries of public repositories. None of them is in Kubernetes 1.36.
IMAGINED: Final = (
    "dra_allocation_failures_total",
    "kube_resourceclaim_status_devices",
    "kube_resourceclaim_status_pending",
    "kube_resourceclaim_status_phase",
)

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_SERIES: Final = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?P<braces>\{[^}]*\})?")
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_WORDS: Final = frozenset(
    (
        "and",
        "or",
        "unless",
        "bool",
        "offset",
        "by",
        "without",
        "on",
        "ignoring",
        "group_left",
        "group_right",
        "inf",
        "nan",
    )
)


def uses(expression: str) -> Iterator[Use]:
    """The series that a PromQL expression reads."""
    plain = _STRING.sub('""', expression)
    plain = _GROUPING.sub(" ", plain)
    plain = re.sub(r"\[[^\]]*\]", " ", plain)
    for match in _SERIES.finditer(plain):
        rest = plain[match.end() :].lstrip()
        if match["name"].lower() in _WORDS or (rest.startswith("(") and not match["braces"]):
            continue
        # A number such as 1e3 is no name.
        if match.start() and plain[match.start() - 1].isdigit():
            continue
        yield Use(match["name"], frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", match["braces"] or "")))


def from_sources() -> dict[str, frozenset[str]]:
    """Every name of KUBELET and DRIVERS, with the names that its histogram has, to its labels."""
    out: dict[str, frozenset[str]] = {}
    for table in (KUBELET, *DRIVERS.values()):
        for name, labels in table.items():
            out[name] = frozenset(labels)
            if re.search(r"(duration|latency)_seconds$|claim_allocated_cpus$", name):
                out |= {name + suffix: frozenset((*labels, "le")) for suffix in HISTOGRAM}
    return {**out, **ours()}


def ours() -> dict[str, frozenset[str]]:
    """The metrics of ``kubectl dra metrics``, from a cluster that has everything."""
    families = fleet_families(vast())
    found = {sample.name: frozenset(sample.labels) for family in families for sample in family.samples}
    return {**found, "kubectl_dra_lag_seconds": frozenset()}


def scraped(text: str) -> dict[str, frozenset[str]]:
    """The names in the answer of ``/metrics``, each with the labels it was seen with."""
    out: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        match = re.match(r"([a-zA-Z_:][\w:]*)(\{.*\})?\s", line)
        if match is not None and not line.startswith("#"):
            found = frozenset(re.findall(r'(\w+)="', match[2] or ""))
            out[match[1]] = out.get(match[1], frozenset()) | found
    return out


def grouped(expression: str) -> frozenset[str]:
    """The labels by which an expression groups."""
    found = re.findall(r"\bby\s*\(([^)]*)\)", expression)
    return frozenset(label.strip() for group in found for label in group.split(",") if label.strip())
