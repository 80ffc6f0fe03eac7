"""Compare the CEL engine with recorded answers of Kubernetes.

    python -m tests.conformance cel FILE... [--devices DEVICES.json]

One line of a file is ``{"id", "expression", "expect"}``; ``expect`` is ``{"compileError"}`` or
``{"outputType", "maxCost", "results", "costs"}`` with one result per device: true, false or
``{"error"}``. Agreement means: both compile or both do not, the same result on every device (two errors
agree), and the same maximum cost. Actual costs are compared with ``--costs`` only, because they depend on
the random order in which Go iterates over maps.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from kubectl_dra.api.limits import MAX_EXPRESSION_COST
from kubectl_dra.cel import CompileError, Environment, EvaluationError, Program, compile_expression
from kubectl_dra.cel.closures import comprehensions
from kubectl_dra.cel.device import device_value

DATA = Path(__file__).parent / "data"
IN_RANDOM_ORDER = frozenset(("vis-1846",))
"""Lines whose answer depends on the random order in which Go iterates over a map."""


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


def environment_of(case: dict[str, Any]) -> Environment:
    """The environment a line was recorded with: Kubernetes 1.36, new expressions, unless it says otherwise."""
    features = set() if case.get("noConsumable") else {"DRAConsumableCapacity"}
    if case.get("list"):
        features.add("DRAListTypeAttributes")
    return Environment.for_release("1.36", frozenset(features), stored=bool(case.get("stored")))


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
        exact = results[index] if program.max_cost > MAX_EXPRESSION_COST else _exact(program, device, environment)
        for how, ours in (("", results[index]), (", exactly", exact)):
            if _agrees(ours, theirs):
                continue
            if case["id"] not in IN_RANDOM_ORDER or not _agrees_in_some_order(program, device, environment, theirs):
                return differ(f"device {index}{how}: {_shown(ours)}", _shown(theirs))
        if costs:
            _exact(program, device, environment, metered=True)
            if program.last_cost != expect["costs"][index]:
                return differ(f"device {index}: cost {program.last_cost}", f"cost {expect['costs'][index]}")
    return None


def _exact(
    program: Program, device: RecordedDevice, environment: Environment, metered: bool = False
) -> bool | EvaluationError:
    """The outcome of the closures, which the fast path must not differ from."""
    from kubectl_dra.cel.program import as_bool

    try:
        value = device_value(device, environment.converts_lists())
        if metered:
            return as_bool(program.actual_cost(value)[0])
        return as_bool(program.evaluate_raw(value))
    except EvaluationError as error:
        return error


def _agrees_in_some_order(program: Program, device: RecordedDevice, environment: Environment, theirs: Any) -> bool:
    """Whether some order of iterating over maps gives Kubernetes' answer: Go's order is random.

    ``attributes.map(k, k)[0]`` is such an expression. Everything else gives the same answer in any order.
    """
    random = Random(0)
    in_order = comprehensions.items

    def shuffled(iterable: Any, two: bool, node: Any) -> Any:
        pairs = in_order(iterable, two, node)
        if isinstance(iterable, dict):
            random.shuffle(pairs)
        return pairs

    comprehensions.items = shuffled
    try:
        return any(_agrees(_exact(program, device, environment), theirs) for _ in range(200))
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
    devices = read_devices(getattr(options, "devices", None) or DATA / "cel-devices.json")
    costs = bool(getattr(options, "costs", False))
    total = agreed = 0
    for path in files:
        for case in read_cases(path):
            total += 1
            disagreement = _compare_safely(case, devices, costs)
            if disagreement is None:
                agreed += 1
            else:
                print(disagreement)
    print(f"agree {agreed} of {total}")
    return 0 if agreed == total else 1
