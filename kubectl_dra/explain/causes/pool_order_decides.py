"""Whether the claims fit depends on the order in which the scheduler happens to try pools."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.trial import Trial

ORDER = CauseKind(
    code="pool-order-decides",
    title="The order in which pools are tried decides",
    why="Up to Kubernetes 1.35 the scheduler walks through the pools of a node in random order. In one order it finds "
    "devices, in another it does not, because of a defect or of an invalid pool that it meets first.",
    fix="Wait for the next attempt, mend invalid pools, or upgrade to Kubernetes 1.36.",
    seen_as="cannot allocate all claims, or SchedulerError: pool … is invalid",
    normal="Never. It goes away with Kubernetes 1.36, which sorts pools by driver and name.",
    confirm=(
        confirm.Check("The scheduler's message changes from one attempt to the next.", confirm.SCHEDULER_SAYS),
        confirm.Check("The node has several pools.", confirm.SLICES),
    ),
    family=Family.DEVICES,
)


def _unsure(trial: Trial) -> Iterator[Finding]:
    first = next((attempt for attempt in trial.attempts.values() if attempt.order_decides), None)
    if first is None or first.pools is None:
        return
    node = Subject("node", ObjectName("Node", first.node))
    pools = ", ".join(str(pool.id) for pool in first.pools.pools)
    summary = say("on {node} the order in which the scheduler tries pools decides, and it is random", node=node)
    yield Finding(ORDER, summary, (Evidence(node, "pools", pools),), Remedy(ORDER.fix))


FINDERS = (Finder(When.OPEN, _unsure), Finder(When.FAILS_TOO, _unsure, 10))
