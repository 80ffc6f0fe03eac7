"""The fewest changes with which claims fit: one, else two, else three together, each proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from kubectl_dra.explain.diagnosis import Cause, Way
from kubectl_dra.explain.remedies.candidates import Change, selector_text
from kubectl_dra.explain.remedies.prove import Tries, WhatIf

MAX_WAYS = 4
MAX_HOLDERS = 2
MAX_TOGETHER = 3
TRIES_ALONE = 400
TRIES_TOGETHER = 1200


def ways(whatif: WhatIf, changes: Sequence[Change], causes: Sequence[Cause]) -> list[Way]:
    """The smallest sets of changes that help, but those that the causes offer already, the cheapest first.

    Larger sets are looked for only where no smaller one helps, and only as far as a number of tries goes.
    """
    tries = Tries(TRIES_ALONE)
    alone = [change for change in changes if whatif.prove([change.remedy], tries) is not None]
    if alone:
        return list(_distinct(whatif, [(change,) for change in alone], causes))
    tries = Tries(TRIES_TOGETHER)
    for size in range(2, MAX_TOGETHER + 1):
        found: list[tuple[Change, ...]] = []
        for group in _groups(changes, size):
            if not tries.left or len(found) == MAX_WAYS:
                break
            if whatif.prove([change.remedy for change in group], tries) is not None:
                found.append(group)
        if found:
            return list(_distinct(whatif, found, causes))
    return []


def _groups(changes: Sequence[Change], size: int) -> Iterator[tuple[Change, ...]]:
    """Groups of changes about different things, the cheapest first."""
    groups = (group for group in combinations(changes, size) if len({change.key for change in group}) == size)
    return iter(sorted(groups, key=lambda group: sum(change.weight for change in group)))


def _distinct(whatif: WhatIf, groups: Sequence[tuple[Change, ...]], causes: Sequence[Cause]) -> Iterator[Way]:
    """The best change of each key, without those that a cause's proved fix says."""
    fixes = [cause.fix for cause in causes if cause.proved]
    keys: set[tuple[str, ...]] = set()
    shown = holders = 0
    for group in groups:
        key = tuple(change.key for change in group)
        if key in keys or shown == MAX_WAYS:
            continue
        keys.add(key)
        if len(group) == 1 and any(group[0].said in fix for fix in fixes):
            continue
        holders += any(change.key.startswith("free ") for change in group)
        if holders > MAX_HOLDERS and any(change.key.startswith("free ") for change in group):
            continue
        proof = whatif.prove([change.remedy for change in group], Tries(TRIES_ALONE))
        if proof is None:
            continue
        shown += 1
        texts = tuple(change.text for change in group)
        yield Way(texts, f"then it fits on {proof.node}", _as_what_if(whatif, group))


def _as_what_if(whatif: WhatIf, group: Sequence[Change]) -> tuple[str, ...]:
    """The changes as values of --what-if; changes of one request's selectors are one. Empty where one is none."""
    if not all(change.what_if for change in group):
        return ()
    world = whatif
    for change in group:
        world = change.remedy(world)
    out: dict[str, None] = {}
    for change in group:
        text = change.what_if
        if change.selectors_of is not None:
            text = text.partition("selector=")[0] + selector_text(world.request(*change.selectors_of))
        out[text] = None
    return tuple(out)
