"""Patches of kustomize are parts of objects: what is not in them is not missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra

Dra = Callable[..., Ran]

PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  template:
    spec:
      containers:
      - name: main
        resources:
          claims:
          - name: gpu
      resourceClaims:
      - name: gpu
        resourceClaimTemplateName: gpu
"""


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
@pytest.mark.parametrize("entry", ["patches: [{path: P}]", "patchesStrategicMerge: [./P, '$patch: a']"])
@pytest.mark.parametrize("where", ["patch.yaml", "patches/patch.yaml"])
def test_what_a_kustomization_names_is_a_patch(dra: Dra, name: str, entry: str, where: str) -> None:
    Path("overlay/patches").mkdir(parents=True)
    Path("overlay", name).write_text(entry.replace("P", where))
    Path("overlay", where).write_text(PATCH)
    ran = dra("lint", "overlay")
    note = f"note: overlay/{name}: check what it builds as well: kubectl dra lint -k overlay\n"
    assert (ran.code, ran.err) == (0, note), ran.out


def test_other_mistakes_of_a_patch_are_found(dra: Dra) -> None:
    Path("kustomization.yaml").write_text("patches:\n- path: patch.yaml\n")
    Path("patch.yaml").write_text(PATCH.replace("TemplateName", "TemplatName") + "      $patch: merge\n")
    ran = dra("lint", ".")
    assert ran.code == 1 and "resourceClaimTemplatName" in ran.out and "1 error in" in ran.out


@pytest.mark.parametrize(
    "text", ["patches: [{path: other.yaml}]\n", "patches: x\n", "a: [\n", "resources: [patch.yaml]\n"]
)
def test_a_file_that_is_no_patch_must_be_whole(dra: Dra, text: str) -> None:
    Path("kustomization.yaml").write_text(text)
    Path("patch.yaml").write_text(PATCH)
    ran = dra("lint", "patch.yaml")
    assert ran.code == 1 and "image" in ran.out and "spec.selector" in ran.out
