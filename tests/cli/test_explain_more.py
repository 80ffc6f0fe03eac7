"""``--what-if``, ``--all``, ``-A`` and ``--watch``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.conftest import Ran

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples" / "explain"
Dra = Callable[..., Ran]


@pytest.mark.parametrize(
    ("example", "question", "changes", "code"),
    [
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], [], 1),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["count=7"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["hpu:count 7"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["free=ml/eval-hpu-0-hpu-45s44"], 0),
        ("gaudi-too-few", ["pod/llama-hpu-0", "-n", "ml"], ["free=ml/eval-hpu-1-hpu-9mw2r"], 0),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["toleration=gpu.nvidia.com/xid=79:NoSchedule"], 0),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["toleration gpu.nvidia.com/xid"], 0),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["toleration=gpu.nvidia.com/xid=1"], 1),
        ("all-tainted", ["pod/eval-0", "-n", "ml"], ["untaint=h100-1/gpu-0"], 0),
        ("no-device-matches", ["pod/train-0", "-n", "ml"], ['selector=device.driver == "gpu.nvidia.com"'], 0),
        ("no-device-matches", ["pod/train-0", "-n", "ml"], ["selector=none", "count=5"], 1),
        ("class-missing", ["pod/whisper-0", "-n", "inference"], ["class=gpu.nvidia.com"], 0),
        ("cpu-capacity-exhausted", ["pod/upf-2", "-n", "ran"], ["capacity=dra.cpu/cpu=24"], 0),
        ("cpu-capacity-exhausted", ["pod/upf-2", "-n", "ran"], ["capacity=dra.cpu/cpu=25"], 1),
    ],
)
def test_what_if(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, example: str, question: list[str], changes: list[str], code: int
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    supposed = [word for change in changes for word in ("--what-if", change)]
    ran = dra("explain", *question, "--snapshot", "cluster.yaml", *supposed)
    assert ran.code == code, ran.out
    assert ran.out.count("supposed: ") == len(changes)


def test_what_if_drops_constraints(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "nic-gpu-pcie-root")
    words = ["explain", "-f", "manifest.yaml", "--snapshot", "cluster.yaml"]
    assert dra(*words).code == 1
    assert dra(*words, "--what-if", "constraints=none").code == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("cout=7", 'did you mean "count"'),
        ("count", "count=N"),
        ("count=many", "positive number"),
        ("count=0", "positive number"),
        ("gpus:count=2", "there are: hpu"),
        ("free=ml/nobody", "there are: "),
        ("untaint=gpu-99", "pool/device"),
        ("capacity=memory=lots", "quantities"),
        ("hpu:free=ml/x", "not about one request"),
    ],
)
def test_what_if_that_makes_no_sense(dra: Dra, monkeypatch: pytest.MonkeyPatch, change: str, expected: str) -> None:
    monkeypatch.chdir(EXAMPLES / "gaudi-too-few")
    ran = dra("explain", "pod/llama-hpu-0", "-n", "ml", "--snapshot", "cluster.yaml", "--what-if", change)
    assert ran.code == 2 and expected in ran.err and not ran.out


def pending_pods(source: str, copies: int) -> list[dict[str, Any]]:
    """The objects of an example, with its pending pod several times."""
    items: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / source / "cluster.yaml").read_text())["items"]
    pod = next(item for item in items if item["kind"] == "Pod" and not item["spec"].get("nodeName"))
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = next(item for item in items if item["kind"] == "ResourceClaim" and item["metadata"]["name"] == name)
    for number in range(copies):
        copied = json.loads(json.dumps([pod, claim]))
        for item in copied:
            item["metadata"].update(name=f"{item['metadata']['name']}-{number}", uid=f"{item['kind']}-{number}")
        copied[0]["status"]["resourceClaimStatuses"][0]["resourceClaimName"] = copied[1]["metadata"]["name"]
        copied[1]["metadata"]["ownerReferences"][0].update(name=copied[0]["metadata"]["name"], uid=f"Pod-{number}")
        items.extend(copied)
    return items


def test_all_pending_claims_in_one_table(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(pending_pods("gaudi-too-few", 3)))
    ran = dra("explain", "-A", "--snapshot", "cluster.yaml")
    assert ran.code == 1
    header, row, *_ = ran.out.splitlines()
    assert header.split() == ["NAMESPACE", "WAITING", "VERDICT", "CAUSE", "REASON"]
    assert "pod/llama-hpu-0 and 3 more" in row and "too-few-on-one-node" in row
    assert "4 waiting, 4 of them stuck" in ran.out
    assert dra("explain", "--all", "-n", "default", "--snapshot", "cluster.yaml").out == "No claim is pending.\n"
    schema = json.loads((ROOT / "schemas" / "explain.json").read_text())
    result = json.loads(dra("explain", "-A", "--snapshot", "cluster.yaml", "-o", "json").out)
    jsonschema.Draft202012Validator(schema).validate(result)
    assert len(result["items"][0]["standsFor"]) == 4


@pytest.mark.parametrize("words", [["pod/x", "--all"], ["-A", "--watch"], ["-A", "--what-if", "count=1"]])
def test_all_goes_alone(dra: Dra, words: list[str]) -> None:
    ran = dra("explain", *words)
    assert ran.code == 2 and ("--all" in ran.err or "-A" in ran.err)


def test_watch_ends_when_the_claim_is_allocated(dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    items = yaml.safe_load((EXAMPLES / "no-device-matches" / "cluster.yaml").read_text())["items"]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(items))
    name = "train-0-gpu-d5rtn"
    ticks: list[float] = []

    def allocate(seconds: float) -> None:
        """Stands for time that passes: at the second look the claim is allocated."""
        ticks.append(seconds)
        if len(ticks) == 2:
            claim = next(item for item in items if item["metadata"]["name"] == name)
            result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "gpu-1", "device": "gpu-0"}
            claim["status"] = {"allocation": {"devices": {"results": [result]}}}
            path.write_text(yaml.safe_dump_all(items))

    monkeypatch.setattr("kubectl_dra.cli.explain_run.time.sleep", allocate)
    ran = dra("explain", f"claim/{name}", "-n", "ml", "--snapshot", "cluster.yaml", "--watch")
    assert ran.code == 0 and len(ticks) == 2
    assert ran.out.count("cannot be allocated") == 1, "an answer that does not change is printed once"
    assert ran.out.count("is allocated") == 1


def test_kind_and_name_as_two_words(dra: Dra) -> None:
    snapshot = ("--snapshot", str(EXAMPLES / "no-device-matches" / "cluster.yaml"))
    one = dra("explain", "pod/train-0", "-n", "ml", *snapshot)
    two = dra("explain", "pod", "train-0", "-n", "ml", *snapshot)
    assert (one.code, one.out) == (two.code, two.out) and one.code == 1
    three = dra("explain", "pod", "train-0", "train-1", *snapshot)
    assert three.code == 2 and "explain takes one at a time" in three.err
