"""``kubectl dra drivers`` from files and from a server."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.drivers.drain_check import ClaimOfDriver, DriverUsers, PluginUser, PodOfDriver, WhileAway
from tests.cli.conftest import EXAMPLES, Dra, cluster_of, write_list
from tests.drivers.clusters import CRASHES, DRIVER, ENDED, JSON, daemon_set, event, node, plugin, slices, status
from tests.drivers.test_drivers_on_nodes import LIKES, STATES
from tools.api_server import APIServer

CRASHING = [
    node("n1", "big"),
    plugin("n1", [status(state=CRASHES, lastState=ENDED, restartCount=37)]),
    *LIKES,
]
DRAIN = ("drivers", "--node", "n2", "--drain-check")
READ = ["Node", "Pod", "ResourceSlice", "DeviceClass", "ResourceClaim", "DaemonSet", "Event"]


def saved(folder: Path, items: Sequence[JSON], read: Sequence[str] = READ) -> str:
    """A file with the objects, that says what of the cluster it has."""
    head = {"schemaVersion": "1", "readAt": "2026-10-01T12:00:00Z", "serverVersion": "v1.36.0", "read": list(read)}
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "kubectl-dra": head, "items": list(items)}))
    return str(file)


@pytest.mark.parametrize("name", STATES)
def test_every_state_fits_the_schema_and_has_its_exit_code(dra: Dra, tmp_path: Path, name: str) -> None:
    state, own = STATES[name]
    cluster = saved(tmp_path, [node("n1", "big"), *own, *LIKES])
    ran = dra("drivers", "--snapshot", cluster, "-o", "json")
    found = ran.valid("drivers")
    assert ran.code == (1 if state.broken else 3 if state.open else 0)
    (row,) = (row for row in found["items"] if row["node"] == "n1")
    assert row["state"] == state.value
    assert yaml.safe_load(dra("drivers", "--snapshot", cluster, "-o", "yaml").out) == found
    for width in ("text", "wide"):
        text = dra("drivers", "--snapshot", cluster, "-o", width)
        assert text.code == ran.code and state.value in text.out


def test_the_worst_is_first_and_the_command_shows_why(dra: Dra, tmp_path: Path) -> None:
    ran = dra("drivers", "--snapshot", saved(tmp_path, CRASHING))
    lines = ran.out.splitlines()
    assert lines[0] == "1 driver on 3 nodes: 1 crashing, 2 healthy"
    assert lines[3].split()[:4] == [DRIVER, "n1", "crashing", "0"]
    assert 'crashes (CrashLoopBackOff, 37 restarts); last message: "no such device"' in ran.flat
    assert (
        lines[-1]
        == "Next (in the cluster, not the snapshot): kubectl logs pod/npu-driver-n1 -n drivers -c plugin --previous"
    )


def test_a_selection_and_names(dra: Dra, tmp_path: Path) -> None:
    cluster = saved(tmp_path, CRASHING)
    assert dra("drivers", "--snapshot", cluster, "--node", "n2").code == 0
    names = dra("drivers", DRIVER, "--snapshot", cluster, "-o", "name")
    assert names.out.splitlines() == [f"{DRIVER}/n1", f"{DRIVER}/n2", f"{DRIVER}/n3"]
    unknown = dra("drivers", "npu.vendor.tset", "--snapshot", cluster)
    assert unknown.code == 2 and f"there is no driver npu.vendor.tset; did you mean {DRIVER}?" in unknown.err
    gone = dra("drivers", "--node", "n9", "--snapshot", cluster)
    assert gone.code == 2 and "there is no node n9" in gone.err


def test_no_driver_and_no_answer(dra: Dra, tmp_path: Path) -> None:
    none = dra("drivers", "--snapshot", saved(tmp_path, [node("n1")]))
    assert none.code == 1 and none.out.startswith("No driver was found")
    unseen = dra("drivers", "--snapshot", saved(tmp_path, [node("n1"), slices("n1", 1)], ["Node", "ResourceSlice"]))
    assert unseen.code == 3 and "not seen: there is no Pod in what was read" in unseen.err


def claim(name: str, pod: str) -> JSON:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "npu", "exactly": {"deviceClassName": "npu"}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "npu", "driver": DRIVER, "pool": "n2", "device": "dev-0"}]}
            },
            "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}],
        },
    }


def user(name: str, phase: str, **meta: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", **meta},
        "spec": {"nodeName": "n2", "containers": [{"name": "a"}], "resourceClaims": [{"name": "npu"}]},
        "status": {"phase": phase},
    }


def test_who_needs_the_driver_while_it_is_away(dra: Dra, tmp_path: Path) -> None:
    runs = [user("a", "Running"), claim("a", "a")]
    words = DRAIN
    free = dra(*words, "--snapshot", saved(tmp_path, [*LIKES, *runs]))
    assert free.code == 0 and free.out.startswith("The driver on node n2 can be restarted or upgraded: 1 pod runs on")
    more = [user("b", "Pending"), claim("b", "b"), user("c", "Running", deletionTimestamp="2026-10-01T11:00:00Z")]
    cluster = saved(tmp_path, [*LIKES, *runs, *more, claim("c", "c")])
    waits = dra(*words, "--snapshot", cluster)
    assert waits.code == 1
    said = waits.flat
    assert "is away, 1 pod cannot start, 1 pod cannot end; 1 pod runs on, and can end when it is back. Let" in said
    assert f"Let that pod start before you stop driver {DRIVER}. Pod ml/c may never end: its grace period" in said
    found = dra(*words, "--snapshot", cluster, "-o", "json").valid("drivers")
    assert {pod["name"]: pod["whileAway"] for one in found["claims"] for pod in one["pods"]} == {
        "a": "runs",
        "b": "waits",
        "c": "hangs",
    }
    nobody = dra("drivers", "--node", "n3", "--drain-check", "--snapshot", cluster)
    assert nobody.code == 0 and "nobody notices a restart" in nobody.out
    assert "4 devices there may get a claim: its pod starts once the driver is back." in nobody.flat
    assert dra("drivers", "--drain-check", "--snapshot", cluster).code == 2
    unseen = saved(tmp_path, LIKES, [kind for kind in READ if kind != "ResourceClaim"])
    assert dra(*words, "--snapshot", unseen).code == 3


def of_plugin(name: str, phase: str = "Running", **meta: str) -> JSON:
    """A pod on a node that has devices of a device plugin."""
    pod = user(name, phase, **meta)
    limits = {"limits": {"vendor.test/npu": "2", "cpu": "1", "hugepages-2Mi": "2Mi"}}
    pod["spec"] = {"nodeName": "n2", "containers": [{"name": "a", "resources": limits}]}
    return pod


def test_pods_of_a_device_plugin_are_users_too(dra: Dra, tmp_path: Path) -> None:
    words = DRAIN
    runs = saved(tmp_path, [*LIKES, of_plugin("a"), of_plugin("over", "Succeeded")])
    told = dra(*words, "--snapshot", runs)
    said = told.flat
    assert told.code == 0 and said.startswith(
        "No claim has devices of a driver on node n2. 1 pod has devices of a device plugin (vendor.test/npu) and runs "
        "on while that is restarted."
    )
    assert "ml/a runs on vendor.test/npu: 2" in said
    assert "To remove the device plugin or the devices' own driver for good, end this pod first:" in said
    assert "kubectl drain n2 --ignore-daemonsets --force" in said
    found = dra(*words, "--snapshot", runs, "-o", "json").valid("drivers")
    pod = {"namespace": "ml", "name": "a", "whileAway": "runs"}
    assert found["devicePlugins"] == [{"resource": "vendor.test/npu", "deviceCount": 2, "pod": pod}]
    # The driver that is named is not the plugin's.
    assert dra("drivers", DRIVER, *words[1:], "--snapshot", runs).out.startswith("No claim has devices of a driver")
    assert "vendor.test/npu" not in dra("drivers", DRIVER, *words[1:], "--snapshot", runs).out


def test_a_pod_that_was_placed_without_its_reservation_waits(dra: Dra, tmp_path: Path) -> None:
    """A scheduler that does not know claims gave it a node."""
    placed, unreserved = user("a", "Pending"), claim("a", "a")
    placed["spec"]["resourceClaims"][0]["resourceClaimName"] = "a"
    unreserved["status"]["reservedFor"] = []
    told = dra(*DRAIN, "--snapshot", saved(tmp_path, [*LIKES, placed, unreserved]))
    assert told.code == 1 and "1 pod cannot start" in told.out
    assert "kubectl dra explain pod/a -n ml" in told.out


def test_pods_that_wait_for_devices_of_a_broken_driver_are_told(dra: Dra, tmp_path: Path) -> None:
    waits, wanted = user("a", "Pending"), claim("a", "a")
    waits["spec"]["resourceClaims"][0]["resourceClaimName"] = "a"
    del waits["spec"]["nodeName"], wanted["status"]
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": wanted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"]},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    }
    silent = [each for each in LIKES if each["kind"] != "ResourceSlice"]
    cluster = saved(tmp_path, [*silent, waits, wanted, device_class])
    told = dra(*DRAIN, "--snapshot", cluster)
    said = told.flat
    # The driver can be restarted: that is the answer, and no pod waits longer for it.
    assert told.code == 0 and told.out.startswith("No claim has devices of a driver on node n2")
    assert "pod ml/a waits for devices of this driver" in said and "nobody notices" not in said
    assert "kubectl dra explain pod/a -n ml" in said
    found = dra(*DRAIN, "--snapshot", cluster, "-o", "json").valid("drivers")
    (awaiting,) = found["awaiting"]
    assert (awaiting["driver"], awaiting["pods"]) == (DRIVER, [{"namespace": "ml", "name": "a"}])


def test_whether_a_pod_got_its_devices_of_a_plugin_is_not_known(dra: Dra, tmp_path: Path) -> None:
    words = DRAIN
    cluster = saved(tmp_path, [*LIKES, of_plugin("a", "Pending")])
    told = dra(*words, "--snapshot", cluster)
    assert told.code == 3
    assert "Undetermined: pod ml/a has not started, and may fail if the device plugin" in told.flat
    found = dra(*words, "--snapshot", cluster, "-o", "json").valid("drivers")
    assert (found["exitCode"], found["devicePlugins"][0]["pod"]["whileAway"]) == (3, "may-fail")


def test_devices_for_an_extended_resource_are_the_drivers(dra: Dra, tmp_path: Path) -> None:
    """The scheduler made a claim for it: the pod uses nothing of a device plugin, unless the node offers that."""
    words = DRAIN
    served = of_plugin("a")
    served["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "a"}
    items = [*LIKES, served, claim("a", "a")]
    told = dra(*words, "--snapshot", saved(tmp_path, items))
    assert told.code == 0 and "device plugin" not in told.out and "1 pod runs on" in told.out
    read = [kind for kind in READ if kind != "Node"]
    unseen = dra(*words, "--snapshot", saved(tmp_path, [item for item in items if item["kind"] in read], read))
    assert unseen.code == 3 and "(Node)" in unseen.out


@pytest.mark.parametrize("where", ["of no node", "not published any more"])
def test_pools_of_no_node_are_the_users_too(dra: Dra, tmp_path: Path, where: str) -> None:
    """The kubelet asks the driver of the pod's node, wherever the devices are."""
    shared = slices("n2", 1)
    del shared["spec"]["nodeName"]
    shared["spec"] |= {"allNodes": True, "pool": {**shared["spec"]["pool"], "name": "n2"}}
    published = [shared] if where == "of no node" else []
    waits = [node("n1"), node("n2"), user("a", "Pending"), claim("a", "a"), *published]
    told = dra("drivers", "--node", "n2", "--drain-check", "--snapshot", saved(tmp_path, waits))
    assert told.code == 1 and "1 pod cannot start" in told.out
    other = dra("drivers", "--node", "n1", "--drain-check", "--snapshot", saved(tmp_path, waits))
    said = {"of no node": "nobody notices", "not published any more": "no driver is there"}
    assert other.code == 0 and said[where] in other.flat


