"""API versions: the edited text is what the API server makes of the object, in every direction and style."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.conversion import ConversionError, from_v1, reshaped, to_v1
from kubectl_dra.api.releases import Release
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.migrate.model import Remark
from tests.conformance.conversions import lines
from tests.migrate.runs import after, dump, run

RECORDED = Path(__file__).parents[1] / "conformance" / "data" / "conversions.jsonl.gz"

STYLES: Mapping[str, Callable[[Any], str]] = {
    "block": dump,
    "flow": lambda raw: dump(raw, default_flow_style=True, width=80),
    "mixed": lambda raw: dump(raw, default_flow_style=None, indent=4),
    "json": lambda raw: json.dumps(raw, indent=2, ensure_ascii=False),
    "compact": lambda raw: json.dumps(raw),
}


@pytest.mark.parametrize("style", STYLES)
def test_recorded_objects_become_what_the_server_made_of_them(style: str) -> None:
    """All objects of the corpus, to v1 or from v1 to v1beta1: none is refused, and each is the server's."""
    wrong = []
    for line in lines(RECORDED):
        raw = {key: value for key, value in line["from"].items() if key != "status"}
        target = "v1beta1" if raw["apiVersion"].endswith("/v1") else "v1"
        release = Release(1, 36)
        text = STYLES[style](raw)
        (document,) = read_documents(after(text, target, release), "f.yaml")
        expected = from_v1(to_v1(raw), target)
        made = document.object
        if made["apiVersion"] != f"resource.k8s.io/{target}" or from_v1(to_v1(made), target) != expected:
            wrong.append(line["id"])
        elif target == "v1" and made != reshaped(raw):
            wrong.append(f"{line['id']} beyond what the server prints")
    assert wrong == []


@pytest.mark.parametrize("style", ("block", "mixed", "json"))
def test_there_and_back(style: str) -> None:
    for line in lines(RECORDED):
        raw = {key: value for key, value in line["v1"].items() if key != "status"}
        text = STYLES[style](raw)
        back = after(after(text, "v1beta1"), "v1")
        (document,) = read_documents(back, "f.yaml")
        assert document.object == raw, line["id"]


def items(text: str, **how: Any) -> list[Remark]:
    return run(text, **how).items()


def summary(found: list[Remark]) -> list[tuple[str, str, str]]:
    return [(item.sort, item.code, item.field) for item in found]


CLAIM = """\
# ours
apiVersion: resource.k8s.io/v1beta1 # old
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    # the big one
    - name: gpu   # one
      deviceClassName:  "gpu.example.com"  # two

      # three
      count: 2
    - {name: nic, deviceClassName: nic.example.com}
"""


def test_comments_move_with_their_fields() -> None:
    assert (
        after(CLAIM)
        == """\
# ours
apiVersion: resource.k8s.io/v1 # old
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    # the big one
    - name: gpu   # one
      exactly:
        deviceClassName:  "gpu.example.com"  # two

        # three
        count: 2
    - {name: nic, exactly: {deviceClassName: nic.example.com}}
"""
    )


def test_a_second_run_and_the_way_back_change_nothing_else() -> None:
    once = after(CLAIM)
    assert after(once) == once
    assert after(once, "v1beta1") == CLAIM


def test_devices_of_v1alpha3() -> None:
    text = """\
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceSlice
metadata:
  name: node-1
spec:
  driver: gpu.example.com
  nodeName: node-1
  allNodes: false
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic:
      attributes:
        model: {string: A100}
      capacity:
        memory: "40Gi" # HBM
        slots: 2
  - basic:
      capacity: {memory: 80Gi}
    name: gpu-1
  - name: gpu-2
    basic: {}
"""
    assert (
        after(text)
        == """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: node-1
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    attributes:
      model: {string: A100}
    capacity:
      memory:
        value: "40Gi" # HBM
      slots:
        value: 2
  - capacity: {memory: {value: 80Gi}}
    name: gpu-1
  - name: gpu-2
"""
    )
    (document,) = read_documents(after(text), "f.yaml")
    (old,) = read_documents(text, "f.yaml")
    assert to_v1(document.object) == to_v1(old.object)


POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    spec:
      resourceClaims:
      - name: gpu
        source: # where from
          # the template
          resourceClaimTemplateName: gpu
      - {name: nic, source: {resourceClaimName: nic}}
"""


def test_source_of_pods() -> None:
    assert (
        after(POD)
        == """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    spec:
      resourceClaims:
      - name: gpu
        # where from
        # the template
        resourceClaimTemplateName: gpu
      - {name: nic, resourceClaimName: nic}
