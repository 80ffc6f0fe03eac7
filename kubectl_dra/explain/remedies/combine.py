"""The fewest changes with which claims fit: one, else two, else three together, each proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from kubectl_dra.allocation.budgets import TRIES_ALONE, TRIES_TOGETHER
from kubectl_dra.explain.diagnosis import Finding, Way
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.remedies.change import ReplaceTerm, selector_of
from kubectl_dra.explain.remedies.free import Free
from kubectl_dra.explain.remedies.proof import Proof
from kubectl_dra.explain.remedies.prove import Change, Tries, World
from kubectl_dra.explain.remedies.step import ChangeStep

MAX_WAYS = 4
MAX_HOLDERS = 2
MAX_TOGETHER = 3


def ways(world: World, changes: Sequence[Change], findings: Sequence[Finding]) -> list[Way]:
    """The smallest sets of changes that help, except those that the findings already offer, the cheapest
    first.

    Larger sets are tried only if no smaller one helps, and only within a number of tries.
    """
    tries = Tries(TRIES_ALONE)
    proofs: dict[tuple[Change, ...], Proof] = {
        (change,): proof for change in changes if (proof := world.quick_proof([change], tries)) is not None
    }
    if proofs:
        return list(_distinct(world, proofs, findings))
    tries = Tries(TRIES_TOGETHER)
    for size in range(2, MAX_TOGETHER + 1):
        found: dict[tuple[Change, ...], Proof] = {}
        for group in _groups(changes, size):
            if not tries.left or world.cycle.exhausted or len(found) == MAX_WAYS:
                break
            if (proof := world.quick_proof(group, tries)) is not None:
                found[group] = proof
        if found:
            return list(_distinct(world, found, findings))
    return []


def _groups(changes: Sequence[Change], size: int) -> Iterator[tuple[Change, ...]]:
    """Groups of changes about different things, the cheapest first."""
    groups = (group for group in combinations(changes, size) if len({change.about for change in group}) == size)
    return iter(sorted(groups, key=lambda group: sum(change.cost for change in group)))


def _distinct(world: World, proofs: Mapping[tuple[Change, ...], Proof], findings: Sequence[Finding]) -> Iterator[Way]:
    """The best change of each kind, without those that a finding offers and proves."""
    offered = [change for found in findings if found.remedy and found.proof for change in found.remedy.offers]
    seen: set[tuple[object, ...]] = set()
    shown = holders = 0
    for group, proof in proofs.items():
        about = tuple(change.about for change in group)
        if about in seen or shown == MAX_WAYS:
            continue
        seen.add(about)
        if len(group) == 1 and group[0] in offered:
            continue
        frees = any(isinstance(change, Free) for change in group)
        holders += frees
        if frees and holders > MAX_HOLDERS:
            continue
        if not world.with_all(group).ends_without_error(proof):
            continue
        shown += 1
        yield Way(group, proof, as_what_if(world, group), as_steps(world, group))


def as_steps(world: World, group: Sequence[Change]) -> tuple[ChangeStep, ...]:
    """The changes as data, each with what is there before any of them."""
    return tuple(change.step(world) for change in group)


def as_what_if(world: World, group: Sequence[Change]) -> tuple[Supposition, ...]:
    """The changes as values of --what-if, where those of one request's selectors form one value. Empty if one
    cannot be written.
    """
    for change in group:
        world = change.made_in(world)
    out: dict[Supposition, None] = {}
    for change in group:
        supposed = change.what_if
        if supposed is None:
            return ()
        if isinstance(change, ReplaceTerm):
            supposed = supposed._replace(value=selector_of(world.request(change.place)))
        out[supposed] = None
    return tuple(out)
