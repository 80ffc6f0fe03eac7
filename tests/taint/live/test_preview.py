"""What a dry run shows is what happens, for each combination of flags: text, JSON, exit code, and the pods' fates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.taint.live.team import KEY, Team, checked
from tools.controlplane.cluster import Cluster, wait
from tools.live.command import Answer, Command
from tools.live.releases import needs_effect_none

Json = dict[str, Any]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
AGE = re.compile(r"\b(?:\d+m)?\d+s\b")
SLOW_SECONDS = 30.0
"""How far apart the times of two runs may be, on a busy machine."""
FULL = "{driver}/pool/gpu-0"
BOTH = ("{driver}/pool/gpu-0", "{driver}/pool/gpu-1")

COMBINATIONS = {
    "stays": ((), ("taint", FULL, f"{KEY}:NoSchedule", "--reason", "ECC", "--ticket", "OPS-1", "--expires", "1h")),
    "informs": ((), ("taint", FULL, f"{KEY}=x:None")),
    "evicts": ((), ("taint", *BOTH, f"{KEY}:NoExecute")),
    "two taints": ((), ("taint", FULL, f"{KEY}:NoExecute", "other:NoSchedule")),
    "selected": ((), ("taint", "--node", "{node}", f"{KEY}:NoSchedule", "--yes")),
    "drains": ((), ("taint", FULL, f"{KEY}:NoExecute", "--drain", "--grace", "2s")),
    "drains two taints": ((), ("taint", FULL, f"{KEY}:NoExecute", "other:NoExecute", "--drain", "--grace", "2s")),
    "drains a free device": ((), ("taint", "{driver}/pool/gpu-2", f"{KEY}:NoExecute", "--drain", "--grace", "1h")),
    "is there": (("taint", FULL, f"{KEY}:NoSchedule", "--ticket", "A"), ("taint", FULL, f"{KEY}:NoSchedule")),
    "adds a ticket": (("taint", FULL, f"{KEY}:NoSchedule"), ("taint", FULL, f"{KEY}:NoSchedule", "--ticket", "A")),
    "refused": (("taint", FULL, f"{KEY}:NoSchedule"), ("taint", *BOTH, f"{KEY}:NoExecute")),
    "overwrites": (("taint", FULL, f"{KEY}:NoSchedule"), ("taint", *BOTH, f"{KEY}:NoExecute", "--overwrite")),
    "drains what evicts": (("taint", FULL, f"{KEY}:NoExecute"), ("taint", FULL, f"{KEY}:NoExecute", "--drain")),
    "untaints": (("taint", *BOTH, f"{KEY}:NoSchedule"), ("untaint", FULL)),
    "untaints a key": (("taint", FULL, f"{KEY}:NoSchedule", "other:NoSchedule"), ("taint", FULL, f"{KEY}-")),
    "untaints a selection": (("taint", *BOTH, f"{KEY}:NoSchedule"), ("untaint", "--node", "{node}", "--yes")),
    "nothing to untaint": ((), ("untaint", FULL)),
}


@pytest.fixture
def world(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Iterator[Team]:
    """A pod that goes with NoExecute (on gpu-0), one that tolerates it for an hour (on gpu-1), and a free device."""
    team = Team(cluster, Command(capsys), devices=3)
    tolerated = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    assert (team.running("one"), team.running("two", tolerations=[tolerated])) == ("gpu-0", "gpu-1")
    yield team
    team.remove_rules()


def _words(team: Team, template: Sequence[str]) -> list[str]:
    return [word.format(driver=team.cluster.driver, node=team.node) for word in template]


@pytest.mark.parametrize("output", ["json", "text"])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_what_a_dry_run_shows_is_what_happens(world: Team, name: str, output: str) -> None:
    before, command = (_words(world, words) for words in COMBINATIONS[name])
    if any(word.endswith(":None") for word in command):
        needs_effect_none(world.cluster.plane)
    if before:
        assert world.dra(*before).code == 0
    if any("NoExecute" in word for word in before):
        wait(lambda: True if world.going() else None, "the eviction before")
    rules = world.rules()
    flags = ("-o", output) if output == "json" else ()
    shown = {kind: world.dra(*command, f"--dry-run={kind}", *flags) for kind in ("client", "server")}
    assert _settled(world.rules()) == _settled(rules), "a dry run wrote"
    gone_before = world.going()
    done = world.dra(*command, *flags)
    for kind, one in shown.items():
        assert one.code == done.code, f"{kind}: {one.text}\n{done.text}"
        if output == "json":
            _same_json(checked(one.out), checked(done.out), kind)
        else:
            assert _lines(one, f" ({'server ' if kind == 'server' else ''}dry run)") == _lines(done, ""), kind
    if output == "json" and command[0] == "taint" and "blastRadius" in checked(done.out):
        _fates(world, checked(done.out), gone_before)


def _settled(rules: Sequence[Json]) -> list[tuple[Any, ...]]:
    """What rules say, without the status that the server writes at its own time."""
    kept = ("name", "uid", "generation", "labels", "annotations")
    return [(rule["spec"], [rule["metadata"].get(field) for field in kept]) for rule in rules]


def _same_json(one: Json, done: Json, kind: str) -> None:
    assert one.pop("dryRun") == kind and done.get("dryRun") == "none"
    other = {key: value for key, value in done.items() if key != "dryRun"}
    assert _plain(one) == _plain(other)
    pairs = zip(TIME.findall(str(_plain(one, times=True))), TIME.findall(str(_plain(other, times=True))), strict=True)
    for a, b in pairs:
        assert abs((datetime.fromisoformat(a) - datetime.fromisoformat(b)).total_seconds()) < SLOW_SECONDS


def _plain(value: Any, *, times: bool = False) -> Any:
    """Without what only the server writes, and without times or only with them."""
    if isinstance(value, dict):
        owned = ("uid", "creationTimestamp", "generation", "resourceVersion", "status", "timeAdded", "ruleStatus")
        return {key: _plain(entry, times=times) for key, entry in sorted(value.items()) if key not in owned}
    if isinstance(value, list):
        return [_plain(entry, times=times) for entry in value]
    return TIME.sub("TIME", value) if isinstance(value, str) and not times else value


def _lines(answer: Answer, suffix: str) -> list[str]:
    """The text without times and ages, and without what follows it: what to do next."""
    text = " ".join(answer.out.split())
    text = AGE.sub("AGE", TIME.sub("TIME", text.replace(suffix, "") if suffix else text))
    text = re.split(r" ?(?:Back into service[^:]*: |Nothing was changed\.)", text)[0]
    return text.split(" devicetaintrule.")


def _fates(world: Team, report: Json, gone_before: set[str]) -> None:
    """Pods of which it was said that they go are gone or going, and the others stay."""
    fates = {pod["name"]: pod["fate"] for claim in report["blastRadius"]["claims"] for pod in claim["pods"]}
    if report["exitCode"]:
        assert world.going() == gone_before
        return
    drained = {pod["name"] for claim in report["blastRadius"]["claims"] for pod in claim["pods"] if pod.get("drained")}
    ending = {name for name, fate in fates.items() if fate == "deleted now"} | drained
    wait(lambda: True if world.going() >= ending else None, f"the end of {ending}", state=world.going)
    assert world.going() - gone_before == ending - gone_before


def test_a_pod_that_goes_already_is_not_counted(world: Team) -> None:
    """Nor does the server count it: what it says is as predicted."""
    world.cluster.api.delete(world.cluster.get("Pod", "one", "v1"))
    words = ("taint", world.full("gpu-0"), f"{KEY}:NoExecute")
    for more in ((), ("--drain", "--grace", "1h")):
        shown = world.dra(*words, *more, "--dry-run=client")
        assert "0 of 1 pod will be deleted, 1 is being deleted already" in " ".join(shown.out.split()), shown.text
        assert "deleted at" not in shown.out
    done = world.dra(*words)
    assert done.code == 0 and "predicted were" not in done.err, done.text
