"""Whether the claims fit depends on the order in which the scheduler happens to try pools."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.trial import Trial

ORDER = CauseKind(code="pool-order-decides", family=Family.DEVICES)


def _unsure(trial: Trial) -> Iterator[Finding]:
    first = next((attempt for attempt in trial.attempts.values() if attempt.order_decides), None)
    if first is None or first.pools is None:
        return
    node = Subject("node", ObjectName("Node", first.node))
    pools = ", ".join(str(pool.id) for pool in first.pools.pools)
    summary = say("on {node} the order in which the scheduler tries pools decides, and it is random", node=node)
    yield Finding(ORDER, summary, (Evidence(node, "pools", pools),), Remedy(ORDER.fix))


FINDERS = (Finder(When.OPEN, _unsure), Finder(When.FAILS_TOO, _unsure, 10))
