"""What goes wrong on a real control plane: other writers, pods that stay, devices that vanish, gates that are off."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.api.releases import GROUP, parse_release, versions_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.writer import Conflict, Writer
from kubectl_dra.taint.apply import Asking, RuleRefused, RuleWriter
from kubectl_dra.taint.device_taint_rules import CREATED, UNCHANGED, DesiredRule, RuleStage, content, rule_name
from kubectl_dra.taint.steady_watches import Patience
from kubectl_dra.taint.typed import TaintSpec
from tests.taint.live.faults import Asked, Front
from tests.taint.live.team import KEY, Kubelet, Team, bind, rule_version
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import Program, kubernetes_version
from tools.live.command import Command
from tools.live.releases import Changed, expected, needs_effect_none

Json = dict[str, Any]


def rules_of(team: Team, manager: str = "kubectl-dra", *, overwrite: bool = False) -> RuleWriter:
    options = ConnectionOptions(kubeconfig=str(team.cluster.plane.kubeconfig), context="admin")
    cluster = ApiServer(options)
    return RuleWriter(cluster, Writer(cluster.client, manager), team.served, overwrite=overwrite)


def rule_for(team: Team, name: str = "gpu-0", value: str = "", effect: str = "NoSchedule") -> DesiredRule:
    return DesiredRule(DeviceID(team.cluster.driver, "pool", name), TaintSpec(KEY, value, effect))


# Rules that exist already, and other writers


def test_the_same_rule_is_left_alone_and_a_different_one_refused(team: Team) -> None:
    device = team.full("gpu-0")
    assert team.json("taint", device, f"{KEY}=a:NoSchedule")["rules"][0]["outcome"] == "created"
    before = team.rule("gpu-0")
    assert before is not None
    assert team.json("taint", device, f"{KEY}=a:NoSchedule")["rules"][0]["outcome"] == "unchanged"
    refused = team.json("taint", device, team.full("gpu-1"), f"{KEY}=b:NoSchedule", code=1)
    assert [rule["outcome"] for rule in refused["rules"]] == ["refused", "skipped"]
    assert f"{KEY}=a:NoSchedule" in refused["rules"][0]["why"]
    # All or nothing: the other device is not tainted either.
    assert team.rule("gpu-1") is None
    now = team.rule("gpu-0")
    assert now is not None and now["spec"] == before["spec"]
    assert team.json("taint", device, f"{KEY}=b:NoSchedule", "--overwrite")["rules"][0]["outcome"] == "changed"
    now = team.rule("gpu-0")
    assert now is not None and now["spec"]["taint"]["value"] == "b"
    assert now["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_rule_that_somebody_else_made_or_changed(team: Team) -> None:
    device = team.full("gpu-0")
    team.dra("taint", device, f"{KEY}:NoSchedule")
    rule = team.rule("gpu-0")
    assert rule is not None
    patch = {"apiVersion": team.version, "kind": "DeviceTaintRule", "metadata": {"name": rule["metadata"]["name"]}}
    team.cluster.api.patch(patch, {"spec": {"taint": {"effect": "NoExecute"}}})
    assert "the effect NoExecute" in team.json("taint", device, f"{KEY}:NoSchedule", code=1)["rules"][0]["why"]
    # Without looking first, the server itself refuses: the field belongs to another manager.
    rules = rules_of(team)
    current = rules.get(rule["metadata"]["name"])
    assert current is not None
    with pytest.raises(Conflict) as conflict:
        Writer(ApiServer(_options(team)).client).apply(
            rules.path(rule["metadata"]["name"]),
            content(rule_for(team), RuleStage("NoSchedule"), team.served),
            version=current["metadata"]["resourceVersion"],
        )
    assert conflict.value.owners
    assert team.json("taint", device, f"{KEY}:NoSchedule", "--overwrite")["rules"][0]["outcome"] == "changed"


def _options(team: Team) -> ConnectionOptions:
    return ConnectionOptions(kubeconfig=str(team.cluster.plane.kubeconfig), context="admin")


def test_rules_of_others_are_removed_only_when_told_and_never_broader_ones(team: Team) -> None:
    for name, selector in (
        ("theirs", {"driver": team.cluster.driver, "pool": "pool", "device": "gpu-0"}),
        ("broad", {"driver": team.cluster.driver, "pool": "pool"}),
    ):
        team.cluster.create(
            {
                "apiVersion": team.version,
                "kind": "DeviceTaintRule",
                "metadata": {"name": team.cluster.name(name)},
                "spec": {"deviceSelector": selector, "taint": {"key": KEY, "effect": "NoSchedule"}},
            }
        )
    kept = team.json("untaint", team.full("gpu-0"), code=1)
    assert not kept["removed"] and len(kept["staying"]) == 2
    told = team.json("untaint", team.full("gpu-0"), "--overwrite")
    assert [entry["rule"] for entry in told["removed"]] == [team.cluster.name("theirs")]
    assert [entry["setBy"] for entry in told["staying"]] == [f"DeviceTaintRule {team.cluster.name('broad')}"]
    assert [rule["metadata"]["name"] for rule in team.rules()] == [team.cluster.name("broad")]


def test_two_people_taint_at_once(team: Team) -> None:
    """One of two different desired rules wins, the other is refused; nothing is lost, nothing is mixed."""
    for round_number in range(5):
        outcomes: list[str] = []
        start = threading.Barrier(2)

        def taint(value: str, start: threading.Barrier = start, outcomes: list[str] = outcomes) -> None:
            rules = rules_of(team)
            start.wait()
            try:
                outcomes.append(rules.write(rule_for(team, value=value), RuleStage("NoSchedule")).outcome)
            except RuleRefused:
                outcomes.append("refused")

        threads = [threading.Thread(target=taint, args=(value,)) for value in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(outcomes) == [CREATED, "refused"], f"round {round_number}"
        team.remove_rules()


def test_two_people_want_the_same_at_once(team: Team) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(4)

    def taint() -> None:
        rules = rules_of(team)
        start.wait()
        outcomes.append(rules.write(rule_for(team, effect="NoExecute"), RuleStage("NoExecute")).outcome)

    threads = [threading.Thread(target=taint) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == [CREATED, *[UNCHANGED] * 3]


def test_two_people_ask_the_server_at_once(team: Team) -> None:
    """Both get its answer from one rule, and neither takes the other's rule back."""
    needs_effect_none(team.cluster.plane)
    outcomes: list[object] = []
    asking = [Asking(rules_of(team)) for _ in range(2)]
    start = threading.Barrier(2)
    desired_rules = [rule_for(team, effect="NoExecute")]

    def ask(asked: Asking) -> None:
        start.wait()
        asked.ask(desired_rules, Patience(lambda text: None, time.monotonic() + 20))
        outcomes.append(asked.answers[desired_rules[0].name].pods)

    threads = [threading.Thread(target=ask, args=(asked,)) for asked in asking]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outcomes == [0, 0]
    (rule,) = team.rules()
    for asked in asking:
        asked.take_back()
    assert not team.rules()
    # A rule that somebody has taken further is left alone, whoever made it.
    asking[0].ask(desired_rules, Patience(lambda text: None, time.monotonic() + 20))
    rules_of(team).write(desired_rules[0], RuleStage("NoExecute"))
    again = Asking(rules_of(team))
    again.ask(desired_rules, Patience(lambda text: None, time.monotonic() + 20))
    asking[0].take_back()
    (now,) = team.rules()
    assert again.answers == {} and now["spec"]["taint"]["effect"] == "NoExecute"
    assert now["metadata"]["uid"] != rule["metadata"]["uid"]


