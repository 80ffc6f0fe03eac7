"""Charts in the shapes of public ones: migrate changes them, and the real helm renders what was promised."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.charts.workshop import objects_of
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.kustomize.build_differences import differences
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tests.helm import helm as helm
from tests.migrate.runs import settings

HERE = Path(__file__).parent
EXPECTED = yaml.safe_load((HERE / "expected.yaml").read_text())
Dra = Callable[..., Ran]


@pytest.fixture
def charts(helm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_chart_is_in_the_table() -> None:
    assert {path.parent.name for path in HERE.glob("*/Chart.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_chart_renders_what_migrate_makes_of_its_rendering(dra: Dra, charts: Path, name: str) -> None:
    expected = EXPECTED[name]
    shutil.copytree(HERE / name, charts / name)
    before = {path: path.read_bytes() for path in (charts / name).rglob("*") if path.is_file()}
    if "nothing" in expected:
        ran = dra("migrate", "--write", name)
        assert ran.code == 0 and expected["nothing"] in ran.out + ran.err
        assert {path: path.read_bytes() for path in before} == before
        return
    renderings = expected.get("renderings", ["values.yaml"])
    old = {values: rendered(name, values) for values in renderings}
    others = {values: rendered(name, values) for values in other_values(charts / name) if values not in old}

    ran = dra("migrate", name, "-o", "json")
    report = json.loads(ran.out)
    assert ran.code == 1 and not report["defects"]
    changed = [file["name"].removeprefix(f"{name}/") for file in report["files"] if file["changed"]]
    assert sorted(changed) == expected["files"]
    assert report["summary"]["refusals"] == 0
    assert dra("migrate", "--write", name).code == 0

    new = {values: rendered(name, values) for values in renderings}
    for values in renderings:
        wanted = migrated(old[values])
        assert wanted != old[values]
        assert list(differences(objects_of(old[values]), objects_of(wanted), objects_of(new[values]))) == []
        assert migrated(new[values]) == new[values], "nothing is left to migrate"
        (charts / "rendered.yaml").write_text(new[values])
        assert dra("lint", "rendered.yaml").code == 0
    assert {values: rendered(name, values) for values in others} == others, "other renderings stay"
    again = dra("migrate", "--check", name)
    assert again.code == 0, again.out
    unchanged = {path for path in before if path.relative_to(charts / name).as_posix() not in expected["files"]}
    assert {path: path.read_bytes() for path in unchanged} == {path: before[path] for path in unchanged}


def test_values_files_keep_every_other_byte(dra: Dra, charts: Path) -> None:
    shutil.copytree(HERE / "ollama", charts / "ollama")
    dra("migrate", "--write", "ollama")
    before = (HERE / "ollama/values.yaml").read_text().splitlines()
    after = (charts / "ollama/values.yaml").read_text().splitlines()
    assert [line for line in before if line not in after] == [
        "    draEnabled: false",
        '    draDriverClass: ""',
        "tolerations: []",
    ]
    assert "    # claims in place of the device plugin" in after


def test_values_of_the_command_line_are_the_ones_that_change(dra: Dra, charts: Path) -> None:
    shutil.copytree(HERE / "whisper", charts / "whisper")
    (charts / "mine.yaml").write_text("# mine\nresources:\n  limits: {nvidia.com/gpu: 2, memory: 4Gi}\n")
    assert dra("migrate", "--write", "whisper", "--values", "mine.yaml").code == 0
    text = (charts / "mine.yaml").read_text()
    assert text.startswith("# mine\n") and "memory: 4Gi" in text and "nvidia.com/gpu: " not in text
    assert (charts / "whisper/values.yaml").read_text() == (HERE / "whisper/values.yaml").read_text()
    assert yaml.safe_load(text)["resources"]["claims"] == [{"name": "gpu", "request": "gpu"}]


def test_a_chart_whose_schema_allows_no_new_values_is_refused(dra: Dra, charts: Path) -> None:
    shutil.copytree(HERE / "jellyfin", charts / "jellyfin")
    schema = {"type": "object", "properties": {"resources": {"type": "object"}}, "additionalProperties": False}
    (charts / "jellyfin/values.schema.json").write_text(json.dumps(schema))
    ran = dra("migrate", "jellyfin")
    assert ran.code == 1 and "MIG910 chart" in ran.out and "resourceClaims" in ran.out
    assert "+  resourceClaims" in dra("migrate", "jellyfin", "--diff").out.replace("+      ", "+  ")
    assert dra("migrate", "--write", "jellyfin").code == 2


def other_values(chart: Path) -> list[str]:
    return [path.relative_to(chart).as_posix() for path in (*chart.glob("*values*.yaml"), *chart.glob("ci/*.yaml"))]


def rendered(name: str, values: str) -> str:
    command = ["helm", "template", "release", name, "--kube-version", "1.37.0", "--values", f"{name}/{values}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def migrated(text: str) -> Any:
    report = migrate([Input("<rendered>", True, text.encode())], MigrationJob(settings()))
    return next((file.text.after for file in report.files if file.text is not None), text)


@pytest.mark.parametrize("place", ["whisper/prod.yaml", "whisper/environments/prod.yaml", "prod.yaml"])
def test_values_in_a_file_of_any_name(dra: Dra, charts: Path, place: str) -> None:
    shutil.copytree(HERE / "whisper", charts / "whisper")
    (charts / place).parent.mkdir(exist_ok=True)
    (charts / "whisper/ci/gpu-values.yaml").rename(charts / place)
    before = rendered("whisper", f"../{place}")
    if place == "prod.yaml":
        # It may as well be that of another chart: so nothing is changed there unless it is named.
        ran = dra("migrate", "--write", "whisper")
        assert ran.code == 0
        assert "prod.yaml: it asks for nvidia.com/gpu and may be values of this chart: kubectl dra migrate " in ran.err
        ran = dra("migrate", "--write", "whisper", "prod.yaml")
    else:
        ran = dra("migrate", "--write", "whisper")
    assert ran.code == 0 and f"\n{place}\n" in f"\n{ran.out}", ran.out + ran.err
    new = rendered("whisper", f"../{place}")
    assert new != before and list(differences(objects_of(before), objects_of(migrated(before)), objects_of(new))) == []
    assert "may be values" not in dra("migrate", "--check", "whisper").err
