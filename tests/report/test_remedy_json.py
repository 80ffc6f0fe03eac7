"""What ends a cause is data in JSON: changes, proof and commands; the text says the same."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tools.cases import CASES, run_case
from tools.examples import FIT, arguments, examples

JSON = dict[str, Any]
EXAMPLES = examples()
BY_NAME = {example.name: example for example in EXAMPLES}


@pytest.fixture
def asked(dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], JSON]:
    def ask(name: str) -> JSON:
        monkeypatch.chdir(BY_NAME[name])
        found: JSON = json.loads(dra(*arguments(BY_NAME[name]), "-o", "json").out)
        return found

    return ask


def remedies(found: JSON, *, unproved: bool = False) -> Iterator[JSON]:
    yield from (cause["fix"] for cause in found["causes"] if unproved or "proof" in cause["fix"])
    yield from found.get("fixes", ())


def commands(remedy: JSON) -> list[JSON]:
    return [*remedy.get("commands", ()), *([remedy["tryWith"]] if "tryWith" in remedy else ())]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_text_says_the_same(name: str, asked: Callable[[str], JSON], dra: Callable[..., Ran]) -> None:
    found = asked(name)
    text = " ".join(dra(*arguments(BY_NAME[name]), "--full").out.split())
    for remedy in remedies(found):
        for command in commands(remedy):
            assert shlex.split(command["text"]) == command["argv"]
        if "commands" in remedy:
            assert " && ".join(command["text"] for command in remedy["commands"]) in text
        for change in remedy.get("changes", ()):
            target = change["target"]
            assert target
            if change["kind"].startswith(("lower", "use", "replace", "drop")):
                assert change["from"] != change.get("to")
        proof = remedy["proof"]
        assert ("node" in proof) != ("newNodeLike" in proof)
        where = re.escape(proof.get("node", "the new node"))
        assert re.search(rf"it fits on (?:(?:at least )?\d+ (?:further )?nodes \([^)]*)?{where}", text), where
    for way in found.get("fixes", ()):
        said = ", and ".join(change["text"] for change in way["changes"])
        assert f"{said[:1].upper()}{said[1:]}" in text
    # Text and the page have the fixes in the order of their ranks, what changes the cluster last.
    ranked = sorted((fix for fix in remedies(found, unproved=True) if "rank" in fix), key=lambda fix: fix["rank"])
    told = [fix["text"][1:] for fix in ranked if "see the fixes" not in fix["text"]]
    page = html.unescape(re.sub("<[^>]*>", " ", dra(*arguments(BY_NAME[name]), "-o", "html").out))
    for shown in (text, " ".join(page.split())):
        places = [shown.index(words, shown.index(" Fixes")) for words in told]
        assert places == sorted(places)
    changing = [any(each["effect"] in ("writes", "destroys") for each in fix.get("commands", ())) for fix in ranked]
    assert changing == sorted(changing) and [fix["rank"] for fix in ranked] == [*range(1, len(ranked) + 1)]


def test_a_claim_that_nobody_uses(asked: Callable[[str], JSON]) -> None:
    remedy = asked("all-held")["causes"][0]["fix"]
    device = {"driver": "gpu.nvidia.com", "pool": "l40s-2", "device": "gpu-3"}
    claim = {"namespace": "research", "name": "scratch-gpu"}
    assert remedy["price"] == "nothing"
    (change,) = remedy["changes"]
    assert (change["kind"], change["target"], change["frees"]) == ("release-claims", {"claims": [claim]}, [device])
    assert change["holders"] == [{"claim": claim, "state": "unused", "pods": []}]
    placed = remedy["proof"]["devices"][0]
    assert (remedy["proof"]["node"], {name: placed[name] for name in device}) == ("l40s-2", device)
    assert [command["argv"] for command in remedy["commands"]] == [
        ["kubectl", "delete", "resourceclaim/scratch-gpu", "-n", "research"]
    ]
    assert remedy["tryWith"]["argv"][-2:] == ["--what-if", "free=research/scratch-gpu"]


def test_two_values_of_one_request(asked: Callable[[str], JSON]) -> None:
    way = asked("two-changes-needed")["fixes"][0]
    assert [(change["kind"], change["from"], change["to"]) for change in way["changes"]] == [
        ("replace-value", 'isGreaterThan(semver("590.0.0"))', 'compareTo(semver("580.126.20")) >= 0'),
        ("replace-value", '"9.0.0"', '"8.0.0"'),
    ]
    assert [change["target"]["field"] for change in way["changes"]] == [
        "selectors[0].cel.expression",
        "selectors[1].cel.expression",
    ]
    assert all(change["target"]["request"] == "gpu" for change in way["changes"])
    assert "commands" not in way, "nobody can edit a claim that exists"


def test_one_more_node(asked: Callable[[str], JSON]) -> None:
    (way,) = (way for way in asked("all-held")["fixes"] if way["price"] == "buy")
    (change,) = way["changes"]
    assert (way["price"], change["kind"]) == ("buy", "add-node")
    assert change["target"]["nodes"] == [way["proof"]["newNodeLike"]]


def test_fewer_devices(asked: Callable[[str], JSON]) -> None:
    way = asked("gaudi-too-few")["fixes"][0]
    (change,) = way["changes"]
    assert (change["kind"], change["from"], change["to"]) == ("lower-count", 8, 7)
    assert (way["whatIf"], len(way["proof"]["devices"])) == (["hpu:count=7"], 7)


def test_a_number_in_place_of_all(tmp_path: Path) -> None:
    case = next(each for each in CASES if each.file == "all-not-possible")
    way = json.loads(run_case(case, tmp_path, "json")[1])["fixes"][0]
    (change,) = way["changes"]
    assert (change["kind"], change["from"], change["to"]) == ("lower-count", "All", 1)


def test_a_node_taint(asked: Callable[[str], JSON]) -> None:
    remedy = asked("devices-on-tainted-nodes")["causes"][0]["fix"]
    (change,) = remedy["changes"]
    assert (change["kind"], change["to"]) == ("tolerate-node-taint", "sku=gpu:NoSchedule")
    assert change["target"]["pods"] == [{"namespace": "serving", "name": "mistral-0"}]
    assert remedy["proof"]["node"] in change["target"]["nodes"]


def test_how_many_replicas_fit(dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a workload, JSON says what the first line of the text says, and what fit says."""
    example = FIT / "deployment-in-part"
    monkeypatch.chdir(example)
    words = arguments(example)[1:]
    found = json.loads(dra("explain", *words, "-o", "json").out)
    (workload,) = found["workloads"]
    assert (workload["replicaCounts"]["fit"], workload["replicaCounts"]["wanted"]) == (2, 4)
    assert " ".join(dra("explain", *words).out.split()).startswith(workload["answer"])
    (item,) = json.loads(dra("fit", *words, "-o", "json").out)["items"]
    assert {name: item[name] for name in workload} == workload
    assert "workloads" not in json.loads(dra("explain", *words, "--node", "l40s-1", "-o", "json").out)
    (doubled,) = json.loads(dra("explain", *words, "--what-if", "count=2", "-o", "json").out)["workloads"]
    assert doubled["replicaCounts"]["fit"] == 1
    (changed,) = json.loads(dra("explain", *words, "--what-if", "free=research/scratch-gpu", "-o", "json").out)[
        "workloads"
    ]
    assert changed["replicaCounts"]["fit"] == 3
