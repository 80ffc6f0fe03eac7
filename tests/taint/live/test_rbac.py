"""The roles in examples/rbac are enough, and a missing permission is named."""

from __future__ import annotations

import re
import threading

import pytest
import yaml

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.taint.device_taint_rules import rule_name
from tests.taint.live.team import KEY, Kubelet, Team, bind, checked
from tools.live.command import ROOT, Answer
from tools.live.releases import EFFECT_NONE, Changed, expected, needs_effect_none


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


def test_can_says_what_a_role_allows(team: Team) -> None:
    reader, user = bind(team, "read"), bind(team, "taint", ("create", "devicetaintrules"))
    assert team.dra("can", "explain", user=reader).out.startswith("yes: nothing that explain needs is missing")
    answer = team.dra("can", "taint", user=user)
    assert answer.code == 1 and "lacks 1 permission:" in answer.out, answer.text
    assert "  create devicetaintrules.resource.k8s.io" in answer.out
    assert f"kubectl create clusterrolebinding kubectl-dra-taint-{user}" in answer.out


@pytest.mark.parametrize("verb", ["create", "patch"])
def test_a_missing_permission_to_write_is_named(team: Team, verb: str) -> None:
    user = bind(team, "taint", (verb, "devicetaintrules"))
    answer = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", user=user)
    assert answer.code == 2 and f'cannot {verb} resource "devicetaintrules"' in answer.err, answer.text
    assert not team.rules()


def test_missing_permissions_to_read_are_named(team: Team) -> None:
    user = bind(team, "taint", ("list", "resourceslices"))
    answer = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", user=user)
    assert answer.code == 2 and named(answer, "list", "resourceslices"), answer.text


def test_what_could_not_be_seen_of_the_blast_radius_is_said(team: Team) -> None:
    user = bind(team, "taint", ("list", "pods"))
    report = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule", "--dry-run=client", user=user)
    assert "no Pods could be read (list pods is forbidden)" in report.out, report.text
    # This user may not read /metrics either, which would show whether the rule takes effect.
    assert report.code == 3 and "undetermined whether anything acts on the rule" in report.err, report.text


def test_untaint_without_delete(team: Team) -> None:
    user = bind(team, "untaint", ("delete", "devicetaintrules"))
    team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule")
    answer = team.dra("untaint", team.full("gpu-0"), user=user)
    assert answer.code == 2 and 'cannot delete resource "devicetaintrules"' in answer.err
    assert team.rule("gpu-0") is not None


def rights(file: str) -> list[tuple[str, str]]:
    """Every verb and resource of a role."""
    (role,) = yaml.safe_load_all((ROOT / "examples" / "rbac" / f"{file}.yaml").read_text())
    return [(verb, resource) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]]


def named(answer: Answer, verb: str, resource: str) -> bool:
    """Whether a right is named: in a sentence of ours about what was not read, or in the server's words."""
    text = " ".join(answer.text.split())
    unread = re.search(rf"\({verb} {resource}[\w.]* is forbidden\)", text)
    return unread is not None or f'cannot {verb} resource "{resource}"' in text


WATCH = "watch"


@pytest.mark.parametrize(("verb", "resource"), [right for right in rights("taint") if right[0] != WATCH])
def test_every_right_of_taint_is_needed_and_named(team: Team, verb: str, resource: str) -> None:
    """Without any one of them something is missing, and it is said what."""
    missing = [(verb, resource)]
    if verb == "delete":
        # Without that answer nothing is taken back.
        needs_effect_none(team.cluster.plane)
        # The prediction is too low without pods, so the rules that were made for the server's answer are taken back.
        missing.append(("list", "pods"))
    held = team.running("one")
    user = bind(team, "taint", *missing)
    effect = "NoExecute" if verb == "delete" else "NoSchedule"
    answer = team.dra("taint", team.full(held), f"{KEY}:{effect}", "--wait=1s", user=user)
    assert named(answer, verb, resource), answer.text


@pytest.mark.parametrize(("verb", "resource"), [right for right in rights("untaint") if right[0] != WATCH])
def test_every_right_of_untaint_is_needed_and_named(team: Team, verb: str, resource: str) -> None:
    team.running("one")
    assert team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule").code == 0
    user = bind(team, "untaint", (verb, resource))
    words = {"deviceclasses": ["--class", team.gpu], "pods": ["--pod", f"{team.cluster.namespace}/one"]}
    answer = team.dra("untaint", *words.get(resource, [team.full("gpu-0")]), "--wait=1s", user=user)
    assert named(answer, verb, resource), answer.text


