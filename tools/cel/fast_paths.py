"""Compares every fast way to a selector's answer with the plain one: the program evaluated on one whole device.

`python -m tools.cel.fast_paths [SELECTORS] [SEED]`: 100,000 random selectors unless told otherwise. What differs is
shown with the smallest selector and devices that still differ.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

from msgspec.structs import replace

from kubectl_dra.allocation.pools import pools_of_node
from kubectl_dra.allocation.selectors import Selectors, SelectorVerdict
from kubectl_dra.api.claims import DeviceClass
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import CompileError, Environment, EvaluationError, Program
from kubectl_dra.cel.device import device_value
from kubectl_dra.cel.program import as_bool
from kubectl_dra.cluster import device_lists
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.node_equivalence import NodeEquivalence
from kubectl_dra.scheduling.scheduler import Scheduler
from tools.builders import claim, request
from tools.cel.generated import devices, selector, slices, smallest

Answer = bool | str
LISTS = frozenset({"DRAConsumableCapacity", "DRAListTypeAttributes"})
ENVIRONMENTS = (
    (Environment.for_release("1.34"), False),
    (Environment.for_release("1.36"), False),
    (Environment.for_release("1.36", stored=True), False),
    (Environment.for_release("1.36", LISTS), True),
    (Environment.for_release("1.37"), True),
)
IN_A_BATCH = 20
"""Selectors that share what is known of the same devices."""


def _said(verdict: SelectorVerdict) -> Answer:
    return verdict if isinstance(verdict, bool) else str(verdict)


def _of(evaluate: Callable[[], bool]) -> Answer:
    try:
        return evaluate()
    except EvaluationError as error:
        return str(error)


def plain(program: Program, some: Sequence[Device]) -> list[Answer]:
    """The answer for each device, asked for alone and whole."""
    return [_of(lambda one=one: program.evaluate(one)) for one in some]  # type: ignore[misc]


def _together(selectors: Selectors, text: str, program: Program, some: Sequence[Device]) -> bool:
    """Many devices at once: by columns, term by term."""
    expected = plain(program, some)
    if list(map(_said, selectors.verdicts(text, some))) != expected:
        return False
    if selectors.refused_by([text]) != {id(one) for one, answer in zip(some, expected, strict=True) if answer is False}:
        return False
    table = selectors.table(some)
    return all(list(map(_said, term.evaluate_devices(table))) == plain(term, some) for term in program.terms())


def _observed(program: Program, one: Device) -> bool:
    """With the cost counted, and with each step recorded."""
    expected = _of(lambda: program.evaluate(one))
    try:
        value = device_value(one, program.environment.converts_lists())
    except EvaluationError:
        return True
    recorded = program.trace(one)[0]
    traced = str(recorded.error) if recorded.error else _of(lambda: as_bool(recorded.value))
    return expected == traced == _of(lambda: as_bool(program.actual_cost(value)[0]))


class Cluster:
    """Slices read twice: each device whole, and what differs between devices kept apart from what they share."""

    def __init__(self, chosen: random.Random) -> None:
        release = parse_release(chosen.choice(("1.34", "1.36", "1.37")))
        self.settings = Settings(Scheduler(release, default_features(release)))
        nodes = [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"n{index}"}} for index in range(5)]
        kind = {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1"}
        items = [
            *nodes,
            *({**kind, "metadata": {"name": spec["nodeName"]}, "spec": spec} for spec in slices(chosen, 5)),
        ]
        text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
        self.whole = _with_class(read_snapshot(["-"], stdin=text))
        with mock.patch.object(device_lists, "SAMPLE", 1):
            self.shared = read_snapshot(["-"], stdin=text, compact=True)
        self.cycle = self.settings.scheduler.cycle(self.whole)

    def differs(self, text: str) -> str:
        """In what a selector gets other answers than from each device; empty if in nothing."""
        selectors = self.cycle.selectors
        program = selectors.program(text)
        if isinstance(program, CompileError):
            return ""
        expected = [plain(program, entry.devices) for entry in self.whole.slices]
        told = complete(None, _with_class(self.shared, text), self.settings)
        fresh = Selectors(selectors.environment)
        if [list(map(_said, fresh.verdicts(text, entry.devices))) for entry in told.slices] != expected:
            return "texts kept apart from devices"
        known: dict[object, list[Answer]] = {}
        seen = NodeEquivalence(self.cycle, [claim(request(selector=text))])
        for node, answers in zip(self.whole.nodes.values(), expected, strict=True):
            kind = seen.of(node, pools_of_node(self.cycle.index, node, self.cycle.features, self.cycle.defects))
            if known.setdefault(kind, answers) != answers:
                return "equal nodes"
        return ""


def _with_class(snapshot: Snapshot, *expressions: str) -> Snapshot:
    return replace(snapshot, classes={"c": DeviceClass(ObjectMeta("c"), expressions, ())})


def differs(environment: Environment, text: str, some: Sequence[Device]) -> str:
    """In what a selector gets other answers than from each device; empty if in nothing, or if it does not compile."""
    selectors = Selectors(environment)
    program = selectors.program(text)
    if isinstance(program, CompileError):
        return ""
    if not _together(selectors, text, program, some):
        return "many devices at once"
    return "" if all(_observed(program, one) for one in some) else "cost or trace"


def found(number: int, seed: int = 0) -> Iterator[str]:
    """What differs among so many selectors that compile."""
    chosen = random.Random(seed)
    asked = 0
    while asked < number:
        environment, lists = chosen.choice(ENVIRONMENTS)
        some, cluster, selectors = devices(chosen, 6, lists=lists), Cluster(chosen), Selectors(environment)
        for place in range(IN_A_BATCH):
            tree = selector(chosen)
            text = str(tree)
            program = selectors.program(text)
            if isinstance(program, CompileError):
                continue
            asked += 1
            if not _together(selectors, text, program, some) or (
                place % 4 == 0 and not all(_observed(program, one) for one in some)
            ):
                least, few = smallest(tree, some, lambda text, some: bool(differs(environment, text, some)))  # noqa: B023
                yield f"{differs(environment, least, few)} ({environment.release}): {least}\n  on {few}"
            elif place % 4 == 1 and (why := cluster.differs(text)):
                least, _ = smallest(tree, (), lambda text, _: bool(cluster.differs(text)))  # noqa: B023
                listed = [entry.devices for entry in cluster.whole.slices]
                yield f"{why} ({cluster.settings.scheduler.release}): {least}\n  on {listed}"


def main(number: int = 100_000, seed: int = 0) -> int:
    times = 0
    for text in found(number, seed):
        times += 1
        print(text, flush=True)
        if times == 20:
            break
    print(f"{times} of {number:,} selectors get another answer in a fast way")
    return 1 if times else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
