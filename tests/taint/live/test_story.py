"""Out of service and back, on a real control plane."""

from __future__ import annotations

import io
import sys
import time
from typing import Final

import pytest

from tests.taint.live.team import KEY, Kubelet, Team
from tools.controlplane.cluster import wait
from tools.controlplane.objects import device
from tools.live.releases import EFFECT_NONE, expected

SEEN_BY_SCHEDULER: Final = 2
"""Seconds until the scheduler's own watch has brought a new rule on a busy machine."""


def test_no_schedule_keeps_new_pods_off_and_leaves_running_ones(team: Team) -> None:
    held = team.running("one")
    (free,) = {"gpu-0", "gpu-1"} - {held}
    report = team.json("taint", team.full(held), team.full(free), f"{KEY}:NoSchedule", "--reason", "ECC errors")
    assert [rule["outcome"] for rule in report["rules"]] == ["created", "created"]
    (hit,) = report["blastRadius"]["claims"]
    assert (hit["name"], hit["pods"][0]["name"], hit["pods"][0]["fate"]) == ("one-claim", "one", "stays")
    assert report["blastRadius"]["byClass"] == [{"name": team.gpu, "deviceCount": 2, "freeCount": 1, "freeAfter": 0}]
    for name in (held, free):
        rule = team.rule(name)
        assert rule is not None
        selector = {"driver": team.cluster.driver, "pool": "pool", "device": name}
        assert rule["spec"]["deviceSelector"] == selector
        assert rule["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kubectl-dra"
        assert rule["metadata"]["annotations"]["kubectl-dra/reason"] == "ECC errors"
        assert rule["metadata"]["annotations"]["kubectl-dra/hardware-id"].endswith(name)
    time.sleep(SEEN_BY_SCHEDULER)
    team.pod("two")
    team.cluster.unschedulable("two")
    assert not team.cluster.get("Pod", "one", "v1")["metadata"].get("deletionTimestamp")


def test_no_execute_waits_until_the_device_is_free(team: Team, kubelet: Kubelet) -> None:
    held = team.running("one")
    kubelet.start()
    answer = team.dra("taint", f"{team.node}/{held}", f"{KEY}:NoExecute", "--wait=60s")
    assert answer.code == 0, answer.text
    assert f"pod {team.cluster.namespace}/one: gone" in answer.err
    asked = expected(EFFECT_NONE, team.cluster.plane)
    assert (f"{team.full(held)}: the server would delete 1 pod: as predicted" in answer.err) is asked
    assert ("the server was not asked" in answer.err) is not asked
    assert f"{team.full(held)} is free: no claim holds it. It can be taken offline." in answer.out
    team.pod_gone("one")
    assert "allocation" not in team.cluster.get("ResourceClaim", "one-claim").get("status", {})
    again = team.json("taint", team.full(held), f"{KEY}:NoExecute", "--wait=10s")
    assert again["rules"][0]["outcome"] == "unchanged" and again["wait"] == {"reached": True, "blockers": []}


def test_untaint_lets_the_pending_pod_be_scheduled(team: Team) -> None:
    assert team.dra("taint", "--node", team.node, f"{KEY}:NoSchedule", "--yes").code == 0
    team.pod("one")
    team.cluster.unschedulable("one")
    answer = team.dra("untaint", team.full("gpu-1"), "--wait=30s")
    # The scheduler may have been faster.
    taken = f"{team.full('gpu-1')} is untainted: held by {team.cluster.namespace}/one-claim (pod one)."
    assert answer.code == 0 and ("Allocatable again." in answer.out) is (taken not in answer.out), answer.text
    assert team.cluster.scheduled("one").devices("gpu") == ["pool/gpu-1"]
    assert team.rule("gpu-1") is None and team.rule("gpu-0") is not None
    removed = team.json("taint", f"{team.cluster.driver}/pool/gpu-0", f"{KEY}-")
    assert [entry["outcome"] for entry in removed["removed"]] == ["removed"]
    assert not team.rules()


def test_a_device_that_is_held_is_untainted_and_not_promised(team: Team) -> None:
    held = team.running("one")
    (free,) = {"gpu-0", "gpu-1"} - {held}
    assert team.dra("taint", team.full(held), team.full(free), f"{KEY}=x:NoSchedule", "--yes").code == 0
    answer = team.dra("untaint", team.full(held), team.full(free), f"{KEY}=x:NoSchedule", "--wait=30s")
    told = " ".join(answer.out.split())
    assert answer.code == 0 and not team.rules(), answer.text
    assert f"{team.full(held)} is untainted: held by {team.cluster.namespace}/one-claim (pod one)." in told, answer.text
    assert f"Allocatable again: {team.full(free)}." in told, answer.text


def test_pending_pods_and_all_requests_that_lose_their_match(team: Team) -> None:
    held = team.running("one")
    (free,) = {"gpu-0", "gpu-1"} - {held}
    claim = team.cluster.claim([{"name": "gpu", "exactly": {"deviceClassName": team.gpu}}], "gated-claim")
    team.cluster.template([{"name": "gpu", "exactly": {"deviceClassName": team.gpu, "allocationMode": "All"}}])
    radius = team.json("taint", team.full(free), f"{KEY}:NoSchedule", "--dry-run=client")["blastRadius"]
    lost = {"kind": "ResourceClaim", "namespace": team.cluster.namespace, "name": claim, "allDevices": False}
    assert lost in radius["wouldNotFit"]
    assert [entry["claim"]["name"] for entry in radius["allRequests"]] == ["template"]
    assert not team.rules()
    assert (
        team.json("taint", team.full(held), f"{KEY}:NoSchedule", "--dry-run=client")["blastRadius"]["wouldNotFit"] == []
    )


def test_drain_lets_pods_end_and_then_evicts(team: Team, kubelet: Kubelet) -> None:
    held = team.running("one")
    kubelet.start()
    answer = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--drain", "--grace", "2s", "--wait=60s")
    assert answer.code == 0, answer.text
    assert answer.err.index("NoExecute in") < answer.err.index(f"{team.full(held)}: NoExecute")
    rule = team.rule(held)
    assert rule is not None and rule["spec"]["taint"]["effect"] == "NoExecute"
    assert "kubectl-dra/next-effect" not in rule["metadata"]["annotations"]
    team.pod_gone("one")


def test_drain_that_was_timed_out_goes_on(team: Team, kubelet: Kubelet) -> None:
    held = team.running("one")
    command = ["taint", team.full(held), f"{KEY}:NoExecute", "--drain", "--grace", "4s"]
    report = team.json(*command, "--wait=1s", code=1)
    assert (
        report["wait"]["reached"] is False
        and report["rules"][0]["deviceTaintRule"]["spec"]["taint"]["effect"] == "NoSchedule"
    )
    due = report["rules"][0]["deviceTaintRule"]["metadata"]["annotations"]["kubectl-dra/next-effect-at"]
    kubelet.start()
    again = team.json(*command, "--wait=60s")
    assert again["rules"][0]["outcome"] == "unchanged"
    assert again["rules"][0]["deviceTaintRule"]["metadata"]["annotations"]["kubectl-dra/next-effect-at"] == due
    assert again["wait"]["reached"] is True
    rule = team.rule(held)
    assert rule is not None and rule["spec"]["taint"]["effect"] == "NoExecute"


def test_list_names_owners_and_other_hardware(team: Team) -> None:
    team.dra("taint", team.full("gpu-0"), f"{KEY}=x:NoSchedule", "--ticket", "OPS-1", "--expires", "1h")
    team.cluster.withdraw(team.slices)
    bad = device("gpu-1", taints=[{"key": "example.com/ecc", "effect": "NoSchedule"}])
    swapped = device("gpu-0", {"uuid": "GPU-new"})
    team.cluster.publish([swapped, bad], pool="pool", node=team.node, generation=2)
    items = [
        item for item in team.json("taint", "--list")["items"] if item["devices"][0]["driver"] == team.cluster.driver
    ]
    ours, drivers = items
    assert (ours["ours"], ours["ticket"], ours["taint"]["value"]) == (True, "OPS-1", "x")
    assert len(ours["warnings"]) == 1 and "GPU-new" in ours["warnings"][0]
    assert drivers["owner"]["kind"] == "ResourceSlice" and drivers["taint"]["key"] == "example.com/ecc"
    stays = team.json("untaint", team.full("gpu-1"), code=1)["staying"]
    assert "driver" in stays[0]["setBy"] and "driver" in stays[0]["removedBy"]


def test_expired_rules_are_removed(team: Team) -> None:
    team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", "--expires", "1s")
    team.dra("taint", team.full("gpu-1"), f"{KEY}:NoSchedule", "--expires", "1h")

    def over() -> bool | None:
        answer = team.dra("untaint", "--expired", "--dry-run=client", "-o", "name")
        return True if "gpu-0-" in answer.out else None

    wait(over, "the expiry")
    assert team.dra("untaint", "--expired").code == 0
    assert team.rule("gpu-0") is None and team.rule("gpu-1") is not None
    # A job that looks now and then does not fail when there is nothing to do.
    again = team.dra("untaint", "--expired")
    assert again.code == 0 and "No rule has expired." in again.out, again.text


class Terminal(io.StringIO):
    """A person who answers at once."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code", "rules"), [("n\n", 1, 0), ("\n", 1, 0), ("y\n", 0, 2)])
def test_a_selection_is_confirmed(
    team: Team, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, rules: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    answer = team.dra("taint", "--driver", team.cluster.driver, f"{KEY}:NoSchedule")
    assert answer.code == code and "Taint these 2 devices? [y/N]" in answer.err
    assert f"{team.full('gpu-0')},1 (node {team.node})" in answer.out
    assert len(team.rules()) == rules


def test_a_selection_is_not_tainted_unasked(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    answer = team.dra("taint", "--node", team.node, f"{KEY}:NoSchedule")
    assert answer.code == 2 and "give --yes" in answer.err and not team.rules()
    # One device needs no question, however it is selected.
    uuid = f"GPU-{team.cluster.namespace}-gpu-1"
    assert team.dra("taint", "--uuid", uuid, f"{KEY}:NoSchedule").code == 0
    assert [rule["spec"]["deviceSelector"]["device"] for rule in team.rules()] == ["gpu-1"]


def test_server_dry_run_changes_nothing(team: Team) -> None:
    report = team.json("taint", team.full("gpu-0"), f"{KEY}:NoExecute", "--dry-run=server")
    assert report["rules"][0]["outcome"] == "created" and report["rules"][0]["deviceTaintRule"]["metadata"]["uid"]
    assert not team.rules()
    assert team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule").code == 0
    gone = team.json("untaint", team.full("gpu-0"), "--dry-run=server")
    assert gone["removed"][0]["outcome"] == "removed" and len(team.rules()) == 1
