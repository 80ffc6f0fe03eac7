"""Pods that stand for those of a workload are told from pods of somebody's own."""

from __future__ import annotations

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import StandIn, stand_in


def test_a_stand_in_is_known_by_what_it_was_given() -> None:
    template = StandIn("DaemonSet ml/agent", "spec.template.spec")
    pod = Pod(ObjectMeta(name="agent", annotations={"team": "a", **template.annotations}))
    assert stand_in(pod) == template and template.kind == "DaemonSet"
    assert StandIn.of(StandIn("Job ml/sweep").annotations) == StandIn("Job ml/sweep")


def test_other_pods_stand_for_none() -> None:
    assert stand_in(None) is None
    assert stand_in(Pod(ObjectMeta(name="agent", annotations={"kubectl-dra/made-by": ""}))) is None


def test_a_kind_that_begins_like_another_is_another() -> None:
    assert StandIn("DaemonSetGroup ml/agent").kind == "DaemonSetGroup"
