"""One run on a manifest: its objects changed and written in some style, or its text changed, then lint or migrate."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

import yaml

from tools.fuzz.examples import documents, manifest_pool, manifests
from tools.fuzz.judged import REFUSED, Outcome, judged
from tools.fuzz.mutations import mutated

READS: Final[tuple[tuple[str, ...], ...]] = (
    ("lint",),
    ("lint", "-o", "json"),
    ("lint", "-o", "sarif"),
    ("lint", "-o", "junit"),
    ("lint", "-o", "github"),
    ("migrate",),
    ("migrate", "-o", "json"),
    ("migrate", "--diff"),
    ("migrate", "--reverse", "--diff"),
)
WRITES: Final[tuple[tuple[str, ...], ...]] = (
    ("lint", "--fix"),
    ("lint", "--fix", "--unsafe-fixes"),
    ("migrate", "--write"),
    ("migrate", "--reverse", "--write"),
)
CODES: Final = frozenset((0, 1, 2))
_MARKS: Final = ("\t", " ", "  ", "#", ": ", "- ", "&a ", "*a", "!!str ", "|", "'", '"', "{", "}", "\r", "\ufeff",
                 "---\n", "\x00", "\x1b[2J", "<<: *a\n", "? ", "\u2028", "é", "...\n", "%YAML 1.2\n")  # fmt: skip


def run(seed: int, folder: Path) -> Outcome:
    """The run of this number. The input of a failure is kept."""
    chance = random.Random(seed)
    path = folder / f"{seed}.yaml"
    data = _written(chance) if chance.random() < 0.6 else _spoiled(chance)
    path.write_bytes(data)
    writes = chance.random() < 0.4
    words = [*chance.choice(WRITES if writes else READS), str(path)]
    ran = judged(words, CODES)
    failure = ran.failure or _of_file(path, data, writes and ran.code != REFUSED)
    if not failure:
        path.unlink()
        return ran.outcome
    path.with_suffix(".before").write_bytes(data)
    return Outcome(f"{' '.join(words)}: {failure}", ran.code != REFUSED)


def _of_file(path: Path, before: bytes, may_write: bool) -> str:
    after = path.read_bytes()
    if after == before:
        return ""
    if not may_write:
        return "it changed the file"
    return "it made the file invalid" if _is_valid(before) and not _is_valid(after) else ""


def _is_valid(data: bytes) -> bool:
    try:
        list(yaml.compose_all(data.decode(), Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    return True


def _written(chance: random.Random) -> bytes:
    group = mutated(chance.choice(documents()), chance, manifest_pool())
    if chance.random() < 0.15:
        return "\n---\n".join(json.dumps(each, indent=chance.choice((None, 2))) for each in group).encode()
    style: Any = {
        "default_flow_style": chance.choice((None, False, False, True)),
        "indent": chance.choice((2, 2, 4)),
        "width": chance.choice((40, 80, 10_000)),
        "allow_unicode": chance.random() < 0.5,
        "sort_keys": False,
    }
    # Half a surrogate is no text in YAML, and JSON has a way to write it.
    text = json.dumps(group)
    plain = json.loads(text.replace("\\ud800", "x"))
    out: str = yaml.safe_dump_all(plain, **style)
    return out.replace("\n", "\r\n").encode() if chance.random() < 0.1 else out.encode()


def _spoiled(chance: random.Random) -> bytes:
    """The text of a manifest with changes of lines, marks or bytes."""
    lines = chance.choice(manifests()).split("\n")
    for _ in range(chance.choice((1, 1, 2, 4))):
        at, kind = chance.randrange(len(lines)), chance.randrange(8)
        line = lines[at]
        indent = len(line) - len(line.lstrip(" "))
        if kind == 0:
            lines.insert(at, line)
        elif kind == 1 and len(lines) > 1:
            del lines[at]
        elif kind == 2:
            lines[at] = f"{line}  # {chance.choice(('x', 'kubectl-dra: ignore[DRA] y', 'kubectl-dra: ?', '{{ x }}'))}"
        elif kind == 3:
            lines.insert(at, f"{' ' * indent}# {line.strip()}")
        elif kind == 4:
            lines[at] = f"{line} "
        elif kind == 5:
            lines[at] = " " * chance.choice((1, 2)) + line
        elif kind == 6:
            lines.insert(at, chance.choice(("", "---", "# ---", " " * indent)))
        else:
            spot = chance.randrange(len(line) + 1)
            lines[at] = line[:spot] + chance.choice(_MARKS) + line[spot:]
    data = "\n".join(lines).encode()
    if chance.random() < 0.1:
        spoiled = bytearray(data)
        spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
        return bytes(spoiled)
    return data
