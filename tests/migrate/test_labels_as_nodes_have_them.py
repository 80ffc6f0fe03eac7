"""A selector admits the devices of those nodes that the label expression admits: for any device and expression."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_dra.api.releases import Release
from kubectl_dra.migrate.device_plugins.placement import agreed, placement
from kubectl_dra.migrate.vendors.catalogue import load
from tests.conformance.cel import RecordedDevice
from tests.migrate.vendor_devices import matches

CATALOGUE = load()
PRODUCTS = (
    "NVIDIA A100-SXM4-40GB",
    "NVIDIA L4",
    "NVIDIA L40S",
    "Tesla T4",
    "NVIDIA H100 80GB HBM3",
    "Quadro RTX 6000/8000",
)
ARCHITECTURES = ("Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper")
MIB = 1 << 20


def device(product: str, architecture: str, memory: int, major: int, minor: int) -> RecordedDevice:
    """A GPU as NVIDIA's driver publishes it."""
    attributes = {
        "type": {"string": "gpu"},
        "productName": {"string": product},
        "architecture": {"string": architecture},
        "cudaComputeCapability": {"version": f"{major}.{minor}.0"},
        "driverVersion": {"version": "580.126.20"},
        "cudaDriverVersion": {"version": "13.0.0"},
    }
    return RecordedDevice("gpu.nvidia.com", attributes, {"memory": {"value": str(memory)}}, False)


def labels(device: RecordedDevice) -> dict[str, str]:
    """The labels that GPU feature discovery gives the node of a GPU."""
    product = re.sub(r"[^A-Za-z0-9._ -]", "", device.attributes["productName"]["string"])
    major, minor, _ = device.attributes["cudaComputeCapability"]["version"].split(".")
    return {
        "nvidia.com/gpu.product": re.sub(r"\s+", "-", product),
        "nvidia.com/gpu.family": device.attributes["architecture"]["string"].lower().replace(" ", "-"),
        "nvidia.com/gpu.memory": str(int(device.capacity["memory"]["value"]) // MIB),
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.present": "true",
        "topology.kubernetes.io/zone": "a",
    }


DEVICES = st.builds(
    device,
    st.sampled_from(PRODUCTS),
    st.sampled_from(ARCHITECTURES),
    # About whole mebibytes, where labels are rounded down.
    st.builds(lambda mib, bytes: mib * MIB + bytes, st.integers(16380, 16386), st.sampled_from([0, 1, MIB - 1])),
    st.integers(6, 9),
    st.integers(0, 9),
)
VALUES = {
    "nvidia.com/gpu.product": st.sampled_from(
        [labels(device(each, "Volta", 0, 7, 0))["nvidia.com/gpu.product"] for each in PRODUCTS]
    ),
    "nvidia.com/gpu.family": st.sampled_from([each.lower().replace(" ", "-") for each in ARCHITECTURES]),
    "nvidia.com/gpu.memory": st.integers(16379, 16387).map(str),
    "nvidia.com/gpu.compute.major": st.integers(6, 9).map(str),
    "nvidia.com/gpu.compute.minor": st.integers(0, 9).map(str),
}
NUMBERS = [key for key in VALUES if "product" not in key and "family" not in key]


@st.composite
def expressions(draw: st.DrawFn) -> dict[str, Any]:
    """An expression on a label that says something of GPUs."""
    operator = draw(st.sampled_from(["In", "In", "NotIn", "Gt", "Lt", "Exists"]))
    key = draw(st.sampled_from(NUMBERS if operator in ("Gt", "Lt") else sorted(VALUES)))
    if operator == "Exists":
        return {"key": draw(st.sampled_from([*VALUES, "nvidia.com/gpu.present"])), "operator": operator}
    most = 1 if operator in ("Gt", "Lt") else 3
    return {"key": key, "operator": operator, "values": draw(st.lists(VALUES[key], min_size=1, max_size=most))}


def is_true(expression: dict[str, Any], node: dict[str, str]) -> bool:
    """Whether a node's labels satisfy an expression, as the scheduler reads it."""
    value, values = node.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case _:
            return value is not None and int(value) < int(values[0])


TERMS = st.lists(st.lists(expressions(), min_size=1, max_size=3), min_size=1, max_size=3)


@settings(max_examples=150)
@given(DEVICES, TERMS, st.dictionaries(st.sampled_from(sorted(VALUES)), st.none(), max_size=2), st.data())
def test_selectors_admit_what_the_labels_admit(
    gpu: RecordedDevice, terms: list[list[dict[str, Any]]], keys: dict[str, None], data: st.DataObject
) -> None:
    selector = {key: data.draw(VALUES[key]) for key in keys}
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    spec = {
        "nodeSelector": selector,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    resource = CATALOGUE.resource("nvidia.com/gpu")
    assert resource is not None
    made = placement(spec, resource, CATALOGUE, Release(1, 36))
    assert not made.refusals and not made.notes
    node = labels(gpu)
    wanted = all(node[key] == value for key, value in selector.items()) and any(
        all(is_true(expression, node) for expression in term) for term in terms
    )
    assert matches(made.selectors, gpu) == wanted
    # All of it went into selectors, so nothing of it may stay.
    assert {change.path for change in agreed(spec, [made]).changes} <= {("nodeSelector",), ("affinity",)}
    assert ("affinity",) in {change.path for change in agreed(spec, [made]).changes}
