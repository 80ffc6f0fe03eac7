"""What lint says of a build in which kustomize broke references between DRA objects."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra

Dra = Callable[..., Ran]
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl builds the kustomizations")

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: pair}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, exactly: {deviceClassName: cards}}
      - {name: nic, exactly: {deviceClassName: cards}}
"""
CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: cards}
spec:
  selectors:
  - cel: {expression: device.driver == "gpu.example.com"}
"""
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      containers:
      - name: main
        image: registry.example.com/train:1
        resources: {claims: [{name: gpu, request: nic}]}
      resourceClaims:
      - {name: gpu, resourceClaimTemplateName: pair}
"""
NAMED = "namePrefix: prod-\nnameSuffix: -v2\n"


def build(overlay: str, *more: str) -> None:
    """A base of a template, a workload and ``more``, and an overlay of it."""
    Path("base").mkdir()
    Path("overlay").mkdir()
    Path("base/kustomization.yaml").write_text("resources: [all.yaml]\n")
    Path("base/all.yaml").write_text("---\n".join((TEMPLATE, WORKLOAD, *more)))
    Path("overlay/kustomization.yaml").write_text(f"resources: [../base]\n{overlay}")


def test_a_name_that_the_build_changed(dra: Dra) -> None:
    build(NAMED)
    ran = dra("lint", "-k", "overlay", "-o", "github")
    assert ran.code == 1 and ran.out.count("DRA") == 1, ran.out
    assert "ResourceClaimTemplate pair is called prod-pair-v2 after the build" in ran.out


@pytest.mark.parametrize("namespace", ["", "namespace: ml\n"])
def test_the_advice_mends_the_build(dra: Dra, namespace: str) -> None:
    build(NAMED + namespace, CLASS)
    ran = dra("lint", "-k", "overlay", "-o", "json")
    found = yaml.safe_load(ran.out)["findings"]
    assert {one["code"] for one in found} == {"DRA412"} and len(found) == 3
    written = [one["fix"]["text"].partition("nameReference: ")[2] for one in found]
    names = [entry for text in dict.fromkeys(written) for entry in yaml.safe_load(text)]
    Path("overlay/dra-names.yaml").write_text(yaml.safe_dump({"nameReference": names}))
    with Path("overlay/kustomization.yaml").open("a") as file:
        file.write("configurations: [dra-names.yaml]\n")
    ran = dra("lint", "-k", "overlay")
    assert ran.code == 0, ran.out


def test_a_class_is_followed_within_one_namespace_only(dra: Dra) -> None:
    build(NAMED, CLASS)
    text = Path("base/all.yaml").read_text()
    for name in ("pair", "train"):
        text = text.replace(f"{{name: {name}}}", f"{{name: {name}, namespace: ml}}", 1)
    Path("base/all.yaml").write_text(text)
    ran = dra("lint", "-k", "overlay")
    assert "Build DeviceClass cards by a kustomization without namePrefix" in ran.out


def test_what_was_built_before_says_it_too(dra: Dra) -> None:
    renamed = [
        text.replace("{name: pair}", "{name: p-pair}").replace("{name: train}", "{name: p-train}")
        for text in (TEMPLATE, WORKLOAD)
    ]
    Path("a.yaml").write_text("---\n".join(renamed))
    ran = dra("lint", "a.yaml", "-o", "github")
    assert "DRA412" in ran.out and "::warning" in ran.out and "DRA406" not in ran.out
    # Another object without the prefix: these are just names.
    Path("a.yaml").write_text("---\n".join((*renamed, WORKLOAD.replace("name: train}", "name: other}"))))
    assert "DRA412" not in dra("lint", "a.yaml").out


REQUESTS = TEMPLATE.replace("      - {name: nic, exactly: {deviceClassName: cards}}\n", "")
CONSTRAINED = TEMPLATE + "      constraints:\n      - {requests: [gpu, nic], matchAttribute: gpu.example.com/root}\n"
CLAIMS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec: {template: {spec: {resourceClaims: [{name: more, resourceClaimTemplateName: pair}]}}}
"""
REPLACED = "replaces the whole list %s of base/all.yaml, which has %s:"


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [(REQUESTS, "DRA402", ("requests", "nic")), (CLAIMS, "DRA110", ("resourceClaims", "gpu"))],
    ids=["requests", "claims"],
)
@pytest.mark.parametrize("entry", ["patches: [{path: p.yaml}]", "patchesStrategicMerge: [p.yaml]", "inline"])
def test_a_list_that_a_patch_replaces(dra: Dra, patch: str, code: str, words: tuple[str, str], entry: str) -> None:
    inline = yaml.safe_dump({"patches": [{"patch": patch}]})
    build(inline if entry == "inline" else entry + "\n")
    Path("overlay/p.yaml").write_text(patch)
    ran = dra("lint", "-k", "overlay", "-o", "json")
    (found,) = (one for one in yaml.safe_load(ran.out)["findings"] if one["code"] == code)
    file = "overlay/kustomization.yaml" if entry == "inline" else "overlay/p.yaml"
    assert found["fix"]["text"].startswith(f"{file} {REPLACED % words}")


def test_a_constraint_on_a_request_that_a_patch_removed(dra: Dra) -> None:
    build("namePrefix: a-\npatches: [{path: p.yaml}]\n")
    Path("base/all.yaml").write_text(CONSTRAINED)
    Path("overlay/p.yaml").write_text(REQUESTS)
    ran = dra("lint", "-k", "overlay", "-o", "json")
    assert f"overlay/p.yaml {REPLACED % ('requests', 'nic')}" in ran.out


def test_a_patch_that_repeats_the_list_took_nothing(dra: Dra) -> None:
    build("patches: [{path: p.yaml}]\n")
    Path("overlay/p.yaml").write_text(TEMPLATE.replace("gpu, exactly: {", "gpu, exactly: {count: 2, "))
    assert dra("lint", "-k", "overlay").code == 0
    Path("base/all.yaml").write_text(Path("base/all.yaml").read_text().replace("request: nic", "request: mic"))
    ran = dra("lint", "-k", "overlay")
    assert "Write request: nic" in ran.out and "replaces the whole list" not in ran.out


def test_a_json_patch_beside_it_is_no_defect(dra: Dra) -> None:
    build("patches: [{path: p.yaml}, {path: ops.yaml, target: {kind: Deployment}}]\n")
    Path("overlay/p.yaml").write_text(REQUESTS)
    Path("overlay/ops.yaml").write_text('- {op: add, path: /metadata/labels, value: {a: "b"}}\n')
    assert "overlay/p.yaml replaces" in dra("lint", "-k", "overlay").out


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("{kind: ResourceClaimTemplate}", True),
        ("{kind: ResourceClaimTemplate, name: pai.*}", True),
        ("{kind: ResourceClaimTemplate, name: other}", False),
        ("{kind: ResourceClaim}", False),
    ],
)
def test_a_patch_for_a_target(dra: Dra, target: str, said: bool) -> None:
    build("patches:\n- path: p.yaml\n")
    Path("overlay/p.yaml").write_text(REQUESTS)
    Path("again").mkdir()
    # The request is gone already; the second patch is named only if its target lets it through.
    Path("again/kustomization.yaml").write_text(
        f"resources: [../overlay]\npatches: [{{path: q.yaml, target: {target}}}]\n"
    )
    Path("again/q.yaml").write_text(REQUESTS.replace("name: pair", "name: any"))
    assert ("again/q.yaml replaces" in dra("lint", "-k", "again").out) is said
