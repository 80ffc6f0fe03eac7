"""The pruned searches answer as the plain one does: same devices in the same order, same errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_dra.allocation import attempt
from kubectl_dra.allocation.attempt import AttemptVerdict, Cycle, solve
from kubectl_dra.allocation.budgets import Budget
from kubectl_dra.allocation.counters import CounterLedger
from kubectl_dra.allocation.errors import AllocationError, SearchBudgetExceeded
from kubectl_dra.allocation.features import KnownDefects
from kubectl_dra.allocation.interchangeable import Problem
from kubectl_dra.allocation.merged_search import MergedSearch
from kubectl_dra.allocation.pools import pools_of_node
from kubectl_dra.allocation.search import Search
from kubectl_dra.allocation.search_context import PreparedClaim, SearchContext, candidates
from kubectl_dra.allocation.too_few import impossible, lacks_values
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice
from tests.conformance import alloc
from tools.builders import JSON, claim, cycle, device, first_available, held, request, slice_of, sub
from tools.recorder.recorded import lines

NODE = Node.named("n1")
X = 'device.attributes["x.io"]'
SELECTORS = (
    None,
    f'{X}.t == "0"',
    f'{X}.t == "1"',
    f'{X}.t != "0"',
    f'{X}.a == "A"',
    f'{X}.?a.orValue("") != "B"',
)
CLASSES = {"c": ('device.driver in ["d", "e"]',)}
QUIRKS = (
    KnownDefects(),
    KnownDefects.none(),
    KnownDefects(counters_leak=False),
    KnownDefects(distinct_remembers_one=False),
    KnownDefects(counters_keyed_by_pool_name=False, share_without_capacity_charges=False, all_drops_exhausted=False),
)


@dataclass
class Case:
    """A cluster of one node, and claims to allocate on it."""

    slices: list[ResourceSlice]
    claims: list[ResourceClaim]
    allocated: list[ResourceClaim]
    defects: KnownDefects

    def cycle(self) -> Cycle:
        return cycle(self.slices, allocated=self.allocated, defects=self.defects, classes=CLASSES)


def random_device(rng: random.Random, name: str, style: str) -> JSON:
    attributes: JSON = {"x.io/t": {"string": rng.choice("0012")}}
    fields: dict[str, Any] = {"attributes": attributes}
    if rng.random() < 0.95:
        attributes["x.io/a"] = {"string": rng.choice("AAB")}
    if rng.random() < 0.8:
        attributes["x.io/b"] = {"int": 1} if rng.random() < 0.05 else {"string": rng.choice("xyz")}
    if style == "counters" and rng.random() < 0.9:
        fields["consumes"] = {f"s{rng.randrange(2)}.{rng.choice('cd')}": rng.randint(1, 4)}
        if rng.random() < 0.1:
            fields["consumes"]["s1.c"] = 2
    if style == "shares" or rng.random() < 0.03:
        fields["multi"] = rng.random() < 0.8
        if rng.random() < 0.9:
            fields["m"] = rng.choice((4, 6))
    if rng.random() < 0.1:
        fields["taint"] = "k=v:NoSchedule"
    return device(name, **fields)


def random_fields(rng: random.Random, style: str, counts: Sequence[int] = (1, 1, 2, 2, 3, 4)) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if (selector := rng.choice(SELECTORS)) is not None:
        fields["selector"] = selector
    if rng.random() < 0.04:
        fields["all"] = True
    else:
        fields["count"] = rng.choice(counts)
    if style == "shares" and rng.random() < 0.7:
        fields["m"] = rng.choice((1, 2, 3))
    if rng.random() < 0.1:
        fields["tolerations"] = [{"operator": "Exists"}]
    return fields


def random_claim(rng: random.Random, name: str, style: str) -> ResourceClaim:
    requests: list[JSON] = []
    for index in range(rng.choice((1, 2, 2, 3, 3))):
        if rng.random() < 0.25:
            counts = (1, 2, 29, 31) if rng.random() < 0.2 else (1, 2, 3)
            subs = [sub(f"s{number}", **random_fields(rng, style, counts)) for number in range(rng.choice((2, 3)))]
            requests.append(first_available(f"r{index}", *subs))
        else:
            admin = {"admin": True} if rng.random() < 0.05 else {}
            requests.append(request(f"r{index}", **random_fields(rng, style), **admin))
    constraints: list[JSON] = []
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        constraint: JSON = {rng.choice(("matchAttribute", "distinctAttribute")): rng.choice(("x.io/a", "x.io/b"))}
        if rng.random() < 0.4:
            constraint["requests"] = [entry["name"] for entry in rng.sample(requests, rng.randint(1, len(requests)))]
        constraints.append(constraint)
    return claim(*requests, name=name, constraints=constraints)


def random_case(rng: random.Random) -> Case:
    style = rng.choice(("plain", "counters", "counters", "shares"))
    count = rng.randint(2, 10)
    kinds = [random_device(rng, "kind", style) for _ in range(rng.choice((1, 2, 3, 4, count)))]
    devices = [{**rng.choice(kinds), "name": f"d{index}"} for index in range(count)]
    slices: list[ResourceSlice] = []
    split = rng.randint(1, count)
    second = rng.choice((("d", "q"), ("e", "p"), ("e", "q")))
    for (driver, pool), part in ((("d", "p"), devices[:split]), (second, devices[split:])):
        counted = any("consumesCounters" in entry for entry in part)
        if part:
            slices.append(slice_of(*part, pool=pool, driver=driver, count=1 + counted, name=f"{driver}-{pool}-1"))
        if counted:
            counters = {f"s{number}.{name}": rng.choice((3, 6, 9)) for number in range(2) for name in "cd"}
            slices.append(slice_of(pool=pool, driver=driver, count=2, counters=counters, name=f"{driver}-{pool}-0"))
    claims = [random_claim(rng, f"c{number}", style) for number in range(rng.choice((1, 1, 1, 2)))]
    allocated: list[ResourceClaim] = []
    if rng.random() < 0.3:
        allocated.append(held(f"d{rng.randrange(count)}"))
    if style == "shares" and rng.random() < 0.4:
        allocated.append(held(f"d{rng.randrange(count)}", name="share", shareID="s", consumedCapacity={"m": "2"}))
    return Case(slices, claims, allocated, rng.choice(QUIRKS))


Prepared = tuple[SearchContext, list[PreparedClaim], Callable[[], CounterLedger]]


def prepare(case: Case, steps: int) -> Prepared:
    """What a search needs, fresh. Raises AllocationError where no search would begin."""
    fresh = case.cycle()
    pools = pools_of_node(fresh.index, NODE, fresh.features, fresh.defects)
    context = SearchContext(
        NODE,
        fresh.features,
        fresh.defects,
        fresh.selectors,
        fresh.state,
        candidates(pools, fresh.features),
        Budget(steps),
    )
    prepared = fresh._prepare(case.claims, context, pools)
    return context, prepared, lambda: CounterLedger(fresh.available, fresh.state, fresh.defects)


Answer = str | list[list[tuple[str, str]]] | None


def answer(run: Callable[[], tuple[bool, Sequence[Any]]]) -> Answer:
    """The chosen devices per claim as (request, device), None for none, the text of an error."""
    try:
        found, results = run()
    except AllocationError as error:
        where = error.detail.device
        return f"{error.message} ({where.name if where is not None else error.subject})"
    if not found:
        return None
    return [[(entry.alternative.result_name, str(entry.candidate.id)) for entry in placed] for placed in results]


def plain_answer(case: Case) -> Answer:
    context, prepared, ledger = prepare(case, 30_000)
    search = Search(context, case.claims, prepared, ledger())
    return answer(lambda: (search.run(), search.results))


def check(case: Case) -> None:
    try:
        context, prepared, ledger = prepare(case, 1_000_000)
        expected = plain_answer(case)
    except (AllocationError, SearchBudgetExceeded):
        return
    problem = Problem(context, case.claims, prepared, ledger())

    def merged(*, in_order: bool = False, skip_equal: bool = False) -> Answer:
        search = MergedSearch(problem, ledger(), in_order=in_order, skip_equal=skip_equal)
        return answer(lambda: (search.run(), search.results))

    if problem.traceable:
        assert merged(in_order=True) == expected
    if problem.restores:
        assert merged() == expected
        assert merged(skip_equal=True) == expected
    if impossible(problem):
        assert expected is None
    if not problem.fails and lacks_values(problem):
        assert expected is None
    if problem.shares_table:
        # Which table counts is decided by the first device charged, here perhaps by an earlier search.
        context, prepared, ledger = prepare(case, 1_000_000)

    def solved() -> tuple[bool, Sequence[Any]]:
        solution = solve(context, case.claims, prepared, ledger, plain_steps=1)
        return solution.found, solution.results

    try:
        assert answer(solved) == expected
    except SearchBudgetExceeded:
        assert not problem.traceable


# Devices that a matchAttribute refuses make a distinctAttribute forget.
@example(1_002_678)
@settings(max_examples=300)
@given(st.integers(0, 2**40))
def test_pruned_searches_agree_with_the_plain_one(seed: int) -> None:
    check(random_case(random.Random(seed)))


def test_recorded_allocations_by_pruned_searches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What Kubernetes recorded, with the plain search cut off at its first device."""
    monkeypatch.setattr(attempt, "solve", partial(solve, plain_steps=1))
    recorded = Path(__file__).parent.parent / "conformance" / "data" / "alloc.jsonl.gz"
    problems = [
        f"{case['id']}: {problem}"
        for case in islice(lines(recorded), 0, None, 8)
        for entry, expected in zip(alloc.attempts(case), case["expect"]["nodes"], strict=True)
        if (problem := alloc.disagreement(entry, expected))
    ]
    assert problems == []