@pytest.mark.parametrize("command", ["taint", "untaint"])
def test_without_the_right_to_watch_it_is_asked_again_and_again(team: Team, command: str) -> None:
    """Each watch that is refused is named, and the end is seen all the same."""
    held = team.running("one")
    watched = [resource for verb, resource in rights(command) if verb == WATCH]
    user = bind(team, command, *((WATCH, resource) for resource in watched))
    if command == "untaint":
        # Without anything in the way there is nothing to watch.
        team.cluster.withdraw(team.slices)
        assert team.dra("taint", team.full(held), f"{KEY}:NoSchedule").code == 0
        answer = team.dra("untaint", team.full(held), "--wait=1s", user=user)
        assert answer.code == 1, answer.text
    else:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": team.cluster.namespace}}
        ending = threading.Timer(3, lambda: team.cluster.plane.api().delete(pod, grace_seconds=0))
        ending.start()
        answer = team.dra("taint", team.full(held), f"{KEY}:NoSchedule", "--wait=60s", user=user)
        ending.join()
        assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert len(watched) >= 2 and all(named(answer, WATCH, resource) for resource in watched), answer.text
    assert answer.err.count("note: polling") == len(watched)


@pytest.mark.parametrize("file", ["read", "taint", "untaint"])
def test_nothing_but_rules_can_be_changed(file: str) -> None:
    allowed = {"read": set(), "taint": {"create", "patch", "delete"}, "untaint": {"delete"}}[file]
    for verb, resource in rights(file):
        assert verb in ("get", "list", "watch") or (verb in allowed and resource == "devicetaintrules")


def test_a_refusal_halfway_is_told_with_what_was_done(team: Team) -> None:
    """The user may patch the rule of one device only: that one is made, the other named."""
    name = rule_name(DeviceID(team.cluster.driver, "pool", "gpu-0"), KEY)
    user = bind(team, "taint", names=("patch", [name]))
    command = ["taint", team.full("gpu-0"), team.full("gpu-1")]
    answer = team.dra(*command, f"{KEY}:NoSchedule", "-o", "json", user=user)
    assert answer.code == 2 and 'cannot patch resource "devicetaintrules"' in answer.err, answer.text
    report = checked(answer.out)
    assert [(rule["rule"], rule["outcome"]) for rule in report["rules"]] == [(name, "created")]
    assert report["exitCode"] == 2 and "1 rule not written" in report["warnings"][-1]
    assert [rule["metadata"]["name"] for rule in team.rules()] == [name]
    # With NoExecute the server is asked first, where the release can be asked, so nothing is left at all.
    team.remove_rules()
    answer = team.dra(*command, f"{KEY}:NoExecute", user=user)
    left = [] if expected(EFFECT_NONE, team.cluster.plane) else [name]
    assert answer.code == 2 and [rule["metadata"]["name"] for rule in team.rules()] == left, answer.text


def test_a_refusal_halfway_in_untaint(team: Team) -> None:
    """The user may delete the rule of one device only: that one goes, the other stays and is named."""
    assert team.dra("taint", team.full("gpu-0"), team.full("gpu-1"), f"{KEY}:NoSchedule").code == 0
    gone, stays = (rule_name(DeviceID(team.cluster.driver, "pool", name), KEY) for name in ("gpu-0", "gpu-1"))
    user = bind(team, "untaint", names=("delete", [gone]))
    command = ["untaint", team.full("gpu-0"), team.full("gpu-1"), "--wait=30s", "-o", "json"]
    answer = team.dra(*command, user=user)
    assert answer.code == 2 and 'cannot delete resource "devicetaintrules"' in answer.err, answer.text
    report = checked(answer.out)
    assert [(rule["rule"], rule["outcome"]) for rule in report["removed"]] == [(gone, "removed")]
    assert report["exitCode"] == 2 and [rule["metadata"]["name"] for rule in team.rules()] == [stays]
    # Somebody who may goes on with the same command.
    again = team.json(*command[:-2])
    assert [rule["rule"] for rule in again["removed"]] == [stays] and again["wait"]["reached"] is True


def test_a_gate_that_cannot_be_seen_is_undetermined(team: Team) -> None:
    user = bind(team, "taint")
    said = f"{team.full('gpu-0')}", f"{KEY}:NoSchedule", "--dry-run=client"
    unseen = "undetermined whether anything acts on the rule" in team.dra("taint", *said, user=user).err
    # A gate that is on by default is taken to be on.
    assert unseen is expected(Changed(True, False, ("1.37",)), team.cluster.plane)
    assert "undetermined" not in team.dra("taint", *said).text
