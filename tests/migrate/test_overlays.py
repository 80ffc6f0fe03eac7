"""Shapes of overlays: ``overlays.yaml``. What kubectl builds before and after differs by the migration alone.

A shape is a base (``base/d.yaml``) and an overlay of it (``over/kustomization.yaml``, which takes ``../base`` unless
it names its resources) with the files beside it, or at their path. ``outcome`` is ``migrated``, or a part of the reason
for the refusal, after which no file has changed; ``advice`` is then a part of what to do.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.manifests.inputs import Input, find_inputs
from kubectl_dra.manifests.kustomization import kustomization_in
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.kustomize.run import migrate_built
from kubectl_dra.migrate.model import MigrationReport
from tests.migrate.runs import settings

CORPUS = yaml.safe_load(Path(__file__).with_name("overlays.yaml").read_text())
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl builds the kustomizations")
JOB = MigrationJob(settings(), unsafe=True)


def shapes() -> Iterator[Any]:
    for shape in CORPUS["shapes"]:
        yield pytest.param(shape, id=shape["name"])


def written(folder: Path, shape: Mapping[str, str]) -> None:
    kustomization_in.cache_clear()
    over = shape["over"] if shape["over"].startswith("resources:") else f"resources: [../base]\n{shape['over']}"
    files = {
        "base/kustomization.yaml": "resources: [d.yaml]\n",
        "base/d.yaml": CORPUS["bases"][shape["base"]],
        "over/kustomization.yaml": over,
    }
    for name, text in shape.items():
        if name.endswith((".yaml", ".json")):
            files[name if "/" in name else f"over/{name}"] = text
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def builds(folder: Path) -> dict[str, str]:
    """What kubectl builds of each kustomization that can be built by itself, by its directory."""
    out = {}
    for path in sorted(folder.rglob("kustomization.yaml")):
        if "kind: Component" not in path.read_text():
            done = subprocess.run(["kubectl", "kustomize", path.parent], capture_output=True, text=True, check=True)
            out[str(path.parent.relative_to(folder))] = done.stdout
    return out


def migrated(folder: Path) -> MigrationReport:
    kustomization_in.cache_clear()
    report = migrate_built(find_inputs([str(folder)]), JOB)
    assert not report.defects
    for file in report.changed:
        assert file.text is not None
        Path(file.name).write_text(file.text.after)
    return report


def meant(text: str) -> list[Any]:
    """The objects of a build, with each claim's spec in place of its reference, and without the claims themselves."""
    objects = [raw for raw in yaml.safe_load_all(text) if raw]
    claims = {
        (raw["kind"], raw["metadata"].get("namespace"), raw["metadata"]["name"]): raw["spec"]
        for raw in objects
        if raw["kind"] in ("ResourceClaim", "ResourceClaimTemplate")
    }
    used = set()

    def filled(value: Any, space: str | None) -> Any:
        if isinstance(value, list):
            return [filled(each, space) for each in value]
        if not isinstance(value, dict):
            return value
        if "resourceClaimTemplateName" in value:
            key = ("ResourceClaimTemplate", space, value["resourceClaimTemplateName"])
            used.add(key)
            return {**value, "resourceClaimTemplateName": claims[key]}
        return {key: filled(each, space) for key, each in value.items()}

    out = [filled(raw, raw["metadata"].get("namespace")) for raw in objects if raw["kind"] != "ResourceClaimTemplate"]
    assert used == claims.keys()
    return sorted(out, key=lambda raw: (raw["kind"], raw["metadata"]["name"]))


def migration_of(text: str) -> str:
    report = migrate([Input("build.yaml", True, text.encode())], JOB)
    return next((file.text.after for file in report.changed if file.text is not None), text)


@pytest.mark.parametrize("shape", list(shapes()))
def test_shape(shape: dict[str, str], tmp_path: Path) -> None:
    written(tmp_path, shape)
    before = builds(tmp_path)
    report = migrated(tmp_path)
    after = builds(tmp_path)
    outcome = shape.get("outcome", "migrated")
    if outcome != "migrated":
        assert after == before and any(outcome in item.message for item in report.items("refusal")), report.items()
        assert any(shape.get("advice", "") in item.way_out for item in report.items("refusal")), report.items()
        return
    assert not report.items("refusal")
    for directory, text in before.items():
        assert meant(after[directory]) == meant(migration_of(text)), directory
    assert before != after
    again = migrated(tmp_path)
    assert not again.changed and not again.items("refusal")
