"""The commands that an answer prints under its fixes lead where it promises: run, or done to the snapshot by hand."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tools.examples import Outcome, examples, run

Objects = list[dict[str, Any]]
LOOKS = ("describe", "get", "logs")
"""What only shows more, and changes nothing."""


class Promise(NamedTuple):
    """A command that an answer prints, and the node on which the pod fits after it."""

    example: Path
    words: tuple[str, ...]
    node: str


def _promises() -> Iterator[Promise]:
    for example in examples():
        fix: list[str] = []
        for line in (example / "expected.txt").read_text(encoding="utf-8").splitlines():
            if line.startswith("  - "):
                fix = []
            fix.append(line.strip())
            if command := re.match(r"    (?:[A-Z][\w(), ]+: )?\$ (.*)", line):
                node = re.search(r"it fits on (?:(?:at least )?\d+ nodes \()?([\w.-]+?)[.,)]", " ".join(fix[:-1]) + " ")
                if node is not None:
                    yield Promise(example, tuple(shlex.split(command[1])), node[1])


PROMISES = list(_promises())
SUPPOSED = [promise for promise in PROMISES if "--what-if" in promise.words]
DONE = [promise for promise in PROMISES if promise not in SUPPOSED and promise.words[1] not in (*LOOKS, "dra")]


def _ids(promises: list[Promise]) -> list[str]:
    return [f"{promise.example.name}: {' '.join(promise.words[1:])[-60:]}" for promise in promises]


def _lands_on(outcome: Outcome, node: str) -> None:
    assert outcome.code == 0, outcome.stdout + outcome.stderr
    found = json.loads(outcome.stdout)
    assert node in [placement["node"] for placement in found["placements"]]


@pytest.mark.parametrize("promise", SUPPOSED, ids=_ids(SUPPOSED))
def test_supposed(promise: Promise) -> None:
    asked = tuple(shlex.split((promise.example / "command").read_text()))
    assert promise.words[: len(asked)] == asked, "the same question, with the change"
    _lands_on(run(promise.example, *promise.words[len(asked) :], "-o", "json"), promise.node)


@pytest.mark.parametrize("promise", DONE, ids=_ids(DONE))
def test_done(promise: Promise, tmp_path: Path) -> None:
    example = tmp_path / promise.example.name
    shutil.copytree(promise.example, example)
    (snapshot,) = example.glob("cluster.*")
    saved = yaml.load(snapshot.read_text(), Loader=yaml.CSafeLoader)
    items: Objects = saved["items"]
    words = list(promise.words)
    while words:
        end = words.index("&&") if "&&" in words else len(words)
        _do(words[:end], items)
        words = words[end + 1 :]
    for entry in items:
        if entry["kind"] == "Pod":
            entry.get("status", {}).pop("conditions", None)
    items[:] = [entry for entry in items if entry["kind"] != "Event"]
    snapshot.write_text(json.dumps(saved))
    _lands_on(run(example, "-o", "json"), promise.node)


def test_both_kinds_are_there() -> None:
    """Else the tests above would find nothing, whatever the answers print."""
    assert len(SUPPOSED) > 10
    assert {promise.words[1] for promise in DONE} >= {"delete", "scale", "patch"}


def _do(words: list[str], items: Objects) -> None:
    """What the cluster becomes by one kubectl command. Raises ValueError for one that is not known here."""
    verb, (kind, _, name) = words[1], words[2].partition("/")
    space = words[words.index("-n") + 1] if "-n" in words else ""
    names = [name, *(word for word in words[3:] if not word.startswith("-") and word != space)]
    own = [entry for entry in items if entry["metadata"].get("namespace", "") == space]
    if (verb, kind) == ("delete", "resourceclaim"):
        _without(items, [entry for entry in own if (entry["kind"], entry["metadata"]["name"]) == _claim(names[0])])
    elif (verb, kind) == ("delete", "devicetaintrule"):
        _without(
            items, [entry for entry in own if (entry["kind"], entry["metadata"]["name"]) == ("DeviceTaintRule", name)]
        )
    elif (verb, kind) == ("delete", "pod"):
        _end(items, [entry for entry in own if entry["kind"] == "Pod" and entry["metadata"]["name"] in names])
    elif verb == "annotate":
        for entry in own:
            if entry["kind"] == "Pod" and entry["metadata"]["name"] == names[0]:
                entry["metadata"].setdefault("annotations", {}).update([names[1].split("=")])
    elif verb == "scale":
        pods = sorted(_of_owner(own, kind, names[0]), key=lambda pod: (_cost(pod), _number(pod)))
        left = int(words[-1].partition("=")[2])
        # A StatefulSet ends its last pods, anything else those that cost the least.
        ended = pods[left:] if kind == "statefulset" else pods[: len(pods) - left]
        _end(items, ended)
    elif (verb, kind) == ("patch", "job"):
        _end(items, _of_owner(own, kind, names[0]))
    else:
        raise ValueError(f"what does this do? {shlex.join(words)}")


def _claim(name: str) -> tuple[str, str]:
    return "ResourceClaim", name


def _of_owner(own: Objects, kind: str, name: str) -> Objects:
    def owned(entry: dict[str, Any]) -> bool:
        owners = entry["metadata"].get("ownerReferences", ())
        return any((owner["kind"].lower(), owner["name"]) == (kind, name) for owner in owners)

    pods = [entry for entry in own if entry["kind"] == "Pod" and owned(entry)]
    assert pods, f"{kind} {name} has no pods"
    return pods


def _cost(pod: dict[str, Any]) -> int:
    return int(pod["metadata"].get("annotations", {}).get("controller.kubernetes.io/pod-deletion-cost", 0))


def _number(pod: dict[str, Any]) -> int:
    digits = pod["metadata"]["name"].rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def _end(items: Objects, pods: Objects) -> None:
    """The pods are gone; claims that were made for them go with them, others lose their reservation."""
    assert pods
    gone = {pod["metadata"]["uid"] for pod in pods}
    ended = list(pods)
    for entry in items:
        if entry["kind"] != "ResourceClaim":
            continue
        if any(owner["uid"] in gone for owner in entry["metadata"].get("ownerReferences", ())):
            ended.append(entry)
        elif status := entry.get("status"):
            status["reservedFor"] = [user for user in status.get("reservedFor", ()) if user["uid"] not in gone]
            if not status["reservedFor"]:
                del entry["status"]
    _without(items, ended)


def _without(items: Objects, gone: Objects) -> None:
    assert gone
    items[:] = [entry for entry in items if all(entry is not other for other in gone)]
