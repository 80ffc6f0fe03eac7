"""Compares ``explain -f POD --snapshot SNAPSHOT`` with what a real scheduler did with the pod."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_dra.scheduling.outcome import Outcome
from tests.conformance.pods import state_of
from tests.ran import ran
from tools.recorder.recorded import lines

RELEASE = "1.36.2"
"""The Kubernetes that was asked."""


def diagnose(case: dict[str, Any], release: str = "") -> tuple[int, dict[str, Any]]:
    """Runs the command on one case; the exit code and its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        snapshot, pod = Path(folder, "snapshot.json"), Path(folder, "pod.json")
        snapshot.write_text(json.dumps(case["snapshot"]))
        pod.write_text(json.dumps(case["pod"]))
        arguments = ["explain", "-f", str(pod), "--snapshot", str(snapshot), "--complete", "-o", "json"]
        code, out, _ = ran(*arguments, *(["--kubernetes-version", release] if release else []))
    return code, json.loads(out or "{}")


def class_missing(expect: dict[str, Any]) -> bool:
    """Whether the scheduler stops at a class that does not exist: explain names the class instead of that text."""
    return "device class " in (expect.get("message") or "") and "does not exist" in expect["message"]


def disagreement(case: dict[str, Any], code: int, found: dict[str, Any]) -> str:
    """What differs, empty where nothing does."""
    expect = case["expect"]
    node = expect.get("node")
    if node or not expect.get("reason"):
        if code != 0:
            return f"scheduled on {node}, but exit {code}: {found.get('answer')}"
        if not node:
            return ""
        offered = next((entry for entry in found["placements"] if entry["node"] == node), None)
        if offered is None:
            return f"scheduled on {node}, which is not offered: {[entry['node'] for entry in found['placements']]}"
        ours = [
            (entry["claim"]["name"], entry["request"], f"{entry['driver']}/{entry['pool']}/{entry['device']}")
            for entry in offered.get("devices", ())
        ]
        allocations = expect["allocations"]
        allocated = {
            item["metadata"]["name"]
            for item in case["snapshot"]["items"]
            if item["kind"] == "ResourceClaim" and (item.get("status") or {}).get("allocation")
        }
        theirs = [
            (claim, result["request"], f"{result['driver']}/{result['pool']}/{result['device']}")
            for claim in [entry["resourceClaimName"] for entry in case["pod"]["spec"]["resourceClaims"]]
            if claim not in allocated
            for result in (allocations.get(claim) or {}).get("devices", {}).get("results", ())
        ]
        return "" if ours == theirs else f"on {node}: scheduler {theirs}, ours {ours}"
    if code != 1:
        return f"pending ({expect['message']}), but exit {code}: {found.get('answer')}"
    if class_missing(expect):
        codes = [cause["code"] for cause in found["causes"]]
        return "" if "class-missing" in codes else f"cause {codes}, scheduler: {expect['message']}"
    said = found.get("schedulerMessage")
    same = said == expect["message"] or (not said and _is_one_of_several(case))
    return "" if same and found["causes"] else f"scheduler: {expect['message']}, ours: {said}"


def _is_one_of_several(case: dict[str, Any]) -> bool:
    """Whether the scheduler may write several messages, and wrote one of them: nodes are asked in parallel."""
    pod = {"apiVersion": "v1", "kind": "Pod", **case["pod"]}
    metadata = pod["metadata"]
    snapshot = {**case["snapshot"], "items": [*case["snapshot"]["items"], pod]}
    asked = {"snapshot": snapshot, "pod": f"{metadata['namespace']}/{metadata['name']}", "release": RELEASE}
    with tempfile.TemporaryDirectory() as folder:
        state, found = state_of(asked, Path(folder))
    outcome = Outcome(found, state)
    return not outcome.certain and case["expect"]["message"] in outcome.messages


def compared(case: dict[str, Any]) -> Iterator[str]:
    """How closely one answer is compared."""
    expect = case["expect"]
    if expect.get("node"):
        yield "the node is offered, with the same devices in their order"
    elif not expect.get("reason"):
        yield "can be scheduled (exit code 0)"
    elif class_missing(expect):
        yield "cannot, because a class is missing"
    else:
        yield "cannot, with the scheduler's message word for word"


def run(files: list[Path], options: Any = None) -> int:
    """Prints every disagreement, last ``agree N of M``; 0 where all agree."""
    total = agree = 0
    for path in files:
        for case in lines(path):
            total += 1
            problem = disagreement(case, *diagnose(case))
            agree += not problem
            if problem:
                print(f"{case['id']}: {problem}")
            sys.stdout.flush()
    print(f"agree {agree} of {total}")
    return 0 if agree == total else 1
