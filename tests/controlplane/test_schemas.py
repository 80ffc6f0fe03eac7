from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import request, resource_object
from tools.controlplane.plane import ControlPlane
from tools.controlplane.program import Program, default_minor, kubernetes_version
from tools.controlplane.schemas import DIRECTORY, schemas

MINOR = default_minor()
FILES = sorted((DIRECTORY / MINOR).glob("*.json"))


def test_files_are_what_the_server_publishes(control_plane: ControlPlane, control_plane_program: Program) -> None:
    if not control_plane_program.built:
        pytest.skip("ready-made programs have a version of their own")
    if not kubernetes_version().startswith(f"{MINOR}."):
        pytest.skip(f"the files are those of Kubernetes {MINOR}")
    published = schemas(control_plane.api())
    written = {f"{MINOR}/{path.name}": path.read_text() for path in FILES}
    assert sorted(written) == sorted(published)
    stale = [name for name, text in published.items() if written[name] != text]
    assert not stale, "run `python -m tools.controlplane.schemas`"


@pytest.mark.parametrize("name", [path.name for path in FILES])
def test_file_is_a_closed_schema_of_its_kind(name: str) -> None:
    schema = json.loads((DIRECTORY / MINOR / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    group, version, kind = name.removesuffix(".json").split("_")
    api_version = version if group == "core" else f"{group}/{version}"
    errors = jsonschema.Draft202012Validator(schema).iter_errors({"kind": kind, "nmae": 1})
    said = {error.message for error in errors}
    assert "Additional properties are not allowed ('nmae' was unexpected)" in said
    assert schema["properties"]["apiVersion"] == {"const": api_version}


def _claim() -> Json:
    return resource_object("ResourceClaim", "claim", {"devices": {"requests": [request("gpu")]}})


def _deployment() -> Json:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": 1}}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template},
    }


CLAIM_REQUEST = ("spec", "devices", "requests", 0, "exactly")
CONTAINER = ("spec", "template", "spec", "containers", 0)


@pytest.mark.parametrize(
    ("make", "path", "value", "accepted"),
    [
        (_claim, (*CLAIM_REQUEST, "count"), 2, True),
        (_claim, (*CLAIM_REQUEST, "count"), "2", False),
        (_claim, (*CLAIM_REQUEST, "count"), None, True),
        (_claim, (*CLAIM_REQUEST, "cuont"), 2, False),
        (_claim, (*CLAIM_REQUEST, "tolerations"), [{"operator": "Exists", "effect": "NoExecute"}], True),
        (_claim, (*CLAIM_REQUEST, "tolerations"), {"operator": "Exists"}, False),
        (_claim, (*CLAIM_REQUEST, "capacity"), {"requests": {"memory": "1Gi"}}, True),
        (_claim, (*CLAIM_REQUEST, "capacity"), {"requests": {"memory": 5}}, True),
        (_claim, (*CLAIM_REQUEST, "capacity"), {"requests": {"memory": []}}, False),
        (_claim, ("metadata", "creationTimestamp"), None, True),
        (_claim, ("metadata", "labels"), {"a": 1}, False),
        (_claim, ("spec", "devices", "config"), [{"opaque": {"driver": "d", "parameters": {"x": [1]}}}], True),
        (_deployment, ("spec", "replicas"), 3, True),
        (_deployment, ("spec", "replicas"), 1.5, False),
        (_deployment, (*CONTAINER, "resources", "claims"), [{"name": "gpu"}], True),
        (_deployment, (*CONTAINER, "resources", "claims"), [{"name": "gpu", "reqest": "x"}], False),
        (_deployment, ("spec", "strategy"), {"rollingUpdate": {"maxSurge": "10%"}}, True),
        (_deployment, ("spec", "strategy"), {"rollingUpdate": {"maxSurge": 1}}, True),
        (_deployment, ("spec", "template", "spec", "resourceclaims"), [], False),
    ],
)
def test_schema_and_server_agree(
    api_cluster: Cluster, make: Any, path: tuple[str | int, ...], value: object, accepted: bool
) -> None:
    manifest = make()
    target = manifest
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    manifest["metadata"]["namespace"] = api_cluster.namespace

    assert _server_accepts(api_cluster, copy.deepcopy(manifest)) is accepted
    assert _schema_accepts(manifest) is accepted


def test_objects_as_the_server_returns_them_are_valid(api_cluster: Cluster) -> None:
    for manifest in (_claim(), _deployment()):
        assert _schema_accepts(api_cluster.create(manifest))


def _server_accepts(cluster: Cluster, manifest: Json) -> bool:
    path = cluster.api.path(manifest["apiVersion"], manifest["kind"], cluster.namespace)
    try:
        cluster.api.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
    except ApiError as error:
        assert error.status in (400, 422), error
        return False
    return True


def _schema_accepts(manifest: Json) -> bool:
    name = f"{manifest['apiVersion'].replace('/', '_')}_{manifest['kind']}.json"
    schema = json.loads((DIRECTORY / MINOR / name).read_text())
    return jsonschema.Draft202012Validator(schema).is_valid(manifest)
