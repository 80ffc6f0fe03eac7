"""No node may run the pod, whatever its devices."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.filters_refuse import kind_of_all, kind_on, remedy_on
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Family, Finding, Look, NextStep, Remedy
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.remedies import way_in
from kubectl_dra.explain.trial import Trial

MAX_REASONS = 4

NO_NODE = CauseKind(code="no-eligible-node", family=Family.DEVICES, look=Look.NODES)


def _no_node(trial: Trial) -> Iterator[Finding]:
    if trial.view.nodes:
        return
    from kubectl_dra.explain.refused_nodes import by_reason, counted, evidence

    groups = by_reason(trial.view.ineligible)
    if not groups:
        yield Finding(NO_NODE, say("none of the 0 nodes may run the pod: no Nodes exist"))
        return
    count = len(trial.view.ineligible)
    summary = say("none of the {count:,} nodes may run the pod: {reasons}", count=count, reasons=counted(groups))
    if kind := kind_of_all(trial):
        # It says more than that no node is left, and what helps.
        yield Finding(kind, summary, evidence(groups), remedy_on(trial.scene.filters, groups[0].nodes))
        return
    first, nodes = groups[0]
    reasons = [(group.reason, group.nodes) for group in groups[:MAX_REASONS]]
    kind_there = kind_on(trial.scene.filters, nodes[0])
    remedy = way_in.best(reasons, trial.world) or Remedy((kind_there or NO_NODE).fix)
    look = NextStep(kind_there.look, namespace=trial.question.namespace) if kind_there else way_in.look_at(first, nodes)
    yield Finding(NO_NODE, summary, evidence(groups), remedy, next=look)


FINDERS = (Finder(When.FAILS, _no_node, 30),)