def groups(count: int, size: int) -> list[JSON]:
    """Devices whose attribute ``a`` has one value for each ``size`` of them."""
    return [device(f"d{index}", a=f"g{index // size}") for index in range(count)]


MATCH = {"matchAttribute": "d/a"}
NOWHERE = 'device.attributes["d"].a == "nowhere"'
PARTITIONS = [
    device(f"gpu{gpu}-{index}", a=str(size), consumes={f"gpu{gpu}.slices": size})
    for gpu in range(8)
    for index, size in enumerate((1, 1, 1, 1, 2, 2, 3, 3))
]
HARD: dict[str, tuple[list[JSON], list[ResourceClaim]]] = {
    "too few with one value": (groups(120, 15), [claim(request(count=16), constraints=[MATCH])]),
    "nothing for the second request": (groups(64, 32), [claim(request(count=16), request("s", selector=NOWHERE))]),
    "one value too few": (
        groups(60, 4),
        [claim(*[request(f"r{n}") for n in range(16)], constraints=[{"distinctAttribute": "d/a"}])],
    ),
    "a partition too many": (
        PARTITIONS,
        [claim(*[request(f"r{n}", selector=f'device.attributes["d"].a == "{n}"', count=9) for n in (2, 3)])],
    ),
    "a share too many": (
        [device(f"d{index}", m=10, multi=True) for index in range(10)],
        [claim(*[request(f"r{n}", m=3) for n in range(31)])],
    ),
    "a group too few": (groups(60, 5), [claim(request(count=4), constraints=[MATCH], name=f"c{n}") for n in range(13)]),
    "a device too few": (groups(35, 35), [claim(request(count=6), name=f"c{n}") for n in range(6)]),
}


