"""Compare the CEL engine with recorded answers of Kubernetes.

    python -m tests.conformance cel FILE... [--devices DEVICES.json]

One line of a file is ``{"id", "expression", "expect"}``, and perhaps ``release``, ``devices`` (the file of the
devices), ``stored`` and ``features`` (changed gates). ``expect`` is ``{"compileError"}`` or ``{"outputType", "maxCost",
"results", "costs"}`` with one result per device: true, false or ``{"error"}``. Agreement means: both compile or both do
not, the same result on every device (two errors agree), and the same maximum cost; with ``--costs`` the same actual
cost, too. Go iterates over maps in random order, so a result or cost agrees that we give in some order of the maps.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from kubectl_dra.api.limits import MAX_EXPRESSION_COST
from kubectl_dra.api.releases import parse_release
from kubectl_dra.cel import CompileError, Environment, EvaluationError, Program, compile_expression
from kubectl_dra.cel.closures import collections as comprehensions
from kubectl_dra.cel.device import device_value
from tools.recorder.recorded import FIRST_DEVICES, gates

DATA = Path(__file__).parent / "data"
ORDERS = 200
"""How many random orders of maps are tried."""


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    """A device of the recording, in the shape the engine reads."""

    driver: str
    attributes: dict[str, Any]
    capacity: dict[str, Any]
    allow_multiple_allocations: bool


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One line on which we differ: what we say and what Kubernetes said."""

    id: str
    expression: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.id}: {self.expression}\n  ours:       {self.ours}\n  Kubernetes: {self.theirs}"


def of_vendor(recorded: Mapping[str, Any]) -> RecordedDevice:
    """A device of ``vendor-cel-cases.json``, which has plain values for attributes."""
    attributes: dict[str, Any] = {}
    for key, value in recorded.get("attrs", {}).items():
        kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
        attributes[key] = {kind: value}
    for key, value in recorded.get("versions", {}).items():
        attributes[key] = {"version": value}
    capacity = {key: {"value": value} for key, value in recorded.get("cap", {}).items()}
    return RecordedDevice(recorded["driver"], attributes, capacity, False)


def read_devices(path: Path) -> list[RecordedDevice]:
    return [
        RecordedDevice(
            one["driver"],
            one.get("attributes") or {},
            one.get("capacity") or {},
            bool(one.get("allowMultipleAllocations")),
        )
        for one in json.loads(path.read_text())
    ]


@cache
def devices_of(path: Path) -> list[RecordedDevice]:
    """The devices of a file, read once."""
    return read_devices(path)


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a .jsonl or .jsonl.gz file."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    for line in text.decode().split("\n"):
        if line.strip():
            yield json.loads(line)


def _shown(result: Any) -> str:
    if isinstance(result, EvaluationError):
        return f"error ({result})"
    if isinstance(result, dict):
        return f"error ({result.get('error')})"
    return json.dumps(result)


def _agrees(ours: bool | EvaluationError, theirs: Any) -> bool:
    if isinstance(ours, EvaluationError) or isinstance(theirs, dict):
        return isinstance(ours, EvaluationError) and isinstance(theirs, dict)
    return ours is theirs


def environment_of(case: Mapping[str, Any]) -> Environment:
    """The environment a line was recorded with: Kubernetes 1.36, new expressions, unless it says otherwise."""
    release = parse_release(case.get("release", "1.36"))
    return Environment.for_release(release, gates(release, case.get("features") or []), bool(case.get("stored")))


def compare(case: dict[str, Any], devices: Sequence[RecordedDevice], costs: bool = False) -> Disagreement | None:
    """The disagreement on one line, or None."""
    expression, expect = case["expression"], case["expect"]
    environment = environment_of(case)

    def differ(ours: str, theirs: str) -> Disagreement:
        return Disagreement(case["id"], expression, ours, theirs)

    try:
        program = compile_expression(environment, expression)
    except CompileError as error:
        if "compileError" in expect:
            return None
        return differ(f"does not compile: {error}", f"compiles, cost {expect['maxCost']}")
    if "compileError" in expect:
        return differ(f"compiles, type {program.output_type}", f"does not compile: {expect['compileError']}")
    if program.output_type.declared_name() != expect.get("outputType", program.output_type.declared_name()):
        return differ(f"type {program.output_type.declared_name()}", f"type {expect['outputType']}")
    if program.max_cost != expect["maxCost"]:
        return differ(f"maxCost {program.max_cost}", f"maxCost {expect['maxCost']}")
    results = program.evaluate_devices(devices)
    for index, device in enumerate(devices):
        theirs = expect["results"][index]
        # Too expensive expressions have no fast path to compare with.
        exact = results[index] if program.max_cost > MAX_EXPRESSION_COST else _exact(program, device, environment)[0]
        for how, ours in (("", results[index]), (", exactly", exact)):
            if not _agrees(ours, theirs) and not any(
                _agrees(other, theirs) for other, _ in _in_other_orders(program, device, environment)
            ):
                return differ(f"device {index}{how}: {_shown(ours)}", _shown(theirs))
        if costs:
            cost, wanted = _exact(program, device, environment, metered=True)[1], expect["costs"][index]
            if cost != wanted and not _within(program, device, environment, wanted):
                return differ(f"device {index}: cost {cost}", f"cost {wanted}")
    return None


