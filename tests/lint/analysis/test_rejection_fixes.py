"""Ways out of what the API server rejects: where fields have moved to, and expressions that nearly compile."""

from __future__ import annotations

import pytest

from tests.lint.cases import mended, report_of

HEAD = "apiVersion: resource.k8s.io/%s\nkind: %s\nmetadata:\n  name: x\nspec:\n"
CLAIM = HEAD % ("v1", "ResourceClaim") + "  devices:\n    requests:\n    - name: gpu\n      exactly:\n"
SELECTOR = CLAIM + "        deviceClassName: a\n        selectors:\n        - cel:\n            expression: %s\n"
SLICE = (
    HEAD % ("v1", "ResourceSlice")
    + "  driver: d.example.com\n  nodeName: n1\n  pool: {name: n1, generation: 1, resourceSliceCount: 1}\n  devices:\n"
    + "  - name: gpu-0\n"
)
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n"
    "  - {name: a, image: a, resources: {claims: [{name: g}]}}\n"
)


def findings(text: str) -> list[str]:
    return [finding.advice for finding in report_of(text).findings]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            HEAD % ("v1", "ResourceClaim") + "  devices:\n    requests:\n    - name: gpu\n      deviceClassName: a\n",
            CLAIM + "        deviceClassName: a\n",
        ),
        (
            HEAD % ("v1", "ResourceClaim") + "  requests:\n  - name: gpu\n    exactly:\n      deviceClassName: a\n",
            CLAIM + "        deviceClassName: a\n",
        ),
        (CLAIM + "        deviceClass: a\n", CLAIM + "        deviceClassName: a\n"),
        (
            POD + "  resourceClaims:\n  - name: g\n    source:\n      resourceClaimName: c\n",
            POD + "  resourceClaims:\n  - name: g\n    resourceClaimName: c\n",
        ),
        (
            SLICE + "    basic:\n      attributes:\n        model:\n          string: a\n",
            SLICE + "    attributes:\n      model:\n        string: a\n",
        ),
        (
            SLICE + "    attributes:\n      model: {stringValue: a}\n",
            SLICE + "    attributes:\n      model: {string: a}\n",
        ),
        (
            CLAIM + "        deviceClassName: a\n        count: '2'\n",
            CLAIM + "        deviceClassName: a\n        count: 2\n",
        ),
        (
            CLAIM + "        deviceClassName: a\n        allocationMode: exactcount\n",
            CLAIM + "        deviceClassName: a\n        allocationMode: ExactCount\n",
        ),
        (
            SELECTOR % """'device.driver = "d.example.com"'""",
            SELECTOR % """'device.driver == "d.example.com"'""",
        ),
        (
            SELECTOR % """'has(device.capacity["d"].m) && device.capacity["d"].m >= quantity("1Gi")'""",
            SELECTOR % """'has(device.capacity["d"].m) && device.capacity["d"].m.compareTo(quantity("1Gi")) >= 0'""",
        ),
        (
            SELECTOR % """'has(device.capacity["d"].m) && 5 < device.capacity["d"].m'""",
            SELECTOR % """'has(device.capacity["d"].m) && device.capacity["d"].m.compareTo(quantity("5")) > 0'""",
        ),
        (
            SELECTOR % """'has(device.attributes["d"].v) && device.attributes["d"].v.isGreaterThan("v8.0")'""",
            SELECTOR % """'has(device.attributes["d"].v) && device.attributes["d"].v.isGreaterThan(semver("8.0.0"))'""",
        ),
        (
            SELECTOR % """'has(device.capacity["d"].m) && device.capacity["d"].m.compareTo("1Gi") > 0'""",
            SELECTOR % """'has(device.capacity["d"].m) && device.capacity["d"].m.compareTo(quantity("1Gi")) > 0'""",
        ),
        (
            CLAIM + "        deviceClassName: a\n        capacity:\n          memory: 10Gi\n",
            CLAIM + "        deviceClassName: a\n        capacity:\n          requests:\n            memory: 10Gi\n",
        ),
        (
            CLAIM + "        deviceClassName: a\n        capacity: {requests: {m: 10GiB}}\n",
            CLAIM + "        deviceClassName: a\n        capacity: {requests: {m: 10Gi}}\n",
        ),
        (
            HEAD % ("v1", "ResourceClaim")
            + "  spec:\n    devices:\n      requests:\n      - name: gpu\n        exactly:\n"
            + "          deviceClassName: a\n",
            CLAIM + "        deviceClassName: a\n",
        ),
    ],
)
def test_fixes(before: str, after: str) -> None:
    assert mended(before).text.after == after


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (
            CLAIM + "        deviceClassName: a\n      partitionRequest: {count: 1}\n",
            "A partition is a separate device",
        ),
        (HEAD % ("v1beta2", "ResourceClaim") + "  deviceRequests: []\n", "Write spec.devices.requests"),
        (HEAD % ("v1", "ResourceClaim") + "  resourceClassName: a\n", "devices.requests[].exactly.deviceClassName"),
        (HEAD % ("v1", "ResourceClaim") + "  deviceClassName: a\n", "devices.requests[].exactly.deviceClassName"),
        (
            HEAD % ("v1", "DeviceClass") + "  config:\n    opaque: {driver: d.example.com, parameters: {}}\n",
            "config is a list",
        ),
        (
            SLICE + "    attributes:\n      d.example.com:\n        model: {string: a}\n",
            "d.example.com/model",
        ),
        (
            HEAD % ("v1beta1", "ResourceClaim")
            + "  devices:\n    requests:\n    - {name: a, exactly: {}}\n    - {name: b, deviceClassName: b}\n",
            "came with v1beta2",
        ),
        (CLAIM + "        deviceClassName: a\n        capacity: {requests: {m: 40GB}}\n", "Write 40G or 40Gi."),
    ],
)
def test_says_where_fields_have_gone(text: str, advice: str) -> None:
    assert any(advice in one for one in findings(text)), findings(text)


