"""Record what the device-selector compiler of a Kubernetes release answers.

    make record KUBERNETES=1.37.3       # the corpus of that release, and what differs from the one before
    python -m tools.recorder.selectors --kubernetes 1.37.1 --seed 1 --count 500 cel-1.37.jsonl.gz
    python -m tools.recorder.selectors --kubernetes 1.35.8 --cases tests/conformance/data/cel.jsonl.gz out.jsonl.gz

Expressions are made up from the seed (`tools.recorder.expressions`), or taken from a corpus and asked again. Each line
has the form of ``cel.jsonl.gz`` with ``release``, ``devices`` (the file of the devices), ``stored`` and ``features``
where they are not the default; `python -m tests.conformance cel FILE` judges it. Go goes through maps in random order:
a device is asked several times, and what differs is in ``anyOf``. The program in ``selectors/`` is built with the
published Go modules of the release, which must be reachable.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import IO, Any

from kubectl_dra.api.releases import Release, parse_release
from tools.recorder.expressions import expressions, fixed
from tools.recorder.modules import bounded, built
from tools.recorder.recorded import DATA, FIRST_DEVICES, gates, lines
from tools.recorder.wild import wild

Json = dict[str, Any]
DEVICES = "selector-devices.json"
SOURCE = Path(__file__).parent / "selectors" / "main.go"
MODULES = ("api", "apimachinery", "apiserver", "dynamic-resource-allocation")
REPEATS = 8
"""How often each device is asked."""
FIELDS = {
    "DRAConsumableCapacity": "EnableConsumableCapacity",
    "DRAListTypeAttributes": "EnableListTypeAttributes",
}
"""The gates that change the compiler, and its names for them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", required=True, metavar="VERSION", help="such as 1.37.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--wild", action="store_true", help="made-up expressions are those of tools.recorder.wild")
    parser.add_argument("--stored", action="store_true", help="made-up expressions are those of stored objects")
    parser.add_argument("--features", default="", metavar="CHANGES", help="gates to change: +ListTypeAttributes")
    parser.add_argument("--cases", type=Path, help="a corpus to ask again")
    parser.add_argument("file", type=Path, nargs="?", help="where to write; the release's corpus where not given")
    options = parser.parse_args()
    with Compiler(options.kubernetes) as compiler:
        if options.file is None:
            renew(compiler)
            return
        changes = [change for change in options.features.split(",") if change]
        cases: Iterable[Json]
        if options.cases:
            cases = lines(options.cases)
        elif options.wild:
            cases = wild_ones(compiler, options.seed, options.count, options.stored, changes)
        else:
            cases = made_up(compiler, options.seed, options.count, options.stored, changes)
        answered = list(compiler.recorded(cases))
    write(options.file, answered)
    families = Counter(f"{case['id'].split('-')[0]}: {_kind(case['expect'])}" for case in answered)
    print(*(f"{kind} {count:,}" for kind, count in sorted(families.items())), sep="\n")


