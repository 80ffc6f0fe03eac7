"""``kubectl dra version``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from kubectl_dra import __version__
from kubectl_dra.api.releases import known_gates
from kubectl_dra.api.slices import Device
from kubectl_dra.cli import version as version_run
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.errors import UsageError
from tests.cli.conftest import Dra

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "version.json").read_text())


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_result_is_as_the_schema_says(dra: Dra, output: str, read: Callable[[str], object]) -> None:
    ran = dra("version", "--client", "-o", output)
    result = read(ran.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(result)
    assert isinstance(result, dict)
    assert (ran.code, ran.err, result["server"]) == (0, "", None)
    assert result["client"]["version"] == __version__
    by_release = {one["release"]: one for one in result["releases"]}
    assert by_release["1.36"]["gates"]["DRADeviceTaints"] == "on"
    assert by_release["1.35"]["gates"]["DRADeviceTaints"] == "off"
    assert by_release["1.37"]["kinds"]["DeviceTaintRule"]["v1"] == "default"
    assert "DRADerivedAttributes" not in by_release["1.36"]["gates"]


def test_a_server_that_does_not_answer_is_no_error(dra: Dra) -> None:
    ran = dra("version", "-s", "http://127.0.0.1:1", "-o", "json")
    result = ran.valid("version")
    assert ran.code == 0
    assert "no connection" in result["server"]["failure"]
    text = dra("version")
    assert text.code == 0 and "there is no kubeconfig" in text.out


def test_a_wrong_duration_is_an_error(dra: Dra) -> None:
    ran = dra("version", "--request-timeout", "soon", "-s", "http://127.0.0.1:1")
    assert ran.code == 2 and "is not a duration" in ran.err


def test_what_is_said_of_explain_is_so() -> None:
    said = version_run.describe(None)["models"]["explain"]
    nothing = SnapshotBuilder().build(complete=True)
    for release in said.values():
        assert str(assumed(nothing, release).scheduler.release) == release
    for beyond in ("1.33", "1.38", "2.36"):
        with pytest.raises(
            UsageError, match=rf"--kubernetes-version {beyond}: the scheduler is modelled for 1\.34 to 1\.37"
        ):
            assumed(nothing, beyond)
    assert set(known_gates()) >= version_run.UNMODELLED


@pytest.mark.parametrize(
    ("gate", "field"),
    [
        ("DRANodeAllocatableResources", {"nodeAllocatableResourceMappings": {}}),
    ],
)
def test_a_gate_that_is_called_unmodelled_has_fields_that_are(gate: str, field: dict[str, object]) -> None:
    assert gate in version_run.UNMODELLED
    assert Device.from_json("d", {"name": "a", **field}).unmodelled