POD_OF = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: c
    image: i
    resources:
      claims: [%s]
  resourceClaims:
  - {name: gpu, resourceClaimTemplateName: t}
  - {name: unused, resourceClaimTemplateName: t}
"""


def test_a_misspelled_claim_is_not_another_one() -> None:
    """The name that is nearly the same counts, though it is used already, not the one that happens to be free."""
    text = POD_OF % "{name: gpuu}, {name: gpu}"
    assert 'Remove it if "gpu" is meant, which the container has already.' in findings(text)
    assert not any("Write" in one for one in findings(text))
    assert 'Write "gpu"' in findings(POD_OF % "{name: gpuu}, {name: unused}")


def test_migrate_is_proposed_for_what_it_can_read() -> None:
    """It refuses what is unclear, and sends back to lint."""
    template = HEAD % ("v1beta1", "ResourceClaimTemplate")
    good, bad = "  spec: {devices: {requests: [{name: gpu, deviceClassName: a}]}}\n", "  devices: {requests: []}\n"
    moved = "rite apiVersion: resource.k8s.io/v1, and the fields as that version has them. To see the result:"
    assert findings(template + good) == [f"W{moved}"]
    new = "  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: a}}]}}\n"
    assert findings(template + new) == [
        "Write apiVersion: resource.k8s.io/v1, in whose shape the fields are already.",
        "Write apiVersion: resource.k8s.io/v1: the fields are in the shape of v1, and only apiVersion is wrong",
    ]
    assert findings(template + bad)[0] == f"First correct spec.devices. Then w{moved}"


@pytest.mark.parametrize(
    "names",
    [
        "    constraints:\n    - requests: [gpu, GPU_1]\n      matchAttribute: resource.kubernetes.io/pcieRoot\n",
        "    config:\n    - requests: [GPU_1]\n      opaque: {driver: d.example.com, parameters: {}}\n",
    ],
)
def test_a_name_that_a_request_has_is_not_replaced_by_another(names: str) -> None:
    """Wrong in both places it still names that request, not the one whose name is similar."""
    one = "    - {name: %s, exactly: {deviceClassName: a}}\n"
    text = HEAD % ("v1", "ResourceClaim") + "  devices:\n    requests:\n" + one % "gpu" + one % "GPU_1" + names
    assert mended(text).text.after == text
    assert "It is the name of a request: rename that, and change it wherever it is named." in findings(text)


@pytest.mark.parametrize("test", ['contains("H100")', 'lowerAscii().contains("h100")', 'matches("^a")'])
def test_what_is_too_expensive_behind_or_value_is_guarded_instead(test: str) -> None:
    read = 'device.attributes["gpu.nvidia.com"]'
    dear = SELECTOR % f"""'{read}.?productName.orValue("").{test}'"""
    (advice,) = [one for one in findings(dear) if "orValue" in one]
    new = f"has({read}.productName) && {read}.productName.{test}"
    assert advice == f"The size of what orValue returns is unknown, so the largest counts; write {new}"
    assert not any("orValue" in one or "cost" in one for one in findings(SELECTOR % f"'{new}'"))


def test_a_count_that_is_not_written_is_not_called_0() -> None:
    text = SLICE.replace(", resourceSliceCount: 1", "")
    told = {finding.field: finding.message for finding in report_of(text).findings}
    assert told["spec.pool.resourceSliceCount"] == "is not set; it must be at least 1"
