"""``make release``: every file, checked, for this machine and this Python."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from kubectl_dra import __version__
from tests.packaging.toolbox import ROOT, checkout

pytestmark = pytest.mark.xdist_group("packaging")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def released(tools: Path, wheelhouse: Path, standalone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyz

    folder = tmp_path_factory.mktemp("release")
    source = checkout(tmp_path_factory.mktemp("source"))
    flags = ["--unreleased", "--target", pyz.host(), "--python", HERE, "--find-links", str(wheelhouse)]
    flags += ["--programs", str(standalone)]
    command = [str(tools / "python"), "packaging/release.py", "--output", str(folder / "dist"), *flags]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2
    return folder / "dist"


def test_everything_is_there_with_its_checksum(released: Path) -> None:
    import pyz

    target = pyz.host()
    lines = (released / "SHA256SUMS").read_text().splitlines()
    sums = {name: checksum for checksum, name in (line.split("  ") for line in lines)}
    assert sums.keys() == {
        f"kubectl_dra-{__version__}-py3-none-any.whl",
        f"kubectl_dra-{__version__}.tar.gz",
        f"kubectl-dra-{target}.pyz",
        f"kubectl-dra-{target}.tar.gz",
        f"kubectl-dra-{target}.cdx.json",
        f"kubectl-dra-{__version__}.cdx.json",
        "RELEASE_NOTES.md",
        "provenance.json",
    }
    for name, checksum in sums.items():
        assert hashlib.sha256((released / name).read_bytes()).hexdigest() == checksum


def test_the_provenance_names_each_file_and_all_that_is_built_from(released: Path) -> None:
    statement = json.loads((released / "provenance.json").read_text())
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    lines = (line.split("  ") for line in (released / "SHA256SUMS").read_text().splitlines())
    sums = {name: checksum for checksum, name in lines}
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    assert subjects == {name: checksum for name, checksum in sums.items() if name != "provenance.json"}
    sources = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    locks = {source["uri"]: source.get("digest", {}).get("sha256") for source in sources[1:]}
    assert locks == {
        f"file:packaging/locks/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (ROOT / "packaging" / "locks").glob("*.txt")
    }


def test_the_commit_is_in_the_provenance() -> None:
    import sealed

    definition = sealed._provenance([ROOT / "LICENSE"], "https://x")["predicate"]["buildDefinition"]
    source = definition["resolvedDependencies"][0]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert source.get("digest", {}).get("gitCommit", "") == (head.stdout.strip() if head.returncode == 0 else "")


def test_what_make_dist_builds_is_sealed_as_well() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ndist: ")[2].partition("\n\n")[0]
    built = re.findall(r"packaging/(\w+)\.py --wheel dist/kubectl_dra-\*\.whl", recipe)
    assert built == ["pyz", "standalone", "sealed"]


def test_the_bill_of_materials_names_what_is_installed(released: Path) -> None:
    bill = json.loads((released / f"kubectl-dra-{__version__}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "kubectl-dra"
    names = {component["name"] for component in bill["components"]}
    assert {"kubernetes", "ruamel.yaml", "google-re2", "cel-python"} <= names
    assert not names & {"pytest", "twine", "build", "pip"}
    assert all(component.get("licenses") for component in bill["components"] if component["name"] == "kubernetes")


def test_the_sdist_builds_the_same_package(released: Path) -> None:
    with tarfile.open(released / f"kubectl_dra-{__version__}.tar.gz") as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "kubectl_dra/__init__.py", "schemas/explain.json"} <= names


def test_the_notes_are_the_section_of_the_changelog() -> None:
    import release

    text = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-01-02\n\n### Added\n\n- b\n\n"
    text += "## [1.0.0]\n\n- a\n\n[1.0.0]: https://x\n"
    assert release.notes(text, "1.1.0") == "### Added\n\n- b\n"
    assert release.notes(text, "1.0.0") == "- a\n"
    for missing in ("1.2.0", "Unreleased"):
        with pytest.raises(KeyError):
            release.notes(text, missing)
    assert release.version() == __version__


def test_a_version_without_notes_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import release

    monkeypatch.setattr(release, "ROOT", tmp_path)
    (tmp_path / "kubectl_dra").mkdir()
    (tmp_path / "kubectl_dra" / "__init__.py").write_text('__version__ = "9.9.9"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n- x\n")
    with pytest.raises(SystemExit, match=r"nothing about \[9.9.9\]"):
        release.release(tmp_path / "dist", None, [], [], unreleased=False, links="")
    assert not (tmp_path / "dist").exists()


def test_make_knows_the_targets() -> None:
    for target in ("dist", "release", "completions"):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