def test_pods_of_a_group_use_its_claim(dra: Dra, tmp_path: Path) -> None:
    member, own = user("a", "Pending"), claim("a", "a")
    member["spec"] |= {
        "schedulingGroup": {"podGroupName": "g"},
        "resourceClaims": [{"name": "npu", "resourceClaimName": "a"}],
    }
    own["status"]["reservedFor"] = [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}]
    cluster = saved(tmp_path, [*LIKES, member, own])
    told = dra("drivers", "--node", "n2", "--drain-check", "--snapshot", cluster)
    assert told.code == 1 and "1 pod cannot start" in told.out


def test_a_pod_that_was_not_read_leaves_it_open(dra: Dra, tmp_path: Path) -> None:
    """Files that people saved may be any part of a cluster."""
    file = write_list(tmp_path / "some.json", [*LIKES, claim("a", "a")])
    told = dra("drivers", "--node", "n2", "--drain-check", "--snapshot", file)
    assert told.code == 3 and "pod ml/a was not read" in told.flat


PATHS = {
    "/api/v1/nodes": "Node",
    "/api/v1/pods": "Pod",
    "/api/v1/events": "Event",
    "/apis/apps/v1/daemonsets": "DaemonSet",
    "/apis/resource.k8s.io/v1/resourceslices": "ResourceSlice",
    "/apis/resource.k8s.io/v1/deviceclasses": "DeviceClass",
}
OF_EXPLAIN = {
    **PATHS,
    "/api/v1/namespaces": "Namespace",
    "/api/v1/resourcequotas": "ResourceQuota",
    "/api/v1/namespaces/ml/events": "Event",
    "/api/v1/namespaces/ml/resourcequotas": "ResourceQuota",
    "/apis/resource.k8s.io/v1/resourceclaims": "ResourceClaim",
}


