"""Mistakes that users of Dynamic Resource Allocation make: each is found, by the rule that explains it best."""

from __future__ import annotations

import pytest

from tests.lint.cases import report_of

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
spec:
  devices:
    requests:
%s"""
REQUEST = CLAIM % "    - name: gpu\n      exactly:\n        deviceClassName: gpu.nvidia.com\n%s"
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: trainer
spec:
%s  containers:
  - name: trainer
    image: registry.example.com/trainer:1
    resources:
      claims: [%s]
%s"""
CLAIMS = "  resourceClaims:\n  - {name: gpu, %s}\n"
RULE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata:
  name: broken
spec:
  deviceSelector: %s
  taint: {key: example.com/broken, effect: %s}
"""


def request(fields: str, rest: str = "") -> str:
    return REQUEST % ("".join(f"        {line}\n" for line in fields.splitlines()) + rest)


def cel(expression: str) -> str:
    return request(f"selectors:\n- cel:\n    expression: '{expression}'")


CONSTRAINT = "    constraints:\n    - {%s}\n"
MISTAKES = {
    "flat request": (CLAIM % "    - name: gpu\n      deviceClassName: gpu.nvidia.com\n", "DRA101"),
    "misspelt class": (CLAIM % "    - name: gpu\n      exactly: {deviceClass: gpu.nvidia.com}\n", "DRA101"),
    "neither exactly nor firstAvailable": (CLAIM % "    - name: gpu\n", "DRA103"),
    "both of them": (
        CLAIM % "    - name: gpu\n      exactly: {deviceClassName: a}\n"
        "      firstAvailable: [{name: x, deviceClassName: a}]\n",
        "DRA104",
    ),
    "tolerations on the claim": (request("count: 1", "  tolerations: [{operator: Exists}]\n"), "DRA101"),
    "expression beside cel": (request("selectors:\n- cel:\n  expression: 'true'"), "DRA101"),
    "assignment in CEL": (cel('device.driver = "x"'), "DRA112"),
    "bare attribute": (cel('device.attributes["gpu.nvidia.com"].productName'), "DRA212"),
    "unknown function": (cel('device.driver.beginsWith("x")'), "DRA112"),
    "unknown variable": (cel('dev.driver == "x"'), "DRA112"),
    "quantity and integer": (cel('device.capacity["gpu.nvidia.com"].memory > 40'), "DRA112"),
    "no guard": (cel('device.attributes["gpu.nvidia.com"].addressingMode == "HMM"'), "DRA211"),
    "misspelt attribute": (cel('device.attributes["gpu.nvidia.com"].produktName == "x"'), "DRA601"),
    "class as domain": (cel('has(device.attributes["mig.nvidia.com"].profile)'), "DRA216"),
    "constraint of an unknown request": (
        request("count: 2", CONSTRAINT % "requests: [x], matchAttribute: resource.kubernetes.io/pcieRoot"),
        "DRA104",
    ),
    "unqualified constraint": (request("count: 2", CONSTRAINT % "matchAttribute: pcieRoot"), "DRA104"),
    "constraint over one device": (
        request("count: 1", CONSTRAINT % "matchAttribute: resource.kubernetes.io/pcieRoot"),
        "DRA303",
    ),
    "count of zero": (request("count: 0"), "DRA301"),
    "too many devices": (request("count: 33"), "DRA302"),
    "allocation mode in lower case": (request("allocationMode: all"), "DRA108"),
    "All with a count": (request("allocationMode: All\ncount: 2"), "DRA104"),
    "request named twice": (request("count: 1", "    - {name: gpu, exactly: {deviceClassName: a}}\n"), "DRA107"),
    "admin access": (
        (request("adminAccess: true").replace("  name: gpu\n", "  name: gpu\n  namespace: a\n", 1))
        + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
        "DRA803",
    ),
    "source": (POD % ("", "{name: gpu}", CLAIMS % "source: {resourceClaimName: a}"), "DRA101"),
    "claim that the pod does not have": (POD % ("", "{name: x}", CLAIMS % "resourceClaimName: a"), "DRA110"),
    "claim that no container uses": (POD % ("", "", CLAIMS % "resourceClaimName: a"), "DRA401"),
    "neither claim nor template": (POD % ("", "{name: gpu}", "  resourceClaims:\n  - {name: gpu}\n"), "DRA104"),
    "both claim and template": (
        POD % ("", "{name: gpu}", CLAIMS % "resourceClaimName: a, resourceClaimTemplateName: b"),
        "DRA104",
    ),
    "node name": (POD % ("  nodeName: a\n", "{name: gpu}", CLAIMS % "resourceClaimName: a"), "DRA405"),
    "device plugin and claim": (
        POD
        % (
            "",
            "{name: gpu}]\n      limits: {nvidia.com/gpu: 1}\n      requests: {}  # [",
            CLAIMS % "resourceClaimName: a",
        ),
        "DRA701",
    ),
    "rule for everything": (RULE % ("{}", "NoExecute"), "DRA801"),
    "effect in lower case": (RULE % ("{driver: a}", "noexecute"), "DRA108"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_is_found(name: str) -> None:
    text, code = MISTAKES[name]
    codes = {finding.code for finding in report_of(text).findings}
    assert code in codes, codes


def test_there_are_as_many_as_the_table_has() -> None:
    assert len(MISTAKES) == 32


@pytest.mark.parametrize(
    ("pod", "templates", "severity", "words"),
    [
        ("", ["default"], "info", "is in namespace default, and the pod is in whatever namespace"),
        ("", ["team"], "warning", "is in namespace team, and the pod is in whatever namespace"),
        ("a", ["default"], "error", "is in namespace default, and the pod is in namespace a"),
        ("a", ["b", "c", "d", "e"], "error", "is in namespace b and 3 others, and the pod is in namespace a"),
    ],
)
def test_a_template_of_another_namespace(pod: str, templates: list[str], severity: str, words: str) -> None:
    text = POD % (CLAIMS % "resourceClaimTemplateName: one", "{name: gpu}", "")
    if pod:
        text = text.replace("  name: trainer\n", f"  name: trainer\n  namespace: {pod}\n", 1)
    template = CLAIM.replace("Claim\n", "ClaimTemplate\n").replace("name: gpu\n", "name: one\n  namespace: %s\n", 1)
    text += "".join("---\n" + template.replace("%s", name, 1).split("spec:")[0] for name in templates)
    (found,) = report_of(text).findings
    assert (found.code, found.severity) == ("DRA409", severity) and words in found.message
    advice = "Change metadata.namespace of the pod to {}" if pod else "Put metadata.namespace: {} on the pod"
    assert found.advice.startswith(advice.format(templates[0]))


@pytest.mark.parametrize("name", ["[a]", "{a: b}", "null", "1"])
def test_a_claim_whose_name_is_no_text_breaks_no_rule(name: str) -> None:
    text = (POD % (CLAIMS % "resourceClaimTemplateName: one", "{name: gpu}", "")).replace(
        "{name: gpu,", f"{{name: {name},"
    )
    assert report_of(text).defects == ()
