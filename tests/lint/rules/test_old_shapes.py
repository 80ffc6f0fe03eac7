"""Shapes of older and imagined APIs: the advice is what to write, and what it says to write is right."""

from __future__ import annotations

import pytest
import yaml

from kubectl_dra.lint.finding import LocatedFinding
from tests.lint.support import findings, report

CLAIM = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpus"}}

ALTERNATIVES = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpus}
spec:
  deviceRequests:
  - name: GPUs for training
    allocationMode: ExactCount
    count: 4
    alternatives:
    - {selector: gpu.nvidia.com/model=L40, priority: 10}
    - {selector: gpu.nvidia.com/model=H200, priority: 90, count: 2}
    - {selector: accel.example.com/tier=gold, priority: 50}
"""
CLASSIC = """\
apiVersion: resource.k8s.io/v1alpha2
kind: %s
metadata: {name: gpus}
spec:
%s
"""


def only(text: str, code: str) -> LocatedFinding:
    (found,) = (one for one in findings(text, "DRA") if one.code == code)
    return found


def written(advice: str, start: str) -> list[LocatedFinding]:
    """What lint says of a claim with the devices that the advice tells to write."""
    rest = advice.partition(start)[2]
    depth = [0]
    for character in rest:
        depth.append(depth[-1] + {"{": 1, "}": -1}.get(character, 0))
    devices = yaml.safe_load(rest[: depth.index(0, 1)])
    found = findings(yaml.safe_dump({**CLAIM, "spec": {"devices": devices}}), "DRA")
    return [one for one in found if one.severity == "error"]


def test_alternatives_become_first_available_in_the_order_of_their_priority() -> None:
    advice = only(ALTERNATIVES, "DRA101").advice
    assert written(advice, "Write devices: ") == []
    devices = yaml.safe_load(advice.removeprefix("Write devices: "))
    assert yaml.safe_load("\n".join(only(ALTERNATIVES, "DRA101").block)) == {"devices": devices}
    (request,) = devices["requests"]
    assert request["name"] == "gpus-for-training"
    assert [(one["name"], one["deviceClassName"], one["count"]) for one in request["firstAvailable"]] == [
        ("h200", "gpu.nvidia.com", 2),
        ("gold", "accel.example.com", 4),
        ("l40", "gpu.nvidia.com", 4),
    ]
    assert [one["selectors"][0]["cel"]["expression"] for one in request["firstAvailable"]] == [
        'device.attributes["gpu.nvidia.com"].productName.contains("H200")',
        'device.attributes["accel.example.com"].tier == "gold"',
        'device.attributes["gpu.nvidia.com"].productName.contains("L40")',
    ]


@pytest.mark.parametrize("value", ["3", "[]", "[a]", "{name: x}"])
def test_what_has_no_shape_gets_the_general_advice(value: str) -> None:
    text = f"{yaml.safe_dump(CLAIM)}spec: {{deviceRequests: {value}}}\n"
    assert only(text, "DRA101").advice.startswith("Write spec.devices.requests;")


def test_a_plain_device_request_becomes_exactly() -> None:
    text = (
        f"{yaml.safe_dump(CLAIM)}spec: {{deviceRequests: [{{name: gpu, deviceClassName: gpu.nvidia.com, count: 2}}]}}\n"
    )
    advice = only(text, "DRA101").advice
    assert "exactly: {deviceClassName: gpu.nvidia.com, count: 2}" in advice
    assert written(advice, "Write devices: ") == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("  resourceClassName: gpu.nvidia.com", ["deviceClassName: gpu.nvidia.com}"]),
        ("  resourceClassName: a\n  parameters: {kind: P, count: 4, selector: {}}", ["count: 4", "Nothing else"]),
        ("  resourceClassName: a\n  parameters: {kind: P, sharing: {x: 1}}", ["sharing become selectors"]),
        ("  resourceClassName: a\n  allocationMode: Immediate", ["allocationMode goes"]),
        ("  resourceClassName: a\n  parametersRef: {kind: P, name: q}", ["What P q says"]),
        (
            "  resourceClassName: a\n  constraints: [{nodeSelector: {zone: z1}}]",
            ["nodeSelector {zone: z1} into the pod"],
        ),
        ("  bogus: 1", ["deviceClassName: CLASS", "bogus goes."]),
        ("  - a", ["deviceClassName: CLASS"]),
    ],
)
def test_a_classic_claim_is_told_field_by_field(spec: str, words: list[str]) -> None:
    advice = only(CLASSIC % ("ResourceClaim", spec), "DRA502").advised
    assert all(word in advice for word in words), advice
    assert written(advice.replace("CLASS", "gpu.example.com"), "resource.k8s.io/v1: devices: ") == []
    # migrate refuses parameters: it is not named then.
    takes = "parameters" not in spec
    assert advice.endswith("To see what migrate can take over: kubectl dra migrate f.yaml") is takes


def test_a_classic_template_and_class() -> None:
    spec = "  spec: {resourceClassName: gpu.nvidia.com}"
    assert "deviceClassName: gpu.nvidia.com" in only(CLASSIC % ("ResourceClaimTemplate", spec), "DRA502").advice
    text = (
        "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: a}\ndriverName: gpu.nvidia.com\n"
    )
    assert 'device.driver == "gpu.nvidia.com"' in only(text, "DRA502").advice


def test_versions_of_another_shape_are_migrated_by_command() -> None:
    requests = "[{name: a, deviceClassName: b}]"
    text = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: a}\n"
    text += f"spec: {{devices: {{requests: {requests}}}}}\n"
    assert only(text, "DRA503").advised.endswith("To see the result: kubectl dra migrate f.yaml")


TAINT_RULE = """\
apiVersion: resource.k8s.io/v1alpha3
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {driver: a.example.com}, taint: {key: a/b, effect: NoExecute}}
"""
ASKED_FOR = "--runtime-config=resource.k8s.io/v1alpha3=true"


@pytest.mark.parametrize(
    ("minor", "code", "severity", "told"),
    [
        (35, "DRA503", "info", f"1.35 does not serve resource.k8s.io/v1alpha3 by default: it needs {ASKED_FOR}"),
        (36, "DRA504", "warning", f"deprecated since 1.36 and gone in 1.39; 1.36 serves it only with {ASKED_FOR}"),
        (37, "DRA503", "error", "by default, only v1; it is deprecated since 1.36 and gone in 1.39"),
    ],
)
def test_what_is_not_served_by_default_is_said_so(minor: int, code: str, severity: str, told: str) -> None:
    found = report(TAINT_RULE, "DRA503,DRA504", minor=minor).findings
    assert [(each.code, each.severity) for each in found] == [(code, severity)]
    assert found[0].message.endswith(told)


FLAT_CLAIM = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: gpus}
spec:
  devices:
    requests:
    - %s
"""