@contextmanager
def serving(items: Sequence[JSON], paths: Mapping[str, str]) -> Iterator[APIServer]:
    """A server that has the objects at these paths, by kind."""
    server = APIServer()
    server.serve_group(v1=("resourceslices", "deviceclasses", "resourceclaims"))
    server.routes["/version"] = {"gitVersion": "v1.36.2"}
    for path, kind in paths.items():
        server.routes[path] = [item for item in items if item["kind"] == kind]
    yield server
    server.close()


def test_a_server_is_asked_for_two_kinds_more_than_top_reads(dra: Dra, tmp_path: Path) -> None:
    denied = 'pods "npu-driver-" is forbidden: exceeded quota'
    items = [
        *CRASHING,
        node("n4", "big"),
        daemon_set(desired=4, current=3),
        event("DaemonSet", "npu-driver", "FailedCreate", denied),
    ]
    with serving(items, PATHS) as server:
        config = server.kubeconfig(tmp_path)
        ran = dra("drivers", "--kubeconfig", config, "-o", "json")
        asked = server.paths()
    found = ran.valid("drivers")
    assert ran.code == 1
    assert {row["node"]: row["state"] for row in found["items"]} == {
        "n1": "crashing",
        "n2": "healthy",
        "n3": "healthy",
        "n4": "no-pod",
    }
    (row,) = (row for row in found["items"] if row["node"] == "n4")
    assert (
        row["daemonSet"]["failure"] == denied
        and row["next"]["text"] == f"kubectl describe daemonset/npu-driver -n drivers --kubeconfig {config}"
    )
    assert asked.count("/apis/apps/v1/daemonsets") == 1 and asked.count("/api/v1/events") == 2


