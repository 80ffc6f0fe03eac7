from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.codec import canonical_time, mismatch
from kubectl_dra.api.conversion import ConversionError, from_v1, reshaped, to_v1
from tests.conformance.conversions import differences, disagreements, lines, run

RECORDED = Path(__file__).parent.parent / "conformance" / "data" / "conversions.jsonl.gz"


def _object(kind: str, version: str, spec: Any, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec,
        **more,
    }


def _claim(version: str, *requests: Any) -> dict[str, Any]:
    return _object("ResourceClaim", version, {"devices": {"requests": list(requests)}})


def _slice(version: str, device: Any, **spec: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return _object("ResourceSlice", version, {"driver": "d", "pool": pool, "devices": [device], **spec})


def test_recorded_conversions_of_a_real_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([RECORDED]) == 0
    assert capsys.readouterr().out == "agree 583 of 583\n"


def test_the_comparison_sees_differences() -> None:
    line = next(entry for entry in lines(RECORDED) if entry["from"]["kind"] == "ResourceSlice")
    assert disagreements(line) == []
    changed = copy.deepcopy(line)
    changed["v1"]["spec"]["driver"] = "other.example.com"
    assert disagreements(changed)[0].startswith("as v1: .spec.driver is")
    assert list(differences({"a": True}, {"a": 1})) == [".a is 1, expected true"]
    assert list(differences({"a": [1]}, {"a": [1, 2]})) == [".a is [1, 2], expected [1]"]
    assert list(differences({"timeAdded": "t"}, {})) == []


@pytest.mark.parametrize(
    ("flat", "v1"),
    [
        ({"name": "r"}, {"name": "r"}),
        ({"name": "r", "deviceClassName": "", "count": 0, "allocationMode": ""}, {"name": "r"}),
        (
            {"name": "r", "deviceClassName": "c"},
            {"name": "r", "exactly": {"deviceClassName": "c"}},
        ),
        (
            {"name": "r", "adminAccess": False},
            {"name": "r", "exactly": {"deviceClassName": "", "adminAccess": False}},
        ),
        ({"name": "r", "selectors": []}, {"name": "r", "exactly": {"deviceClassName": ""}}),
        ({"name": "r", "selectors": None}, {"name": "r"}),
        (
            {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
            {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
        ),
        # Both are kept, which the server then refuses.
        (
            {"name": "r", "deviceClassName": "c", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]},
            {
                "name": "r",
                "exactly": {"deviceClassName": "c"},
                "firstAvailable": [{"name": "s", "deviceClassName": "c"}],
            },
        ),
        # A field of the other shape is unknown here, and the server drops it.
        ({"name": "r", "exactly": {"deviceClassName": "c"}}, {"name": "r"}),
    ],
)
def test_flat_requests(flat: dict[str, Any], v1: dict[str, Any]) -> None:
    raw = _claim("v1beta1", flat)
    before = copy.deepcopy(raw)
    assert to_v1(raw)["spec"]["devices"]["requests"] == [v1]
    assert raw == before


def test_v1alpha3_slice() -> None:
    raw = _slice(
        "v1alpha3",
        {"name": "gpu", "basic": {"attributes": {"a": {"int": 1}}, "capacity": {"memory": "0.5Gi"}}},
        nodeName="",
        allNodes=True,
    )
    spec = to_v1(raw)["spec"]
    assert spec["devices"] == [
        {"name": "gpu", "attributes": {"a": {"int": 1}}, "capacity": {"memory": {"value": "512Mi"}}}
    ]
    assert spec["allNodes"] is True
    assert "nodeName" not in spec


def test_v1beta1_device_without_basic_and_with_misplaced_fields() -> None:
    assert to_v1(_slice("v1beta1", {"name": "a"}))["spec"]["devices"] == [{"name": "a"}]
    misplaced = {"name": "a", "attributes": {"x": {"int": 1}}}
    assert to_v1(_slice("v1beta1", misplaced))["spec"]["devices"] == [{"name": "a"}]


def test_what_1_31_alone_had_is_dropped() -> None:
    claim = _object(
        "ResourceClaim",
        "v1alpha3",
        {"controller": "c", "devices": {"requests": [{"name": "r", "deviceClassName": "d"}]}},
        status={
            "deallocationRequested": True,
            "allocation": {"controller": "c", "devices": {"results": []}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    )
    assert to_v1(claim)["spec"] == {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}
    assert to_v1(claim)["status"] == {
        "allocation": {"devices": {}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
    }
    suitable: dict[str, Any] = {"suitableNodes": {"nodeSelectorTerms": []}}
    assert to_v1(_object("DeviceClass", "v1alpha3", suitable))["spec"] == {}


def test_taint_rule_keeps_selectors_that_no_newer_version_has() -> None:
    spec = {"deviceSelector": {"deviceClassName": "c"}, "taint": {"key": "k", "effect": "NoSchedule"}}
    # Without them the rule would hit every device.
    assert to_v1(_object("DeviceTaintRule", "v1alpha3", spec))["spec"] == spec


def test_unknown_fields_of_a_newer_server_survive_both_ways() -> None:
    raw = _claim("v1", {"name": "r", "exactly": {"deviceClassName": "c", "fromTheFuture": {"a": [1]}}})
    old = from_v1(to_v1(raw), "v1beta1")
    assert old["spec"]["devices"]["requests"] == [{"name": "r", "deviceClassName": "c", "fromTheFuture": {"a": [1]}}]
    assert to_v1(old) == to_v1(raw)


def test_from_v1_wraps_devices_and_keeps_the_rest() -> None:
    raw = _slice("v1", {"name": "a", "taints": [{"key": "k", "effect": "NoSchedule"}]}, nodeName="n")
    old = from_v1(raw, "v1beta1")
    assert old["spec"]["devices"] == [{"name": "a", "basic": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}]
    assert from_v1(_slice("v1", {"name": "a"}), "v1beta1")["spec"]["devices"] == [{"name": "a", "basic": {}}]
    same = from_v1(raw, "v1beta2")
    assert same["apiVersion"] == "resource.k8s.io/v1beta2"
    assert same["spec"] == to_v1(raw)["spec"]


def test_printing() -> None:
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T02:00:00.75+02:00"}
    raw = _slice("v1", {"name": "a", "taints": [taint], "capacity": {"m": {"value": 1.5}, "b": None}})
    device = to_v1(raw)["spec"]["devices"][0]
    assert device["taints"][0]["timeAdded"] == "2026-01-01T00:00:00Z"
    assert device["capacity"] == {"b": {"value": "0"}, "m": {"value": "1500m"}}
    assert list(device["capacity"]) == ["b", "m"]
    named = _object("DeviceClass", "v1", {})
    named["metadata"]["namespace"] = "ignored"
    assert to_v1(named)["metadata"] == {"name": "x"}


def test_reshaped_does_not_copy_v1() -> None:
    raw = _claim("v1", {"name": "r"})
    assert reshaped(raw) is raw
    beta = _claim("v1beta2", {"name": "r"})
    assert reshaped(beta)["spec"] is beta["spec"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (_object("ResourceClaim", "v1alpha2", {}), "does not convert"),
        (_object("ResourceClass", "v1", {}), "does not convert"),
        ({"apiVersion": "v1", "kind": "Pod"}, "does not convert"),
        ({"apiVersion": 1, "kind": "Pod"}, "must be strings"),
        (_object("ResourceClaim", "v1", {"devices": "x"}), 'spec.devices must be an object, not "x"'),
        (
            _claim("v1", {"name": "r", "exactly": {"count": "two"}}),
            r'spec.devices.requests\[0\].exactly.count must be a whole number, not "two"',
        ),
        (
            _slice("v1", {"name": "a", "capacity": {"x/m": {"value": "1 Gi"}}}),
            r'spec.devices\[0\].capacity\[x/m\].value must be a quantity, not "1 Gi"',
        ),
        (_slice("v1", {"name": "a", "allowMultipleAllocations": "yes"}), "must be true or false"),
    ],
)
def test_refused(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        to_v1(raw)


def test_from_v1_refuses_other_versions() -> None:
    with pytest.raises(ConversionError, match="no conversion to v1alpha3"):
        from_v1(_claim("v1", {"name": "r"}), "v1alpha3")
    with pytest.raises(ConversionError, match="is not resource"):
        from_v1(_claim("v1beta1", {"name": "r"}), "v1beta1")


def test_what_the_server_printed_converts_back_and_stays_as_it_is() -> None:
    for line in lines(RECORDED):
        v1, beta = line["v1"], line["v1beta1"]
        assert to_v1(beta) == v1, line["id"]
        assert to_v1(v1) == v1, line["id"]
        assert from_v1(v1, "v1beta1") == beta, line["id"]


def test_a_policy_without_default_is_printed_with_null() -> None:
    raw = _slice("v1", {"name": "a", "capacity": {"m": {"value": "1", "requestPolicy": {}}}})
    printed = {"m": {"value": "1", "requestPolicy": {"default": None}}}
    assert to_v1(raw)["spec"]["devices"][0]["capacity"] == printed
    assert from_v1(raw, "v1beta1")["spec"]["devices"][0]["basic"]["capacity"] == printed


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("Pod", {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}, "limits.cpu must be"),
        ("Pod", {"spec": {"resourceClaims": {}}}, "spec.resourceClaims must be a list, not an object"),
        ("Node", {"metadata": {"name": 5}}, "metadata.name must be a string, not the number 5"),
        ("Node", {"metadata": []}, "metadata must be an object, not a list"),
        ("Node", {"spec": {"unschedulable": 1}}, "must be true or false, not the number 1"),
        ("DeviceClass", {"spec": {"selectors": [{"cel": {"expression": True}}]}}, "a string, not true"),
    ],
)
def test_mismatch(kind: str, raw: dict[str, Any], text: str) -> None:
    assert text in str(mismatch(raw, kind))


def test_null_is_allowed_everywhere_and_other_things_are_not_looked_at() -> None:
    raw = {"metadata": None, "spec": {"containers": None, "dnsConfig": "x", "priority": None}, "status": None}
    assert mismatch(raw, "Pod") is None
    assert str(mismatch("x", "Pod")).endswith('must be an object, not "x"')


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:30:00+01:30", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.999999Z", "2026-01-01T00:00:00Z"),
        ("not a time", "not a time"),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00"),
    ],
)
def test_canonical_time(text: str, canonical: str) -> None:
    assert canonical_time(text) == canonical
