"""Compares answers on devices that share all they can with answers on devices that share nothing.

`python -m tools.sharing [CORPUS ...]`: recorded allocations and whole pods are asked about twice. From the
second slice of a driver on, names, amounts, times of taints and all texts of attributes are kept apart from devices.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from kubectl_dra.api.releases import Release, default_features, parse_release
from kubectl_dra.cluster import device_lists
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.scheduler import Scheduler
from tools.recorder.recorded import RELEASE, gates, lines

Case = dict[str, Any]
DATA = Path(__file__).parents[1] / "tests" / "conformance" / "data"
CORPORA = ("alloc.jsonl.gz", "alloc-1.36.jsonl.gz", "alloc-1.37.jsonl.gz", "pods.jsonl.gz", "pod-releases.jsonl.gz")
_KINDS = {
    "nodes": ("v1", "Node"),
    "slices": ("resource.k8s.io/v1", "ResourceSlice"),
    "classes": ("resource.k8s.io/v1", "DeviceClass"),
    "allocatedClaims": ("resource.k8s.io/v1", "ResourceClaim"),
    "claims": ("resource.k8s.io/v1", "ResourceClaim"),
}


def text_of(case: Case) -> bytes:
    """The cluster of a case as a List."""
    if "snapshot" in case:
        return json.dumps(case["snapshot"]).encode()
    items = [
        {"apiVersion": version, "kind": kind, **entry}
        for part, (version, kind) in _KINDS.items()
        for entry in case[part] or ()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def settings_of(case: Case) -> Settings:
    """What the recorded scheduler was."""
    release: Release = parse_release(case.get("release", RELEASE))
    if "features" in case:
        on = gates(release, case["features"])
    else:
        on = frozenset((*default_features(release), *case.get("gates", ())))
    return Settings(Scheduler(release, on, release.patch), with_devices=True)


def answers(snapshot: Snapshot, settings: Settings) -> Iterator[object]:
    """The answer for each claim, and for each pod that has claims."""
    for claim in snapshot.claims.values():
        yield diagnose(about_claim(claim), snapshot, settings)
    for pod in snapshot.pods.values():
        if pod.claims:
            yield diagnose(about_pod(pod, snapshot, exists=True), snapshot, settings)


def compared(case: Case) -> tuple[int, int, list[str]]:
    """How many answers were compared, how many slices kept something apart, and what differs."""
    text, settings = text_of(case), settings_of(case)
    whole = read_snapshot(["-"], stdin=text)
    with mock.patch.object(device_lists, "SAMPLE", 1):
        shared = read_snapshot(["-"], stdin=text, compact=True)
    found = [] if shared.exact().slices == whole.slices else ["the slices differ when they are exact again"]
    pairs = list(zip(answers(shared, settings), answers(whole, settings), strict=True))
    found += [f"{ours}\n  instead of\n{theirs}" for ours, theirs in pairs if ours != theirs]
    return len(pairs), sum(entry.individual is not None for entry in shared.slices), found


def main(names: list[str]) -> int:
    asked = apart = failed = 0
    for name in names or CORPORA:
        for number, case in enumerate(lines(DATA / name)):
            count, kept, different = compared(case)
            asked, apart, failed = asked + count, apart + kept, failed + bool(different)
            for text in different[:1]:
                print(f"{name}, line {number + 1}: {text[:3000]}")
    print(f"{asked:,} answers on {apart:,} slices that keep something apart; {failed} cases differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
