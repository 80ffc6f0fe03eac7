"""The devices are in a pool that the scheduler does not use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.scene.clock import UnderWay, under_way
from kubectl_dra.explain.trial import Trial

INCOMPLETE = CauseKind(
    code="pool-incomplete",
    title="A pool is incomplete",
    why=(
        "A pool is used only if as many slices of its newest generation exist as each of them announces. This is "
        "normal briefly during an update; if it persists, the driver died midway or left stale slices."
    ),
    fix="Wait; if it stays, restart the driver on that node, and delete left-over slices of a dead driver.",
    seen_as="cannot allocate all claims; with allocationMode All: … is currently being updated",
    normal="For seconds, while a driver publishes its pool anew.",
    confirm=(confirm.COUNTED_SLICES,),
    family=Family.POOLS,
    look=Look.SLICES,
)
OBSOLETE = CauseKind(
    code="pool-obsolete-for-node",
    title="A pool's newest generation does not cover the node",
    why="A newer generation exists only for other nodes, so this node's older slices are ignored.",
    fix="Wait for the driver to publish again; restart it if it does not.",
    seen_as="cannot allocate all claims",
    normal="For seconds, while a driver publishes its pool anew.",
    confirm=(confirm.Check("The slices of the node have a lower GENERATION than others of the pool.", confirm.SLICES),),
    family=Family.POOLS,
    look=Look.SLICES,
)
INVALID = CauseKind(
    code="pool-invalid",
    title="A pool is invalid",
    why="A pool with a duplicate device name, a duplicate counter set, or a device that consumes an unknown "
    "counter offers no devices. The scheduler of 1.34 gives up on the pod when it comes to such a pool.",
    fix="Report it to the driver's maintainers; restarting the driver may help.",
    seen_as="invalid resource pools were encountered; 1.34: SchedulerError: pool … is invalid",
    normal="Never: the driver publishes contradictory data.",
    confirm=(
        confirm.Check("`invalid resource pools were encountered`.", confirm.SCHEDULER_SAYS),
        confirm.Check(
            "A device name twice in one pool, or a counter set that no slice of the pool has.", confirm.SLICES_OF_DRIVER
        ),
    ),
    family=Family.POOLS,
    look=Look.SLICES,
)


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