class Compiler:
    """The compiler of one Kubernetes version, running; a context manager."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.release = parse_release(version)
        self._program = built(version, SOURCE, MODULES)
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=bounded
        )
        self.functions: list[Json] = json.loads(self._output.readline())
        """The functions that expressions of this release may call, with their types."""

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def recorded(self, cases: Iterable[Json]) -> Iterator[Json]:
        """The cases with answers; those that crash the compiler, or that take it too long, are left out."""
        devices: dict[str, list[Json]] = {}
        for case in cases:
            name = case.get("devices", FIRST_DEVICES)
            if name not in devices:
                devices[name] = json.loads((DATA / name).read_text())
            expect = self.answer(case, devices[name])
            if expect is not None:
                yield {**case, "release": self.version, "expect": expect}

    def answer(self, case: Json, devices: list[Json]) -> Json | None:
        """What the compiler says of a case, as ``expect``; None if it crashes, or takes too long."""
        on = gates(self.release, case.get("features") or [])
        question = {
            "expression": case["expression"],
            "stored": bool(case.get("stored")),
            "celFeatures": [field for gate, field in FIELDS.items() if gate in on],
            "repeats": REPEATS,
            "devices": devices,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._output.readline()
        if not line:
            # Nothing in Go survives a stack that is too deep.
            self._process.wait()
            self._start()
            return None
        answer = json.loads(line)
        if answer.get("panic") or answer.get("timedOut"):
            return None
        if "compileError" in answer:
            return {"compileError": answer["compileError"]}
        return {
            "outputType": answer["outputType"],
            "maxCost": answer["maxCost"],
            **_outcomes(answer.get("outcomes") or []),
        }


def _outcomes(outcomes: list[list[Json]]) -> Json:
    """Results and costs as the corpus has them: of each device the first, then what else there was."""
    others = []
    first = []
    for device, seen in enumerate(outcomes):
        found = [(_result(one), one["cost"]) for one in seen]
        first.append(found[0])
        known = {(_truth(result), cost) for result, cost in found[:1]}
        for result, cost in found[1:]:
            if (_truth(result), cost) not in known:
                known.add((_truth(result), cost))
                others.append({"device": device, "result": result, "cost": cost})
    expect: Json = {"results": [result for result, _ in first], "costs": [cost for _, cost in first]}
    return expect | {"anyOf": others} if others else expect


def _result(outcome: Json) -> bool | Json:
    return {"error": outcome["error"]} if outcome.get("error") else bool(outcome["match"])


def _truth(result: bool | Json) -> bool | None:
    return None if isinstance(result, dict) else result


def plan(release: Release) -> list[tuple[int, int, bool, list[str]]]:
    """Seed, number of expressions, whether they are stored, and changed gates of each part of a release's corpus."""
    seed = release.minor * 100
    parts: list[tuple[int, int, bool, list[str]]] = [(seed + 1, 900, False, []), (seed + 2, 240, True, [])]
    change = "-ConsumableCapacity" if release.minor >= 36 else "+ConsumableCapacity"
    parts.append((seed + 3, 60, False, [change]))
    if release.minor >= 36:
        parts.append((seed + 4, 150, False, ["+ListTypeAttributes"]))
    return parts


def made_up(compiler: Compiler, seed: int, count: int, stored: bool, changes: list[str]) -> Iterator[Json]:
    """Cases of one seed, without answers."""
    for name, text in expressions(compiler.functions, seed, count):
        yield _case(name, text, stored, changes)


def wild_ones(compiler: Compiler, seed: int, count: int, stored: bool, changes: list[str]) -> Iterator[Json]:
    """Cases of one seed that stray farther, without answers; their parts come from the release's corpus, too."""
    file = DATA / f"cel-{compiler.release}.jsonl.gz"
    pool = [case["expression"] for case in lines(file) if len(case["expression"]) < 400]
    random = Random(seed)
    made = 0
    for name, text in wild(compiler.functions, seed, pool):
        case = _case(name, text, stored, changes)
        answer = compiler.answer(case, [])
        # Most of them do not compile, which is soon seen.
        if answer is not None and ("compileError" not in answer or random.random() < 0.2):
            yield case
            made += 1
        if made >= count:
            return


def _case(name: str, text: str, stored: bool, changes: list[str]) -> Json:
    case: Json = {"id": name, "expression": text, "devices": DEVICES}
    if stored:
        case["stored"] = True
    if changes:
        case["features"] = changes
    return case


def renew(compiler: Compiler) -> None:
    """Records the corpus of a release again, and prints which of its lines are answered otherwise than before."""
    file = DATA / f"cel-{compiler.release}.jsonl.gz"
    before = {case["id"]: case for case in lines(file)} if file.exists() else {}
    cases = [_case(name, text, False, []) for name, text in fixed()]
    for seed, count, stored, changes in plan(compiler.release):
        cases.extend(made_up(compiler, seed, count, stored, changes))
    answered = list(compiler.recorded(cases))
    write(file, answered)
    differing = [case["id"] for case in answered if _differs(before.get(case["id"], case), case)]
    print(f"{file}: {len(answered)} expressions, {len(differing)} answered otherwise than before:", *differing)


def _differs(before: Json, now: Json) -> bool:
    if "anyOf" in before["expect"] or "anyOf" in now["expect"]:
        return False
    return bool(before["expression"] == now["expression"] and before["expect"] != now["expect"])


def write(file: Path, cases: Iterable[Json]) -> None:
    """Writes a corpus."""
    with gzip.open(file, "wt") as out:
        out.writelines(json.dumps(case, separators=(",", ":"), ensure_ascii=False) + "\n" for case in cases)


def _kind(expect: Json) -> str:
    if "compileError" in expect:
        return "does not compile"
    results = [_truth(result) for result in expect["results"]]
    return "error everywhere" if set(results) == {None} else "compiles"


if __name__ == "__main__":
    main()
