"""A request for all devices meets an unusable pool, or a slice is invalid: the attempt ends on all nodes."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.request_refused import plain
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.trial import Trial

ALL_BLOCKED = CauseKind(
    code="all-blocked-by-pool",
    title="A request for all devices meets an unusable pool",
    why=(
        "Mode All fails for the whole pod if any pool that the node sees is incomplete or invalid, even a pool of "
        "another driver that the request could never match."
    ),
    fix="Repair that pool's driver, or ask for a count instead of All.",
    seen_as="SchedulerError: asks for all devices, but resource pool … is currently …",
    normal=(
        "For seconds, while a driver publishes its pool anew, for instance after a restart. Longer than a minute is "
        "not normal."
    ),
    confirm=(confirm.ERROR, confirm.COUNTED_SLICES),
    family=Family.POOLS,
    look=Look.SLICES,
)
BAD_NODE_SELECTOR = CauseKind(
    code="slice-node-selector-invalid",
    title="A ResourceSlice has a node selector that cannot be parsed",
    why="The scheduler gives up on the pod when it meets such a slice.",
    fix="Report it to the driver's maintainers; delete the slice.",
    seen_as="SchedulerError: gather pool information: failed to perform node selection for slice …",
    normal="Never: the driver publishes an invalid selector.",
    confirm=(
        confirm.ERROR,
        confirm.Check(
            "The selector of the slice that the message names, or of a device in it, has an "
            "operator or a value that nodes cannot be compared with.",
            "kubectl get resourceslice SLICE -o jsonpath='{.spec.nodeSelector}{.spec.devices[*].nodeSelector}'",
        ),
    ),
    family=Family.POOLS,
    look=Look.SLICES,
)


def _pool(_: Trial, error: AllocationError, node: str) -> Iterator[Finding]:
    pool = error.detail.get("pool")
    if not isinstance(pool, Pool):
        return
    problem = say("invalid ({problem})", problem=pool.invalid)
    if pool.incomplete:
        text = "incomplete (generation {generation} has {found} of {expected} slices)"
        problem = say(text, generation=pool.generation, found=pool.found, expected=pool.expected)
    request = str(error.detail.get("request") or "")
    text = 'request "{request}" asks for all devices, and pool {pool} on node {node} is {problem}'
    yield Finding(
        ALL_BLOCKED,
        say(text, request=request, pool=pool.id, node=node, problem=problem),
        (
            Evidence(pool.id, "scheduler", error.message),
            Evidence(Subject("pool", pool.id), "slices", problem),
        ),
        request=request,
    )


def _node_selector(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    yield plain(BAD_NODE_SELECTOR, error)


FINDERS = (
    Finder(When.ERROR, _pool, of="all-pool"),
    Finder(When.ERROR, _node_selector, of="slice-node-selector"),
    Finder(When.ERROR, _node_selector, of="device-node-selector"),
    Finder(When.ERROR, _node_selector, of="node-selector-terms"),
)