def _exact(
    program: Program, device: RecordedDevice, environment: Environment, metered: bool = False
) -> tuple[bool | EvaluationError, int]:
    """The outcome of the closures, which the fast path must not differ from, and what it cost where metered."""
    from kubectl_dra.cel.program import as_bool

    try:
        value = device_value(device, environment.converts_lists())
    except EvaluationError as error:
        return error, 0
    try:
        return as_bool(program.actual_cost(value)[0] if metered else program.evaluate_raw(value)), program.last_cost
    except EvaluationError as error:
        return error, program.last_cost


def _within(program: Program, device: RecordedDevice, environment: Environment, cost: int) -> bool:
    """Whether a cost lies between the least and the most that some order of maps costs: it sums up many loops."""
    costs = [found for _, found in _in_other_orders(program, device, environment, metered=True)]
    return bool(costs) and min(costs) <= cost <= max(costs)


def _in_other_orders(
    program: Program, device: RecordedDevice, environment: Environment, metered: bool = False
) -> Iterator[tuple[bool | EvaluationError, int]]:
    """The outcomes and costs in random orders of the maps that a loop goes through, as in ``attributes.map(k, k)[0]``.

    Nothing is said of a program that goes through no map: it gives the same answer in any order.
    """
    random = Random(0)
    in_order = comprehensions.items
    shuffles = 0
    fixed: dict[tuple[Any, ...], list[Any]] | None = None

    def shuffled(iterable: Any, two: bool, node: Any) -> Any:
        nonlocal shuffles
        pairs = in_order(iterable, two, node)
        if isinstance(iterable, dict) and len(pairs) > 1:
            shuffles += 1
            if fixed is not None:
                return fixed.setdefault((*iterable, two), random.sample(pairs, len(pairs)))
            random.shuffle(pairs)
        return pairs

    comprehensions.items = shuffled
    try:
        for number in range(ORDERS):
            # Go mostly keeps to one order of a map and starts somewhere in it: try one order for all loops, too.
            fixed = {} if number % 2 else None
            outcome = _exact(program, device, environment, metered)
            if not shuffles:
                return
            yield outcome
    finally:
        comprehensions.items = in_order


def compared(case: Mapping[str, Any]) -> Iterator[str]:
    """How closely one answer is compared."""
    if "compileError" in case["expect"]:
        yield "does not compile (not the text of the error)"
    else:
        yield "compiles: type, worst-case cost, and true, false or an error on each device"


def _compare_safely(case: dict[str, Any], devices: Sequence[RecordedDevice], costs: bool) -> Disagreement | None:
    """A crash of ours on one line is a disagreement on that line."""
    try:
        return compare(case, devices, costs)
    except Exception as error:
        return Disagreement(str(case.get("id")), str(case.get("expression")), f"crash: {error!r}", "an answer")


def run(files: list[Path], options: argparse.Namespace | None = None) -> int:
    """Print every disagreement and a summary; 0 if there is none.

    ``options`` may have ``devices`` (path of the recorded devices) and ``costs``.
    """
    given: Path | None = getattr(options, "devices", None)
    costs = bool(getattr(options, "costs", False))
    total = agreed = 0
    for path in files:
        for case in read_cases(path):
            total += 1
            devices = devices_of(given or DATA / case.get("devices", FIRST_DEVICES))
            disagreement = _compare_safely(case, devices, costs)
            if disagreement is None:
                agreed += 1
            else:
                print(disagreement)
    print(f"agree {agreed} of {total}")
    return 0 if agreed == total else 1
