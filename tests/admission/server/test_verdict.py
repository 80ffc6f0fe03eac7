"""The answer as a whole: codes, paths as written, warnings, what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.admission.server.model import Key, ServerVerdict, field_text, key_at, nearest
from kubectl_dra.admission.server.verdict import check, is_known
from kubectl_dra.api.conversion import from_v1
from kubectl_dra.api.releases import Release, default_features
from tests.admission.server.support import BASES, edited

ADMIN = edited("claim", {"spec/devices/requests/0/exactly/adminAccess": True})
LABEL = "resource.kubernetes.io/admin-access"


def verdict_on(manifest: dict[str, Any], **known: Any) -> ServerVerdict:
    verdict = check(manifest, **known)
    assert verdict is not None
    return verdict


@pytest.mark.parametrize(
    ("base", "edits", "field", "path"),
    [
        (
            "claim",
            {"spec/devices/requests/0/exactly/deviceClassName": "A"},
            "spec.devices.requests[0].exactly.deviceClassName",
            ("spec", "devices", "requests", 0, "deviceClassName"),
        ),
        (
            "template",
            {"spec/spec/devices/requests/1/firstAvailable/0/name": "A"},
            "spec.spec.devices.requests[1].firstAvailable[0].name",
            ("spec", "spec", "devices", "requests", 1, "firstAvailable", 0, "name"),
        ),
        (
            "slice",
            {"spec/devices/0/attributes/model/string": "a" * 65},
            "spec.devices[0].attributes[model].string",
            ("spec", "devices", 0, "basic", "attributes", "model", "string"),
        ),
        ("slice", {"spec/devices/0/name": "A"}, "spec.devices[0].name", ("spec", "devices", 0, "name")),
    ],
)
def test_paths_are_those_of_the_manifest(
    base: str, edits: dict[str, Any], field: str, path: tuple[str | int, ...]
) -> None:
    manifest = from_v1(edited(base, edits), "v1beta1")
    found = {one.field: one.path for one in verdict_on(manifest).violations}
    assert found[field] == path
    assert nearest(manifest, path) == path


def test_what_is_missing_has_a_nearest_place() -> None:
    manifest = edited("slice", {"spec/pool": {}})
    paths = [one.path for one in verdict_on(manifest).violations]
    assert ("spec", "pool", "name") in paths
    assert {nearest(manifest, path) for path in paths} == {("spec", "pool")}
    assert nearest({"a": [1]}, ("a", 3, "b")) == ("a",)


def test_a_bad_key_has_its_place_although_the_server_leaves_it_out() -> None:
    verdict = verdict_on(edited("slice", {"spec/devices/0/attributes": {"a-b": {"int": 1}}}))
    (found,) = verdict.violations
    assert found.field == "spec.devices[0].attributes"
    assert found.path == ("spec", "devices", 0, "attributes", "a-b")


def test_long_keys_are_shortened_in_the_middle() -> None:
    path, shown = key_at(("spec",), "a" * 60 + "b" * 60, 96)
    assert path[-1] == "a" * 60 + "b" * 60
    assert shown == f"spec[{'a' * 47}...{'b' * 46}]"
    assert field_text(("spec", 0, "a", Key("b/c"), "d")) == "spec[0].a[b/c].d"


def test_cel_errors_have_an_offset() -> None:
    manifest = edited("class", {"spec/selectors/0/cel/expression": "true && device.nosuch"})
    (found,) = verdict_on(manifest).violations
    assert found.cel_offset == len("true && device")
    assert found.path == ("spec", "selectors", 0, "cel", "expression")


@pytest.mark.parametrize(
    ("namespaces", "accepted", "unsure"),
    [
        (None, True, True),
        ({"other": {LABEL: "true"}}, True, True),
        ({"default": {}}, False, False),
        ({"default": {LABEL: "True"}}, False, False),
        ({"default": {"resource.k8s.io/admin-access": "true"}}, False, False),
        ({"default": {LABEL: "true"}}, True, False),
    ],
)
def test_admin_access_depends_on_the_namespace(namespaces: Any, accepted: bool, unsure: bool) -> None:
    verdict = verdict_on(ADMIN, namespaces=namespaces)
    assert (verdict.accepted, bool(verdict.unsure)) == (accepted, unsure)
    assert [one.rule for one in verdict.violations] == ([] if accepted else ["admin-access-namespace"])


def test_the_label_for_admin_access_had_another_name() -> None:
    release = Release(1, 33)
    on = default_features(release) | {"DRAAdminAccess"}
    for label, accepted in (("resource.k8s.io/admin-access", True), (LABEL, False)):
        verdict = verdict_on(ADMIN, release=release, features=on, namespaces={"default": {label: "true"}})
        assert ("admin-access-namespace" in [one.rule for one in verdict.violations]) is not accepted


def test_a_template_leaves_its_own_spec_out() -> None:
    manifest = edited("template", {"spec/spec/devices/requests/0/exactly/adminAccess": True})
    (found,) = verdict_on(manifest, namespaces={"default": {}}).violations
    assert found.field == "spec.devices.requests[0].adminAccess"
    assert found.path == ("spec", "spec", "devices", "requests", 0, "exactly", "adminAccess")


def test_without_a_feature_its_fields_are_dropped() -> None:
    off = default_features(Release(1, 36)) - {"DRAPrioritizedList", "DRAConsumableCapacity"}
    rules = [one.rule for one in verdict_on(BASES["claim"], features=off).violations]
    assert "request-kind-missing" in rules
    distinct = edited("claim", {"spec/devices/constraints": [{"distinctAttribute": "a/b"}]})
    fields = [one.field for one in verdict_on(distinct, features=off).violations]
    assert "spec.devices.constraints[0].matchAttribute" in fields


def test_a_flat_request_without_class_gets_no_defaults() -> None:
    manifest = edited("claim", {"apiVersion": "resource.k8s.io/v1beta1"})
    manifest["spec"] = {"devices": {"requests": [{"name": "gpu", "selectors": []}]}}
    found = {(one.field, one.reason) for one in verdict_on(manifest).violations}
    at = "spec.devices.requests[0].exactly"
    assert found == {(f"{at}.deviceClassName", "Required"), (f"{at}.allocationMode", "NotSupported")}


@pytest.mark.parametrize(
    ("manifest", "warning"),
    [
        (edited("slice", {"spec/driver": "A"}), "should be lower case"),
        (from_v1(BASES["claim"], "v1beta1"), "deprecated in v1.35+, unavailable in v1.38+"),
        (BASES["rule"], "deprecated in v1.39+, unavailable in v1.42+"),
    ],
)
def test_warnings(manifest: dict[str, Any], warning: str) -> None:
    verdict = verdict_on(manifest)
    assert verdict.accepted
    assert warning in "".join(verdict.warnings)


@pytest.mark.parametrize("base", ["claim", "class", "slice", "pod"])
def test_no_warnings_otherwise(base: str) -> None:
    assert verdict_on(BASES[base]).warnings == ()


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        [],
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceClaim"},
        {"apiVersion": "resource.k8s.io/v1", "kind": "PodSchedulingContext"},
        {"apiVersion": "apps/v1", "kind": "Pod"},
        {"apiVersion": 1, "kind": "Pod"},
    ],
)
def test_kinds_that_are_not_known(manifest: Any) -> None:
    assert not is_known(manifest)
    assert check(manifest) is None


def test_the_manifest_is_not_changed() -> None:
    for base in BASES:
        manifest = edited(base, {})
        verdict_on(manifest)
        assert manifest == BASES[base]
