"""Charts without helm: files that templates put into texts, and the files with other values."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.manifests.charts import values_files
from kubectl_dra.manifests.inputs import find_inputs
from kubectl_dra.migrate.engine import MigrationJob, migrate
from tests.migrate.runs import settings

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: agent}
spec:
  containers:
  - name: c
    image: a:1
    resources:
      limits:
        nvidia.com/gpu: 1
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for folder in ("templates", "files", "ci"):
        (tmp_path / "agent" / folder).mkdir(parents=True)
    (tmp_path / "agent/Chart.yaml").write_text("apiVersion: v2\nname: agent\nversion: 1.0.0\n")
    (tmp_path / "agent/files/pod.yaml").write_text(POD)
    return tmp_path / "agent"


@pytest.mark.parametrize(
    "used",
    ['{{ .Files.Get "files/pod.yaml" }}', '{{ (.Files.Glob "files/*").AsConfig }}', "{{ .Files.Get $path }}"],
)
def test_a_file_that_a_template_puts_into_a_text_stays(chart: Path, used: str) -> None:
    (chart / "templates/config.yaml").write_text(f"data:\n  pod: {used}\n")
    report = migrate(find_inputs([str(chart.parent)]), MigrationJob(settings()))
    assert not report.changed
    assert [(item.code, item.line) for item in report.items("refusal")] == [("MIG905", 10)]
    assert "templates/config.yaml puts this file into a text" in report.items("refusal")[0].message


def test_other_files_of_a_chart_change(chart: Path) -> None:
    (chart / "templates/config.yaml").write_text('data:\n  pod: {{ .Files.Get "files/other.yaml" }}\n')
    assert migrate(find_inputs([str(chart.parent)]), MigrationJob(settings())).changed


def found(chart: Path) -> list[str]:
    return [Path(path).relative_to(chart).as_posix() for path in values_files(str(chart))]


def test_values_are_beside_those_of_the_chart_and_in_its_ci(chart: Path) -> None:
    for name in ("values.yaml", "gaudi-values.yaml", "values-prod.yml", "values.schema.json", "ci/gpu.yaml"):
        (chart / name).write_text("a: 1\n")
    (chart / "a.yaml").write_text("b: 1\n")
    assert found(chart) == ["ci/gpu.yaml", "gaudi-values.yaml", "values-prod.yml"]


def test_values_are_known_by_their_keys_whatever_the_file_is_called(chart: Path) -> None:
    (chart / "values.yaml").write_text("image: a:1\nresources: {}\n")
    (chart / "environments").mkdir()
    for name in ("prod.yaml", "environments/gpu.yml", "templates/resources.yaml"):
        (chart / name).write_text("resources:\n  limits:\n    nvidia.com/gpu: 1\n")
    (chart / "object.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nimage: a:1\n")
    (chart / "pipeline.yaml").write_text("steps: []\n")
    (chart / "broken.yaml").write_text("image: [\n")
    assert found(chart) == ["environments/gpu.yml", "prod.yaml"]