def test_explain_reads_daemon_sets_only_where_a_driver_publishes_nothing(dra: Dra, tmp_path: Path) -> None:
    denied = 'pods "npu-driver-" is forbidden: exceeded quota'
    cls = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "npu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }
    waits = user("a", "Pending")
    waits["spec"] = {"containers": [{"name": "a"}], "resourceClaims": [{"name": "npu", "resourceClaimName": "a"}]}
    wanted = claim("a", "a")
    del wanted["status"]
    items = [
        node("n1"),
        cls,
        waits,
        wanted,
        daemon_set(desired=1, current=0),
        event("DaemonSet", "npu-driver", "FailedCreate", denied),
    ]
    for published, requests in (((), 1), ((slices("n1", 1),), 0)):
        with serving([*items, *published], OF_EXPLAIN) as server:
            ran = dra("explain", "pod/a", "-n", "ml", "--kubeconfig", server.kubeconfig(tmp_path))
            asked = server.paths()
        assert asked.count("/apis/apps/v1/daemonsets") == requests
        if requests:
            flat = ran.flat
            assert ran.code == 1
            assert f"driver {DRIVER} on node n1: DaemonSet drivers/npu-driver cannot make its pod: {denied}" in flat
            assert "kubectl describe daemonset/npu-driver -n drivers" in flat


