"""What cannot be decoded: unknown fields, wrong types, values that do not parse."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.admission.server.decoding import scalar_problem
from kubectl_dra.admission.server.verdict import check
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.releases import Release
from tests.admission.server.support import BASES, Edits, edited

REQUEST = "spec/devices/requests/0"
DEVICE = "spec/devices/0"


def broken(manifest: dict[str, Any], minor: int = 36) -> list[tuple[str, str, str]]:
    verdict = check(manifest, release=Release(1, minor))
    assert verdict is not None
    found = [one for one in verdict.violations if one.reason == "BadRequest"]
    assert found == (list(verdict.violations) if verdict.code == 400 else [])
    return [(one.field, one.rule, one.message) for one in found]


@pytest.mark.parametrize(
    ("base", "edits", "field", "rule"),
    [
        ("claim", {"spec/x": None}, "spec.x", "unknown-field"),
        ("claim", {"metadata/x": 1}, "metadata.x", "unknown-field"),
        ("claim", {"x": 1}, "x", "unknown-field"),
        ("claim", {f"{REQUEST}/deviceClassName": "c"}, "spec.devices.requests[0].deviceClassName", "unknown-field"),
        (
            "claim",
            {"spec/devices/requests/1/firstAvailable/0/adminAccess": True},
            "spec.devices.requests[1].firstAvailable[0].adminAccess",
            "unknown-field",
        ),
        ("class", {"spec/config/0/requests": []}, "spec.config[0].requests", "unknown-field"),
        ("slice", {f"{DEVICE}/basic": {}}, "spec.devices[0].basic", "unknown-field"),
        ("slice", {f"{DEVICE}/capacity/bw": "1"}, "spec.devices[0].capacity[bw]", "type-mismatch"),
        ("slice", {f"{DEVICE}/capacity/bw": {"value": "1GB"}}, "spec.devices[0].capacity[bw].value", "quantity-syntax"),
        ("slice", {f"{DEVICE}/taints/0/timeAdded": "now"}, "spec.devices[0].taints[0].timeAdded", "time-syntax"),
        ("slice", {"spec/pool/generation": 2**63}, "spec.pool.generation", "type-mismatch"),
        ("slice", {"spec/pool/generation": 1.5}, "spec.pool.generation", "type-mismatch"),
        ("slice", {"spec/pool": []}, "spec.pool", "type-mismatch"),
        ("slice", {"spec/devices": {}}, "spec.devices", "type-mismatch"),
        ("slice", {"spec/devices/0": "x"}, "spec.devices[0]", "type-mismatch"),
        ("template", {"spec/metadata/labels": {"a": 1}}, "spec.metadata.labels[a]", "type-mismatch"),
        ("pod", {"spec/resourceClaims/0/source": {}}, "spec.resourceClaims[0].source", "unknown-field"),
        ("pod", {"spec/containers/0/image": True}, "spec.containers[0].image", "type-mismatch"),
        (
            "pod",
            {"spec/containers/0/resources/limits": {"cpu": []}},
            "spec.containers[0].resources.limits[cpu]",
            "quantity-syntax",
        ),
        ("deployment", {"spec/replicas": 2**31}, "spec.replicas", "type-mismatch"),
        ("quota", {"spec/hard": []}, "spec.hard", "type-mismatch"),
    ],
)
def test_bad_request(base: str, edits: Edits, field: str, rule: str) -> None:
    assert [found[:2] for found in broken(edited(base, edits))] == [(field, rule)]


def test_all_mistakes_are_named_and_nothing_else_is_checked() -> None:
    manifest = edited("slice", {"spec/x": 1, "spec/driver": "", "spec/pool/generation": "1"})
    assert {found[0] for found in broken(manifest)} == {"spec.x", "spec.pool.generation"}


@pytest.mark.parametrize("base", sorted(BASES))
def test_null_is_accepted_for_every_field(base: str) -> None:
    assert broken({**BASES[base], "metadata": None, "spec": None}) == []
    for name in BASES[base]["spec"]:
        assert broken(edited(base, {f"spec/{name}": None})) == []


@pytest.mark.parametrize(
    ("manifest", "hint"),
    [
        (edited("claim", {f"{REQUEST}/deviceClassName": "c"}), "in v1: it is inside exactly"),
        (edited("claim", {"apiVersion": "resource.k8s.io/v1beta1"}), "in v1beta1: its content is directly in the"),
        (edited("slice", {f"{DEVICE}/basic": {}}), "in v1: its content is directly in the device"),
        (edited("slice", {"apiVersion": "resource.k8s.io/v1beta1"}), "in v1beta1: it is inside basic"),
        (edited("slice", {f"{DEVICE}/nodeAllocatableResources": {}}), "in 1.36: it came with 1.37"),
        (edited("claim", {"spec/devicez": {}}), "did you mean 'devices'?"),
        (edited("pod", {"spec/resourceClaims/0/source": {}}), "since 1.31"),
    ],
)
def test_hints(manifest: dict[str, Any], hint: str) -> None:
    assert any(hint in message for _, _, message in broken(manifest))


def test_fields_of_a_release() -> None:
    mappings = edited("slice", {f"{DEVICE}/nodeAllocatableResourceMappings": {}})
    assert broken(mappings) == []
    assert [found[1] for found in broken(mappings, 37)] == ["unknown-field"]
    assert not fields("DeviceRequest")["firstAvailable"].exists(Release(1, 32))
    selectors = fields("DeviceTaintSelector", "v1alpha3")["selectors"]
    assert selectors.exists(Release(1, 34))
    assert not selectors.exists(Release(1, 35))


def test_fields_given_twice() -> None:
    verdict = check(BASES["claim"], duplicate_fields=[("spec", "devices")])
    assert verdict is not None and verdict.code == 400
    assert [(one.path, one.rule) for one in verdict.violations] == [(("spec", "devices"), "duplicate-field")]


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        ("2026-01-01T00:00:00Z", "time", True),
        ("2026-01-01T00:00:00.123+01:00", "time", True),
        ("2024-02-29T23:59:59Z", "time", True),
        ("2026-02-29T00:00:00Z", "time", False),
        ("2026-01-01T24:00:00Z", "time", False),
        ("2026-01-01 00:00:00Z", "time", False),
        ("2026-01-01T00:00:00", "time", False),
        ("", "time", False),
        (7, "time", False),
        (2**31 - 1, "int32", True),
        (2**31, "int32", False),
        (-(2**63), "int", True),
        (2.0, "int", True),
        (True, "int", False),
        ("1", "int", False),
        (1, "bool", False),
        (" 1Gi ", "quantity", True),
        (0.5, "quantity", True),
        (True, "quantity", False),
        ("80%", "int-or-string", True),
        (1.5, "int-or-string", False),
        ([], "object", False),
        ([], "any", True),
        (1.5, "number", True),
        (True, "number", False),
        (None, "string", True),
    ],
)
def test_scalars(value: Any, kind: str, fits: bool) -> None:
    assert (scalar_problem(value, kind) is None) is fits
