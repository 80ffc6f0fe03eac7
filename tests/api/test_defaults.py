from __future__ import annotations

import copy
from typing import Any

import pytest

from kubectl_dra.api.conversion import defaulted, without_disabled
from kubectl_dra.api.releases import default_features, parse_release


def _claim(request: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": [request]}},
    }


def _request(raw: dict[str, Any]) -> Any:
    return raw["spec"]["devices"]["requests"][0]


@pytest.mark.parametrize(
    ("exactly", "filled"),
    [
        ({}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 0}, {"allocationMode": "ExactCount", "count": 1}),
        ({"count": 3}, {"allocationMode": "ExactCount", "count": 3}),
        ({"allocationMode": "All"}, {"allocationMode": "All"}),
        ({"allocationMode": "Some"}, {"allocationMode": "Some"}),
        (
            {"tolerations": [{"key": "k"}, {"operator": "Exists"}]},
            {
                "allocationMode": "ExactCount",
                "count": 1,
                "tolerations": [{"key": "k", "operator": "Equal"}, {"operator": "Exists"}],
            },
        ),
    ],
)
def test_requests(exactly: dict[str, Any], filled: dict[str, Any]) -> None:
    raw = _claim({"name": "r", "exactly": exactly})
    before = copy.deepcopy(raw)
    assert _request(defaulted(raw))["exactly"] == filled
    assert raw == before
    assert _request(defaulted(_claim({"name": "r", "firstAvailable": [exactly]})))["firstAvailable"] == [filled]


def test_flat_request_gets_defaults_only_with_a_class() -> None:
    assert _request(defaulted(_claim({"name": "r", "deviceClassName": "c"}, "v1beta1"))) == {
        "name": "r",
        "deviceClassName": "c",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    without = {"name": "r", "selectors": [{"cel": {"expression": "true"}}]}
    assert _request(defaulted(_claim(without, "v1beta1"))) == without


def test_template_and_other_objects() -> None:
    claim = _claim({"name": "r", "exactly": {}})
    template = {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}
    assert defaulted(template)["spec"]["spec"] == defaulted(claim)["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"devices": {"requests": [{"exactly": {}}]}}}
    assert defaulted(pod) == pod
    assert defaulted({**claim, "spec": None}) == {**claim, "spec": None}


def test_time_added() -> None:
    now = "2026-11-21T00:00:00Z"
    taints = [{"key": "a"}, {"key": "b", "timeAdded": "2020-01-01T00:00:00Z"}]
    raw: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    raw["spec"] = {"devices": [{"name": "d", "taints": taints}]}
    added = defaulted(raw, now)["spec"]["devices"][0]["taints"]
    assert [taint["timeAdded"] for taint in added] == [now, "2020-01-01T00:00:00Z"]
    assert defaulted(raw)["spec"] == raw["spec"]
    old = {**raw, "apiVersion": "resource.k8s.io/v1beta1"}
    old["spec"] = {"devices": [{"name": "d", "basic": {"taints": taints}}, {"name": "e"}]}
    assert defaulted(old, now)["spec"]["devices"][0]["basic"]["taints"] == added
    rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "spec": {"taint": {"key": "a"}}}
    assert defaulted(rule, now)["spec"]["taint"] == {"key": "a", "timeAdded": now}


def test_fields_of_disabled_features_go() -> None:
    on = default_features(parse_release("1.36"))
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "c", "adminAccess": True, "tolerations": [{}], "capacity": {}},
        "firstAvailable": [{"name": "s", "capacity": {}, "tolerations": [{}]}],
    }
    assert without_disabled(_claim(request), on) == _claim(request)
    none = _request(without_disabled(_claim(request), ()))
    assert none == {"name": "r", "exactly": {"deviceClassName": "c"}}
    some = _request(without_disabled(_claim(request), {"DRAPrioritizedList", "DRADeviceTaints"}))
    assert some["firstAvailable"] == [{"name": "s", "tolerations": [{}]}]

    device = {
        "name": "d",
        "attributes": {"a": {"strings": ["x"]}, "b": {"int": 1}},
        "capacity": {"m": {"value": "1", "requestPolicy": {"default": "1"}}},
        "taints": [{}],
        "allowMultipleAllocations": True,
        "bindsToNode": True,
        "consumesCounters": [{"counterSet": "s", "compatibilityGroups": ["g"]}],
    }
    raw = {"kind": "ResourceSlice", "spec": {"devices": [device], "sharedCounters": []}}
    kept = without_disabled(raw, on)["spec"]
    assert kept["devices"][0]["attributes"] == {"a": {}, "b": {"int": 1}}
    assert kept["devices"][0]["consumesCounters"] == [{"counterSet": "s"}]
    assert "sharedCounters" in kept
    assert kept["devices"][0]["capacity"] == device["capacity"]
    bare = without_disabled(raw, ())["spec"]
    assert bare == {
        "devices": [{"name": "d", "attributes": {"a": {}, "b": {"int": 1}}, "capacity": {"m": {"value": "1"}}}]
    }
    named = {"kind": "DeviceClass", "spec": {"extendedResourceName": "example.com/gpu"}}
    assert without_disabled(named, on) == named
    assert without_disabled(named, ())["spec"] == {}
    distinct = {"kind": "ResourceClaim", "spec": {"devices": {"constraints": [{"distinctAttribute": "a/b"}]}}}
    assert without_disabled(distinct, ())["spec"]["devices"]["constraints"] == [{}]
