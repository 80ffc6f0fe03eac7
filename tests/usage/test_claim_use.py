"""The state of a claim, its owner, and what it waits for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Gap, Snapshot
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.report.phrases import written
from kubectl_dra.report.table import owned_by
from kubectl_dra.usage.choices import ClaimState
from kubectl_dra.usage.claim_use import claim_uses
from tests.explain.test_on_nodes import EXPECTED, NAMES, RECORDED, gates
from tests.ran import ran

Json = dict[str, Any]
DRIVER = "gpu.example.com"


def claim(name: str, *devices: str, users: tuple[str, ...] = (), meta: Json | None = None, **result: Any) -> Json:
    """A claim of namespace ml with these devices of node n1, reserved for pods (``name`` or ``name:uid``)."""
    made: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", **(meta or {})},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    if devices:
        results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": one, **result} for one in devices]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        made["status"] = {
            "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
            "reservedFor": [
                {"resource": "pods", "name": user.partition(":")[0], "uid": user.partition(":")[2] or user}
                for user in users
            ],
        }
    return made


def pod(name: str, claim_name: str, phase: str, node: str = "", **meta: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": name, **meta},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
        },
        "status": {
            "phase": phase,
            "conditions": [] if node else [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Makes a snapshot of objects; ``live`` says that it is all that a server has."""

    def make(*objects: Json, live: bool = False) -> Snapshot:
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        found = read_snapshot([str(path)])
        if not live:
            return found
        from msgspec.structs import replace

        return replace(found, release_source="server", gaps=())

    return make


RUNNING = pod("p", "c", "Running", "n1")


@pytest.mark.parametrize(
    ("objects", "state", "waits_for"),
    [
        ([claim("c")], "unknown", ""),
        ([claim("c"), pod("other", "d", "Pending")], "no-pod", "a pod that uses it"),
        ([claim("c"), pod("p", "c", "Pending")], "pending", "a node for pod p (Unschedulable)"),
        ([claim("c"), pod("p", "c", "Failed", "n1")], "no-pod", "a pod that uses it"),
        ([claim("c", "gpu-0")], "unused", "a pod that uses it, or somebody who deletes it"),
        (
            [claim("c", "gpu-0"), pod("p", "c", "Pending", "n1")],
            "starting",
            "its reservation for pod p, which is on node n1 without one",
        ),
        ([claim("c", "gpu-0"), pod("p", "c", "Pending")], "unused", "a node for pod p (Unschedulable)"),
        ([claim("c", "gpu-0", users=("p",)), RUNNING], "in-use", ""),
        ([claim("c", "gpu-0", users=("q", "p")), pod("q", "c", "Pending", "n1"), RUNNING], "in-use", ""),
        (
            [claim("c", "gpu-0", users=("p",)), pod("p", "c", "Pending", "n1")],
            "starting",
            "pod p to start (Pending)",
        ),
        (
            [claim("c", "gpu-0", users=("p",)), pod("p", "c", "Succeeded", "n1")],
            "ended",
            "its reservation for pod p to be removed (it is Succeeded)",
        ),
        (
            [claim("c", "gpu-0", users=("p:earlier",)), RUNNING],
            "ended",
            "its reservation for pod p to be removed (an earlier pod of that name)",
        ),
        (
            [
                claim("c", "gpu-0", users=("p",)),
                pod("p", "c", "Running", "n1", deletionTimestamp="2126-01-01T00:00:00Z"),
            ],
            "terminating",
            "pod p to end (terminating since 2126-01-01T00:00:00Z)",
        ),
        (
            [
                claim("c", "gpu-0", users=("p",)),
                pod("p", "c", "Running", "n1", deletionTimestamp="2026-01-01T00:00:00Z"),
                pod("later", "d", "Running", "n1", creationTimestamp="2026-01-01T03:00:00Z"),
            ],
            "terminating",
            "pod p to end: its grace period ended 3 hours ago",
        ),
        (
            [claim("c", "gpu-0", meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]})],
            "terminating",
            "finalizers to be removed: x/y",
        ),
        ([claim("c", "gpu-0", users=("p",))], "reserved", ""),
        (
            [claim("c", "gpu-0", users=("p",), bindingConditions=["ready"]), pod("p", "c", "Pending")],
            "binding",
            f"condition ready of device {DRIVER}/n1/gpu-0",
        ),
    ],
)
def test_states(read: Any, objects: list[Json], state: str, waits_for: str) -> None:
    (found,) = claim_uses(read(*objects)).items
    assert (found.state.value, written(found.waits_for)) == (state, waits_for)


