"""What the scheduler leaves to chance: said where it may change how many pods fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.allocation.attempt import Cycle
from tests.fit.worlds import (
    HOST,
    deployment,
    fitted,
    item,
    node,
    pod_spec,
    running,
    said,
    template,
    waiting,
    wanting,
)

JSON = dict[str, Any]
SERVICE: JSON = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "kubernetes", "namespace": "default"}}
"""Without any nobody knows whether Services were read, by which pods are spread."""


def small_then_large() -> list[JSON]:
    """A pod that wants one device, and one that wants two."""
    roles = {"small": pod_spec(1), "large": pod_spec(2)}
    entries = [{"name": name, "template": {"spec": {"template": {"spec": spec}}}} for name, spec in roles.items()]
    made: JSON = {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2", "spec": {"replicatedJobs": entries}}
    return [template(1), template(2), {**made, "metadata": {"name": "w", "namespace": "default"}}]


def test_a_tie_that_decides(tmp_path: Path) -> None:
    """Both fit unless the small pod comes first and takes the large one's node."""
    found = item(tmp_path, [*node("a", 2), *node("b", 1)], small_then_large())
    assert (found["podCounts"]["fewest"], found["podCounts"]["most"]) == (1, 2)
    assert found["dependsOnChance"]
    assert "undetermined: 1 to 2 of 2 pods have room" in found["answer"]


@pytest.mark.parametrize("first", ["small", "large"])
def test_the_order_of_roles_is_open(tmp_path: Path, first: str) -> None:
    """In either order of the manifest the answer is the same: which pods come first is the controllers' choice."""
    manifest = small_then_large()
    entries = manifest[-1]["spec"]["replicatedJobs"]
    entries[0]["replicas"] = 6
    entries.sort(key=lambda entry: entry["name"] != first)
    code, report = fitted(tmp_path, [SERVICE, *node("a", 4), *node("b", 4)], manifest)
    (found,) = report["items"]
    assert (code, found["verdict"]) == (3, "undetermined")
    assert (found["podCounts"]["fewest"], found["podCounts"]["most"]) == (6, 7)
    assert "6 to 7 of 7 pods have room, depending on " in found["answer"]
    assert "which of the pods come first" in found["answer"]


def test_what_may_fit_is_not_said_to_be_refused(tmp_path: Path) -> None:
    manifest = small_then_large()
    manifest[-1]["spec"]["replicatedJobs"][0]["replicas"] = 6
    _, out, _ = said(tmp_path, [SERVICE, *node("a", 4), *node("b", 4)], manifest)
    assert "may not fit:" in out and "does not fit" not in out


@pytest.mark.parametrize(("gpus", "replicas", "expected"), [(4, 4, (3, 2)), (4, 2, (0, 2)), (4, 5, (1, 2))])
def test_who_waits_already_may_leave_too_little(
    tmp_path: Path, gpus: int, replicas: int, expected: tuple[int, int]
) -> None:
    """A pod that waits for two devices, for which there is room now, comes before those that do not exist yet."""
    cluster = [*node("a", gpus), *waiting("other", 2), template()]
    code, report = fitted(tmp_path, cluster, [deployment(replicas)])
    (found,) = report["items"]
    assert (code, found["podCounts"]["fewest"]) == expected
    assert ("whether pod default/other, which waits already, is placed first" in found["answer"]) is bool(code)


def test_the_first_of_a_tie_is_taken(tmp_path: Path) -> None:
    """The same answer whenever it is asked."""
    cluster = [SERVICE, *node("b", 1), *node("a", 1)]
    runs = [fitted(tmp_path, cluster, [template(), deployment(1)]) for _ in range(3)]
    assert all(run == runs[0] for run in runs)
    (placed,) = runs[0][1]["items"][0]["placements"]
    assert placed["choice"] == "tie"


def test_scores_that_are_not_all_known(tmp_path: Path) -> None:
    """No Service was read; the emptier node is better by all other scores."""
    cluster = [*node("a", 1), *running("other", "a", containers=wanting("6")), *node("b", 1)]
    found = item(tmp_path, cluster, [template(), deployment(1, cpu="1")])
    assert [(placed["node"], placed["choice"]) for placed in found["placements"]] == [("b", "open")]


def test_replicas_are_spread_by_their_owner(tmp_path: Path) -> None:
    """The scheduler's own constraints count the pods of the ReplicaSet, though pods here request nothing."""
    cluster = [SERVICE, *node("a", 3, zone="x"), *node("b", 3, zone="y")]
    found = item(tmp_path, cluster, [template(), deployment(4)])
    assert {entry["node"]: entry["podCount"] for entry in found["byNode"]} == {"a": 2, "b": 2}
    assert {placed["choice"] for placed in found["placements"]} <= {"best", "tie"}


def test_equal_pods_do_not_depend_on_ties(tmp_path: Path) -> None:
    found = item(tmp_path, [SERVICE, *node("a", 1), *node("b", 1)], [template(), deployment(5)])
    assert "tie" in {placed["choice"] for placed in found["placements"]}
    assert not found["dependsOnChance"]


def test_affinity_makes_the_first_choice_count(tmp_path: Path) -> None:
    """All pods have to be on the node that the first one gets."""
    near = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    found = item(tmp_path, [*node("a", 1), *node("b", 3)], [template(), deployment(4, affinity=together)])
    assert found["dependsOnChance"]
    assert (found["podCounts"]["fewest"], found["podCounts"]["most"]) == (1, 3)


def test_a_large_cluster_is_sampled(tmp_path: Path) -> None:
    """Of 120 nodes the scheduler looks at 100; pods go where the fewest of them are."""
    cluster = [raw for number in range(120) for raw in node(f"n{number:03}", 1)]
    found = item(tmp_path, cluster, [template(), deployment(3)])
    assert [placed["choice"] for placed in found["placements"]] == ["open"] * 3
    assert len({placed["node"] for placed in found["placements"]}) == 3
    assert not found["dependsOnChance"]


def test_nodes_are_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that is placed changes one node. Attempts are counted, not seconds."""
    calls = 0
    plain = Cycle.attempt

    def counted(self: Cycle, *words: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(self, *words, **named)

    monkeypatch.setattr(Cycle, "attempt", counted)
    nodes, pods = 150, 400
    cluster = [raw for number in range(nodes) for raw in node(f"n{number:03}", 4)]
    code, _ = fitted(tmp_path, cluster, [template(), deployment(pods)])
    assert code == 0
    # Each node at first, once more by explain, and the node of each pod after it.
    assert calls <= 2 * nodes + pods
