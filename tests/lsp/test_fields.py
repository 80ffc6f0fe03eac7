"""What an editor says of fields: prose for every field of the API's table, enums, keys of claims in pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubectl_dra.api import dra_fields as api
from kubectl_dra.api.releases import LIFECYCLES, Release
from kubectl_dra.lsp.fields import api_versions_of, fields_at, kind_page, kinds_in, page, prose

VERSIONS = sorted({entry.version for entry in LIFECYCLES if entry.kind in api.KINDS} - {"v1alpha2", "v1alpha1"})


def structs(struct: str, version: str, seen: set[str]) -> Iterator[str]:
    """A struct and all below it."""
    if struct not in seen:
        seen.add(struct)
        yield struct
        for field in api.fields(struct, version).values():
            if not field.scalar:
                yield from structs(field.type, version, seen)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_field_of_a_served_kind_lacks_prose(version: str) -> None:
    seen: set[str] = set()
    found = [struct for kind in (*api.KINDS, "ObjectMeta") for struct in structs(kind, version, seen)]
    assert len(found) > 40
    lacking = [(each, name) for each in found for name in api.fields(each, version) if not prose(each, name)]
    assert lacking == []


def test_every_kind_has_a_page() -> None:
    for kind in api.KINDS:
        assert kind_page(kind, Release(1, 37)).startswith(f"**{kind}**: ")
    assert kind_page("Pod", Release(1, 37)) == ""
    assert "`resource.k8s.io/v1`" in kind_page("ResourceClaim", Release(1, 36))
    assert "v1beta1" in kind_page("ResourceClaim", Release(1, 32))


def test_a_page_has_the_prose_values_and_default() -> None:
    fields = fields_at("ResourceClaim", "resource.k8s.io/v1", ("spec", "devices", "requests", "exactly"))
    said = page("ExactDeviceRequest", "allocationMode", fields["allocationMode"], Release(1, 37))
    assert "every device that matches" in said and "One of `All`, `ExactCount`." in said and "`ExactCount`." in said


@pytest.mark.parametrize(
    ("kind", "api_version", "path", "expected"),
    [
        ("Pod", "v1", ("spec",), {"resourceClaims"}),
        ("Deployment", "apps/v1", ("spec",), set()),
        ("Deployment", "apps/v1", ("spec", "template", "spec"), {"resourceClaims"}),
        ("CronJob", "batch/v1", ("spec", "jobTemplate", "spec", "template", "spec"), {"resourceClaims"}),
        ("RayCluster", "ray.io/v1", ("spec", "workerGroupSpecs", "template", "spec"), {"resourceClaims"}),
        (
            "PyTorchJob",
            "kubeflow.org/v1",
            ("spec", "pytorchReplicaSpecs", "Worker", "template", "spec"),
            {"resourceClaims"},
        ),
        ("Pod", "v1", ("spec", "resourceClaims"), {"name", "resourceClaimName", "resourceClaimTemplateName"}),
        ("Pod", "v1", ("spec", "containers", "resources"), {"claims"}),
        ("Pod", "v1", ("spec", "containers", "resources", "claims"), {"name", "request"}),
        ("Service", "v1", ("spec",), set()),
    ],
)
def test_the_fields_of_claims_in_pods(kind: str, api_version: str, path: tuple[str, ...], expected: set[str]) -> None:
    assert fields_at(kind, api_version, path).keys() == expected


def test_kinds_and_versions_go_together() -> None:
    assert "Pod" not in kinds_in("resource.k8s.io/v1", Release(1, 37))
    assert "DeviceClass" in kinds_in("resource.k8s.io/v1", Release(1, 37))
    assert kinds_in("v1", Release(1, 37))[0] == "Pod" and "DeviceClass" in kinds_in("", Release(1, 37))
    assert api_versions_of("ResourceClaim", Release(1, 36))[0] == "resource.k8s.io/v1"
    assert api_versions_of("Deployment", Release(1, 36)) == ("apps/v1",)
    assert {"v1", "batch/v1", "resource.k8s.io/v1beta1"} <= {*api_versions_of("", Release(1, 32))}