def test_explain_of_an_unregistered_driver_reads_the_daemon_set_that_leaves_its_node_out(
    dra: Dra, tmp_path: Path
) -> None:
    waits = user("a", "Pending")
    waits["spec"]["resourceClaims"] = [{"name": "npu", "resourceClaimName": "a"}]
    unregistered = event("Pod", "a", FAILED_PREPARE, f"DRA driver {DRIVER} is not registered")
    unregistered["metadata"]["namespace"] = unregistered["involvedObject"]["namespace"] = "ml"
    items = [
        *(node("n1", npu="yes"), slices("n1", 2), plugin("n1"), daemon_set(desired=1, selector={"npu": "yes"})),
        *(node("n2"), slices("n2", 2), claim("a", "a"), waits, unregistered),
    ]
    label = "kubectl label node n2 npu=yes"
    for asked in (("explain", "pod/a", "-n", "ml"), ("explain", "node/n2"), ("drivers",)):
        with serving(items, OF_EXPLAIN) as server:
            ran = dra(*asked, "--kubeconfig", server.kubeconfig(tmp_path))
        assert ran.code == 1, ran.err
        assert any(line.strip().startswith(f"Writes: $ {label}") for line in ran.out.splitlines()), ran.out


def test_top_and_devices_name_a_broken_driver(dra: Dra, tmp_path: Path) -> None:
    cluster = saved(tmp_path, CRASHING, [*READ, "DeviceTaintRule"])
    for command in ("top", "devices"):
        ran = dra(command, "--snapshot", cluster)
        assert f"note: driver {DRIVER} on node n1: crashing\n$ kubectl dra drivers --snapshot {cluster}\n" in ran.err
    fine = saved(tmp_path, LIKES, [*READ, "DeviceTaintRule"])
    assert "driver" not in dra("top", "--snapshot", fine).err


def test_what_is_odd_is_said_below_the_driver_and_as_data(dra: Dra, tmp_path: Path) -> None:
    twice = [claim("a", "a"), claim("b", "b")]
    cluster = saved(tmp_path, [*LIKES, *twice])
    text = dra("drivers", "--snapshot", cluster).flat
    assert "device dev-0 is allocated to claim ml/a and to claim ml/b" in text
    found = dra("drivers", "--snapshot", cluster, "-o", "json").valid("drivers")
    (odd,) = (row for row in found["items"] if "concerns" in row)
    assert (odd["node"], odd["concerns"][0]["kind"]) == ("n2", "device-allocated-twice")
    # Where devices and claims are listed, it is a note.
    for words in (("devices",), ("claims",)):
        told = dra(*words, "--snapshot", cluster)
        assert "is allocated to claims ml/a, ml/b, and only one can have it" in " ".join(told.err.split())
        assert "kubernetes/kubernetes#136269" in told.err
    # What is usual is asked of all nodes, also where only one is shown.
    assert "NOTE" not in dra("drivers", "--node", "n3", "--snapshot", cluster).out


def test_how_an_update_replaces_the_pod(dra: Dra, tmp_path: Path) -> None:
    words = DRAIN
    own = daemon_set(desired=2, current=2)
    strategies: dict[str, JSON] = {
        "ends its pod before it starts the new one": {"type": "RollingUpdate"},
        "starts the new pod before the old one ends": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "only when somebody deletes that": {"type": "OnDelete"},
    }
    for said, strategy in strategies.items():
        own["spec"]["updateStrategy"] = strategy
        cluster = saved(tmp_path, [*LIKES, own, claim("a", "a"), user("a", "Running")])
        assert said in dra(*words, "--snapshot", cluster).flat
        found = dra(*words, "--snapshot", cluster, "-o", "json").valid("drivers")
        assert [update["newPodFirst"] for update in found["updates"]] == ["rollingUpdate" in strategy]