def test_no_execute_after_no_schedule_asks_the_server_as_well(team: Team, tmp_path: Path) -> None:
    """By a second rule: the first one is not lifted meanwhile, and nothing is left of the second."""
    needs_effect_none(team.cluster.plane)
    held = team.running("one")
    assert team.dra("taint", team.full(held), f"{KEY}:NoSchedule", "--reason", "ECC").code == 0
    meanwhile: list[Json] = []

    def look(asked: Asked) -> int | None:
        if asked.method == "DELETE":
            meanwhile.extend(team.rules())
        return None

    front = Front(team.cluster.plane, look)
    connection = ["--kubeconfig", front.kubeconfig(tmp_path), "--context", "admin"]
    command = ["taint", team.full(held), f"{KEY}:NoExecute", "--overwrite"]
    answer = team.command(*command, *connection)
    front.close()
    assert answer.code == 0 and "the server would delete 1 pod: as predicted" in answer.err, answer.text
    assert sorted(rule["spec"]["taint"]["effect"] for rule in meanwhile) == ["NoSchedule", "None"]
    (rule,) = team.rules()
    assert rule["spec"]["taint"]["effect"] == "NoExecute"
    assert rule["metadata"]["annotations"]["kubectl-dra/reason"] == "ECC"
    # What is there already is not asked about.
    assert "the server" not in team.dra(*command).err


