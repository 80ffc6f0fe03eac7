"""Nodes that have no pod of a DaemonSet: why its pod for a node does not fit, and why it makes none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import ValidationError
from msgspec.structs import replace

from kubectl_dra.api.plugins import DaemonSet
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.daemons import left_out, node_of
from kubectl_dra.drivers.health import LeftOut
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.place import Unplaced
from kubectl_dra.fit.plan import FitPlan
from kubectl_dra.fit.result import NodeWithout
from kubectl_dra.fit.workload import WorkloadPods

_LOOKED_AT: Final = 10
"""Each node costs as much as an explanation."""
_REASONS: Final = 3


def nodes_without(plan: FitPlan, refused: Sequence[Unplaced], settings: Settings) -> Iterator[NodeWithout]:
    """The nodes for which a DaemonSet makes a pod that does not fit; none of others."""
    quick = replace(settings, with_ways=False)
    old = {pod.node_name for pod in plan.rollout.old} if plan.rollout is not None else set[str]()
    for number, unplaced in enumerate(refused if plan.workload.nodes else ()):
        node, state = node_of(unplaced.new.pod), unplaced.state
        if node in old:
            # Its old pod runs on, or was there until now: the rollout stops.
            continue
        if number >= _LOOKED_AT:
            yield NodeWithout(node)
            continue
        question = plan.factories[unplaced.new.role].question_about(unplaced.new, state.snapshot, quick)
        findings = diagnose(question, state.snapshot, quick).findings
        yield NodeWithout(node, findings[0].kind.code if findings else "")


def why_none(workload: WorkloadPods, snapshot: Snapshot) -> Words:
    """Why a DaemonSet makes no pod on any node; empty where that is not known."""
    try:
        daemon = DaemonSet.from_json(workload.raw)
    except ValidationError:
        return ""
    left = [left_out(daemon, node) for node in snapshot.nodes.values()]
    reasons = Counter(map(_why, filter(None, left)))
    said = [
        say("{count:node} {count:" + verbs + "} {what}", count=count, what=what)
        for (verbs, what), count in reasons.most_common(_REASONS)
    ]
    return Joined(tuple(said))


def _why(left: LeftOut) -> tuple[str, str]:
    """A verb for one node and for several, and what they lack or have."""
    if left.labels:
        return "lacks|lack", f"the label {left.labels[0]} that its nodeSelector names"
    if left.taint:
        return "has|have", f"the taint {left.taint}, which it does not tolerate"
    return "does|do", "not match its node affinity"