def test_findings_name_the_fields_of_the_version_that_is_written() -> None:
    both = only(
        FLAT_CLAIM
        % "{name: gpu, deviceClassName: gpu.example.com, count: 2, firstAvailable: [{name: a, deviceClassName: b}]}",
        "DRA104",
    )
    assert "deviceClassName" in both.message and "count" in both.message and "exactly" not in both.message + both.advice
    neither = only(FLAT_CLAIM % "{name: gpu}", "DRA103")
    assert "deviceClassName" in neither.message and "exactly" not in neither.message + neither.advice
    counted = only(FLAT_CLAIM % "{name: gpu, deviceClassName: a, count: 2, allocationMode: All}", "DRA104")
    assert counted.field == "spec.devices.requests[0].count"
    unknown = only(FLAT_CLAIM % "{name: gpu, deviceClassName: a, selectors: [{deviceClassName: b}]}", "DRA101")
    assert "devices.requests[].deviceClassName" in unknown.advice


@pytest.mark.parametrize("field", ["deviceClassName: gpu.example.com", "selectors: []"])
def test_a_taint_rule_is_not_told_where_claims_have_the_field(field: str) -> None:
    rule = f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {{name: broken}}
spec:
  deviceSelector: {{driver: gpu.example.com, {field}}}
  taint: {{key: a, effect: NoExecute}}
"""
    advice = only(rule, "DRA101").advice
    assert "driver, pool or device" in advice and "requests" not in advice
