"""``kubectl dra snapshot`` from files: one file, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Dra, cluster_of
from tests.explain.commands import without_commands

ALL_HELD = cluster_of("all-held")
POD = "sdxl-66d9f7b8c-h7m6r"


@pytest.mark.parametrize("name", ["out.json", "out.yaml", "out.yml"])
def test_explain_on_the_file(dra: Dra, name: str) -> None:
    ran = dra("snapshot", "--snapshot", ALL_HELD, "-o", name)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith(f"wrote {name}: 3 ResourceSlices, 3 DeviceClasses")
    question = ("explain", f"pod/{POD}", "-n", "inference", "-o", "json", "--snapshot")
    original, saved = dra(*question, ALL_HELD).json, dra(*question, name).json
    assert without_commands(saved) == without_commands(original)


def test_standard_output(dra: Dra, tmp_path: Path) -> None:
    ran = dra("snapshot", "--snapshot", ALL_HELD, "-o", "-")
    written = ran.json
    assert (ran.code, ran.err) == (0, "")
    assert (written["apiVersion"], written["kind"]) == ("v1", "List")
    assert list(tmp_path.iterdir()) == []


def test_anonymized_with_a_list_of_names(dra: Dra, tmp_path: Path) -> None:
    words = ("snapshot", "--snapshot", ALL_HELD, "--anonymize", "--seed", "s")
    ran = dra(*words, "-o", "out.yaml", "--names", "names.json")
    assert ran.code == 0 and "warning" not in ran.err
    names = json.loads((tmp_path / "names.json").read_text())
    text = (tmp_path / "out.yaml").read_text()
    assert "sdxl" not in text and "l40s-1" not in text and "NVIDIA L40S" in text
    head = yaml.safe_load(text)["kubectl-dra"]
    assert head["anonymized"] is True
    ran = dra("explain", f"pod/{names['pod'][POD]}", "-n", names["namespace"]["inference"], "--snapshot", "out.yaml")
    assert ran.code == 1 and "on node-3 unused claim namespace-2/claim-4" in ran.flat
    assert dra(*words, "-o", "-").out == dra(*words, "-o", "-").out
    random = ("snapshot", "--snapshot", ALL_HELD, "--anonymize", "-o", "-")
    assert dra(*random).out != dra(*random).out


def test_a_selector_that_anonymizing_changes_is_told(dra: Dra, tmp_path: Path) -> None:
    text = Path(ALL_HELD).read_text()
    uuid = next(
        line.split('"')[-2] if '"' in line else line.split()[-1] for line in text.splitlines() if "GPU-" in line
    )
    driver = 'device.attributes["gpu.nvidia.com"]'
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "mine"},
        "spec": {"selectors": [{"cel": {"expression": f'{driver}.uuid.startsWith("{uuid[:10]}")'}}]},
    }
    (tmp_path / "class.yaml").write_text(yaml.safe_dump(device_class))
    ran = dra("snapshot", "--snapshot", ALL_HELD, "--snapshot", "class.yaml", "-o", "-", "--anonymize")
    assert ran.code == 0
    assert "warning: explain may answer differently: a selector of DeviceClass mine" in ran.err


def test_a_file_is_not_replaced_without_force(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text("mine")
    ran = dra("snapshot", "--snapshot", ALL_HELD, "-o", "out.json")
    assert ran.code == 2 and "--force" in ran.err and (tmp_path / "out.json").read_text() == "mine"
    assert dra("snapshot", "--snapshot", ALL_HELD, "-o", "out.json", "--force").code == 0
    assert json.loads((tmp_path / "out.json").read_text())["kind"] == "List"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "say where to write"),
        (["-o", "out.txt"], ".json"),
        (["-o", "no/such/out.json"], "no directory"),
        (["-o", "folder.json"], "is a directory"),
        (["-o", "out.json", "--seed", "x"], "--anonymize"),
        (["-o", "out.json", "--names", "x.json"], "--anonymize"),
        (["-o", "out.json", "--names", "out.json", "--anonymize"], "same file"),
        (["-o", "out.json", "--snapshot", "missing.yaml"], "missing.yaml"),
        (["-o", "out.json", "--snapshot", "broken.yaml"], "broken.yaml"),
        (["-o", "out.json"], "kubeconfig"),
    ],
)
def test_errors_write_nothing(dra: Dra, tmp_path: Path, words: list[str], expected: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "broken.yaml").write_text("kind: [")
    before = sorted(tmp_path.iterdir())
    ran = dra("snapshot", *words)
    assert ran.code == 2 and not ran.out
    assert ran.err.startswith("error: ") and len(ran.err.splitlines()) == 1 and expected in ran.err
    assert sorted(tmp_path.iterdir()) == before


def test_gaps_of_a_saved_file_are_saved_again(dra: Dra, tmp_path: Path) -> None:
    gap = {"kind": "Pod", "reason": "forbidden", "namespace": "acme-ml", "detail": 'User "jane" cannot list pods'}
    whole = {
        "apiVersion": "v1",
        "kind": "List",
        "items": yaml.safe_load(Path(ALL_HELD).read_text())["items"],
        "kubectl-dra": {"serverVersion": "v1.36.2", "gaps": [gap], "read": ["DeviceTaintRule"]},
    }
    (tmp_path / "a.json").write_text(json.dumps(whole))
    ran = dra("snapshot", "--snapshot", "a.json", "-o", "b.json")
    assert (
        "note: not in the snapshot: the Pods of namespace acme-ml could not be read (list pods is forbidden)" in ran.err
    )
    head = json.loads((tmp_path / "b.json").read_text())["kubectl-dra"]
    assert head["gaps"] == [gap] and head["serverVersion"] == "v1.36.2" and "DeviceTaintRule" in head["read"]
    hidden = dra("snapshot", "--snapshot", "b.json", "-o", "-", "--anonymize").json["kubectl-dra"]["gaps"][0]
    assert hidden["kind"] == "Pod" and "jane" not in json.dumps(hidden) and "acme" not in json.dumps(hidden)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Pod", {"spec": {"volumes": ["x"]}}),
        ("Pod", {"spec": {"containers": [{"name": "a", "ports": ["x"]}]}}),
        ("Pod", {"spec": {"topologySpreadConstraints": ["x"]}}),
        ("Pod", {"status": "x"}),
        ("Node", {"status": {"conditions": "x"}}),
        ("Node", {"spec": {"taints": [1]}}),
        ("ResourceQuota", {"spec": "x"}),
        ("ResourceQuota", {"spec": {"hard": ["x"]}}),
        ("Event", {"involvedObject": "x", "reason": 3}),
    ],
)
@pytest.mark.parametrize("flags", [(), ("--anonymize",)])
def test_objects_of_a_wrong_shape(
    dra: Dra, tmp_path: Path, kind: str, fields: dict[str, object], flags: tuple[str, ...]
) -> None:
    """Refused with a sentence, or harmless; never a traceback, never half a file."""
    whole = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "odd", "namespace": "ml"}, **fields}
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(whole))
    ran = dra("snapshot", "--snapshot", "odd.yaml", "-o", "out.json", *flags)
    assert ran.code in (0, 2)
    if ran.code == 2:
        assert "odd" in ran.err and len(ran.err.splitlines()) == 1
    assert (tmp_path / "out.json").exists() == (ran.code == 0)
