"""``kubectl dra claims`` from files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import EXAMPLES, ROOT, Dra, cluster_of, write_list

CLUSTER = cluster_of("mixed-fleet")


def test_a_row_with_the_longest_names_is_no_wider_than_the_screen(
    dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"{'training' * 7}-{end}" for end in ("first", "other")]
    claims = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "research-" * 6 + "a"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        }
        for name in names
    ]
    path = write_list(tmp_path / "cluster.json", claims)
    lines = dra("claims", "--snapshot", path).out.splitlines()
    rows = [line.split()[1] for line in lines if line.startswith("research")]
    assert max(map(len, lines)) <= 80 and len({*rows}) == 2 and "…" in rows[0]


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
def test_examples_fit_the_schema(dra: Dra, example: str) -> None:
    ran = dra("claims", "--snapshot", str(next((EXAMPLES / example).glob("cluster.*"))), "-o", "json")
    answer = ran.valid("claims")
    assert ran.code == (0 if answer["items"] else 1)
    assert sum(answer["summary"]["states"].values()) == len(answer["items"])


def test_shares_of_a_device_are_not_devices(dra: Dra) -> None:
    cluster = CLUSTER.replace("mixed-fleet", "shared-capacity-fits")
    ran = dra("claims", "-A", "--snapshot", cluster)
    assert ran.out.splitlines()[0] == "5 claims with shares of 4 devices: 5 in-use"


def test_the_table(dra: Dra) -> None:
    ran = dra("claims", "--snapshot", CLUSTER)
    first, _, header, *rows = ran.out.splitlines()
    assert first == "3 claims with 10 devices: 1 pending, 2 in-use"
    assert header.split() == ["NAMESPACE", "CLAIM", "STATE", "DEVICES", "NODE", "POD", "OWNER", "AGE", "WAITS-FOR"]
    assert "gpu-0..2 (3)" in rows[1] and "StatefulSet/pretrain" in rows[1] and "h100-1" in rows[1]
    assert rows[2].endswith("a node for pod serve-0 (Unschedulable)")
    assert rows[-1] == f"Next: kubectl dra explain pod/serve-0 -n ml --snapshot {CLUSTER}"
    wide = dra("claims", "--snapshot", CLUSTER, "-o", "wide").out
    assert "gpu.nvidia.com/h100-1/gpu-0,gpu.nvidia.com/h100-1/gpu-1" in wide and "CLASSES" in wide


def test_selection(dra: Dra) -> None:
    assert dra("claims", "--snapshot", CLUSTER, "-n", "ml").code == 0
    none = dra("claims", "--snapshot", CLUSTER, "-n", "default")
    assert (none.code, none.out) == (1, "No claim was found in namespace default.\n")
    waiting = dra("claims", "--snapshot", CLUSTER, "--state", "pending", "-A", "-o", "json")
    assert [item["name"] for item in waiting.json["items"]] == ["serve-0-accelerator-n5b9k"]
    both = dra("claims", "--snapshot", CLUSTER, "-n", "ml", "-A")
    assert both.code == 2 and "-n and -A exclude one another" in both.err


def test_yaml_says_the_same_as_json(dra: Dra) -> None:
    words = ("claims", "--snapshot", CLUSTER, "-o")
    assert yaml.safe_load(dra(*words, "yaml").out) == dra(*words, "json").json


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_lines_fit(dra: Dra, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = dra("claims", "--snapshot", CLUSTER).out.splitlines()
    assert all(len(line) <= columns for line in lines[:-1])


def test_alignment(dra: Dra) -> None:
    sample = str(ROOT / "docs" / "samples" / "alignment.yaml")
    assert dra("claims", "--alignment", "train-1", "--snapshot", sample).code == 0
    assert dra("claims", "--alignment", "--snapshot", sample).code == 1
    no_such = dra("claims", "--alignment", "train-9", "--snapshot", sample)
    assert (no_such.code, no_such.err) == (2, "error: there is no pod train-9; did you mean train-0 or train-1?\n")
    assert dra("claims", "--alignment", "--state", "in-use", "--snapshot", sample).code == 2
    assert dra("claims", "--alignment", "deployment/web", "--snapshot", sample).code == 2


def test_a_pod_without_two_devices_and_one_that_is_elsewhere(dra: Dra) -> None:
    fleet = cluster_of("no-device-matches")
    ran = dra("claims", "--alignment", "train-0", "-n", "ml", "--snapshot", fleet)
    assert ran.code == 1 and ran.out.startswith("Pod ml/train-0 has no device.\n")
    assert "kubectl dra explain pod/train-0 -n ml" in ran.out
    for words, hint in ((("sweep-17", "-n", "ml"), "there are: "), (("train-O",), "did you mean train-0?")):
        wrong = dra("claims", "--alignment", *words, "--snapshot", fleet)
        assert wrong.code == 2 and f"there is no pod {words[0]}" in wrong.err and hint in wrong.err
