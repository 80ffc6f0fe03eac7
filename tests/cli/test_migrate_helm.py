"""Charts with the real helm: rendered and changed by migrate, and migrated by its post-renderer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Dra
from tests.helm import helm as helm

pytestmark = pytest.mark.usefixtures("helm")

VALUES = "gpus: 2\nreplicas: 1\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-llm
  namespace: {{ .Release.Namespace }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec:
      containers:
      - name: server
        image: registry.example.com/llm:1
        resources:
          limits:
            {{- if .Values.gpus }}
            nvidia.com/gpu: {{ .Values.gpus }}
            {{- end }}
            memory: 8Gi
"""


@pytest.fixture
def chart(helm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "llm"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: llm\nversion: 1.0.0\n")
    (folder / "values.yaml").write_text(VALUES)
    (folder / "templates/deployment.yaml").write_text(DEPLOYMENT)
    return folder


def test_a_chart_is_rendered_and_its_template_named(dra: Dra, chart: Path) -> None:
    ran = dra("migrate", "llm", "-o", "yaml")
    assert "nvidia.com/gpu: 2" not in ran.out and re.search(r"^\s+count: 2$", ran.out, re.M)
    ran = dra("migrate", "llm", "--diff")
    assert ran.code == 1
    assert re.search(r"^-\s+nvidia.com/gpu: {{ .Values.gpus }}$", ran.out, re.M)
    assert re.search(r"^\+\s+count: {{ .Values.gpus }}$", ran.out, re.M)
    assert "llm/templates/deployment.yaml" in dra("migrate", "llm").out


def test_the_difference_is_a_patch_and_write_makes_it(dra: Dra, chart: Path) -> None:
    patch = dra("migrate", "llm", "--diff").out
    before = (chart / "templates/deployment.yaml").read_text()
    subprocess.run(["patch", "-p1"], input=patch, text=True, check=True, cwd=chart.parent, capture_output=True)
    patched = (chart / "templates/deployment.yaml").read_text()
    (chart / "templates/deployment.yaml").write_text(before)
    assert dra("migrate", "llm", "--write").code == 0
    assert (chart / "templates/deployment.yaml").read_text() == patched != before
    assert dra("migrate", "llm", "--check").code == 0


def test_a_template_that_does_not_render_leaves_the_others(dra: Dra, chart: Path) -> None:
    (chart / "templates/broken.yaml").write_text("a: b: c\n")
    (chart / "templates/failing.yaml").write_text('a: {{ fail "not today" }}\n')
    ran = dra("migrate", "llm", "--check")
    assert ran.code == 1
    assert "llm/templates/broken.yaml:1:1: MIG902 refused" in ran.out and "YAML parse error" in ran.out
    assert "llm/templates/failing.yaml:1:1: MIG902 refused" in ran.out and "not today" in ran.out
    assert "llm/templates/deployment.yaml: would change" in ran.out


def test_a_chart_that_does_not_render_says_why(dra: Dra, chart: Path) -> None:
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: llm\nversion: one\n")
    ran = dra("migrate", "llm")
    assert ran.code == 2 and "helm template failed" in ran.err
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: llm\nversion: 1.0.0\n")
    (chart / "templates/broken.yaml").write_text("a: b: c\n")
    ran = dra("lint", "llm")
    assert ran.code == 2 and "YAML parse error on llm/templates/broken.yaml" in ran.err


def test_the_post_renderer_makes_claims_of_a_release(chart: Path) -> None:
    script = chart.parent / "post.sh"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -m kubectl_dra migrate - -o yaml\n")
    script.chmod(0o755)
    command = ["helm", "template", "prod", "llm", "-n", "ml", "--set", "gpus=4", "--post-renderer", str(script)]
    if "v4." in subprocess.run(["helm", "version", "--short"], capture_output=True, text=True).stdout:
        pytest.skip("helm 4 takes post-renderers as plugins only")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "nvidia.com/gpu: 4" not in done.stdout and "count: 4" in done.stdout
    (name,) = set(re.findall(r"resourceClaimTemplateName: (\S+)", done.stdout))
    assert f"  name: {name}\n  namespace: ml\n" in done.stdout


def test_the_post_renderer_stops_a_release_that_is_refused(chart: Path) -> None:
    script = chart.parent / "post.sh"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -m kubectl_dra migrate - -o yaml\n")
    script.chmod(0o755)
    command = ["helm", "template", "prod", "llm", "--set", "gpus=half", "--post-renderer", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "MIG114" in done.stderr


def test_other_values_that_ask_for_devices_are_named(dra: Dra, chart: Path) -> None:
    (chart / "values.yaml").write_text("gpus: 0\nreplicas: 1\n")
    (chart / "gpu-values.yaml").write_text("gpus: 4\n")
    (chart / "more-values.yaml").write_text("replicas: 2\n")
    ran = dra("migrate", "llm", "--check")
    assert ran.code == 1
    said = dra("migrate", "llm").out
    assert "llm/gpu-values.yaml (helm)" in said and "MIG129" in said and "more-values" not in said
    for more, count in ((("--values", "llm/gpu-values.yaml"), 4), (("--set", "gpus=2"), 2)):
        assert re.search(rf"^\s+count: {count}$", dra("migrate", "llm", *more, "-o", "yaml").out, re.M)
        assert "+          count: {{ .Values.gpus }}" in dra("migrate", "llm", *more, "--diff").out
