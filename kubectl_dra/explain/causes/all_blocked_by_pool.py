"""A request for all devices meets an unusable pool, or a slice is invalid: the attempt ends on all nodes."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.request_refused import plain
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.trial import Trial

ALL_BLOCKED = CauseKind(code="all-blocked-by-pool", family=Family.POOLS, look=Look.SLICES)
BAD_NODE_SELECTOR = CauseKind(code="slice-node-selector-invalid", family=Family.POOLS, look=Look.SLICES)


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