def test_two_people_ask_beside_a_rule_at_once(team: Team) -> None:
    """Who is told that the question was taken away asks again; nothing of it is left."""
    needs_effect_none(team.cluster.plane)
    assert team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule").code == 0
    question = replace(rule_for(team, effect="NoExecute"), question=True)
    outcomes: list[object] = []
    start = threading.Barrier(2)

    def ask() -> None:
        asking = Asking(rules_of(team))
        start.wait()
        asking.ask([question], Patience(lambda text: None, time.monotonic() + 40))
        outcomes.append(asking.answers[question.name].pods)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes == [0, 0]
    assert [rule["spec"]["taint"]["effect"] for rule in team.rules()] == ["NoSchedule"]


def test_another_expiry_is_said_and_not_taken(team: Team) -> None:
    command = ["taint", team.full("gpu-0"), f"{KEY}:NoSchedule", "--expires"]
    first = team.json(*command, "1h")["rules"][0]["deviceTaintRule"]["metadata"]["annotations"]["kubectl-dra/expires"]
    answer = team.dra(*command, "8h")
    assert answer.code == 0 and f"expires at {first} as before; --overwrite makes that" in " ".join(answer.err.split())
    report = team.json(*command, "8h")
    assert report["rules"][0]["outcome"] == "unchanged" and first in report["warnings"][-1]
    changed = team.json(*command, "8h", "--overwrite")["rules"][0]
    assert changed["outcome"] == "changed"
    assert changed["deviceTaintRule"]["metadata"]["annotations"]["kubectl-dra/expires"] > first
    for flag in ("--reason", "--ticket"):
        assert team.dra(*command[:-1], flag, "a").code == 0
        answer = team.dra(*command[:-1], flag, "b")
        assert answer.code == 1 and "--overwrite" in answer.out, answer.text


def test_any_printable_text_can_be_recorded_and_a_refusal_is_told_beside_names(team: Team) -> None:
    text = "電源 🚀 \\ \"quoted\" 'and' #: {x}"
    words = ["taint", team.full("gpu-0"), f"{KEY}:NoSchedule"]
    made = team.json(*words, "--reason", text, "--ticket", "🎫-1")["rules"][0]["deviceTaintRule"]["metadata"][
        "annotations"
    ]
    assert (made["kubectl-dra/reason"], made["kubectl-dra/ticket"]) == (text, "🎫-1")
    refused = team.dra(*words, "--reason", "other", "-o", "name")
    assert refused.code == 1 and not refused.out and 'it has the reason "' in " ".join(refused.err.split())


# Interrupted