@pytest.mark.parametrize(
    ("uid", "of_event", "same"),
    [("p", "p", True), ("", "p", True), ("p", "", True), ("p", "earlier", False)],
)
def test_events_of_a_pod_saved_without_its_uid(read: Any, uid: str, of_event: str, same: bool) -> None:
    about = {"kind": "Pod", "namespace": "ml", "name": "p", "uid": of_event}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "p.1", "namespace": "ml"}}
    event |= {"involvedObject": about, "reason": "FailedPrepareDynamicResources", "message": "driver says no"}
    snapshot = read(claim("c", "gpu-0", users=("p",)), pod("p", "c", "Pending", "n1", uid=uid), event)
    assert bool(snapshot.events_of(snapshot.pods["ml", "p"], "FailedPrepareDynamicResources")) == same
    (found,) = claim_uses(snapshot).items
    assert (written(found.waits_for) != "pod p to start (Pending)") == same


def test_a_pod_that_a_whole_cluster_does_not_have_is_gone(read: Any) -> None:
    (found,) = claim_uses(read(claim("c", "gpu-0", users=("p",)), RUNNING | {"kind": "Pod"}, live=True)).items
    assert found.state == "in-use"
    (found,) = claim_uses(read(claim("c", "gpu-0", users=("q",)), RUNNING, live=True)).items
    assert (found.state, written(found.waits_for)) == (
        "ended",
        "its reservation for pod q to be removed (the pod does not exist any more)",
    )


def test_node_pods_and_owner(read: Any) -> None:
    controller = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-7c9d5b8f6",
        "uid": "r",
        "controller": True,
    }
    used = pod("p", "c", "Running", "n1", ownerReferences=[controller], labels={"pod-template-hash": "7c9d5b8f6"})
    (found,) = claim_uses(read(claim("c", "gpu-0", "gpu-1", users=("p",)), used)).items
    assert (owned_by(found.owner), found.node, found.pods, len(found.results)) == ("Deployment/web", "n1", ("p",), 2)
    used["metadata"]["labels"] = {}
    (found,) = claim_uses(read(claim("c", "gpu-0", users=("p",)), used)).items
    assert owned_by(found.owner) == "ReplicaSet/web-7c9d5b8f6"
    used["metadata"]["labels"] = {"rollouts-pod-template-hash": "7c9d5b8f6"}
    (found,) = claim_uses(read(claim("c", "gpu-0", users=("p",)), used)).items
    assert owned_by(found.owner) == "Rollout/web"
    (found,) = claim_uses(read(claim("c", "gpu-0"))).items
    assert (found.owner, found.node, found.pods) == (None, "n1", ())


def test_admin_access_holds_nothing(read: Any) -> None:
    (found,) = claim_uses(read(claim("c", "gpu-0", users=("p",), adminAccess=True), RUNNING)).items
    assert found.state == "in-use" and found.results == ()


def test_selection_and_gaps(read: Any) -> None:
    snapshot = read(claim("c"), claim("d", "gpu-0"))
    assert [one.claim.metadata.name for one in claim_uses(snapshot, "ml").items] == ["c", "d"]
    assert claim_uses(snapshot, "other").items == ()
    assert [one.claim.metadata.name for one in claim_uses(snapshot, states=(ClaimState.UNUSED,)).items] == ["d"]
    (unread,) = claim_uses(snapshot).unread
    assert written(unread) == (
        "there is no Pod in what was read, so which pods use the claims is unknown; if the cluster has none, add "
        "--complete"
    )
    from msgspec.structs import replace

    with pytest.raises(UndeterminedError, match=r"no ResourceClaims could be read \(list resourceclaims"):
        claim_uses(replace(snapshot, gaps=(Gap("ResourceClaim", "forbidden", detail="no"),)))


# What `claims` says a claim waits for, and that no command alarms, in recorded states of real nodes.


WAITS = {
    "prepare-error": "node gpu-1 to prepare the devices of pod train (failing since 20",
    "unprepare-error": "and driver gpu.example.com on node gpu-1 has not given its devices back",
    "slices-wiped-before-end": "driver gpu.example.com is away from node gpu-1: nobody can release its devices",
    "claim-deallocated": "pod train to be deleted: it runs on node gpu-1 with devices that the claim has lost",
    "started-a-second-ago": "pod train to start (Pending)",
    "ends-in-order": "pod train to end (terminating since 20",
    "running": "",
}
BY_DESIGN = {
    # No device is published: there is nothing to list or count (1), which says so and how many are held all the same;
    # how the driver is cannot be told while it starts (3).
    "kubelet-restarted": {"devices", "top", "drivers"},
    "node-boots": {"devices", "top", "drivers", "explain", "claim"},  # and the pod waits until it has started
    "finished": {"claims"},  # There is none any more.
    "claim-deleted-while-used": {"claim"},  # It takes no further pod, which is what was asked.
    "ends-in-order": {"claim"},  # It is held for a pod that ends; its step is to wait.
    "ended-and-given-on": {"claim"},  # Asked for by name: its device is held, so another pod with it would wait.
    "binding-waits": {"explain", "claim"},  # The pod waits; its step is to wait.
}
"""Commands that do not end with 0 in a state in which nothing is wrong, and why; none names a fault."""
HEALTHY = [line for line in RECORDED if not line["truth"]["fault"]]


