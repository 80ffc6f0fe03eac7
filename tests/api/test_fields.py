from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.fields import KINDS, canonical_time, fields, mismatch, path_text, unknown_fields


def _paths(raw: dict[str, Any], kind: str, version: str = "v1") -> list[str]:
    return [path_text(path) for path in unknown_fields(raw, kind, version)]


def test_every_struct_that_a_field_names_exists() -> None:
    for version in ("v1", "v1beta2", "v1beta1", "v1alpha3"):
        todo, seen = list(KINDS), set()
        while todo:
            struct = todo.pop()
            if struct in seen:
                continue
            seen.add(struct)
            todo += [field.type for field in fields(struct, version).values() if not field.scalar]
        assert ("BasicDevice" in seen) == (version in ("v1beta1", "v1alpha3"))


@pytest.mark.parametrize(
    ("version", "request_", "unknown"),
    [
        ("v1", {"name": "r", "exactly": {"deviceClassName": "c"}}, []),
        ("v1", {"name": "r", "deviceClassName": "c"}, ["spec.devices.requests[0].deviceClassName"]),
        ("v1beta1", {"name": "r", "exactly": {}}, ["spec.devices.requests[0].exactly"]),
        ("v1beta1", {"name": "r", "deviceClassName": "c"}, []),
        (
            "v1",
            {"name": "r", "firstAvailable": [{"adminAccess": True}]},
            ["spec.devices.requests[0].firstAvailable[0].adminAccess"],
        ),
    ],
)
def test_unknown_fields(version: str, request_: dict[str, Any], unknown: list[str]) -> None:
    raw = {"apiVersion": "x", "kind": "ResourceClaim", "metadata": {"anything": 1}}
    assert _paths({**raw, "spec": {"devices": {"requests": [request_]}}}, "ResourceClaim", version) == unknown


def test_unknown_fields_elsewhere() -> None:
    raw = {"spec": {"config": [{"opaque": {"parameters": {"any": {"thing": 1}}}}]}, "sepc": {}}
    assert _paths(raw, "DeviceClass") == ["sepc"]
    template = {"spec": {"metadata": {"labels": {}, "name": "x", "lables": {}}, "spec": {}}}
    assert _paths(template, "ResourceClaimTemplate") == ["spec.metadata.lables"]
    assert _paths({"spec": {"devices": "x"}}, "ResourceSlice") == []


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
    raw = {"metadata": None, "spec": {"containers": None, "volumes": "x", "priority": None}, "status": None}
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
