"""One run on a file: an example's cluster, mutated, read as a snapshot by one command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

import yaml

from tools.fuzz.arguments import typed, value_of
from tools.fuzz.examples import examples, object_pool
from tools.fuzz.judged import CODES, Outcome, judged
from tools.fuzz.mutations import mutated

RUNS: Final[tuple[tuple[str, ...], ...]] = (
    ("explain", "TARGET"),
    ("explain", "TARGET"),
    ("explain", "TARGET", "--full"),
    ("explain", "TARGET", "-o", "json"),
    ("explain", "TARGET", "-o", "html"),
    ("explain", "TARGET", "--what-if", "selector=foo"),
    ("explain", "TARGET", "--what-if", "count=2"),
    ("explain", "TARGET", "--what-if", "count=VALUE"),
    ("explain", "TARGET", "--what-if", "untaint=VALUE"),
    ("explain", "TARGET", "--trace", "VALUE"),
    ("explain", "-A"),
    ("explain", "-A", "-o", "yaml"),
    ("devices",),
    ("devices", "-o", "wide"),
    ("devices", "-o", "json"),
    ("devices", "--free"),
    ("claims", "-A"),
    ("drivers",),
    ("top",),
    ("taint", "--list"),
    ("snapshot", "-o", "-"),
    ("snapshot", "-o", "-", "--anonymize"),
)
HOSTILE: Final = 0.1
"""The part of runs with an argument that nobody means."""


def run(seed: int, folder: Path) -> Outcome:
    """The run of this number. The input of a failure is kept."""
    chance = random.Random(seed)
    items, target = chance.choice(examples())
    whole = {"apiVersion": "v1", "kind": "List", "items": mutated(items, chance, object_pool())}
    path = folder / f"{seed}.json"
    text = json.dumps(whole)
    if chance.random() < 0.1 and "\\ud8" not in text:
        path = path.with_suffix(".yaml")
        text = yaml.dump(whole, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    path.write_text(text)
    words = [part for word in chance.choice(RUNS) for part in (target if word == "TARGET" else (word,))]
    words = [word.replace("VALUE", value_of(chance)) for word in words]
    # A file that ``snapshot`` is told to write would be anywhere.
    if words[0] != "snapshot" and chance.random() < HOSTILE:
        words += typed(words[0], chance)
    words += ["--snapshot", str(path)]
    outcome = judged(words, CODES).outcome
    if not outcome.failure:
        path.unlink()
        return outcome
    return outcome._replace(failure=f"{' '.join(words)}: {outcome.failure}")