@pytest.mark.parametrize("old", [False, True])
def test_left_at_the_servers_answer(team: Team, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch, old: bool) -> None:
    """A run that ended after effect None was written is gone on with; after a while the server is asked anew."""
    needs_effect_none(team.cluster.plane)
    if old:
        monkeypatch.setattr("kubectl_dra.taint.apply.RECENT_SECONDS", 0.0)
    team_rules = rules_of(team)
    held = team.running("one")
    left = team_rules.write(rule_for(team, held, effect="NoExecute"), RuleStage("None", "NoExecute")).rule
    kubelet.start()
    report = team.json("taint", team.full(held), f"{KEY}:NoExecute", "--wait=60s")
    assert report["rules"][0]["ruleStatus"]["podCount"] == 1 and report["wait"]["reached"] is True
    rule = team.rule(held)
    assert rule is not None and (rule["metadata"]["uid"] != left["metadata"]["uid"]) is old


def test_rule_deleted_while_waiting(team: Team) -> None:
    held = team.running("one")
    name = rule_name(DeviceID(team.cluster.driver, "pool", held), KEY)
    api = team.cluster.plane.api()

    def delete() -> None:
        path = f"{api.path(team.version, 'DeviceTaintRule')}/{name}"
        wait(lambda: _tried(lambda: api.request("GET", path)), "the rule")
        api.request("DELETE", path)

    deleting = threading.Thread(target=delete)
    deleting.start()
    answer = team.dra("taint", team.full(held), f"{KEY}:NoSchedule", "--wait=60s")
    deleting.join()
    assert answer.code == 1 and f"DeviceTaintRule {name}" in answer.err and "deleted by somebody else" in answer.err


def _tried(call: Any) -> Any:
    try:
        return call()
    except Exception:
        return None


# Waiting


def test_a_pod_that_never_terminates(team: Team) -> None:
    held = team.running("one")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": team.cluster.namespace}}
    team.cluster.api.patch(pod, {"metadata": {"finalizers": ["example.com/stuck"]}})
    report = team.json("taint", team.full(held), f"{KEY}:NoExecute", "--wait=3s", code=1)
    (blocker,) = report["wait"]["blockers"]
    assert report["wait"]["reached"] is False
    assert (
        blocker["pod"] == {"namespace": team.cluster.namespace, "name": "one"}
        and "finalizers: example.com/stuck" in blocker["why"]
    )
    assert blocker["since"].endswith("Z")
    team.cluster.api.patch(pod, {"metadata": {"finalizers": None}})
    team.cluster.api.delete(pod, grace_seconds=0)
    assert team.json("taint", team.full(held), f"{KEY}:NoExecute", "--wait=30s")["wait"]["reached"] is True


def test_a_pod_that_tolerates_stays_and_is_named(team: Team) -> None:
    toleration = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
    held = team.running("one", tolerations=[toleration])
    report = team.json("taint", team.full(held), f"{KEY}:NoExecute", "--wait=2s", code=1)
    (hit,) = report["blastRadius"]["claims"][0]["pods"]
    # 1.34 does not keep the tolerations of requests with an allocation.
    kept = expected(Changed(False, True, ("1.35",)), team.cluster.plane)
    assert (hit["fate"], hit["tolerates"]) == (("stays", True) if kept else ("deleted now", False))
    assert report["blastRadius"]["podsDeleted"] == (0 if kept else 1)
    assert bool(team.cluster.get("Pod", "one", "v1")["metadata"].get("deletionTimestamp")) is not kept
    if kept:
        assert report["rules"][0]["ruleStatus"]["podCount"] == 0
    why = report["wait"]["blockers"][0]["why"]
    assert ("it tolerates the taint" in why) is kept, why


def test_a_device_that_vanishes_while_waiting(team: Team) -> None:
    held = team.running("one")
    kubelet = Kubelet(team.cluster)

    def vanish_and_end() -> None:
        team.cluster.withdraw(team.slices)
        kubelet.start()

    vanish = threading.Timer(3, vanish_and_end)
    vanish.start()
    answer = team.dra("taint", team.full(held), f"{KEY}:NoExecute", "--wait=60s")
    vanish.join()
    kubelet.stop()
    assert answer.code == 0, answer.text
    assert f"device {team.full(held)} is no longer published" in answer.err
    assert "can be taken offline" in answer.out
    # Its rule can be taken back all the same.
    assert team.dra("untaint", team.full(held)).code == 0


