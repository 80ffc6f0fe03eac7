"""Charts with the real helm, where it is on the PATH: rendered by migrate, and migrated by its post-renderer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not on the PATH")

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
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    folder = tmp_path / "llm"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: llm\nversion: 1.0.0\n")
    (folder / "values.yaml").write_text(VALUES)
    (folder / "templates/deployment.yaml").write_text(DEPLOYMENT)
    return folder


def test_a_chart_is_rendered_and_its_template_named(dra: Callable[..., Ran], chart: Path) -> None:
    ran = dra("migrate", "llm", "--diff")
    assert ran.code == 1
    assert re.search(r"^-\s+nvidia.com/gpu: 2$", ran.out, re.M) and re.search(r"^\+\s+count: 2$", ran.out, re.M)
    assert "llm/templates/deployment.yaml" in dra("migrate", "llm").out


def test_a_chart_that_does_not_render_says_why(dra: Callable[..., Ran], chart: Path) -> None:
    (chart / "templates/broken.yaml").write_text("a: b: c\n")
    ran = dra("migrate", "llm")
    assert ran.code == 2
    assert "YAML parse error on llm/templates/broken.yaml" in ran.err


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


def test_other_values_that_ask_for_devices_are_named(dra: Callable[..., Ran], chart: Path) -> None:
    (chart / "values.yaml").write_text("gpus: 0\nreplicas: 1\n")
    (chart / "gpu-values.yaml").write_text("gpus: 4\n")
    (chart / "more-values.yaml").write_text("replicas: 2\n")
    ran = dra("migrate", "llm", "--check")
    assert ran.code == 1
    said = dra("migrate", "llm").out
    assert "llm/gpu-values.yaml" in said and "MIG903" in said and "more-values" not in said
    assert re.search(r"^\+\s+count: 4$", dra("migrate", "llm", "--values", "llm/gpu-values.yaml", "--diff").out, re.M)
    assert re.search(r"^\+\s+count: 2$", dra("migrate", "llm", "--set", "gpus=2", "--diff").out, re.M)
