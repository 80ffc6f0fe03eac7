"""What controllers do by themselves within seconds is never called stuck before, and always afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from tools.cases import CASES, QUICK_CASES, Case, run_case

MADE: Final = "2026-08-22T10:00:00Z"
UNDER_WAY: Final = {
    "bypassed-scheduler",
    "claim-missing",
    "claim-not-created",
    "claim-not-reserved",
    "other-scheduler",
    "pod-group-claim-unknown",
    "waiting-for-pod-group",
}
"""The causes that are normal for a moment and can be told from those that are not."""
_TIME: Final = re.compile(r'"20\d\d-\d\d-\d\dT')


def _aged(case: Case, last: str) -> Case:
    """The case with everything made at one moment, and another pod when it was read."""
    objects: list[dict[str, Any]] = json.loads(json.dumps(case.objects))
    for entry in objects:
        entry["metadata"]["creationTimestamp"] = MADE
        if entry["kind"] == "Pod" and (entry.get("spec") or {}).get("nodeName"):
            status = entry.setdefault("status", {})
            bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": MADE}
            status["conditions"] = [
                *(one for one in status.get("conditions", ()) if one["type"] != "PodScheduled"),
                bound,
            ]
    later = {"name": "later", "namespace": "elsewhere", "creationTimestamp": last}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": later, "spec": {"containers": [{"name": "main"}]}}
    return case._replace(objects=[*objects, {**pod, "status": {"phase": "Running"}}])


def _answer(case: Case, folder: Path) -> tuple[int, list[str]]:
    code, out = run_case(case, folder, "json")
    return code, [cause["code"] for cause in json.loads(out)["causes"]] if out else []


def _timed(cases: Iterable[Case], folder: Path) -> set[str]:
    """The first causes of the cases that are answered otherwise once controllers have had their time."""
    found = set()
    for case in cases:
        if "unseen" in case.raw or "explain" not in case.raw or _TIME.search(json.dumps(case.objects)):
            continue
        at_once = _answer(_aged(case, "2026-08-22T10:00:01Z"), folder)
        late = _answer(_aged(case, "2026-08-22T10:00:31Z"), folder)
        if at_once != late:
            (now, causes), (then, others) = at_once, late
            assert then == 1 and now in (0, 3) and sorted(causes) == sorted(others), case
            found.add(causes[0])
    return found


def test_what_is_under_way_is_not_stuck(tmp_path: Path) -> None:
    assert _timed((case for case in CASES if case.file in UNDER_WAY), tmp_path) == UNDER_WAY


@pytest.mark.slow
def test_no_other_cause_depends_on_it(tmp_path: Path) -> None:
    assert _timed(QUICK_CASES, tmp_path) == UNDER_WAY
