"""``taint`` and ``untaint`` are ended in the middle, or meet each other, on a real control plane.

    python -m tools.live.interrupted --kills 200 --meetings 50 --seed 1

A command is ended by SIGINT, SIGTERM, SIGHUP or SIGKILL at a random moment. Whatever it did: what it says is done is
done, ``taint --list`` names every rule that is there, and ``untaint`` removes all of them. Two people who taint and
untaint the same device at once get an answer each, and one of both states. Exit code 0 only where nothing was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra import __main__ as program
from kubectl_dra.api.releases import GROUP, versions_of
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device
from tools.controlplane.plane import own_plane, release_of
from tools.controlplane.program import find_program

Json = dict[str, Any]
KEY: Final = "example.com/maintenance"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
WARM: Final = 3
LONGEST: Final = 60.0
_DONE: Final = ("created", "changed", "unchanged")


class Ended(NamedTuple):
    """How a command ended: exit code, or minus the signal; and what it wrote."""

    code: int
    out: str
    err: str
    seconds: float


class Device:
    """A device to taint, and the commands on it, each in a process of its own that has everything imported."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._number = 0
        cluster.publish([device("gpu-0")], pool="pool", node=cluster.node("gpu-node"))
        self._where = ("--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin")
        self.path = f"{cluster.driver}/pool/gpu-0"
        version = versions_of("DeviceTaintRule", release_of(cluster.plane))[0]
        self._version = f"{GROUP}/{version}"

    def rules(self) -> list[Json]:
        """The rules for the device."""
        listed: list[Json] = self._cluster.api.list(self._version, "DeviceTaintRule")
        return [rule for rule in listed if rule["spec"].get("deviceSelector", {}).get("driver") == self._cluster.driver]

    def begin(self, *words: str) -> tuple[int, Path, float]:
        """Starts a command; the process, where it writes to, and when."""
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        began = time.monotonic()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            _become([*words, *self._where], folder)
        return process, folder, began

    def end(self, started: tuple[int, Path, float]) -> Ended:
        """Waits for the end of a command."""
        process, folder, began = started
        while True:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                break
            if time.monotonic() - began > LONGEST:
                os.kill(process, signal.SIGKILL)
            time.sleep(0.002)
        took = time.monotonic() - began
        code = os.waitstatus_to_exitcode(status)
        return Ended(code, (folder / "out").read_text(), (folder / "err").read_text(), took)

    def run(self, *words: str) -> Ended:
        """A command to its end."""
        return self.end(self.begin(*words))

    def cleared(self) -> str:
        """``untaint`` leaves no rule; what is wrong if it does."""
        ended = self.run("untaint", self.path, "--yes")
        if left := self.rules():
            return (
                f"untaint ended with {ended.code} and left {[rule['metadata']['name'] for rule in left]}: {ended.err}"
            )
        return ""

    def unknown(self) -> str:
        """Rules that ``taint --list`` does not name."""
        listed = self.run("taint", "--list", "-o", "json").out
        missing = [rule["metadata"]["name"] for rule in self.rules() if rule["metadata"]["name"] not in listed]
        return f"nobody knows of {missing}" if missing else ""


