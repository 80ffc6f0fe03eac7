"""What is waited for and what is not: several devices, shares, partitions, admin access, groups, drivers' taints."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.taint.live.faults import Asked, Front
from tests.taint.live.team import KEY, Kubelet, Team
from tools.controlplane.cluster import wait
from tools.controlplane.objects import device, request
from tools.live.releases import PARTITIONS, SHARES, needs, needs_effect_none

CLAIM = "resource.k8s.io/v1"


def test_drain_of_several_devices(team: Team, kubelet: Kubelet) -> None:
    """Each goes to NoExecute at its own time: one that was under way already before the other."""
    team.running("one")
    team.running("two")
    command = ["taint", team.full("gpu-0"), f"{KEY}:NoExecute", "--drain"]
    first = team.json(*command, "--grace", "2s", "--wait=1s", code=1)
    assert first["rules"][0]["deviceTaintRule"]["spec"]["taint"]["effect"] == "NoSchedule"
    kubelet.start()
    both = ["taint", team.full("gpu-0"), team.full("gpu-1"), f"{KEY}:NoExecute", "--drain"]
    answer = team.dra(*both, "--grace", "5s", "--wait=60s")
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    escalated = [line for line in answer.err.splitlines() if line.endswith(": NoExecute")]
    assert escalated == [f"{team.full('gpu-0')}: NoExecute", f"{team.full('gpu-1')}: NoExecute"]
    between = answer.err[answer.err.index(escalated[0]) : answer.err.index(escalated[1])]
    assert "gone" in between or "terminating" in between
    assert {rule["spec"]["taint"]["effect"] for rule in team.rules()} == {"NoExecute"}


def test_drain_ends_early_when_the_devices_are_free(team: Team) -> None:
    held = team.running("one")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": team.cluster.namespace}}
    team.cluster.api.delete(pod, grace_seconds=0)
    answer = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--drain", "--grace", "1h", "--wait=30s")
    assert answer.code == 0 and f"{team.full(held)}: NoExecute" in answer.err, answer.text


def test_a_device_that_several_claims_share(team: Team, kubelet: Kubelet) -> None:
    needs(team.cluster.plane, SHARES)
    team.cluster.withdraw(team.slices)
    team.cluster.publish(
        [device("shared", capacity={"memory": "8Gi"}, allowMultipleAllocations=True)],
        pool="pool",
        node=team.node,
        generation=2,
    )
    for name in ("one", "two"):
        half = {"requests": {"memory": "1Gi"}}
        claim = team.cluster.claim(
            [request(team.gpu, capacity=half), request(team.gpu, "more", capacity=half)], f"{name}-claim"
        )
        team.cluster.pod(name, claims={"gpu": claim})
        team.cluster.scheduled(name)
    report = team.json("taint", team.full("shared"), f"{KEY}:NoSchedule", "--wait=1s", code=1)
    # A claim with two shares is in the way once.
    assert sorted(blocker["claim"]["name"] for blocker in report["wait"]["blockers"]) == [
        "one-claim",
        "two-claim",
    ]
    kubelet.start()
    ended = team.json("taint", team.full("shared"), f"{KEY}:NoExecute", "--overwrite", "--wait=60s")
    assert ended["blastRadius"]["podsDeleted"] == 2 and ended["wait"]["reached"] is True


def test_partitions_of_the_same_hardware(team: Team) -> None:
    """A free partition is not to be taken offline while another one of the same GPU is in use."""
    needs(team.cluster.plane, PARTITIONS)
    team.cluster.withdraw(team.slices)
    counters = [{"name": "gpu", "counters": {"slots": {"value": "2"}}}]
    consumes = [{"counterSet": "gpu", "counters": {"slots": {"value": "1"}}}]
    parts = [device(name, consumesCounters=consumes) for name in ("part-0", "part-1")]
    team.cluster.publish(parts, pool="pool", node=team.node, generation=2, shared_counters=counters)
    held = team.running("one")
    (free,) = {"part-0", "part-1"} - {held}
    answer = team.dra("taint", team.full(free), f"{KEY}:NoSchedule", "--wait=30s")
    assert answer.code == 0 and "can be taken offline" not in answer.out, answer.text
    assert "Do not take it offline" in answer.out and f"{team.full(held)} is held by claim" in answer.out
    assert "shares counters with 1 device that the taint does not cover, 1 of them in use" in answer.err
    report = team.json("taint", team.full(free), f"{KEY}:NoSchedule", "--wait=30s")
    assert any(f"{team.full(held)} is held by claim" in warning for warning in report["warnings"])


def test_admin_access_is_named_and_not_waited_for(team: Team) -> None:
    team.cluster.allow_admin_access()
    held = team.running("monitor", adminAccess=True)
    answer = team.dra("taint", team.full(held), f"{KEY}:NoSchedule", "--wait=30s")
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert "(admin access)" in answer.out
    assert f"looks at {team.full(held)} with admin access, which is not waited for" in answer.err


def test_a_claim_of_a_pod_group(team: Team) -> None:
    """Whoever is not a pod is named, and nothing is foretold about it that is not known."""
    held = team.running("one")
    claim = {"apiVersion": CLAIM, "kind": "ResourceClaim", "metadata": {"name": "one-claim"}}
    claim["metadata"]["namespace"] = team.cluster.namespace  # type: ignore[index]
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "a-uid"}
    reserved = team.cluster.get("ResourceClaim", "one-claim")["status"]["reservedFor"]
    team.cluster.api.patch(claim, {"status": {"reservedFor": [*reserved, group]}}, "status")
    answer = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--dry-run=client")
    assert "podgroups gang" in answer.out and "unknown" in answer.out and "nothing ends it" not in answer.out
    report = team.json("taint", team.full(held), f"{KEY}:NoSchedule", "--wait=1s", code=1)
    assert any("PodGroup gang" in blocker["why"] for blocker in report["wait"]["blockers"])


def test_a_pod_whose_grace_period_is_over(team: Team) -> None:
    claim = team.cluster.claim([request(team.gpu)], "one-claim")
    team.cluster.pod("one", claims={"gpu": claim}, terminationGracePeriodSeconds=1)
    held = team.cluster.scheduled("one").devices("gpu")[0].removeprefix("pool/")
    report = team.json("taint", team.full(held), f"{KEY}:NoExecute", "--wait=5s", code=1)
    (blocker,) = report["wait"]["blockers"]
    assert "grace period of 1 s is over" in blocker["why"]
    assert f"kubelet of node {team.node} has not confirmed its end" in blocker["why"]


# Back into service


def test_untaint_waits_in_vain_for_a_driver(team: Team) -> None:
    team.cluster.withdraw(team.slices)
    sick = device("gpu-0", taints=[{"key": "example.com/ecc", "effect": "NoSchedule"}])
    team.cluster.publish([sick, device("gpu-1")], pool="pool", node=team.node, generation=2)
    assert team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule").code == 0
    report = team.json("untaint", team.full("gpu-0"), "--wait=2s", code=1)
    assert report["removed"][0]["outcome"] == "removed" and report["wait"]["reached"] is False
    (left,) = report["wait"]["left"]
    assert "example.com/ecc:NoSchedule" in left and "driver" in left
    assert team.json("untaint", team.full("gpu-1"), "--wait=30s")["wait"]["reached"] is True


def test_untaint_waits_through_faults(team: Team, tmp_path: Path) -> None:
    assert team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule").code == 0
    # The first list is the one before the rule is deleted; those after it come while waiting.
    answers = itertools.chain([None], [503] * 11, [410], itertools.repeat(None))

    def fault(asked: Asked) -> int | None:
        return next(answers) if asked.path.partition("?")[0].endswith("/resourceslices") else None

    front = Front(team.cluster.plane, fault)
    config = ["--kubeconfig", front.kubeconfig(tmp_path), "--context", "admin"]
    answer = team.command("untaint", team.full("gpu-0"), "--wait=60s", *config)
    front.close()
    assert answer.code == 0 and "Allocatable again" in answer.out, answer.text
    assert len(front.faults) == 12 and "trying again" in answer.err and "answers again" in answer.err


def test_untaint_of_a_rule_that_is_still_being_asked_about(team: Team) -> None:
    """KEY:None- means the first step of a NoExecute as well."""
    needs_effect_none(team.cluster.plane)
    name = team.json("taint", team.full("gpu-0"), f"{KEY}:None")["rules"][0]["rule"]
    wait(lambda: team.rule("gpu-0"), "the rule")
    assert not team.json("untaint", team.full("gpu-0"), f"{KEY}:NoSchedule-", code=1)["removed"]
    assert [removed["rule"] for removed in team.json("untaint", team.full("gpu-0"), f"{KEY}:None-")["removed"]] == [
        name
    ]
