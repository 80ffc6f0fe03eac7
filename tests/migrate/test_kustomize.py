"""Trees of kustomizations: ``kustomize.yaml``.

A case has the files ``before``; those that are other ones ``after`` (read as objects where they are manifests, else
byte by byte), those of ``exact`` with their comments; which are ``changed``; the ``codes`` that are said; and
``parts`` of messages. ``paths`` are given to migrate, all files if there are none. ``links`` are symbolic links.
``claims`` is the file of --claims-file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.manifests.inputs import find_inputs
from kubectl_dra.manifests.kustomization import kustomization_in
from kubectl_dra.migrate.engine import MigrationJob
from kubectl_dra.migrate.kustomize import run as kustomize_run
from kubectl_dra.migrate.kustomize.run import migrate_built
from kubectl_dra.migrate.model import MigrationReport
from tests.migrate.runs import settings

CASES = Path(__file__).with_name("kustomize.yaml")
pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl builds the kustomizations")


def cases() -> Iterator[Any]:
    for case in yaml.safe_load(CASES.read_text()):
        yield pytest.param(case, id=case["name"])


def written(folder: Path, files: dict[str, str]) -> None:
    kustomization_in.cache_clear()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(folder: Path, case: dict[str, Any]) -> MigrationReport:
    paths = [str(folder / path) for path in case.get("paths", [""])]
    claims = str(folder / case["claims"]) if "claims" in case else ""
    return migrate_built(find_inputs(paths), MigrationJob(settings(), case.get("unsafe", False), claims))


def texts(report: MigrationReport) -> dict[str, str]:
    return {file.name: file.text.after for file in report.changed if file.text is not None}


@pytest.mark.parametrize("case", list(cases()))
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    """The first run makes what is wanted, and a second one changes nothing."""
    written(tmp_path, case["before"])
    for name, target in case.get("links", {}).items():
        (tmp_path / name).symlink_to(target)
    report = run(tmp_path, case)
    assert not report.defects
    found = {str(Path(name).relative_to(tmp_path)): text for name, text in texts(report).items()}
    assert sorted(found) == sorted(case["changed"]), report.items()
    for name, text in case.get("after", {}).items():
        if found[name] != text:
            assert list(yaml.safe_load_all(found[name])) == list(yaml.safe_load_all(text)), found[name]
    assert {name: found[name] for name in case.get("exact", ())} == case.get("exact", {})
    assert sorted({item.code for item in report.items()}) == case["codes"]
    said = "\n".join(item.message for item in report.items())
    assert all(part in said for part in case.get("parts", ())), said
    if found:
        written(tmp_path, found)
        again = run(tmp_path, case)
        assert not again.changed
        assert report.items("refusal") or not again.items("refusal"), again.items("refusal")


def test_without_kubectl_it_is_said_that_nothing_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kustomize_run, "can_build", lambda: False)
    plain, patched = (case.values[0] for case in list(cases())[2::-2])
    written(tmp_path / "a", plain["before"])
    report = run(tmp_path / "a", plain)
    assert report.changed and any("not built before and after" in note for note in report.notes)
    written(tmp_path / "b", patched["before"])
    report = run(tmp_path / "b", patched)
    assert not report.changed and {item.code for item in report.items()} == {"MIG909"}
