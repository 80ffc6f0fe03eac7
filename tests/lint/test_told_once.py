"""One mistake is told once, by the rule that knows its cause."""

from __future__ import annotations

import pytest

from kubectl_dra.lint.finding import LocatedFinding
from tests.lint.cases import report_of

CLAIM = """\
apiVersion: resource.k8s.io/%s
kind: ResourceClaim
metadata: {name: a}
spec: {devices: {requests: [{name: gpu, %s}]%s}}
"""
REQUEST = "exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: '%s'}}]}"
READ = 'device.attributes["gpu.nvidia.com"].type'
JOINED = 'device.attributes["gpu.nvidia.com/type"] == "gpu"'
NAMED = ", constraints: [{matchAttribute: %s}]"


def findings(text: str, release: str = "1.37") -> tuple[LocatedFinding, ...]:
    return report_of(text, release=release).findings


@pytest.mark.parametrize(
    ("text", "release", "code"),
    [
        (CLAIM % ("v1", REQUEST % f'{READ} == "GPU"', ""), "1.37", "DRA213"),
        (
            CLAIM
            % (
                "v1",
                "exactly: {deviceClassName: gpu.nvidia.com, count: 2}",
                NAMED % "resource.kubernetes.io/numa-node",
            ),
            "1.37",
            "DRA104",
        ),
        (
            CLAIM
            % ("v1", "exactly: {deviceClassName: gpu.nvidia.com, count: 2}", NAMED % "gpu.nvidia.com/nvswitch-domain"),
            "1.37",
            "DRA104",
        ),
        (
            CLAIM % ("v1beta2", "exactly: {deviceClassName: a, capacity: {requests: {m: 1Gi}}}", ""),
            "1.33",
            "DRA505",
        ),
    ],
)
def test_one_rule_tells_it(text: str, release: str, code: str) -> None:
    assert [found.code for found in findings(text, release) if found.code != "DRA503"] == [code]


def test_a_domain_in_the_name_is_told_by_its_own_rule() -> None:
    class_ = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec:\n  selectors:\n"
    text = f"{class_}  - cel: {{expression: '{JOINED}'}}\n  config: {{opaque: {{driver: gpu.nvidia.com}}}}\n"
    codes = {found.code for found in findings(text)}
    assert "DRA218" in codes and "DRA112" not in codes


def test_a_field_of_a_later_release_is_not_moved_where_no_version_has_it() -> None:
    """In v1beta1 the fields of a request stand in the request itself."""
    text = CLAIM % ("v1beta1", "deviceClassName: a, capacity: {requests: {m: 1Gi}}", "")
    assert [found for found in findings(text, "1.33") if found.changes] == []


def test_that_a_version_is_not_served_stands_before_that_it_is_deprecated() -> None:
    (found,) = findings(CLAIM % ("v1beta1", "deviceClassName: a", ""))
    assert found.message == (
        "1.37 does not serve resource.k8s.io/v1beta1 by default, only v1; it is deprecated since 1.35 and gone in 1.38"
    )


SHARED = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: a}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu2}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: a}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimName: gpu}]
"""


def test_a_template_named_as_a_claim_is_told_once() -> None:
    report = report_of(SHARED)
    assert [found.code for found in report.findings] == ["DRA403"]
    assert report.not_given == ("DeviceClass a",)


def test_a_value_that_is_no_name_is_none_of_a_class() -> None:
    text = CLAIM % ("v1", "exactly: {deviceClassName: y}", "")
    assert report_of(text).not_given == ()


def test_what_is_filled_in_later_is_named() -> None:
    selectors = "selectors: [{cel: {expression: '${A}'}}, {cel: {expression: '{{ .b }}'}}]"
    text = CLAIM % ("v1", f"exactly: {{deviceClassName: a, {selectors}}}", "")
    report = report_of(text)
    assert report.findings == () and "${A}, {{ .b }} are filled in later" in report.notes[0]


GPU = f'device.driver == "gpu.nvidia.com" && {READ} == "gpu"'


@pytest.mark.parametrize(
    ("expression", "codes"),
    [
        ('device.attributes["gpu.nvidia.com"].profile == "1g.10gb"', ["DRA217"]),
        ('device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].profile == "1g.10gb"', ["DRA211"]),
        (f'{GPU} && device.capacity["gpu.nvidia.com"].memory == quantity("40")', ["DRA223"]),
        (
            f'{GPU} && device.capacity["gpu.nvidia.com"].memory == quantity("40Gi")',
            ["DRA214"],
        ),
    ],
)
def test_of_two_findings_with_one_cause_one_is_told(expression: str, codes: list[str]) -> None:
    class_ = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec:\n  selectors:\n"
    assert [found.code for found in findings(f"{class_}  - cel: {{expression: '{expression}'}}\n")] == codes
