"""``explain -f`` beside pods that wait already: what they may take is no yes, as for ``fit``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fit.test_agrees import supposing
from tests.fit.worlds import JSON, bare, deployment, node, running, said, template, waiting

UNDETERMINED = 3


COMES_FIRST = "it fits now, but default/train wants the same devices and comes first (by time): nothing is left"


@pytest.mark.parametrize("made", [bare("mine"), deployment(1)], ids=["pod", "deployment"])
def test_a_single_pod_comes_after_who_waits(tmp_path: Path, made: JSON) -> None:
    cluster = [*node("n", 1), *waiting("train")]
    code, text = supposing(tmp_path, cluster, [template(), made])
    assert code == UNDETERMINED == said(tmp_path, cluster, [template(), made])[0], text
    assert COMES_FIRST in text and "can be scheduled" not in text


def test_who_waits_and_leaves_enough_changes_nothing(tmp_path: Path) -> None:
    code, text = supposing(tmp_path, [*node("n", 2), *waiting("train")], [template(), bare("mine")])
    assert code == 0 and "Pod default/mine can be scheduled" in text and "enough is left" in text, text
    code, text = supposing(tmp_path, [*node("n", 2), *waiting("train", 3)], [template(), bare("mine")])
    assert code == 0 and "Pod default/mine can be scheduled" in text, text


def test_a_more_important_pod_comes_first(tmp_path: Path) -> None:
    important = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}}
    cluster = [*node("n", 1), *waiting("train"), {**important, "value": 1000}]
    code, text = supposing(tmp_path, cluster, [template(), bare("mine", priorityClassName="high")])
    assert code == 0 and "Pod default/mine can be scheduled" in text, text


@pytest.mark.parametrize(("gpus", "fewest"), [(3, 2), (1, 0)])
def test_a_workload_is_counted_after_who_waits(tmp_path: Path, gpus: int, fewest: int) -> None:
    cluster, manifest = [*node("n", gpus), *waiting("train")], [template(), deployment(gpus, cpu="0")]
    if gpus == 1:
        manifest.append(bare("alone", gpus=0))
    code, text = supposing(tmp_path, cluster, manifest)
    assert code == UNDETERMINED == said(tmp_path, cluster, manifest)[0], text
    assert f"undetermined: {fewest} to {gpus} of {gpus} pod" in text, text
    assert "whether pod default/train, which waits already, is placed first" in text
    assert ("A pod of Deployment default/web can be scheduled" in text) is bool(fewest)


def test_two_pods_of_which_one_that_waits_takes_a_device(tmp_path: Path) -> None:
    cluster, manifest = [*node("n", 2), *waiting("train")], [template(), bare("a"), bare("b")]
    code, text = supposing(tmp_path, cluster, manifest)
    assert code == UNDETERMINED == said(tmp_path, cluster, manifest)[0], text


@pytest.mark.parametrize("replicas", [1, 3])
def test_what_ends_may_serve_who_waits(tmp_path: Path, replicas: int) -> None:
    cluster = [*node("n", replicas), *running("eval", "n", range(replicas)), *waiting("train")]
    code, text = supposing(tmp_path, cluster, [template(), deployment(replicas)], "--what-if", "end=eval")
    assert code == UNDETERMINED, text
    if replicas == 1:
        assert "it would fit with this change, but default/train wants the same devices" in text
    else:
        assert "2 to 3 of 3 pods have room" in text


def test_all_pods_that_are_supposed_to_end_are_deleted_at_once(tmp_path: Path) -> None:
    cluster = [*node("n", 2), *running("eval", "n", [0]), *running("probe", "n", [1])]
    manifest = [template(), deployment(2)]
    code, text = supposing(tmp_path, cluster, manifest, "--what-if", "end=eval", "--what-if", "end=probe")
    assert code == 0 and text.endswith("kubectl delete pod/eval pod/probe -n default"), text
    code, text = supposing(tmp_path, cluster, manifest, "--what-if", "end=eval,probe")
    assert code == 0 and text.endswith("kubectl delete pod/eval pod/probe -n default"), text


@pytest.mark.parametrize(("change", "said"), [({"namespace": "ml"}, ""), ({"owner": True}, "statefulset")])
def test_what_one_command_does_not_end_is_not_ended_in_part(tmp_path: Path, change: JSON, said: str) -> None:
    probe = running("probe", "n", [1], {"kind": "StatefulSet", "name": "probe", "apiVersion": "apps/v1"})
    if "namespace" in change:
        probe = running("probe", "n", [1])
        for each in probe:
            each["metadata"].update(change)
    cluster = [*node("n", 2), *running("eval", "n", [0]), *probe]
    space = change.get("namespace", "default")
    ends = ("--what-if", "end=eval", "--what-if", f"end={space}/probe")
    _, text = supposing(tmp_path, cluster, [template(), deployment(2)], *ends)
    assert "kubectl delete" not in text and (said in text), text
