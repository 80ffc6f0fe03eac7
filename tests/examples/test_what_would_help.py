"""What an answer offers helps: each change that can be written as --what-if makes the pod fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ran import ran
from tools.examples import arguments, examples

EXAMPLES = [example for example in examples() if (example / "exit-code").read_text().strip() == "1"]


def _explain(example: Path, *flags: str) -> dict[str, Any]:
    code, out, errors = ran(*arguments(example), "-o", "json", *flags)
    assert errors == ""
    found: dict[str, Any] = json.loads(out)
    assert found["exitCode"] == code
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
def test_what_if(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example)
    for way in _explain(example).get("fixes", ()):
        flags = [word for change in way.get("whatIf", ()) for word in ("--what-if", change)]
        if not flags:
            continue
        found = _explain(example, *flags)
        assert found["verdict"] == "can-be-scheduled", flags
        proof = way["proof"]
        assert {"node": proof["node"], "devices": proof["devices"]} in found["placements"]


def test_some_ways_can_be_written_so(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for example in EXAMPLES:
        monkeypatch.chdir(example)
        written += [way["changes"] for way in _explain(example).get("fixes", ()) if "whatIf" in way]
    assert len(written) > 10
    assert any(len(changes) == 2 for changes in written), "pairs as well"


def test_no_way_is_offered_where_the_pod_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = [example for example in examples() if example.name == "shared-capacity-fits"]
    monkeypatch.chdir(example)
    found = _explain(example)
    assert "fixes" not in found
    assert [placed for entry in found["placements"] for placed in entry["devices"]] == [
        {
            "claim": {"namespace": "ran", "name": "sidecar-cpus"},
            "request": "cpus",
            "driver": "dra.cpu",
            "pool": node,
            "device": device,
            "consumedCapacity": {"dra.cpu/cpu": "20"},
        }
        for node, device in (("telco-1", "cpudevnuma001"), ("telco-2", "cpudevnuma000"))
    ]
