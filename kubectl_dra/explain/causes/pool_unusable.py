"""The devices are in a pool that the scheduler does not use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.scene.clock import UnderWay, under_way
from kubectl_dra.explain.trial import Trial

INCOMPLETE = CauseKind(code="pool-incomplete", family=Family.POOLS, look=Look.SLICES)
OBSOLETE = CauseKind(code="pool-obsolete-for-node", family=Family.POOLS, look=Look.SLICES)
INVALID = CauseKind(code="pool-invalid", family=Family.POOLS, look=Look.SLICES)


def _pool(blocked: Blocked) -> Iterator[Finding]:
    seen = sorted({item.slice.pool for item in blocked.lost})
    known = [found for pool_id in seen if (found := blocked.view.pool_seen.get(pool_id))]
    text = "{found} exist, spec.pool.resourceSliceCount says {expected}"
    evidence = [
        Evidence(
            Subject("pool", entry.id),
            say("slices of generation {generation}", generation=entry.generation),
            say(text, found=entry.found, expected=entry.expected),
        )
        for entry in known
        if entry.incomplete
    ]
    evidence += [Evidence(Subject("pool", entry.id), "problem", entry.invalid) for entry in known if entry.invalid]
    evidence.extend(line for entry in known if (line := _disagreement(entry)))
    kind = INVALID if known else OBSOLETE
    if any(entry.incomplete for entry in known):
        kind = INCOMPLETE
    only = known[0] if len(known) == 1 else None
    waiting = _being_published(blocked, known) if kind is INCOMPLETE else None
    if kind is INCOMPLETE and only is not None and only.found < only.expected:
        text = (
            "the driver has published only {found} of {expected} ResourceSlices of pool {pool}; until it is done "
            "the scheduler ignores the pool ({lost:device})"
        )
        summary = say(text, found=only.found, expected=only.expected, pool=only.id.name, lost=len(blocked.lost))
        yield Finding(kind, summary, tuple(evidence[:MAX_EVIDENCE]), _wait(waiting), under_way=waiting)
        return
    yield Finding(
        kind,
        say(
            "{lost:device} on {nodes:some else no node} cannot be used for {where}: {reason}",
            lost=len(blocked.lost),
            nodes=blocked.nodes,
            where=blocked.where,
            reason=blocked.reason,
        ),
        tuple(evidence[:MAX_EVIDENCE]),
        _wait(waiting),
        under_way=waiting,
    )


def _wait(waiting: UnderWay | None) -> Remedy | None:
    """What to do while a driver publishes."""
    if waiting is None:
        return None
    text = "Wait: {by} has had {seconds:second} to publish the rest."
    return Remedy(say(text, by=waiting.by, seconds=waiting.seconds))


def _being_published(blocked: Blocked, pools: Sequence[Pool]) -> UnderWay | None:
    """Whether a driver has just begun to publish each of the pools anew."""
    made = (max(entry.creation_timestamp for entry in (*pool.slices, *pool.other_slices)) for pool in pools)
    found = [under_way(pool.id.driver, at, blocked.scene.snapshot) for pool, at in zip(pools, made, strict=True)]
    longest = max((one for one in found if one is not None), key=lambda one: one.seconds, default=None)
    return None if None in found else longest


def _disagreement(pool: Pool) -> Evidence | None:
    """The numbers of slices that a pool's slices announce, if they differ."""
    counts = {entry.name: entry.slice_count for entry in (*pool.slices, *pool.other_slices)}
    if len(set(counts.values())) < 2:
        return None
    said = [
        say("{name}: {count}", name=ObjectName("ResourceSlice", name), count=count)
        for name, count in sorted(counts.items())
    ]
    field = "slices disagree on spec.pool.resourceSliceCount"
    return Evidence(Subject("pool", pool.id), field, say("{said}", said=said))


def _ends_attempt(_: Trial, error: AllocationError, node: str) -> Iterator[Finding]:
    pool = error.detail.get("pool")
    if not isinstance(pool, Pool):
        return
    text = "pool {pool} on node {node} is invalid ({problem}): the scheduler of this release gives up on the pod"
    yield Finding(
        INVALID,
        say(text, pool=pool.id, node=node, problem=pool.invalid),
        (
            Evidence(pool.id, "scheduler", error.message),
            Evidence(Subject("pool", pool.id), "problem", pool.invalid),
        ),
    )


FINDERS = (Finder(When.STAGE, _pool, of="pool"), Finder(When.ERROR, _ends_attempt, of="pool-invalid"))
