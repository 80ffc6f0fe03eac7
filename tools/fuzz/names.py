"""One run with hostile names: an example's objects are renamed, and each printed command is run in a shell.

The shell records. Only kubectl may be called, with no word that a name could have made a flag.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tools.fuzz.examples import examples
from tools.fuzz.judged import CODES, REFUSED, Outcome, judged
from tools.pasted import executed, printed

RUNS: Final = (
    ("explain", "-A"),
    ("explain", "-A", "--full"),
    ("claims", "-A"),
    ("devices",),
    ("top", "owners"),
    ("drivers",),
    ("taint", "--list"),
)
FIELDS: Final = frozenset((
    "name", "namespace", "nodeName", "driver", "pool", "deviceClassName", "resourceClaimName", "request", "device",
    "resourceClaimTemplateName", "container", "key", "podName", "schedulerName", "uid",
))  # fmt: skip
HOSTILE: Final = "evil"
_PARTS: Final = (
    ";", "&", "|", ">", "<", "$(", ")", "`", "'", '"', "\\", " ", "\t", "\n", "*", "?", "~", "#", "!", "{", "}", "[",
    "]", "$IFS", "${x}", "=", "--", "-", "touch ", "x", "--server=https://evil", "-n", "/", "../", "%s", "\r", "é",
)  # fmt: skip


def run(seed: int, folder: Path) -> Outcome:
    """The run of this number. The snapshot of a failure is kept."""
    chance = random.Random(seed)
    items, target = chance.choice(examples())
    names: dict[str, str] = {}
    part = chance.choice((0.03, 0.03, 0.1, 1.0))
    for name in _names(items):
        if name not in names and chance.random() < part:
            names[name] = _hostile(chance)
    path = folder / chance.choice((f"{seed}.json", f"{seed} a;b.json", f"{seed}$(x).json", f"--{seed}.json"))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": renamed(items, names)}))
    words = [*chance.choice((*RUNS, ("explain", *target), ("explain", *target, "--full")))]
    ran = judged([*words, "--snapshot", str(path)], CODES)
    lines = printed(ran.out)
    failure = ran.failure or (_of_lines(lines) if lines else "")
    if not failure:
        path.unlink()
        return ran.outcome
    return Outcome(f"{' '.join(words)} --snapshot {path}: {failure}", ran.code != REFUSED)


def _of_lines(lines: list[str]) -> str:
    calls, other = executed("bash", lines)
    if other:
        return f"not only kubectl: {other[:300]}"
    flags = [word for call in calls for word in call if _is_flag_of_a_name(word)]
    return f"a name became a flag: {flags[:3]}" if flags else ""


def _is_flag_of_a_name(word: str) -> bool:
    return word.startswith("--server") or (word.startswith("-") and HOSTILE in word)


def _names(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, str) and value and key in FIELDS:
        yield value
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _names(below, name)
    elif isinstance(value, list):
        for below in value:
            yield from _names(below, key)


def renamed(value: Any, names: dict[str, str], key: str = "") -> Any:
    """The same with other names, wherever a field holds one."""
    if isinstance(value, dict):
        return {name: renamed(below, names, name) for name, below in value.items()}
    if isinstance(value, list):
        return [renamed(each, names, key) for each in value]
    return names.get(value, value) if isinstance(value, str) and key in FIELDS else value


def _hostile(chance: random.Random) -> str:
    if chance.random() < 0.15:
        return f"--server=https://{HOSTILE}.example"
    return "".join(chance.choice(_PARTS) for _ in range(chance.choice((1, 2, 4, 8)))) or HOSTILE


def renamed_everywhere(value: Any, names: Mapping[str, str]) -> Any:
    """The same with other texts, whichever field has them as a whole."""
    if isinstance(value, dict):
        return {key: renamed_everywhere(below, names) for key, below in value.items()}
    if isinstance(value, list):
        return [renamed_everywhere(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value