@pytest.mark.parametrize("defects", [KnownDefects(), KnownDefects.none()], ids=["defects", "correct"])
@pytest.mark.parametrize("name", HARD)
def test_searches_that_keep_the_scheduler_busy_are_answered(name: str, defects: KnownDefects) -> None:
    devices, claims = HARD[name]
    slices = [slice_of(*devices)]
    if devices is PARTITIONS:
        counters = {f"gpu{gpu}.slices": 5 for gpu in range(8)}
        slices = [slice_of(*devices, count=2, name="1"), slice_of(counters=counters, count=2, name="0")]
    outcome = cycle(slices, defects=defects).attempt(NODE, claims)
    assert outcome.verdict is AttemptVerdict.REJECTED
    assert outcome.would_time_out
    assert outcome.steps < 500_000


def test_the_first_solution_is_kept_behind_a_long_search() -> None:
    """All of x are tried in every combination before the last claim can get what it needs."""
    devices = [device(f"d{index:02}", a="odd" if index % 2 else "even") for index in range(40)]
    odd = 'device.attributes["d"].a == "odd"'
    outcome = cycle([slice_of(*devices)]).attempt(
        NODE, [claim(request("x", count=12), request("y", count=18, selector=odd))]
    )
    names = [entry.candidate.id.device for entry in outcome.placements[0]]
    assert names[:12] == ["d00", "d01", "d02", "d03", *[f"d{index:02}" for index in range(4, 20, 2)]]
    assert names[12:] == [f"d{index:02}" for index in range(5, 40, 2)]
    assert outcome.would_time_out