def snapshot_of(line: dict[str, Any], folder: Path) -> list[str]:
    path = folder / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    return ["--snapshot", str(path)]


@pytest.mark.parametrize("line", [line for line in RECORDED if line["id"] in WAITS], ids=lambda line: line["id"])
def test_a_claim_waits_for_who_acts(line: dict[str, Any], tmp_path: Path) -> None:
    _, out, _ = ran("claims", "-n", "ml", "-o", "json", *snapshot_of(line, tmp_path))
    (claim,) = json.loads(out)["items"]
    assert WAITS[line["id"]] in claim.get("waitsFor", ""), claim
    assert bool(WAITS[line["id"]]) == bool(claim.get("waitsFor"))


@pytest.mark.parametrize(
    "line", HEALTHY, ids=[name for name, line in zip(NAMES, RECORDED, strict=True) if line in HEALTHY]
)
def test_no_command_alarms_where_nothing_is_wrong(line: dict[str, Any], tmp_path: Path) -> None:
    where = snapshot_of(line, tmp_path)
    claims = [each["metadata"]["name"] for each in line["served"]["items"] if each["kind"] == "ResourceClaim"]
    asked = {
        "claims": ["claims", "-A"],
        "devices": ["devices"],
        "top": ["top"],
        "drivers": ["drivers"],
        "taint": ["taint", "--list"],
        "explain": ["explain", "-n", "ml", *gates(line)],
        **{f"claim {name}": ["explain", f"claim/{name}", "-n", "ml", *gates(line)] for name in claims},
    }
    alarmed = {}
    for name, words in asked.items():
        code, out, _ = ran(*words, *where)
        if code and name.split()[0] not in BY_DESIGN.get(line["id"], ()):
            alarmed[name] = (code, out)
        assert name != "drivers" or code != 1, out
        if name == "explain":
            assert not re.search(r"(are|pod is|claim is) stuck|, stuck|stuck: ", out), out
    assert not alarmed
    assert EXPECTED[line["id"]]


@pytest.mark.parametrize(("lost", "code"), [("not ready", 1), ("not read", 3), ("not read, pod ready", 3)])
def test_pages_of_what_a_lost_node_has_judge_alike(lost: str, code: int, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "explain" / "all-tainted" / "cluster.yaml"
    cluster = yaml.safe_load(example.read_text())
    items = cluster["items"] = [each for each in cluster["items"] if lost == "not ready" or each["kind"] != "Node"]
    cluster["kubectl-dra"]["read"] = [
        kind for kind in cluster["kubectl-dra"]["read"] if kind in {each["kind"] for each in items}
    ]
    for each in items:
        conditions = {one["type"]: one for one in each.get("status", {}).get("conditions", ())}
        if (each["kind"], each["metadata"]["name"]) == ("Node", "l4-1"):
            conditions["Ready"]["status"] = "Unknown"
        if each["metadata"]["name"] == "clip-0":
            conditions["Ready"]["status"] = "True" if lost.endswith("pod ready") else "False"
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(cluster))
    for name in ("pod/clip-0", "claim/clip-0-gpu-msx8l", "device/l4-1/gpu-0"):
        words = ["explain", name, *(() if name.startswith("device") else ("-n", "web")), "--snapshot", str(file)]
        assert (name, ran(*words)[0]) == (name, code)


@pytest.mark.parametrize("lacking", ["all", "one"])
def test_pods_that_reservations_name_and_a_file_lacks_were_not_read(lacking: str, tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "explain" / "all-tainted" / "cluster.yaml"
    cluster = yaml.safe_load(example.read_text())
    assert "Pod" in cluster["kubectl-dra"]["read"]
    gone = {"all": {"clip-0", "eval-0"}, "one": {"clip-0"}}[lacking]
    cluster["items"] = [
        each
        for each in cluster["items"]
        if each["kind"] != "Pod" or (lacking == "one" and each["metadata"]["name"] not in gone)
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(cluster))
    words = [["claims"], ["explain", "claim/clip-0-gpu-msx8l", "-n", "web"], ["explain", "device/l4-1/gpu-0"]]
    words += [["explain", "node/l4-1"], ["drivers", "--drain-check", "--node", "l4-1"]]
    words += [["top"], ["top", "owners"], ["devices"], ["explain", "class/gpu.nvidia.com"]] if lacking == "all" else []
    for word in words:
        assert (word, ran(*word, "--snapshot", str(file))[0]) == (word, 3)
    _, out, errors = ran("claims", "--snapshot", str(file))
    assert "no-pod" not in out and "so which pods use the claims is unknown" in " ".join(errors.split())
    # Who says that there is nothing else is believed.
    assert ran("claims", "--complete", "--snapshot", str(file))[0] == 0
