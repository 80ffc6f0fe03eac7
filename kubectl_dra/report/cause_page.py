"""The page of a cause: what it looks like, why, how to see it with kubectl, what helps, when it is no fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kubectl_dra.addresses import page_of_cause
from kubectl_dra.explain import causes
from kubectl_dra.explain.diagnosis import CauseKind

SCHEMA_VERSION: Final = "1"
SAMPLES: Final = Path(causes.__file__).parent / "samples"
"""What ``explain`` prints in a small cluster with the cause: CODE.txt, written by ``tools/docs/causes.py``."""


def sample(kind: CauseKind) -> str:
    """A question and its answer with this cause, as on a terminal."""
    return (SAMPLES / f"{kind.code}.txt").read_text(encoding="utf-8")


def page(kind: CauseKind) -> str:
    """The page in Markdown."""
    return "\n".join(_lines(kind))


def _lines(kind: CauseKind) -> Iterator[str]:
    yield from (f"# {kind.code}: {kind.title}", "", f"Stage: {kind.family.value}", "")
    yield from ("## What it looks like", "", "```text", sample(kind).rstrip("\n"), "```", "")
    yield from (f"Kubernetes shows: {kind.seen_as}", "")
    yield from ("## Why", "", kind.why, "")
    yield from ("## See it with kubectl", "")
    for check in kind.confirm:
        yield from (check.shows, "", "```sh", check.command, "```", "")
    yield from ("## What helps", "", kind.fix, "")
    yield from ("## When it is normal", "", kind.normal, "")


def cause_json(kind: CauseKind) -> dict[str, Any]:
    """The same as data, in the shape of ``schemas/cause.json``."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Cause",
        "code": kind.code,
        "title": kind.title,
        "stage": kind.family.value,
        "url": page_of_cause(kind.code),
        "sample": sample(kind),
        "seenAs": kind.seen_as,
        "why": kind.why,
        "confirm": [{"shows": check.shows, "command": check.command} for check in kind.confirm],
        "fix": kind.fix,
        "normal": kind.normal,
    }
