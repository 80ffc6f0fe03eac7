"""The roles in examples/rbac are enough, and a missing permission is named."""

from __future__ import annotations

import pytest

from tests.taint.live.team import KEY, Kubelet, Team, bind


def test_the_role_of_taint_is_enough(team: Team, kubelet: Kubelet) -> None:
    user = bind(team, "taint")
    held = team.running("one")
    kubelet.start()
    answer = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--drain", "--grace", "1s", "--wait=60s", user=user)
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert "not seen" not in answer.text and "forbidden" not in answer.text
    assert team.dra("taint", "--list", user=user).code == 0


def test_the_role_of_untaint_is_enough(team: Team) -> None:
    user = bind(team, "untaint")
    team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule")
    answer = team.dra("untaint", team.full("gpu-0"), "--wait=30s", user=user)
    assert answer.code == 0 and "Allocatable again" in answer.out, answer.text


def test_the_role_for_reading_is_enough(team: Team) -> None:
    user = bind(team, "read")
    team.running("one")
    assert team.dra("devices", "--driver", team.cluster.driver, user=user).code == 0
    assert "forbidden" not in team.dra("taint", "--list", user=user).text
    explained = team.dra("explain", "pod/one", "-n", team.cluster.namespace, user=user)
    assert explained.code == 0 and "forbidden" not in explained.text


@pytest.mark.parametrize("verb", ["create", "patch"])
def test_a_missing_permission_to_write_is_named(team: Team, verb: str) -> None:
    user = bind(team, "taint", (verb, "devicetaintrules"))
    answer = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", user=user)
    assert answer.code == 2 and f'cannot {verb} resource "devicetaintrules"' in answer.err, answer.text
    assert not team.rules()


def test_missing_permissions_to_read_are_named(team: Team) -> None:
    user = bind(team, "taint", ("list", "resourceslices"))
    answer = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", user=user)
    assert answer.code == 2 and 'cannot list resource "resourceslices"' in answer.err, answer.text


def test_what_could_not_be_seen_of_the_blast_radius_is_said(team: Team) -> None:
    user = bind(team, "taint", ("list", "pods"))
    report = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", "--dry-run=client", user=user)
    assert report.code == 0 and 'cannot list resource "pods"' in report.out, report.text


def test_untaint_without_delete(team: Team) -> None:
    user = bind(team, "untaint", ("delete", "devicetaintrules"))
    team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule")
    answer = team.dra("untaint", team.full("gpu-0"), user=user)
    assert answer.code == 2 and 'cannot delete resource "devicetaintrules"' in answer.err
    assert team.rule("gpu-0") is not None
