"""``kubectl dra taint`` and ``untaint`` without a cluster: usage, saved objects, a server that refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.taint.device_taint_rules import DesiredRule, RuleStage, content
from kubectl_dra.taint.typed import TaintSpec
from tests.cli.conftest import EXAMPLES, ROOT, Dra, Ran, cluster_of, write_list
from tests.taint.world import claim, device_class, gpu, node, pod, result, rule, slice_of
from tools.api_server import Answer, APIServer, Asked, forbidden, status

SCHEMA = json.loads((ROOT / "schemas" / "taint.json").read_text())
OBJECTS = [
    node("n1"),
    device_class(),
    slice_of("n1", gpu("gpu-0", "GPU-a"), gpu("gpu-1", taints=[{"key": "ecc", "effect": "NoSchedule"}])),
    claim("c", result("gpu-0"), pods=("p",)),
    pod("p", "c"),
    rule("theirs", {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}, effect="None"),
]


@pytest.fixture
def saved(tmp_path: Path) -> str:
    return write_list(tmp_path / "cluster.json", OBJECTS)


def checked(ran: Ran) -> dict[str, Any]:
    report: dict[str, Any] = yaml.safe_load(ran.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["taint"], "say which taint"),
        (["taint", "gpu-0"], "say which taint"),
        (["taint", "gpu-0", "k=v"], "has no effect"),
        (["taint", "gpu-0", "k:NoSchedule", "x-"], "two commands"),
        (["taint", "gpu-0", "k:NoSchedule", "--drain"], "--drain ends with NoExecute"),
        (["taint", "gpu-0", "k:None", "--wait"], "--wait"),
        (["taint", "gpu-0", "k:NoSchedule", "--wait=soon"], "not a duration"),
        (["taint", "gpu-0", "k:NoSchedule", "--wait", "1h30m"], "write --wait=1h30m"),
        (["taint", "gpu-0", "k:NoSchedule", "--expires", "never"], "not a duration"),
        (["taint", "gpu-0", "k:NoExecute", "--drain", "--grace", "x"], "not a duration"),
        (["taint", "gpu-0", "k:NoSchedule", "--expires", "0s"], "over at once"),
        (["taint", "gpu-0", "k:NoSchedule", "--reason", "two\nlines"], "printable"),
        (["taint", "gpu-0", "k:NoSchedule", "--ticket", "\x1b[31m"], "printable"),
        (["taint", "--list", "gpu-0"], "leave devices and taints out"),
        (["taint", "gpu-0", "k-", "--reason", "x"], "--reason goes with a taint to add"),
        (["taint", "gpu-0", "k:NoSchedule", "--snapshot", "x.json"], "--dry-run=client"),
        (["untaint", "gpu-0", "--snapshot", "x.json"], "--dry-run=client"),
        (["taint", "gpu-0", "k-", "--snapshot", "x.json"], "--dry-run=client"),
        (["untaint", "gpu-0", "k=v"], "write k-"),
        (["untaint", "gpu-0", "k:Wrong"], "not an effect"),
        (["untaint", "gpu-0", "--expired"], "leave devices and keys out"),
        (["untaint", "gpu-0", "--wait=1x"], "not a duration"),
        (["taint", "gpu-0", "k:NoSchedule"], "kubeconfig"),
    ],
)
def test_usage(dra: Dra, words: list[str], said: str) -> None:
    ran = dra(*words)
    assert ran.code == 2 and said in ran.err and not ran.out


def test_blast_radius_of_saved_objects(dra: Dra, saved: str) -> None:
    command = ["taint", "n1/gpu-0", "k=v:NoExecute", "--dry-run=client", "--reason", "ecc", "--snapshot", saved]
    shown = dra(*command)
    assert shown.code == 0
    for text in (
        "gpu.example.com/n1/gpu-0 (node n1, GPU-a)",
        "team/p",
        "deleted at once",
        "1 of 1 pod will be deleted",
    ):
        assert text in shown.out
    assert "created (gpu.example.com/n1/gpu-0 k=v:NoExecute) (dry run)" in shown.out
    as_json = checked(dra(*command, "-o", "json"))
    (planned,) = as_json["rules"]
    assert planned["deviceTaintRule"]["spec"]["taint"] == {"key": "k", "value": "v", "effect": "NoExecute"}
    assert planned["deviceTaintRule"]["metadata"]["annotations"]["kubectl-dra/reason"] == "ecc"
    # As kubectl create --dry-run=client -o yaml prints an object, for kubectl apply -f -.
    assert yaml.safe_load(dra(*command, "-o", "yaml").out) == planned["deviceTaintRule"]
    names = dra(*command, "-o", "name")
    assert names.out == f"devicetaintrule.resource.k8s.io/{planned['rule']}\n"


@pytest.mark.parametrize("command", [("untaint",), ("taint", "k:NoExecute")])
def test_the_name_of_a_rule_is_no_device(dra: Dra, command: tuple[str, ...]) -> None:
    saved = cluster_of("taint-rule-maintenance")
    verb, *taint = command
    ran = dra(verb, "h100-1-firmware", *taint, "--dry-run=client", "--snapshot", saved)
    assert ran.code == 2 and "it is a DeviceTaintRule" in ran.err
    told = "To end it, destructive (in the cluster, not the snapshot): kubectl delete devicetaintrule/h100-1-firmware"
    assert told in ran.err


def test_what_is_left_of_shared_devices(dra: Dra) -> None:
    """No device is free, but the one that is tainted has 24 of the 72 CPUs that are left."""
    saved = cluster_of("cpu-capacity-exhausted")
    command = ["taint", "telco-2/cpudevnuma000", "k:NoExecute", "--dry-run=client", "--snapshot", saved]
    shown = dra(*command).out
    assert "Class dra.cpu: 72 of 256 dra.cpu/cpu are left to share now, 48 once these pods are gone." in shown
    (left,) = checked(dra(*command, "-o", "json"))["blastRadius"]["byClass"]
    assert left["capacity"] == {"dra.cpu/cpu": {"value": "256", "remaining": "72", "remainingAfter": "48"}}


def test_a_drain_is_shown_as_it_goes(dra: Dra, saved: str) -> None:
    """NoSchedule now, and pods deleted only when --grace is over."""
    command = ["taint", "n1/gpu-0", "k:NoExecute", "--drain", "--grace", "1h", "--dry-run=client", "--snapshot", saved]
    shown = dra(*command).out
    assert "k:NoSchedule, then NoExecute on 1 device:" in shown
    assert "1 of 1 pod will be deleted if still running when --grace is over" in shown
    assert "deleted at once" not in shown and "(if it still runs)" in shown
    assert "created (gpu.example.com/n1/gpu-0 k:NoSchedule, then NoExecute at 2" in shown
    report = checked(dra(*command, "-o", "json"))
    (planned,) = report["rules"]
    assert planned["deviceTaintRule"]["spec"]["taint"] == {"key": "k", "effect": "NoSchedule"}
    notes = planned["deviceTaintRule"]["metadata"]["annotations"]
    (hit,) = report["blastRadius"]["claims"][0]["pods"]
    assert notes["kubectl-dra/next-effect"] == "NoExecute"
    assert (hit["fate"], hit["at"], hit["drained"]) == ("deleted later", notes["kubectl-dra/next-effect-at"], True)


def own_rule(effect: str, version: str) -> dict[str, Any]:
    """The rule that ``taint n1/gpu-0 k:EFFECT`` makes."""
    desired = DesiredRule(DeviceID("gpu.example.com", "n1", "gpu-0"), TaintSpec("k", "", effect), hardware="GPU-a")
    return content(desired, RuleStage(effect), version)


@pytest.mark.parametrize(
    ("there", "words", "outcome", "code"),
    [
        ("NoSchedule", ["k:NoSchedule"], "unchanged", 0),
        ("NoSchedule", ["k:NoExecute"], "refused", 1),
        ("NoSchedule", ["k:NoExecute", "--overwrite"], "changed", 0),
        ("NoExecute", ["k:NoExecute", "--drain"], "unchanged", 0),
    ],
)
def test_saved_rules_are_compared_like_those_of_a_cluster(
    dra: Dra, tmp_path: Path, there: str, words: list[str], outcome: str, code: int
) -> None:
    """The object is in the version that the snapshot has."""
    items = [*OBJECTS[:-1], own_rule(there, "v1beta2")]
    path = write_list(tmp_path / "cluster.json", items)
    command = ["taint", "n1/gpu-0", *words, "m:NoSchedule", "--dry-run=client", "--snapshot", path, "-o", "json"]
    if "--drain" in words:
        command.remove("m:NoSchedule")
    ran = dra(*command)
    report = checked(ran)
    first, *others = report["rules"]
    assert (first["outcome"], ran.code, report["exitCode"]) == (outcome, code, code)
    assert {rule["outcome"] for rule in others} <= {"skipped" if code else "created"}
    assert {rule["deviceTaintRule"]["apiVersion"] for rule in report["rules"]} == {"resource.k8s.io/v1beta2"}


@pytest.mark.parametrize(
    ("release", "version"),
    [("v1.37.1", "v1"), ("v1.36.4", "v1beta2"), ("v1.35.0", "v1alpha3"), ("v1.32.0", "v1alpha3")],
)
def test_without_rules_the_release_tells_their_version(dra: Dra, tmp_path: Path, release: str, version: str) -> None:
    said = {"schemaVersion": "1", "serverVersion": release}
    path = write_list(tmp_path / "cluster.json", OBJECTS[:-1], **said)
    ran = dra("taint", "n1/gpu-0", "k:NoSchedule", "--dry-run=client", "--snapshot", path, "-o", "json")
    assert checked(ran)["rules"][0]["deviceTaintRule"]["apiVersion"] == f"resource.k8s.io/{version}"


def test_claims_that_were_not_read(dra: Dra, tmp_path: Path) -> None:
    """Without the claims nobody can say that no pod is hit."""
    items = [entry for entry in OBJECTS if entry["kind"] != "ResourceClaim"]
    path = write_list(tmp_path / "cluster.json", items)
    command = ["taint", "n1/gpu-0", "k:NoExecute", "--dry-run=client", "--snapshot", path]
    shown = dra(*command)
    assert "Which claims and pods use it is unknown: there is no ResourceClaim in what was read" in shown.out
    assert "No claim uses" not in shown.out and "how many of them are free is unknown" in shown.out
    assert "warning: not all claims could be read" in shown.err
    report = checked(dra(*command, "-o", "json"))
    radius = report["blastRadius"]
    assert radius["podsDeleted"] is None and radius["byClass"] == [
        {"name": "gpu", "deviceCount": 2, "freeCount": None, "freeAfter": None}
    ]
    assert radius["unread"] == [{"kind": "ResourceClaim", "reason": "absent", "decides": True}]
    assert any("not all claims could be read" in warning for warning in report["warnings"])
    listed = checked(dra("taint", "--list", "--snapshot", path, "-o", "json"))
    assert listed["notes"] == ["not seen: there is no ResourceClaim in what was read: who uses a device is not known"]


def test_claims_of_one_namespace_that_were_not_read(dra: Dra, tmp_path: Path) -> None:
    """What is known is told, as the least that happens."""
    gaps = [{"kind": "ResourceClaim", "reason": "forbidden", "namespace": "other"}]
    path = write_list(tmp_path / "cluster.json", OBJECTS, gaps=gaps)
    shown = dra("taint", "n1/gpu-0", "k:NoExecute", "--dry-run=client", "--snapshot", path)
    assert "More claims may use it: the ResourceClaims of namespace other could not be read (list" in shown.out
    assert "at least 1 of 1 pod will be deleted" in shown.out


def test_what_follows_a_dry_run_can_be_followed(dra: Dra, saved: str) -> None:
    shown = dra("taint", "n1/gpu-0", "k:NoExecute", "--dry-run=client", "--snapshot", saved)
    assert shown.out.endswith("The same command without --dry-run and --snapshot does it on the cluster.\n")
    ran = dra("untaint", "n1/gpu-0", "--dry-run=client", "--snapshot", saved)
    assert f"Every taint: kubectl dra taint --list --snapshot {saved}\n" in ran.out
    assert dra(*["taint", "--list", "--snapshot", saved]).code == 0


def test_a_key_without_its_dash(dra: Dra, saved: str) -> None:
    ran = dra("untaint", "n1/gpu-0", "maintenance", "--dry-run=client", "--snapshot", saved)
    assert ran.code == 2 and ran.err.endswith("To remove a taint with this key write maintenance-\n")
    assert "write ecc-" in dra("untaint", "ecc", "--dry-run=client", "--snapshot", saved).err
    assert "write" not in dra("untaint", "gpu-9", "--dry-run=client", "--snapshot", saved).err


@pytest.mark.parametrize("words", [["taint", "gpu-0", "k:NoSchedule"], ["untaint", "gpu-0"]])
@pytest.mark.parametrize("more", [[], ["--yes"]])
def test_a_dry_run_of_no_kind(dra: Dra, words: list[str], more: list[str]) -> None:
    ran = dra(*words, "--dry-run", *more)
    assert ran.code == 2 and "--dry-run=client" in ran.err and f"kubectl dra {words[0]} --help" in ran.err


def test_a_pod_has_one_row_for_several_taints(dra: Dra, saved: str) -> None:
    ran = dra("taint", "n1/gpu-0", "m:NoSchedule", "a:NoExecute", "--dry-run=client", "--snapshot", saved)
    (row,) = [line for line in ran.out.splitlines() if line.startswith("team/p ")]
    assert "deleted at once" in row


def test_two_devices_and_a_taint_of_the_driver(dra: Dra, saved: str) -> None:
    ran = dra("taint", "--node", "n1", "k:NoSchedule", "--dry-run=client", "--snapshot", saved, "-o", "json")
    report = checked(ran)
    assert [entry["device"] for entry in report["rules"]] == ["gpu-0", "gpu-1"]
    assert any("gpu-1 has taint ecc:NoSchedule (driver) already" in warning for warning in report["warnings"])


def test_list(dra: Dra, saved: str) -> None:
    items = checked(dra("taint", "--list", "--snapshot", saved, "-o", "json"))["items"]
    assert [(item["owner"]["kind"], item["taint"]["effect"], item["pods"]) for item in items] == [
        ("DeviceTaintRule", "None", [{"namespace": "team", "name": "p"}]),
        ("ResourceSlice", "NoSchedule", []),
    ]
    table = dra("taint", "--list", "--snapshot", saved).out
    assert "rule theirs (not made by kubectl dra)" in table and "driver (ResourceSlice" in table
    assert dra("taint", "--list", "--snapshot", saved, "-o", "name").out == "devicetaintrule.resource.k8s.io/theirs\n"


def test_untaint_of_saved_objects(dra: Dra, saved: str) -> None:
    """What would be removed, and what would stay; nothing is asked of any cluster."""
    command = ["untaint", "--node", "n1", "--dry-run=client", "--snapshot", saved]
    nothing = dra(*command)
    assert nothing.code == 1 and "gpu-0 keeps taint k:None of DeviceTaintRule theirs" in nothing.out
    told = checked(dra(*command, "--overwrite", "-o", "json"))
    assert [(entry["rule"], entry["outcome"]) for entry in told["removed"]] == [("theirs", "removed")]
    assert [entry["taint"] for entry in told["staying"]] == [{"key": "ecc", "effect": "NoSchedule"}]
    assert "theirs deleted (gpu.example.com/n1/gpu-0 k:None) (dry run)" in dra(*command, "--overwrite").out


@pytest.mark.parametrize(
    ("command", "word"),
    [
        *((command, word) for command in ("taint", "untaint") for word in ("k=v:None-", "k:None-", "k-")),
        ("untaint", "k:None"),
        ("untaint", "k=v:None"),
    ],
)
def test_taints_to_remove_are_named_as_for_kubectl(dra: Dra, saved: str, command: str, word: str) -> None:
    words = [command, "n1/gpu-0", word, "--overwrite", "--dry-run=client", "--snapshot", saved]
    ran = dra(*words)
    assert ran.code == 0 and "theirs deleted (gpu.example.com/n1/gpu-0 k:None) (dry run)" in ran.out, ran.err
    other = dra(*words[:2], "k:NoExecute-", *words[3:])
    assert other.code == 1 and "gpu-0 keeps taint k:None" in other.out


def test_waiting_ends_with_what_is_true(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    """A device that a claim holds, or of which that is unknown, is not said to be allocatable."""
    plurals = {
        "ResourceSlice": "resourceslices",
        "ResourceClaim": "resourceclaims",
        "DeviceTaintRule": "devicetaintrules",
    }
    server.serve_group(v1=tuple(plurals.values()))
    server.routes["/version"] = {"gitVersion": "v1.37.1"}
    root = "/apis/resource.k8s.io/v1"
    slice_ = slice_of("n1", gpu("gpu-0"), gpu("gpu-1"))
    for kind, plural in plurals.items():
        server.routes[f"{root}/{plural}"] = [raw for raw in (slice_, *OBJECTS[3:4]) if raw["kind"] == kind]
    server.routes["/api/v1/nodes"] = [node("n1")]
    words = ["untaint", "--node", "n1", "--wait=20s", "--kubeconfig", server.kubeconfig(tmp_path)]
    held = dra(*words)
    assert held.code == 0, held.err
    assert "gpu.example.com/n1/gpu-0 is untainted: held by team/c (pod p).\n" in held.out
    assert "Allocatable again: gpu.example.com/n1/gpu-1.\n" in held.out
    (first, second) = checked(dra(*words, "-o", "json"))["wait"]["devices"]
    assert (first["state"], first["heldBy"][0]["name"], second["state"]) == ("held", "c", "free")
    free = dra("untaint", "gpu-1", *words[3:])
    assert free.out.endswith("Allocatable again.\n")
    server.routes[f"{root}/resourceclaims"] = forbidden("resourceclaims.resource.k8s.io")
    unknown = dra(*words)
    assert unknown.code == 0 and "Allocatable again" not in unknown.out
    assert "gpu-1 are untainted: no ResourceClaims could be read" in unknown.flat, unknown.out


def test_nothing_to_remove_is_said_beside_names(dra: Dra, saved: str) -> None:
    ran = dra("untaint", "n1/gpu-0", "--dry-run=client", "--snapshot", saved, "-o", "name")
    assert ran.code == 1 and not ran.out and "There is no rule of kubectl dra to remove" in ran.err


def test_what_others_wrote_into_a_rule_is_not_obeyed(dra: Dra, tmp_path: Path) -> None:
    notes = {"kubectl-dra/reason": "\x1b[31mred\nline", "kubectl-dra/ticket": "\x07"}
    theirs = rule("theirs", {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}, annotations=notes)
    path = write_list(tmp_path / "cluster.json", [*OBJECTS[:-1], theirs])
    table = dra("taint", "--list", "--snapshot", path).out
    assert "\\u001b[31mred line " in table and "\x1b" not in table and "\x07" not in table


def test_pods_that_go_anyway(dra: Dra, tmp_path: Path) -> None:
    going = pod("p", "c", deletionTimestamp="2026-11-21T10:00:00Z", deletionGracePeriodSeconds=30)
    path = write_list(tmp_path / "cluster.json", [*OBJECTS[:4], going])
    command = ["taint", "n1/gpu-0", "k:NoSchedule", "--dry-run=client", "--snapshot", path]
    shown = dra(*command).out
    assert "1 pod uses the device and is being deleted already." in shown and "stays" not in shown


def test_many_devices_pods_and_rules_are_summed_up(dra: Dra, tmp_path: Path) -> None:
    objects: list[Any] = [device_class()]
    for number in range(60):
        name = f"n{number:02}"
        objects += [node(name), slice_of(name, gpu("gpu-0"), gpu("gpu-1"))]
        taken = claim(f"c-{number}", result("gpu-0", pool=name), result("gpu-1", pool=name), pods=(f"p-{number}",))
        objects += [taken, pod(f"p-{number}", f"c-{number}", node_name=name)]
    tolerating = objects[3]["status"]["allocation"]["devices"]["results"]
    for each in tolerating:
        each["tolerations"] = [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]
    path = write_list(tmp_path / "many.json", objects)
    command = ["taint", "--class", "gpu", "k:NoExecute", "--dry-run=client", "--snapshot", path]
    shown = dra(*command).out
    assert "k:NoExecute on 120 devices:" in shown and "and 40 more places: -o json has all of them" in shown
    # A claim with two of the devices is one row, and those that are deleted come first.
    assert "and 40 more rows: -o json has all of them" in shown and "stays" not in shown
    rules = "120 devicetaintrules.resource.k8s.io created (k:NoExecute) (dry run): gpu-0-"
    assert rules in shown and " and 117 more" in shown and len(shown.splitlines()) < 90
    assert "gpu.example.com/n00/gpu-0,1 (node n00)" in shown
    report = checked(dra(*command, "-o", "json"))
    assert len(report["rules"]) == 120 and len(report["blastRadius"]["claims"]) == 120
    assert report["blastRadius"]["podsDeleted"] == 59


# A server that does not take rules


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    yield started
    started.close()


def ask(dra: Dra, server: APIServer, tmp_path: Path, version: str) -> Ran:
    server.routes["/version"] = {"gitVersion": version}
    return dra("taint", "gpu-0", "k:NoSchedule", "--kubeconfig", server.kubeconfig(tmp_path))


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1.32.3", "Kubernetes 1.32 does not have them"),
        ("v1.34.1", "--feature-gates=DRADeviceTaints=true"),
        ("v1.35.1-eks-1", "--feature-gates=DRADeviceTaints=true,DRADeviceTaintRules=true"),
        ("v1.36.4", "--runtime-config=resource.k8s.io/v1beta2=true"),
        ("v1.37.1", "Kubernetes 1.37 does by default"),
    ],
)
def test_not_served(dra: Dra, server: APIServer, tmp_path: Path, version: str, said: str) -> None:
    server.serve_group(v1=("resourceclaims", "resourceslices"))
    ran = ask(dra, server, tmp_path, version)
    assert ran.code == 2 and said in ran.err and {asked.method for asked in server.asked} == {"GET"}


def test_saved_objects_of_a_cluster_without_dra(dra: Dra, tmp_path: Path) -> None:
    gaps = [{"kind": kind, "reason": "not served"} for kind in ("ResourceSlice", "ResourceClaim")]
    told = {"schemaVersion": "1", "serverVersion": "v1.29.4", "read": ["ResourceSlice", "ResourceClaim"], "gaps": gaps}
    (file := tmp_path / "old.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "kubectl-dra": told, "items": []})
    )
    for words in (
        ["taint", "--list"],
        ["taint", "gpu-0", "k:None", "--dry-run=client"],
        ["untaint", "gpu-0", "--dry-run=client"],
    ):
        ran = dra(*words, "--snapshot", str(file))
        assert (ran.code, ran.out) == (1, "") and ran.err.startswith("This cluster has no DRA: v1.29.4 "), ran.err


@pytest.mark.parametrize(
    ("versions", "used"),
    [
        (("v1", "v1beta2", "v1alpha3"), "v1"),
        (("v1beta2", "v1alpha3"), "v1beta2"),
        (("v1alpha3",), "v1alpha3"),
    ],
)
def test_the_newest_version_served_is_used(
    dra: Dra, server: APIServer, tmp_path: Path, versions: tuple[str, ...], used: str
) -> None:
    served = dict.fromkeys(versions, ("devicetaintrules",))
    server.serve_group(**{**served, "v1": ("resourceclaims", "resourceslices", *served.get("v1", ()))})
    for kind in ("resourceslices", "resourceclaims"):
        plural = "ResourceSlice" if kind == "resourceslices" else "ResourceClaim"
        server.routes[f"/apis/resource.k8s.io/v1/{kind}"] = [raw for raw in OBJECTS if raw["kind"] == plural]
    server.routes[f"/apis/resource.k8s.io/{used}/devicetaintrules"] = []
    server.routes["/version"] = {"gitVersion": "v1.36.4"}
    words = ["taint", "gpu-0", "k:NoSchedule", "--dry-run=client", "-o", "json"]
    report = checked(dra(*words, "--kubeconfig", server.kubeconfig(tmp_path)))
    assert report["rules"][0]["deviceTaintRule"]["apiVersion"] == f"resource.k8s.io/{used}"
    assert {asked.method for asked in server.asked} == {"GET"}


def test_a_gate_that_is_off(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    server.serve_group(v1=("resourceslices",), v1beta2=("devicetaintrules",))
    metric = 'kubernetes_feature_enabled{name="DRADeviceTaintRules",stage="BETA"} 0\n'
    server.routes["/metrics"] = lambda asked: _text(metric)
    ran = ask(dra, server, tmp_path, "v1.36.4")
    assert ran.code == 2 and "DRADeviceTaintRules off" in ran.err


@pytest.mark.parametrize(("seen", "code"), [(True, 0), (False, 3)])
def test_gates_that_cannot_be_seen_leave_a_dry_run_open(
    dra: Dra, server: APIServer, tmp_path: Path, seen: bool, code: int
) -> None:
    """By default nothing acts on rules of 1.36, and without the right to get /metrics nobody sees more."""
    kinds = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
    server.serve_group(v1=kinds, v1beta2=("devicetaintrules",))
    for kind in kinds:
        server.routes[f"/apis/resource.k8s.io/v1/{kind}"] = [
            raw for raw in OBJECTS if f"{raw['kind'].lower()}s".replace("sss", "sses") == kind
        ]
    server.routes["/apis/resource.k8s.io/v1beta2/devicetaintrules"] = []
    for kind in ("pods", "nodes", "namespaces"):
        server.routes[f"/api/v1/{kind}"] = []
    for kind in ("apps/v1/daemonsets", "apps/v1/statefulsets", "scheduling.k8s.io/v1/priorityclasses"):
        server.routes[f"/apis/{kind}"] = []
    server.routes["/version"] = {"gitVersion": "v1.36.4"}
    metric = 'kubernetes_feature_enabled{name="DRADeviceTaintRules",stage="BETA"} 1\n'
    server.routes["/metrics"] = (lambda asked: _text(metric)) if seen else forbidden("metrics")
    words = ["taint", "gpu-0", "k:NoSchedule", "--dry-run=client", "-o", "json"]
    report = checked(dra(*words, "--kubeconfig", server.kubeconfig(tmp_path)))
    assert report["exitCode"] == code
    assert any("undetermined whether anything acts" in warning for warning in report["warnings"]) is not seen


def _text(text: str) -> Any:
    from tools.api_server import Answer

    return Answer(200, text.encode())


def test_slices_that_may_not_be_read(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    server.serve_group(v1=("resourceslices", "devicetaintrules"))
    server.routes["/apis/resource.k8s.io/v1/resourceslices"] = forbidden("resourceslices.resource.k8s.io")
    ran = ask(dra, server, tmp_path, "v1.37.1")
    assert (
        ran.code == 2 and "(list resourceslices.resource.k8s.io is forbidden)" in ran.err and ran.err.count("\n") == 1
    )


@pytest.mark.parametrize("words", [["taint", "--list"], ["taint", "--list", "-o", "json"], ["devices", "--tainted"]])
def test_taints_that_could_not_be_read_are_not_absent(dra: Dra, tmp_path: Path, words: list[str]) -> None:
    kind = "DeviceTaintRule"
    left = [item for item in OBJECTS if item["kind"] != kind]
    said = {"schemaVersion": "1", "gaps": [{"kind": kind, "reason": "forbidden"}]}
    path = write_list(tmp_path / "cluster.json", left, **said)
    ran = dra(*words, "--snapshot", path)
    assert ran.code == 3 and "No device is tainted." not in ran.out


@pytest.mark.parametrize("kind", ["resourceslices", "devicetaintrules"])
@pytest.mark.parametrize("words", [["taint", "--list"], ["taint", "--list", "-o", "json"], ["devices", "--tainted"]])
def test_taints_that_a_server_does_not_show_are_not_absent(
    dra: Dra, server: APIServer, tmp_path: Path, words: list[str], kind: str
) -> None:
    server.serve_group(v1=("deviceclasses", "resourceclaims", "resourceslices", "devicetaintrules"))
    server.routes["/version"] = {"gitVersion": "v1.37.1"}
    for plural in ("deviceclasses", "resourceclaims", "resourceslices", "devicetaintrules"):
        server.routes[f"/apis/resource.k8s.io/v1/{plural}"] = []
    for plural in ("pods", "nodes", "namespaces"):
        server.routes[f"/api/v1/{plural}"] = []
    server.routes[f"/apis/resource.k8s.io/v1/{kind}"] = forbidden(f"{kind}.resource.k8s.io")
    ran = dra(*words, "--kubeconfig", server.kubeconfig(tmp_path))
    assert ran.code == 3 and "No device is tainted." not in ran.out


def test_another_object_is_no_rule(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    server.serve_group(v1=("resourceclaims", "resourceslices", "devicetaintrules"))
    server.routes["/version"] = {"gitVersion": "v1.37.1"}
    root = "/apis/resource.k8s.io/v1"
    server.routes[f"{root}/resourceslices"] = [raw for raw in OBJECTS if raw["kind"] == "ResourceSlice"]
    server.routes[f"{root}/resourceclaims"] = server.routes[f"{root}/devicetaintrules"] = []

    def answer(asked: Asked) -> Answer:
        if asked.method != "PATCH":
            return status(404, "NotFound", "not found")
        return Answer(200, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": asked.path.split("/")[-1]}})

    words = ["taint", "gpu-0", "k:NoSchedule", "--dry-run=client", "-o", "json"]
    config = server.kubeconfig(tmp_path)
    for planned in checked(dra(*words, "--kubeconfig", config))["rules"]:
        server.routes[f"{root}/devicetaintrules/{planned['deviceTaintRule']['metadata']['name']}"] = answer
    ran = dra("taint", "gpu-0", "k:NoSchedule", "--yes", "--kubeconfig", config)
    assert ran.code == 2 and "the answer is another object" in ran.err + ran.out and "created" not in ran.out


def test_a_rule_that_keeps_several_devices_is_named_once(dra: Dra) -> None:
    example = EXAMPLES / "taint-rule-maintenance" / "cluster.yaml"
    ran = dra("untaint", "--node", "h100-1", "--dry-run=client", "--snapshot", str(example))
    told = ran.flat
    assert told.count("kubectl delete devicetaintrule/h100-1-firmware") == 1
    assert "h100-1/gpu-3 keep taint ops.example.com/maintenance=firmware:NoSchedule" in told


def test_a_device_that_only_an_unused_claim_holds(dra: Dra) -> None:
    cluster = EXAMPLES / "all-held" / "cluster.yaml"
    for effect in ("NoExecute", "NoSchedule"):
        words = ("taint", "l40s-2/gpu-3", f"maintenance:{effect}", "--dry-run=client", "--snapshot", str(cluster))
        out = dra(*words).out
        assert "No pod uses it; unused claim research/scratch-gpu holds it." in out, out
        assert "0 pods" not in out and "of 0" not in out


def test_a_device_that_only_an_older_slice_has(dra: Dra) -> None:
    """It is no misspelled neighbour: a rule selects it by its name, and hits it when its pool has it again."""
    path = cluster_of("pool-incomplete")
    device = "gpu.nvidia.com/a30-1/gpu-1"
    older = f"{device} is only in an older slice, of generation 3, and its pool is at 4"
    ran = dra("taint", "a30-1/gpu-1", "k=v:NoSchedule", "--dry-run=client", "--snapshot", path)
    assert ran.code == 3 and f"{device} (in an older slice)" in ran.out
    assert older in " ".join(ran.err.split()) and "has the taint then" in " ".join(ran.err.split())
    for words in (["devices", "a30-1/gpu-1"], ["explain", "device/a30-1/gpu-1"]):
        ran = dra(*words, "--snapshot", path)
        assert ran.code == 2 and older in " ".join(ran.err.split()) and "did you mean" not in ran.err
    assert "did you mean a30-1/gpu-0" in dra("devices", "a30-1/gpu-9", "--snapshot", path).err


def test_alike_warnings_are_said_once(dra: Dra) -> None:
    path = cluster_of("amd-partitions-in-use")
    ran = dra("taint", "--class", "gpu.amd.com-spx", "k=v:NoExecute", "--dry-run=client", "--snapshot", path)
    warnings = [" ".join(text.split()) for text in ran.err.split("warning: ") if "spx" in text]
    assert [text.partition(":")[0] for text in warnings] == [
        "gpu.amd.com/mi300x-1/gpu-0..7-spx-nps1, gpu.amd.com/mi300x-2/gpu-0..7-spx-nps1 share counters with 48 devices "
        "that the taint does not cover, 11 of them in use",
        "gpu.amd.com/mi300x-2/gpu-0..7-spx-nps1 have taint gpu.amd.com/memory-partition-conflict=nps4",
    ]


def test_a_cluster_that_may_not_serve_rules_promises_nothing(dra: Dra) -> None:
    """Who is hit is the answer; the doubt is one sentence behind it, and in the exit code and the JSON."""
    path = cluster_of("fits")
    device = dra("devices", "--snapshot", path, "-o", "name").out.split()[0]
    words = ["taint", device, "k=v:NoExecute", "--dry-run=client", "--snapshot", path]
    ran = dra(*words)
    said = ran.flat
    doubt = "Whether it works there is unknown: nothing saved shows that the cluster serves DeviceTaintRules."
    assert ran.code == 3 and ran.out.startswith("k=v:NoExecute on 1 device:")
    assert said.index(" before other pods take any.") < said.index(doubt) < said.index("Nothing was changed.")
    assert "warning: in 1.36 rules need v1beta2 and gate DRADeviceTaintRules (off by default)\n" in ran.err
    assert "does it on the cluster, if that serves DeviceTaintRules." in ran.flat
    found = checked(dra(*words, "-o", "json"))
    assert (found["exitCode"], found["rulesServed"]) == (3, None)
    rules = cluster_of("taint-rule-maintenance")
    held = dra("devices", "--snapshot", rules, "-o", "name").out.split()[0]
    ran = dra("taint", held, "k=v:NoExecute", "--dry-run=client", "--snapshot", rules, "-o", "json")
    assert (ran.code, checked(ran)["rulesServed"]) == (0, True)


def test_a_replacement_may_get_a_node_where_it_does_not_start(dra: Dra) -> None:
    """The driver of h100-1 is away: the scheduler does not know, and may place the new pod there."""
    path = cluster_of("driver-gone-from-node")
    ran = dra("taint", "h100-1/gpu-0", "k=v:NoExecute", "--dry-run=client", "--snapshot", path)
    assert "ml/rollout-3: whether the pod that its owner makes instead gets a place and starts is unknown." in ran.flat
    words = ["taint", "h100-1/gpu-0", "k=v:NoExecute", "--dry-run=client", "--snapshot", path, "-o", "json"]
    (new,) = checked(dra(*words))["blastRadius"]["replacements"]
    assert (new["name"], new["ownedBy"], new["made"], new["hasPlace"]) == ("rollout-3", "Job/rollout", True, None)


def test_devices_that_have_no_short_name_are_counted(dra: Dra) -> None:
    path = cluster_of("amd-partitions-in-use")
    ran = dra("taint", "--class", "gpu.amd.com", "a:NoExecute", "--dry-run=client", "--snapshot", path)
    said = ran.flat
    assert "gpu.amd.com/mi300x-1/gpu-0-cpx-nps1 and 29 more (node mi300x-1)" in said
    assert "64 devicetaintrules.resource.k8s.io created (a:NoExecute) (dry run): gpu-0-spx-nps1-" in said
    assert " and 61 more Nothing was changed." in said


def test_a_rule_that_is_warned_of_has_the_command_that_ends_it(dra: Dra) -> None:
    path = cluster_of("taint-rule-evicts-all")
    ran = dra("taint", "--list", "--snapshot", path)
    assert "warning: rule h100-2-swap" in ran.out
    assert "it selects every device of the cluster." in ran.flat
    last = ran.out.splitlines()[-1]
    assert last.strip().startswith("Destructive (in the cluster") and last.endswith(
        "$ kubectl delete devicetaintrule/h100-2-swap"
    )