"""
    )


def test_source_that_says_nothing_or_what_is_said_already() -> None:
    text = POD.replace("{resourceClaimName: nic}", "{}")
    assert ("refusal", "MIG309", "spec.template.spec.resourceClaims[1].source") in summary(items(text))
    text = POD.replace("{name: nic, ", "{name: nic, resourceClaimName: other, ")
    assert ("refusal", "MIG309", "spec.template.spec.resourceClaims[1].source") in summary(items(text))
    # The entry beside it is as clear as before.
    assert "source: {resourceClaimName" in after(text) and "source: # where" not in after(text)


def claim(request: str, version: str = "v1beta1") -> str:
    return (
        f"apiVersion: resource.k8s.io/{version}\nkind: ResourceClaim\nmetadata: {{name: a}}\n"
        f"spec: {{devices: {{requests: [{request}]}}}}\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (claim("{name: a, count: 1, exactly: {count: 1}}"), ("refusal", "MIG309", "spec.devices.requests[0].exactly")),
        (claim("{name: a, count: 2, firstAvailable: [{name: b, deviceClassName: c}]}"), ("refusal", "MIG309", "spec.devices.requests[0].count")),  # noqa: E501
        (claim("{name: a, count: x}"), ("refusal", "MIG309", "spec.devices.requests[0].count")),
        (claim("a"), ("refusal", "MIG309", "spec.devices.requests[0]")),
        (claim("{name: a, exactly: {count: 1}}"), ("offer", "MIG305", "apiVersion")),
        ("apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceClass\nmetadata: {name: a}\nspec: {suitableNodes: {nodeSelectorTerms: []}, selectors: []}\n", ("offer", "MIG303", "apiVersion")),  # noqa: E501
        ("apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {name: a}\nspec: {deviceSelector: {deviceClassName: b}}\n", ("refusal", "MIG310", "spec.deviceSelector.deviceClassName")),  # noqa: E501
        ("apiVersion: resource.k8s.io/v1alpha3\nkind: PodSchedulingContext\nmetadata: {name: a}\n", ("refusal", "MIG307", "kind")),  # noqa: E501
        ("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaimParameters\nmetadata: {name: a}\n", ("refusal", "MIG307", "kind")),  # noqa: E501
        ("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: a}\ndriverName: b\nparametersRef: {kind: P, name: c}\n", ("refusal", "MIG306", "parametersRef")),  # noqa: E501
        ("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: a}\ndriverName: b\nsuitableNodes: {x: 1}\n", ("refusal", "MIG306", "suitableNodes")),  # noqa: E501
        ("apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {resourceClassName: b, parametersRef: {kind: P, name: c}}\n", ("refusal", "MIG306", "spec.parametersRef")),  # noqa: E501
    ],
)  # fmt: skip
def test_what_is_not_clear_is_not_changed(text: str, said: tuple[str, str, str]) -> None:
    found = items(text)
    assert said in summary(found)
    assert all(item.way_out for item in found if item.sort == "refusal")
    assert after(text) == text


def test_unsafe_changes_are_made_when_they_are_asked_for() -> None:
    assert "\nspec: {selectors: []}\n" in after(
        "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceClass\nmetadata: {name: a}\n"
        "spec: {suitableNodes: {nodeSelectorTerms: []}, selectors: []}\n",
        unsafe=True,
    )
    assert after(claim("{name: a, exactly: {count: 1}}"), unsafe=True) == claim("{name: a, exactly: {count: 1}}", "v1")


def test_classic_objects() -> None:
    text = """\
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata:
  name: gpu.example.com # ours
driverName: driver.example.com
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimTemplate
metadata:
  name: gpu
spec:
  metadata:
    labels: {a: b}
  spec:
    resourceClassName: gpu.example.com # the class
    allocationMode: Immediate
"""
    assert (
        after(text, unsafe=True)
        == """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: gpu.example.com # ours
spec:
  selectors:
  - cel:
      expression: device.driver == "driver.example.com"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: gpu
spec:
  metadata:
    labels: {a: b}
  spec:
    # the class
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.example.com
"""
    )
    assert ("note", "MIG308", "spec.spec.allocationMode") in summary(items(text))
    assert "exactly" not in after(text, "v1beta1", unsafe=True)


def test_kinds_that_the_version_does_not_have_get_the_newest_of_the_release() -> None:
    text = "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {name: a}\nspec: {taint: {key: a}}\n"
    assert after(text, release=Release(1, 37)) == text.replace("v1alpha3", "v1")
    assert after(text, release=Release(1, 36)) == text.replace("v1alpha3", "v1beta2")
    assert after(text, release=Release(1, 35)) == text


def test_newer_objects_stay_unless_older_ones_are_asked_for() -> None:
    text = claim("{name: a, exactly: {deviceClassName: b}}", "v1beta2")
    assert after(text, "v1beta1") == claim("{name: a, deviceClassName: b}", "v1beta1")
    assert after(text, "v1beta2") == text
    assert after(claim("{name: a, exactly: {deviceClassName: b}}", "v1"), "v1beta2") == text


def test_the_recorded_status_is_not_lost() -> None:
    text = CLAIM + "status:\n  reservedFor: [] # none\n"
    assert after(text).endswith("status:\n  reservedFor: [] # none\n")


def test_a_wrong_object_is_no_conversion_error() -> None:
    with pytest.raises(ConversionError):
        to_v1({"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "spec": []})
    text = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: []\n"
    assert summary(items(text)) == [("refusal", "MIG309", "spec")]


def test_a_field_that_no_version_knows_is_refused_and_named() -> None:
    text = """apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: c}
spec:
  deviceRequests: [{name: a, count: 8}]
"""
    (item,) = items(text)
    assert (item.sort, item.code, item.field) == ("refusal", "MIG309", "spec.deviceRequests")
    assert "v1beta2 does not know (deviceRequests)" in item.message and "kubectl dra lint" in item.way_out
    assert after(text) == text
    inside = claim("{name: a, deviceClassName: c, quantity: 2}")
    assert summary(items(inside)) == [("refusal", "MIG309", "spec.devices.requests[0].quantity")]
    of_the_new_version = claim("{name: a, exactly: {deviceClassName: c, quantity: 2}}")
    assert summary(items(of_the_new_version)) == [("refusal", "MIG309", "spec.devices.requests[0].exactly.quantity")]


def test_a_field_of_another_release_is_no_reason_to_refuse() -> None:
    text = claim("{name: a, deviceClassName: c, tolerations: [{operator: Exists}]}")
    assert [item.code for item in items(text, release=Release(1, 34))] == ["MIG301"]
    newer = claim("{name: a, deviceClassName: c, derivedAttributes: []}")
    assert [item.code for item in items(newer, release=Release(1, 34))] == ["MIG301"]