def test_a_search_that_the_scheduler_ends_in_time() -> None:
    outcome = cycle([slice_of(*groups(60, 10))]).attempt(NODE, [claim(request(count=11), constraints=[MATCH])])
    assert outcome.verdict is AttemptVerdict.REJECTED
    assert outcome.steps >= 20_000
    assert not outcome.would_time_out


DISTINCT = {"distinctAttribute": "d/a"}


@pytest.mark.parametrize(
    ("values", "counts", "lacks"),
    [
        (2, (1, 2), True),  # The second device of s needs a third value before a search can forget one.
        (3, (1, 2), False),
        (2, (1, 1), False),
        (2, (1, 1, 1), True),
        (2, (2, 1), False),  # The first request may have forgotten, and then leaves one value.
        (1, (2,), True),
        (2, (5,), False),
    ],
)
@pytest.mark.parametrize("defects", [KnownDefects(), KnownDefects.none()], ids=["defects", "correct"])
def test_a_distinct_attribute_with_too_few_values(
    values: int, counts: tuple[int, ...], lacks: bool, defects: KnownDefects
) -> None:
    requests = [request(f"r{number}", count=count) for number, count in enumerate(counts)]
    case = Case([slice_of(*groups(8 * values, 8))], [claim(*requests, constraints=[DISTINCT])], [], defects)
    context, prepared, ledger = prepare(case, 1_000_000)
    assert lacks_values(Problem(context, case.claims, prepared, ledger())) is lacks
    if lacks:
        assert plain_answer(case) is None


def test_a_long_search_without_merging_is_not_said_to_be_late() -> None:
    """Mode All over a shared device allows no merging, so what the plain search takes is what it takes."""
    shared = device("shared", a="all", m=10, multi=True)
    everything = request("all", all=True, selector='device.attributes["d"].a == "all"')
    slices = [slice_of(*groups(60, 10), shared)]
    claims = [claim(everything, name="first"), claim(request(count=11), constraints=[MATCH])]
    context, prepared, ledger = prepare(Case(slices, claims, [], KnownDefects()), 1_000_000)
    assert not Problem(context, claims, prepared, ledger()).traceable
    outcome = cycle(slices).attempt(NODE, claims)
    assert outcome.verdict is AttemptVerdict.REJECTED
    assert 40_000 < outcome.steps < 1_000_000
    assert not outcome.would_time_out


@pytest.mark.parametrize("size", [9, 10, 11])
def test_the_length_of_the_plain_search_is_estimated_well(size: int) -> None:
    case = Case(
        [slice_of(*groups(3 * size, size))], [claim(request(count=size + 1), constraints=[MATCH])], [], KnownDefects()
    )
    context, prepared, ledger = prepare(case, 1_000_000)
    plain = Search(context, case.claims, prepared, ledger())
    assert not plain.run()
    context, prepared, ledger = prepare(case, 1_000_000)
    merged = MergedSearch(Problem(context, case.claims, prepared, ledger()), ledger())
    assert not merged.run()
    assert merged.tally == plain.tally
    assert context.budget.steps * 5 < plain.tally


def test_many_claims_do_not_exhaust_the_stack() -> None:
    claims = [claim(request(count=32), name=f"c{index}") for index in range(20)]
    outcome = cycle([slice_of(*groups(640, 640))]).attempt(NODE, claims)
    assert outcome.verdict is AttemptVerdict.ALLOCATED
