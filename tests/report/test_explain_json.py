"""Every example's JSON validates against the schema, and YAML says the same."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kubectl_dra.text import DOCS, REPOSITORY
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tests.explain.existing import unknown

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "explain").glob("*/command"))
SCHEMA = json.loads((ROOT / "schemas" / "explain.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def objects_of(folder: Path) -> list[dict[str, Any]]:
    """All objects of an example's files."""
    paths = [*folder.glob("*.yaml"), *folder.glob("*.json")]
    documents = [document for path in paths for document in yaml.safe_load_all(path.read_text())]
    return [entry for document in documents for entry in document.get("items", [document])]


def words_of(folder: Path) -> list[str]:
    return shlex.split((folder / "command").read_text())[2:]


def argvs(value: Any) -> Iterator[list[str]]:
    """The commands in a result, wherever they stand."""
    if isinstance(value, dict):
        if "argv" in value:
            yield value["argv"]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from argvs(part)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_examples_validate(dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    ran = dra(*words_of(folder), "-o", "json", "--devices", "--verify")
    result = json.loads(ran.out)
    VALIDATOR.validate(result)
    assert result["exitCode"] == ran.code == int((folder / "exit-code").read_text())
    assert result["secondOpinion"]["differ"] == []
    files = words_of(folder).count("--snapshot")
    assert [argv for argv in argvs(result) if argv.count("--snapshot") not in (0, files)] == []
    assert list(unknown(result, objects_of(folder))) == []


def test_yaml_says_the_same_as_json(dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "examples" / "explain" / "no-device-matches"
    monkeypatch.chdir(folder)
    as_json = json.loads(dra(*words_of(folder), "-o", "json").out)
    assert yaml.safe_load(dra(*words_of(folder), "-o", "yaml").out) == as_json


def test_trace_and_lists_validate(dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = ROOT / "examples" / "explain" / "no-device-matches"
    monkeypatch.chdir(folder)
    result = json.loads(dra(*words_of(folder), "-o", "json", "--trace", "gpu-1/gpu-0").out)
    VALIDATOR.validate(result)
    steps: list[dict[str, Any]] = [step for trace in result["traces"] for step in trace["steps"]]
    assert any(step["text"].endswith(".memory") and step["value"] == "40Gi" for step in steps)
    pods = tmp_path / "pods.yaml"
    names = ("a", "b")
    pods.write_text(
        yaml.safe_dump_all(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": []}}
            for name in names
        )
    )
    several = json.loads(dra("explain", "-f", str(pods), "--snapshot", "cluster.yaml", "-o", "json").out)
    VALIDATOR.validate(several)
    assert [item["subject"]["name"] for item in several["items"]] == list(names)


def test_evidence_is_data_beside_the_text(dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """Text shortens lists; data does not."""
    folder = ROOT / "examples" / "explain" / "amd-partitions-in-use"
    monkeypatch.chdir(folder)
    result = json.loads(dra(*words_of(folder), "-o", "json").out)
    fact = result["causes"][0]["evidence"][0]
    assert fact["value"].startswith("needs 1 of counter partition-mode in set gpu-0-mutex, 0 left")
    assert fact["about"]["devices"] == [{"driver": "gpu.amd.com", "pool": "mi300x-1", "device": "gpu-0-spx-nps1"}]
    assert fact["found"]["claims"] == [{"namespace": "serving", "name": "embed-0-gpu-s9txg"}]
    assert fact["found"]["quantities"][0] == {"name": "needed", "quantity": "1", "number": 1}
    assert result["causes"][0]["page"].startswith(f"{DOCS}/causes/")


def test_the_address_of_the_pages_follows_from_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Homepage"] == REPOSITORY
