"""One run: an example of ours, mutated, through one command; and what must not be seen of it."""

from __future__ import annotations

import io
import json
import os
import random
import re
import time
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kubectl_dra.cli.main import run
from tests.fuzz.mutations import mutated

EXAMPLES = Path(__file__).parents[2] / "examples" / "explain"
SECONDS = 12.0
"""Of the process's own time, for one run."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
ON_SNAPSHOTS: tuple[tuple[str, ...], ...] = (
    ("explain", "TARGET"),
    ("explain", "TARGET"),
    ("explain", "TARGET", "--full"),
    ("explain", "TARGET", "-o", "json"),
    ("explain", "TARGET", "-o", "html"),
    ("explain", "TARGET", "--what-if", "selector=foo"),
    ("explain", "TARGET", "--what-if", "count=2"),
    ("explain", "-A"),
    ("explain", "-A", "-o", "yaml"),
    ("devices",),
    ("devices", "-o", "wide"),
    ("devices", "-o", "json"),
    ("devices", "--free"),
    ("claims", "-A"),
    ("top",),
    ("taint", "--list"),
    ("snapshot", "-o", "-"),
    ("snapshot", "-o", "-", "--anonymize"),
)
ON_FILES: tuple[tuple[str, ...], ...] = (
    ("lint",),
    ("lint", "-o", "sarif"),
    ("lint", "-o", "junit"),
    ("migrate",),
    ("migrate", "-o", "json"),
    ("migrate", "--diff"),
)
CODES = frozenset((0, 1, 2, 3))


@cache
def sources() -> Sequence[tuple[list[Any], tuple[str, ...]]]:
    """The objects of each example with the target that its command names."""
    out = []
    for folder in sorted(EXAMPLES.iterdir()):
        path, command = folder / "cluster.yaml", folder / "command"
        if path.exists() and command.exists():
            words = command.read_text().split()[3:]
            target = words[: words.index("--snapshot")] if "--snapshot" in words else words[:3]
            loaded = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            # Through JSON: times become the texts that they are.
            out.append((json.loads(json.dumps(loaded["items"], default=str)), tuple(target)))
    return out


def fuzz(seconds: float, seed: int, folder: Path) -> tuple[int, list[str]]:
    """As many runs as there is time for: their number, and what went wrong."""
    end, number, found = time.monotonic() + seconds, seed, []
    while time.monotonic() < end:
        if failure := once(number, folder):
            found.append(failure)
        number += 1
    return number - seed, found


def once(seed: int, folder: Path) -> str:
    """What goes wrong in the run of this number; empty if nothing does. The input of a failure is kept."""
    chance = random.Random(seed)
    items, target = chance.choice(sources())
    path = folder / f"{seed}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": mutated(items, chance)}))
    if chance.random() < 0.75:
        words = [part for word in chance.choice(ON_SNAPSHOTS) for part in (target if word == "TARGET" else (word,))]
        words += ["--snapshot", str(path)]
    else:
        words = [*chance.choice(ON_FILES), str(path)]
    failure = _wrong(words)
    if not failure:
        path.unlink()
        return ""
    return f"seed {seed}: {' '.join(words)}: {failure}"


def _wrong(words: Sequence[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    os.environ["KUBECONFIG"] = os.devnull
    began = time.process_time()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(words))
    took = time.process_time() - began
    text = out.getvalue() + err.getvalue()
    if "a defect of kubectl-dra" in text or "Traceback" in text:
        return next(line for line in text.splitlines() if "defect of" in line or "Traceback" in line)
    if code not in CODES:
        return f"exit code {code}"
    if took > SECONDS:
        return f"{took:.1f} s"
    found = RAW.search(text) if "--diff" not in words else None
    return f"raw {found[0]!r}" if found else ""
