"""Speed of the selector engine: `python -m tools.benchmarks.cel [--devices 100000]`.

Prints the time until the engine is ready in a fresh process, the time to compile selectors, and the time per
device of the two ways to evaluate one: each device by itself, and groups of devices that look alike to the
selector. Times are medians, devices are synthetic.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from kubectl_dra.cel.checker import check
from kubectl_dra.cel.closures import compile_closures
from kubectl_dra.cel.closures.calls import Closure
from kubectl_dra.cel.columns import DeviceTable
from kubectl_dra.cel.device import device_value
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.parser import parse
from kubectl_dra.cel.program import compile_expression

DRIVER = "gpu.example.com"
A = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'
SELECTORS = {
    "driver": f'device.driver == "{DRIVER}"',
    "model": f'{A}.productName == "Model 7"',
    "model and capacity": f'{A}.productName == "Model 7" && {C}.memory.compareTo(quantity("40Gi")) >= 0',
    "version": f'{A}.driverVersion.isGreaterThan(semver("550.0.0"))',
    "has and in": f'has({A}.architecture) && {A}.architecture in ["Ampere", "Hopper"]',
    "optional": f'{A}.?architecture.orValue("") == "Hopper"',
    "bind": f'cel.bind(a, {A}, a.architecture == "Hopper" && a.index < 4)',
    "lowerAscii, contains": f'{A}.productName.lowerAscii().contains("7")',
    "regular expression": f'{A}.productName.matches("^Model [0-9]+$")',
    "exists": f'["Model 1", "Model 7"].exists(m, m == {A}.productName)',
    "unique values": f'{A}.uuid == "GPU-000077"',
    "dynamic": f'device.attributes.exists(d, d == "{DRIVER}")',
}
SIMPLE = ("driver", "model", "model and capacity", "version", "has and in", "optional", "bind")


def make_devices(count: int) -> list[Any]:
    """Devices of a dozen models with eleven attributes and two capacities each."""
    return [
        SimpleNamespace(
            driver=DRIVER,
            attributes={
                "productName": {"string": f"Model {i % 12}"},
                "architecture": {"string": ("Ampere", "Hopper", "Ada")[i % 3]},
                "brand": {"string": "Example"},
                "index": {"int": i % 8},
                "healthy": {"bool": True},
                "mig": {"bool": i % 12 < 3},
                "driverVersion": {"version": f"5{i % 6}0.10.{i % 3}"},
                "cudaComputeCapability": {"version": "9.0.0"},
                "uuid": {"string": f"GPU-{i:06}"},
                "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{i % 16:02x}"},
                "resource.kubernetes.io/numaNode": {"int": i % 2},
            },
            capacity={"memory": {"value": ("24Gi", "40Gi", "80Gi")[i % 3]}, "cores": {"value": "108"}},
            allow_multiple_allocations=False,
        )
        for i in range(count)
    ]


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


READY = """
import time
start = time.perf_counter()
import kubectl_dra.cel
environment = kubectl_dra.cel.Environment.for_release("1.36")
ready = time.perf_counter()
program = kubectl_dra.cel.compile_expression(environment, {text!r})
print(ready - start, time.perf_counter() - ready)
"""


def print_start_up() -> None:
    code = READY.format(text=SELECTORS["model and capacity"])
    runs = []
    with TemporaryDirectory() as cache:
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(12):
            done = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=variables
            )
            runs.append([float(part) * 1000 for part in done.stdout.split()])
    # The first run compiled the modules themselves.
    ready, first = (statistics.median(column) for column in zip(*runs[1:], strict=True))
    print(f"import and environment ready   {ready:7.1f} ms   (fresh process, interpreter start not counted)")
    print(f"first compilation              {first:7.1f} ms   (loads parser, checker and function families)")


def compile_often(environment: Environment, text: str) -> None:
    for _ in range(50):
        compile_expression(environment, text)


def print_compilation(environment: Environment) -> None:
    print("\nµs per expression                compile")
    for name, text in SELECTORS.items():
        compile_expression(environment, text)
        compiling = seconds(partial(compile_often, environment, text)) / 50
        print(f"  {name:28} {compiling * 1e6:9.0f}")


def run_closures(closure: Closure, slots: int, values: list[Any]) -> None:
    more = [None] * slots
    for value in values:
        try:
            closure([value, *more])
        except EvaluationError:
            continue


def print_evaluation(environment: Environment, count: int) -> None:
    devices = make_devices(count)
    start = time.perf_counter()
    values = [device_value(device) for device in devices]
    converted = time.perf_counter() - start
    print(f"\n{count:,} devices; converting one takes {converted / count * 1e6:.2f} µs")
    table = DeviceTable(devices)
    screened = seconds(table.broken, 1)
    print(f"checking that one can be converted (once for all selectors) {screened / count * 1e6:.2f} µs")
    print("\nµs per device                   closures   grouped first   grouped again   distinct")
    sums = [0.0, 0.0, 0.0]
    for name, text in SELECTORS.items():
        program = compile_expression(environment, text)
        checked = check(parse(text, environment.macros()).expression, environment)
        exact, slots = compile_closures(checked, environment)
        fresh = DeviceTable(devices)
        fresh.broken()
        grouped = partial(program.evaluate_devices, fresh)
        figures = [
            seconds(partial(run_closures, exact, slots, values)),
            seconds(grouped, 1),
            seconds(grouped),
        ]
        columns = program.columns
        groups = count if columns is None else len(fresh.groups(columns))
        if name in SIMPLE:
            sums = [total + figure for total, figure in zip(sums, figures, strict=True)]
        each = [figure / count * 1e6 for figure in figures]
        print(f"  {name:28} {each[0]:9.2f} {each[1]:15.2f} {each[2]:15.2f} {groups:10,}")
    each = [total / len(SIMPLE) / count * 1e6 for total in sums]
    print(f"  {'mean of the first seven':28} {each[0]:9.2f} {each[1]:15.2f} {each[2]:15.2f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--devices", type=int, default=100_000)
    count = arguments.parse_args().devices
    print_start_up()
    gc.disable()  # as the command line does
    environment = Environment.for_release("1.36")
    print_compilation(environment)
    print_evaluation(environment, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nlargest resident size {peak:.0f} MB (devices, all converted values and all columns at once)")


if __name__ == "__main__":
    main()
