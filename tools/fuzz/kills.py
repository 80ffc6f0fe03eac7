"""``python -m tools.fuzz.kills --runs N``: ends commands at random moments, and looks at what they leave behind.

SIGINT, SIGTERM and SIGHUP leave no traceback and no temporary file, SIGKILL at most a temporary one; and never is a
file half written.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import yaml

POD = """apiVersion: v1
kind: Pod
metadata:
  name: p{0}
spec:
  containers:
    - name: main
      image: example.com/none
      resources:
        limits:
          nvidia.com/gpu: 1
"""
ROOT: Final = Path(__file__).parents[2]
CLUSTER: Final = ROOT / "examples" / "explain" / "mixed-fleet" / "cluster.yaml"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


class Command(NamedTuple):
    """``words`` with FOLDER for the folder of manifests; ``out`` is the file that it writes besides, if any."""

    words: tuple[str, ...]
    out: str = ""


COMMANDS: Final = (
    Command(("migrate", "--write", "FOLDER")),
    Command(("migrate", "--write", "FOLDER")),
    Command(("lint", "--fix", "FOLDER")),
    Command(("snapshot", "--snapshot", str(CLUSTER), "-o", "FOLDER/out.json"), "out.json"),
    Command(("snapshot", "--snapshot", str(CLUSTER), "-o", "FOLDER/out.yaml", "--anonymize"), "out.yaml"),
    Command(("explain", "-A", "--snapshot", str(CLUSTER))),
    Command(("devices", "--snapshot", str(CLUSTER), "-o", "html")),
)


def wrong(number: int, top: Path, longest: float) -> tuple[str, int]:
    """What goes wrong in the run of this number, empty if nothing does; and how the command ended.

    The signal comes within ``longest`` seconds.
    """
    chance = random.Random(number)
    command, sent = chance.choice(COMMANDS), chance.choice(SIGNALS)
    folder = top / str(number)
    folder.mkdir()
    before = {f"{index}.yaml": POD.format(index) for index in range(12)}
    for name, text in before.items():
        (folder / name).write_text(text)
    words = [word.replace("FOLDER", str(folder)) for word in command.words]
    process = subprocess.Popen(
        [sys.executable, "-m", "kubectl_dra", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.03 + chance.random() * longest)
    process.send_signal(sent)
    _, err = process.communicate(timeout=120)
    run = f"run {number}: {sent.name} to {' '.join(command.words[:2])}"
    # Before our first line runs, the interpreter's own start can be hit.
    if "kubectl_dra" in err and "Traceback" in err:
        return f"{run}: {err[-600:]}", process.returncode
    found = {path.name: path.read_text() for path in folder.iterdir()}
    left = found.keys() - before.keys() - {command.out}
    if left and not (sent == signal.SIGKILL and all(name.startswith(".") for name in left)):
        return f"{run}: left {sorted(left)}", process.returncode
    if missing := before.keys() - found.keys():
        return f"{run}: lost {sorted(missing)}", process.returncode
    halves = [name for name, text in before.items() if found[name] != text and not _is_whole(found[name])]
    if halves:
        return f"{run}: half written {halves}", process.returncode
    written = found.get(command.out, "")
    if written and len(yaml.safe_load(written)["items"]) < 20:
        return f"{run}: half written {command.out}", process.returncode
    return "", process.returncode


def _seconds() -> float:
    """How long a command takes here, and a little more."""
    began = time.monotonic()
    command = [sys.executable, "-m", "kubectl_dra", "explain", "-A", "--snapshot", str(CLUSTER)]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return 1.3 * (time.monotonic() - began)


def _is_whole(text: str) -> bool:
    """Whether this is what migrate writes: a template, and a pod that asks for it, both to the end."""
    documents = list(yaml.safe_load_all(text))
    kinds = [document["kind"] for document in documents if document]
    return "Pod" in kinds and "resourceClaims" in text and text.endswith("\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.kills", description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="where to begin; each run has the next number")
    asked = parser.parse_args()
    ends: Counter[int] = Counter()
    failures, longest = 0, _seconds()
    with tempfile.TemporaryDirectory(prefix="kills-") as top:
        for number in range(asked.seed, asked.seed + asked.runs):
            failure, code = wrong(number, Path(top), longest)
            ends[code] += 1
            if failure:
                failures += 1
                sys.stdout.write(f"{failure}\n")
            sys.stdout.flush()
    told = ", ".join(f"{count} with {code}" for code, count in sorted(ends.items()))
    sys.stdout.write(f"{asked.runs} runs, {failures} failures; ended: {told}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
