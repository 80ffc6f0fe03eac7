"""Files with a part of a cluster, which do not say what was read: a "no" or "yes" is one of the whole cluster, too."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ran import ran
from tests.unread.test_unread import report_of
from tools.examples import EXAMPLES

JSON = dict[str, Any]
CLUSTERS = ("no-device-matches", "all-held")


def _items(name: str) -> list[JSON]:
    file = EXAMPLES / name / "cluster.yaml"
    items: list[JSON] = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)["items"]
    return items


def _whole(name: str) -> list[str]:
    return ["--snapshot", str(EXAMPLES / name / "cluster.yaml")]


def _parts(items: Sequence[JSON]) -> dict[str, list[JSON]]:
    """Each kind alone, and all but each kind."""
    kinds = sorted({item["kind"] for item in items})
    alone = {f"only {kind}": [item for item in items if item["kind"] == kind] for kind in kinds}
    return alone | {f"no {kind}": [item for item in items if item["kind"] != kind] for kind in kinds}


def _saved(folder: Path, items: Sequence[JSON]) -> list[str]:
    path = folder / "part.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))
    return ["--snapshot", str(path)]


PARTS = [(name, part) for name in CLUSTERS for part in _parts(_items(name))]


def _codes(report: JSON) -> set[str]:
    return {cause["code"] for cause in report["causes"]}


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_a_pod_or_claim_of_a_part_is_as_in_the_whole_or_undetermined(name: str, part: str, tmp_path: Path) -> None:
    items = _parts(_items(name))[part]
    for item in items:
        if item["kind"] not in ("Pod", "ResourceClaim"):
            continue
        words = ["explain", f"{item['kind'].lower()}/{item['metadata']['name']}", "-n", item["metadata"]["namespace"]]
        told = report_of([*words, *_saved(tmp_path, items)])[1]
        whole = report_of([*words, *_whole(name)])[1]
        # That a claim is allocated stands, whoever uses it.
        users = item["kind"] == "Pod" or any(other["kind"] == "Pod" for other in items)
        assert told["exitCode"] in (3, whole["exitCode"]) or not users, (words, told["answer"])
        if told["verdict"] == "undetermined":
            assert "next" in told and "schedulerMessage" not in told, told["answer"]
        else:
            assert told["verdict"] == whole["verdict"], (words, told["answer"])
            assert _codes(told) <= _codes(whole), (words, told["answer"])
        # The scheduler's message counts nodes.
        assert "schedulerMessage" not in told or any(other["kind"] == "Node" for other in items)
        if told["verdict"] == "allocated":
            assert told["claims"] == whole["claims"], (words, told["answer"])
        assert not re.search(r"(?<!\d)\.\.|\.\.(?!\d)", told["answer"])


def test_a_pod_of_a_manifest_whose_claims_were_not_read(tmp_path: Path) -> None:
    parts, manifest = _parts(_items("no-device-matches")), tmp_path / "pods.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": parts["only Pod"]}))
    code, report, _ = report_of(["explain", "-f", str(manifest), *_saved(tmp_path, parts["only ResourceSlice"])])
    assert code == 3
    for told, pod in zip(report["items"], parts["only Pod"], strict=True):
        claims = bool(pod["spec"].get("resourceClaims"))
        assert (told["verdict"] == "undetermined") == claims, told["answer"]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_what_waits_in_a_part_waits_in_the_whole(name: str, part: str, tmp_path: Path) -> None:
    items = _parts(_items(name))[part]
    _, report, _ = report_of(["explain", "-A", *_saved(tmp_path, items)])
    whole = report_of(["explain", "-A", *_whole(name)])[1]
    known = {each: item for item in whole["items"] for each in item["standsFor"]}
    open_ = 0
    for item in report["items"]:
        open_ += len(item["standsFor"]) * (item["exitCode"] == 3)
        for each in item["standsFor"]:
            if each in known or any(other["kind"] == "Pod" for other in items):
                assert item["exitCode"] in (3, known[each]["exitCode"]), item["answer"]
            else:
                # A claim whose pod was not read stands for itself.
                assert each.startswith("claim/")
    assert f", {open_} undetermined" in report["answer"] or not open_, report["answer"]


@pytest.mark.parametrize("part", ["the whole", *_parts(_items("no-device-matches"))])
def test_a_node_is_not_called_sound_where_a_driver_or_pod_is_unknown(part: str, tmp_path: Path) -> None:
    name = "no-device-matches"
    items = _parts(_items(name)).get(part)
    flags = _whole(name) if items is None else _saved(tmp_path, items)
    for node in ("gpu-1", "gpu-4", "cp-1"):
        code, report, errors = report_of(["explain", f"node/{node}", *flags])
        if not report:
            assert code == 3 and "read" in errors
            continue
        open_ = [driver for driver in report["drivers"] if driver["state"] == "unknown"]
        open_ += [item for item in report["items"] if item["exitCode"] == 3]
        assert code == (3 if open_ or report["unread"] else 0), report["answer"]
        assert ("nothing is wrong" in report["answer"]) == (code == 0), report["answer"]
        assert not re.search(r"\b0 pods?\b", report["answer"])


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_lists_with_unknown_states_end_with_3(name: str, part: str, tmp_path: Path) -> None:
    items = _parts(_items(name))[part]
    flags = _saved(tmp_path, items)
    named = [["explain", f"device/{entry['spec']['pool']['name']}/gpu-0"] for entry in _slices(items)]
    for words in (["devices"], ["devices", "--full"], *named):
        code, report, _ = report_of([*words, *flags])
        unknown = any(row["state"] == "unknown" for row in report.get("items", ()))
        # Whether a pod runs with a held device, or starts with a free one, tell Pods; that it still runs, Nodes.
        there = {item["kind"] for item in items}
        held = any(row["state"] == "held" for row in report.get("items", ()))
        unknown |= words[0] == "explain" and ("Pod" not in there or (held and "Node" not in there))
        assert code == (3 if unknown or not _slices(items) else 0), words
    for by in ("nodes", "classes"):
        code, report, _ = report_of(["top", by, *flags])
        unsure = [row["states"].get("unknown", 0) for row in report["items"]]
        assert code == 3 or not any(unsure)
        heads, *rows = [line.split() for line in ran("top", by, *flags)[1].splitlines() if "   " in line] or [[]]
        for row in rows:
            cells = dict(zip(reversed(heads), reversed(row), strict=False))
            assert (cells["USED(%)"] == "?") == bool(unsure.pop(0)), row


def _slices(items: Sequence[JSON]) -> list[JSON]:
    return [item for item in items if item["kind"] == "ResourceSlice"]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_no_note_is_repeated(name: str, part: str, tmp_path: Path) -> None:
    items = _parts(_items(name))[part]
    commands = [["devices"], ["devices", "--full"], ["devices", "--free"], ["claims"], ["drivers"], ["top"]]
    commands += [["top", by] for by in ("classes", "namespaces", "owners", "claims")]
    for words in commands:
        _, out, errors = ran(*words, *_saved(tmp_path, items))
        notes = f"{out}{errors}"
        assert notes.count("if the cluster has none") <= 1, notes
        assert len(re.findall(r"there is no \w+ in what was read|\bnot read: ", notes)) <= 1, notes


def test_what_nothing_was_read_of_is_named(tmp_path: Path) -> None:
    parts = _parts(_items("no-device-matches"))
    _, out, _ = ran("top", *_saved(tmp_path, parts["no ResourceSlice"]))
    assert "ResourceSlices were not read, so no nodes can be counted." in out
    _, out, _ = ran("top", "claims", *_saved(tmp_path, parts["no ResourceClaim"]))
    assert "ResourceClaims were not read, so no claims can be counted." in out
    code, out, _ = ran("explain", "driver/x.example.com", *_saved(tmp_path, parts["only Pod"]))
    assert code == 3 and out == "No driver x.example.com was found in what was read.\n"
    code, out, _ = ran("drivers", "--node", "cpu-1", *_whole("no-device-matches"))
    assert code == 1 and out == "No driver was found on cpu-1 in what was read.\n"


def test_what_is_pending_in_a_part_leads_on(tmp_path: Path) -> None:
    parts = _parts(_items("no-device-matches"))
    code, out, _ = ran("explain", "-A", *_saved(tmp_path, parts["only ResourceSlice"]))
    assert code == 3 and out.endswith(
        "\nNext (in the cluster, not the snapshot): kubectl dra snapshot -o cluster.yaml\n"
    )