def _become(words: Sequence[str], folder: Path) -> None:
    """This forked process is the program with these arguments."""
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    # Where the parent had others in their place, as pytest has.
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    sys.argv = ["kubectl-dra", *words]
    code: Any = 1
    try:
        program.main()
    except SystemExit as stop:
        code = stop.code
    except BaseException as error:
        sys.stderr.write(f"Traceback: {error!r}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def _said_done(command: str, ended: Ended) -> bool:
    """Whether the output says that it is done."""
    if ended.code == 0:
        return True
    try:
        report = json.loads(ended.out)
    except ValueError:
        return False
    if command == "taint":
        return any(rule.get("outcome") in _DONE for rule in report.get("rules", ()))
    return bool(report.get("removed"))


def kill(target: Device, chance: random.Random, seconds: dict[str, float]) -> tuple[str, str]:
    """Ends one command; what is wrong, and how it went."""
    command = chance.choice(("taint", "taint", "untaint"))
    effect = chance.choice(("NoSchedule", "NoExecute"))
    words = [command, target.path, *([f"{KEY}:{effect}"] if command == "taint" else []), "--yes", "-o", "json"]
    if command == "untaint":
        before = target.run("taint", target.path, f"{KEY}:{effect}", "--yes")
        if before.code:
            return f"taint ended with {before.code}: {before.err}", ""
    sent = chance.choice(SIGNALS)
    started = target.begin(*words)
    time.sleep(chance.random() * seconds[command] * 1.1)
    os.kill(started[0], sent)
    ended = target.end(started)
    rules = target.rules()
    wrong = ""
    if "Traceback" in ended.err or "a defect of" in ended.err:
        wrong = ended.err[-400:]
    elif _said_done(command, ended) and bool(rules) != (command == "taint"):
        wrong = f"{command} says that it is done, and there are {len(rules)} rules: {ended.out[-300:]}"
    elif len(rules) > 2:
        wrong = f"{len(rules)} rules"
    wrong = wrong or (target.unknown() if rules else "")
    return wrong or target.cleared(), f"{command} {sent.name} -> {ended.code}, {len(rules)} left"


def meeting(target: Device, chance: random.Random) -> tuple[str, str]:
    """Two people at once; what is wrong, and how it went."""
    effect = chance.choice(("NoSchedule", "NoExecute"))
    if chance.random() < 0.5:
        target.run("taint", target.path, f"{KEY}:{effect}", "--yes")
    taints = ("taint", target.path, f"{KEY}:{effect}", "--yes")
    other = chance.choice((("untaint", target.path, "--yes"), taints))
    pair = [target.begin(*taints), target.begin(*other)]
    ends = [target.end(each) for each in pair]
    rules = target.rules()
    wrong = next((ended.err for ended in ends if "Traceback" in ended.err or "a defect of" in ended.err), "")
    if not wrong and other == taints and any(ended.code == 0 for ended in ends) and not rules:
        wrong = "one of two says that it is done, and there is no rule"
    if not wrong and len(rules) > 1:
        wrong = f"{len(rules)} rules for one wish"
    wrong = wrong or (target.unknown() if rules else "")
    codes = " and ".join(str(ended.code) for ended in ends)
    return wrong or target.cleared(), f"taint and {other[0]} -> {codes}, {len(rules)} left"


def interrupted(cluster: Cluster, folder: Path, seed: int, kills: int, meetings: int) -> tuple[list[str], Counter[str]]:
    """What went wrong, and how often what happened."""
    target, chance = Device(cluster, folder), random.Random(seed)
    took: dict[str, list[float]] = {"taint": [], "untaint": []}
    for _ in range(WARM):
        took["taint"].append(target.run("taint", target.path, f"{KEY}:NoExecute", "--yes").seconds)
        took["untaint"].append(target.run("untaint", target.path, "--yes").seconds)
    seconds = {name: statistics.median(values) for name, values in took.items()}
    wrong: list[str] = []
    happened: Counter[str] = Counter()
    for number in range(kills + meetings):
        problem, how = kill(target, chance, seconds) if number < kills else meeting(target, chance)
        happened[how] += 1
        if problem:
            wrong.append(f"{number}: {how}: {problem}")
            target.cleared()
    return wrong, happened


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.live.interrupted", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--meetings", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        with own_plane(find_program(), ["--profile=full"], folder) as plane:
            cluster = Cluster(plane, f"kills-{secrets.token_hex(3)}")
            wrong, happened = interrupted(cluster, folder, given.seed, given.kills, given.meetings)
    for how, count in sorted(happened.items()):
        sys.stdout.write(f"{count:>5} {how}\n")
    sys.stdout.write("".join(f"{problem}\n" for problem in wrong))
    sys.stdout.write(f"{given.kills} kills, {given.meetings} meetings, {len(wrong)} problems\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
