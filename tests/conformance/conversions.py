"""Compares defaults and conversion with objects that a real API server stored and printed back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_dra.api.conversion import VERSIONS, defaulted, from_v1, to_v1, without_disabled
from kubectl_dra.api.releases import parse_release
from tools.recorder.recorded import gates

RELEASE = "1.36"
"""Of lines that do not say theirs."""


EXCEPTIONS = {("1.34", ".spec.devices is missing, expected null")}
"""What is known to differ: 1.34 prints a slice without devices with null, which means the same to every reader."""


def compared(case: dict[str, Any]) -> Iterator[str]:
    """How closely one answer is compared."""
    yield "the whole object in every version that is served, with all defaults"


def run(files: list[Path], options: Any = None) -> int:
    """Prints each disagreement and the total; 0 exactly when every line of every file agrees."""
    total = agree = 0
    for file in files:
        for line in lines(file):
            total += 1
            problems = disagreements(line)
            agree += not problems
            for problem in problems:
                print(f"{line['id']}: {problem}")
    print(f"agree {agree} of {total}")
    return 0 if agree == total else 1


def lines(file: Path) -> Iterator[dict[str, Any]]:
    """The recorded cases of one file, gzipped or not."""
    data = file.read_bytes()
    for line in (gzip.decompress(data) if file.suffix == ".gz" else data).splitlines():
        if line.strip():
            yield json.loads(line)


def disagreements(line: dict[str, Any]) -> list[str]:
    """How the object in each version differs from what the server printed."""
    # The main resource of a claim takes no status when it is created.
    created = {key: value for key, value in line["from"].items() if key != "status"}
    release = parse_release(line.get("release", RELEASE))
    v1 = without_disabled(to_v1(defaulted(created)), gates(release, line.get("features", [])), release)
    out = []
    for version in VERSIONS:
        if version in line:
            found = differences(line[version], from_v1(v1, version))
            difference = next((each for each in found if (str(release), each) not in EXCEPTIONS), None)
            if difference:
                out.append(f"as {version}: {difference}")
    return out


def differences(expected: Any, mine: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ. The server's clock in ``timeAdded`` is no difference."""
    if isinstance(expected, dict) and isinstance(mine, dict):
        for key in sorted(expected.keys() | mine.keys()):
            where = f"{path}.{key}"
            if key not in mine:
                if key != "timeAdded":
                    yield f"{where} is missing, expected {json.dumps(expected[key])}"
            elif key not in expected:
                yield f"{where} is {json.dumps(mine[key])}, expected nothing"
            else:
                yield from differences(expected[key], mine[key], where)
    elif isinstance(expected, list) and isinstance(mine, list) and len(expected) == len(mine):
        for index, (left, right) in enumerate(zip(expected, mine, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif expected != mine or isinstance(expected, bool) != isinstance(mine, bool):
        yield f"{path} is {json.dumps(mine)}, expected {json.dumps(expected)}"