def test_watching_shows_the_table_only(dra: Dra, tmp_path: Path) -> None:
    cluster = saved(tmp_path, LIKES)
    for words in (("-o", "json"), ("-o", "name"), ("--drain-check", "--node", "n2")):
        assert dra("drivers", "--watch", "--snapshot", cluster, *words).code == 2


def test_of_a_driver_without_a_pod_the_command_shows_what_might_run_it(dra: Dra) -> None:
    cluster = EXAMPLES / "all-held" / "cluster.yaml"
    ran = dra("drivers", "--snapshot", str(cluster))
    assert ran.code == 3 and "no pod was recognized as the driver's" in ran.out
    pods = "kubectl get pods -A --field-selector spec.nodeName=l40s-1"
    assert ran.out.splitlines()[-1] == f"Next (in the cluster, not the snapshot): {pods}"


def test_what_could_not_be_read_is_looked_for_with_no_command(dra: Dra, tmp_path: Path) -> None:
    objects = yaml.safe_load((EXAMPLES / "all-held" / "cluster.yaml").read_text())
    objects["kubectl-dra"]["read"].remove("Pod")
    objects["items"] = [raw for raw in objects["items"] if raw["kind"] != "Pod"]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(objects))
    ran = dra("drivers", "--snapshot", str(file))
    assert ran.code == 3 and "Next: " not in ran.out


