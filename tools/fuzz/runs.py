"""One run: an example of ours, mutated, through one command; and what must not be seen of it."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

from tools.fuzz.examples import examples
from tools.fuzz.judged import judged
from tools.fuzz.mutations import mutated
from tools.fuzz.served import served_once

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


def fuzz(seconds: float, seed: int, folder: Path) -> tuple[int, list[str]]:
    """As many runs as there is time for, each third one on a live cluster: their number, and what went wrong."""
    end, number, found = time.monotonic() + seconds, seed, []
    while time.monotonic() < end:
        kind = served_once if number % 3 == 2 else once
        if failure := kind(number, folder):
            found.append(failure)
        number += 1
    return number - seed, found


def once(seed: int, folder: Path) -> str:
    """What goes wrong in the run of this number; empty if nothing does. The input of a failure is kept."""
    chance = random.Random(seed)
    items, target = chance.choice(examples())
    path = folder / f"{seed}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": mutated(items, chance)}))
    if chance.random() < 0.75:
        words = [part for word in chance.choice(ON_SNAPSHOTS) for part in (target if word == "TARGET" else (word,))]
        words += ["--snapshot", str(path)]
    else:
        words = [*chance.choice(ON_FILES), str(path)]
    failure = judged(words, CODES)
    if not failure:
        path.unlink()
        return ""
    return f"seed {seed}: {' '.join(words)}: {failure}"
