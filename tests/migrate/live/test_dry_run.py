"""What migrate writes is accepted wherever the control plane accepted what was there before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.objects import objects
from kubectl_dra.migrate.engine import MigrationJob, migrate
from tests.migrate.runs import settings
from tests.migrate.test_cases import cases
from tests.migrate.test_real import FOLDER
from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster

REAL = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".yml", ".yaml")) if FOLDER.is_dir() else []


def refusals(cluster: Cluster, text: str) -> dict[tuple[str, str], str]:
    """What the server says against each object of a kind that it serves; names are "KIND NAME"."""
    out: dict[tuple[str, str], str] = {}
    for found in objects(read_documents(text, "f.yaml")):
        raw: Json = dict(found.object)
        try:
            known = cluster.api.kinds(raw["apiVersion"]).get(raw["kind"])
        except ApiError:
            known = None
        if known is None:
            continue
        metadata = dict(raw.get("metadata") or {})
        if known.namespaced:
            metadata["namespace"] = cluster.namespace
        path = cluster.api.path(raw["apiVersion"], raw["kind"], cluster.namespace)
        title = str(metadata.get("name") or metadata.get("generateName"))
        try:
            cluster.api.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", {**raw, "metadata": metadata})
            out[raw["kind"], title] = ""
        except ApiError as error:
            out[raw["kind"], title] = "" if error.status == 409 else str(error)
    return out


def check(cluster: Cluster, before: str, after: str) -> int:
    """Every object is accepted that was; and new ones if all were. Returns the number of accepted ones."""
    was, now = refusals(cluster, before), refusals(cluster, after)
    for title, refusal in now.items():
        if was.get(title, "") == "":
            assert not refusal, f"{title}: {refusal}"
    return sum(1 for refusal in now.values() if not refusal)


CASES: Sequence[Any] = [case.values[0] for case in cases() if "after" in case.values[0]]


def test_the_cases(api_cluster: Cluster) -> None:
    accepted = [check(api_cluster, case["before"], case["after"]) for case in CASES]
    assert sum(accepted) > 40


def migrated(data: bytes) -> Iterator[tuple[str, str]]:
    for file in migrate([Input("f.yaml", True, data)], MigrationJob(settings(), True)).changed:
        assert file.text is not None
        yield file.text.before, file.text.after


@pytest.mark.skipif(not REAL, reason="the public manifests are not here")
def test_public_manifests(api_cluster: Cluster) -> None:
    count = 0
    for path in REAL:
        for before, after in migrated(Path(path).read_bytes()):
            try:
                count += check(api_cluster, before, after)
            except AssertionError as error:
                raise AssertionError(f"{path.name}: {error}") from None
    assert count > 20


def test_what_is_refused_is_seen(api_cluster: Cluster) -> None:
    wrong = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}})
    assert refusals(api_cluster, wrong)["Pod", "p"]