# Clusters that do not act on rules

GATE = Changed("DRADeviceTaints", "DRADeviceTaintRules", ("1.35",))
"""The gate that makes a release act on rules."""
BY_DEFAULT = Changed(False, True, ("1.37",))
"""Whether a release serves rules and acts on them without being asked to."""


def test_not_served(defaults_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    answer = Command(capsys)("taint", "gpu-0", f"{KEY}:NoSchedule", "--kubeconfig", str(defaults_plane.kubeconfig))
    assert answer.code == 2 and not answer.out
    if expected(BY_DEFAULT, defaults_plane):
        assert "no device is published" in answer.err
        return
    served = f"--runtime-config=resource.k8s.io/{rule_version(defaults_plane)}=true"
    for text in ("devicetaintrules", served, f"{expected(GATE, defaults_plane)}=true"):
        assert text in answer.err


@pytest.fixture(scope="module")
def plane_without_gate(
    control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Serves DeviceTaintRules, and nothing acts on them."""
    release = parse_release(kubernetes_version())
    version, *_ = versions_of("DeviceTaintRule", release)
    arguments = ["--profile=defaults", f"--runtime-config={GROUP}/{version}=true"]
    if BY_DEFAULT.on(release):
        arguments.append(f"--feature-gates={GATE.on(release)}=false")
    with own_plane(control_plane_program, arguments, tmp_path_factory.mktemp("no-gate")) as plane:
        yield plane


def test_served_with_the_gate_off(plane_without_gate: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    config = ["--kubeconfig", str(plane_without_gate.kubeconfig)]
    answer = Command(capsys)("taint", "gpu-0", f"{KEY}:NoSchedule", *config)
    assert answer.code == 2 and f"feature gate {expected(GATE, plane_without_gate)} off" in answer.err
    assert plane_without_gate.api().list(f"{GROUP}/{rule_version(plane_without_gate)}", "DeviceTaintRule") == []


def test_nobody_answers_the_first_step(
    plane_without_gate: ControlPlane, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is off and its metric may not be read: NoExecute still finds out, and leaves nothing behind."""
    needs_effect_none(plane_without_gate)
    monkeypatch.setattr("kubectl_dra.cli.taint.run.ANSWER_SECONDS", 2.0)
    monkeypatch.setattr("kubectl_dra.taint.device_taint_rules.gates_of", lambda client: {})
    team = Team(Cluster(plane_without_gate, "team"), Command(capsys))
    answer = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoExecute")
    assert answer.code == 2 and "did not answer" in answer.err
    way = "does by default; see" if expected(BY_DEFAULT, plane_without_gate) else "DRADeviceTaintRules=true"
    assert way in answer.err
    assert not team.rules()
    # The same beside a rule that is there.
    assert team.dra("taint", team.full("gpu-0"), f"{KEY}:NoSchedule").code == 0
    answer = team.dra("taint", team.full("gpu-0"), f"{KEY}:NoExecute", "--overwrite")
    assert answer.code == 2 and "did not answer" in answer.err
    assert [rule["spec"]["taint"]["effect"] for rule in team.rules()] == ["NoSchedule"]


def test_the_server_would_delete_more_than_was_foreseen(team: Team) -> None:
    """Whoever may not see pods foresees none; the server knows better, and nothing is done without --yes."""
    needs_effect_none(team.cluster.plane)
    user = bind(team, "taint", ("list", "pods"))
    held = team.running("one")
    command = ["taint", team.full(held), f"{KEY}:NoExecute"]
    answer = team.dra(*command, user=user)
    assert answer.code == 1, answer.text
    assert "the server would delete 1 pod: predicted were 0" in answer.err and "give --yes" in answer.err
    assert not team.rules()
    assert not team.cluster.get("Pod", "one", "v1")["metadata"].get("deletionTimestamp")
    assert team.dra(*command, "--yes", user=user).code == 0
    wait(lambda: team.cluster.get("Pod", "one", "v1")["metadata"].get("deletionTimestamp"), "the eviction")