def test_the_drain_that_is_printed_runs_and_says_what_it_waits_for(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl drain refuses pods without an owner, and waits for one that ends only with the driver."""
    cluster = cluster_of("all-held")
    ran = dra("drivers", "--node", "l40s-1", "--drain-check", "--snapshot", cluster)
    said = ran.flat
    assert "$ kubectl drain l40s-1 --ignore-daemonsets --force --timeout=5m" in said
    assert "--force ends what nothing creates again: pod research/video-prep-1." in said
    assert "It also evicts pod kube-system/coredns-7d764666f9-sp4bs, which uses no devices." in said
    assert (
        "Pod research/video-prep-1 may never end: its grace period ended 88 minutes ago. Find out what keeps it" in said
    )
    unknown = "Whether driver gpu.nvidia.com runs there is unknown (no pod was recognized as the driver's)"
    assert f"{unknown}; if not, start it first. The pods of the node: In the cluster" in said
    assert "$ kubectl get pods -A --field-selector spec.nodeName=l40s-1" in said
    monkeypatch.setenv("COLUMNS", "80")
    ran = dra("drivers", "--node", "l40s-1", "--drain-check", "--snapshot", cluster)
    assert max(len(line) for line in ran.out.splitlines() if "kubectl" not in line) <= 80
    found = dra("drivers", "--node", "l40s-1", "--drain-check", "--snapshot", cluster, "-o", "json").valid("drivers")
    coredns = {"namespace": "kube-system", "name": "coredns-7d764666f9-sp4bs", "ownedBy": "Deployment/coredns"}
    assert found["evictedBeside"] == [coredns]
    assert "The drain waits at most 5 minutes (--timeout) for pod research/video-prep-1, which is being deleted" in said
    (late,) = (pod for one in found["claims"] for pod in one["pods"] if pod["whileAway"] == "hangs")
    assert late["deletionTimestamp"] == "2026-08-22T09:12:30Z"
    assert ran.out.splitlines()[-1] == f"Next: kubectl dra explain pod/video-prep-1 -n research --snapshot {cluster}"
    gone = cluster_of("driver-gone-from-node")
    ran = dra("drivers", "--node", "h100-1", "--drain-check", "--snapshot", gone)
    said = ran.flat
    assert "1 pod cannot start. That pod does not start now, either. Driver gpu.nvidia.com is not-registered: " in said
    assert "Give node h100-1 label nvidia.com/dra-kubelet-plugin=true, by which DaemonSet" in said
    assert "kubectl drain h100-1 --ignore-daemonsets" in said and ("--force" in said) == (" - " in said)


def test_a_pod_that_starts_in_no_case_is_nothing_to_wait_for(dra: Dra) -> None:
    cluster = cluster_of("prepare-fails")
    ran = dra("drivers", "--node", "l40s-1", "--drain-check", "--snapshot", cluster)
    said = ran.flat
    assert ran.code == 1 and "before you stop" not in said
    assert "That pod does not start now, either. Driver gpu.nvidia.com is prepare-failing: it cannot prepare" in said
    assert ran.out.splitlines()[-1].startswith("Next: kubectl dra explain pod/ide-lea -n dev")


def test_a_drain_does_not_free_what_no_pod_uses(dra: Dra, tmp_path: Path) -> None:
    unused = claim("idle", "b")
    del unused["status"]["reservedFor"]
    wanted = {**claim("wanted", "b"), "metadata": {"name": "wanted", "namespace": "ml", "uid": "uid-wanted"}}
    del wanted["status"]["reservedFor"]
    waits = user("b", "Pending")
    waits["spec"] = {"containers": [{"name": "a"}], "resourceClaims": [{"name": "x", "resourceClaimName": "wanted"}]}
    words = DRAIN
    ran = dra(*words, "--snapshot", saved(tmp_path, [*LIKES, unused, wanted, waits]))
    said = ran.flat
    assert "A drain does not free the devices of claim ml/idle. If nobody is going to use it:" in said
    assert "$ kubectl delete resourceclaim/idle -n ml" in said and "resourceclaim/wanted" not in said


def test_a_drain_of_a_node_that_is_not_ready_would_wait(dra: Dra, tmp_path: Path) -> None:
    """Its kubelet ends no pod: nothing is said to run on, and no drain is printed."""
    down = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-03-01T10:00:00Z"}
    lost = {**LIKES[0], "status": {"conditions": [down]}}
    ran = dra(*DRAIN, "--snapshot", saved(tmp_path, [lost, *LIKES[1:], claim("c", "b"), user("b", "Running")]))
    said = ran.flat
    assert ran.code == 3 and "Node n2 is not ready, so nobody knows what runs there" in said
    assert "runs on" not in said and "kubectl drain" not in said
    assert "kubectl describe node/n2" in said and "kubectl delete node/n2" in said


def test_a_pod_with_several_claims_is_counted_once() -> None:
    pods = [PodOfDriver("ml", "a", WhileAway.RUNS, "Job/a"), PodOfDriver("ml", "a", WhileAway.WAITS)]
    claims = tuple(ClaimOfDriver(DRIVER, "n2", "ml", pod.outcome, (), (pod,)) for pod in pods)
    users = DriverUsers(claims, (), of_plugins=(PluginUser("npu", 1, PodOfDriver("ml", "a", WhileAway.MAY_FAIL)),))
    assert users.pods(*WhileAway) == users.pods(WhileAway.WAITS) == (pods[1],)


def test_what_all_say_is_said_once_and_empty_columns_are_left_out(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal: in a pipe each row says all of its own."""
    cluster = cluster_of("all-held")
    piped = dra("drivers", "--snapshot", cluster).out.splitlines()
    monkeypatch.setenv("COLUMNS", "100")
    lines = dra("drivers", "--snapshot", cluster).out.splitlines()
    assert lines[:2] == ["1 driver on 3 nodes: 3 unknown", "unknown: no pod was recognized as the driver's"]
    assert lines[3].split() == ["DRIVER", "NODE", "STATE", "DEVICES", "SINCE"]
    bare = dra("drivers", "--snapshot", cluster, "--no-headers").out.splitlines()
    assert [line.split() for line in piped[3:6]] == [line.split() for line in bare]
    assert bare[0].split()[:6] == ["gpu.nvidia.com", "l40s-1", "unknown", "4", "-", "-"]
    assert all(line.endswith("no pod was recognized as the driver's") for line in bare)


def test_a_driver_that_runs_nowhere_beside_its_hardware_is_a_fault_of_the_cluster(dra: Dra) -> None:
    path = cluster_of("driver-not-installed")
    assert dra("drivers", "--snapshot", path).code == 1


def test_taints_are_said_with_their_drivers(dra: Dra, tmp_path: Path) -> None:
    tainted = copy.deepcopy(LIKES)
    own = {"key": f"{DRIVER}/xid", "value": "79", "effect": "NoSchedule", "timeAdded": "2026-11-01T08:00:00Z"}
    told = {**own, "key": "told", "effect": "None"}
    entry = next(each for each in tainted if each["kind"] == "ResourceSlice" and each["spec"]["nodeName"] == "n2")
    first, second, *_ = entry["spec"]["devices"]
    first["taints"], second["taints"] = [own, told], [{**own, "timeAdded": "2026-11-01T07:00:00Z"}]
    cluster = saved(tmp_path, tainted)
    now = dra("explain", f"driver/{DRIVER}", "--snapshot", cluster)
    said = now.flat
    assert "taints keep 2 devices on n2 from new claims" in said and now.code == 0
    assert f"2 devices are tainted: {DRIVER}/xid=79:NoSchedule (driver) since 2026-11-01T07:00:00Z" in said
    assert "told" not in said and f"Fix for {DRIVER} on n2: Repair or reset the device" in said
    found = dra("drivers", "--snapshot", cluster, "-o", "json").valid("drivers")
    (taints,) = (row["deviceTaints"] for row in found["items"] if "deviceTaints" in row)
    assert taints["deviceCount"] == 2 and [taint["timeAdded"] for taint in taints["taints"]] == ["2026-11-01T07:00:00Z"]
    wide = dra("devices", "--tainted", "-o", "wide", "--snapshot", cluster).flat
    assert wide.count(f"{DRIVER}/xid=79") == 2 and wide.count("xid=79:NoSchedule (driver) since 2026-11-01T0") == 2


@pytest.mark.parametrize(
    ("node", "words", "said"),
    [
        ("cp-1", (), "no pod there has devices of a device plugin; no driver is there.\n"),
        (
            "cp-1",
            ("gpu.nvidia.com",),
            "has devices of a device plugin; driver gpu.nvidia.com is not there.\n",
        ),
        ("t4-1", (), "2 devices there may get a claim: its pod starts once the driver is back.\n"),
    ],
)
def test_a_node_without_the_driver_is_not_one_without_users(
    dra: Dra, node: str, words: Sequence[str], said: str
) -> None:
    cluster = cluster_of("all-held")
    ran = dra("drivers", *words, "--drain-check", "--node", node, "--snapshot", cluster)
    assert ran.code == 0 and ran.out.replace("\n  ", " ").endswith(said)


def test_pods_that_should_have_ended_are_not_waited_for(dra: Dra, tmp_path: Path) -> None:
    """A pod within its grace period is; the driver is there or nobody sees it."""
    names = {"a": "2026-10-01T11:00:00Z", "b": "2026-10-01T10:00:00Z", "c": "2026-10-01T12:00:20Z"}
    items = [*LIKES, *(user(name, "Running", deletionTimestamp=at) for name, at in names.items())]
    file = saved(tmp_path, [*items, *(claim(name, name) for name in names)])
    ran = dra(*DRAIN, "--snapshot", file)
    said = ran.flat
    assert f"Let that pod end before you stop driver {DRIVER}. Pods ml/b, ml/a may never end: their grace" in said
    assert "periods ended, the first 2 hours ago. Find out what keeps them." in said
    assert f"Next: kubectl dra explain pod/b -n ml --snapshot {file}" in said


def test_a_drain_check_of_a_name_alone_has_the_command_for_the_node(dra: Dra, tmp_path: Path) -> None:
    cluster = saved(tmp_path, LIKES)
    told = dra("drivers", "--drain-check", "n2", "--snapshot", cluster)
    assert told.code == 2 and f"kubectl dra drivers --drain-check --node n2 --snapshot {cluster}" in told.err
