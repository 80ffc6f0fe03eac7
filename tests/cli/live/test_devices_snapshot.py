"""``devices`` and ``snapshot`` against a real cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_dra.api.releases import GROUP, versions_of
from tests.explain.commands import without_commands
from tests.explain.live.test_access import CLUSTER_WIDE, NAMESPACED, grant
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request
from tools.controlplane.plane import release_of
from tools.live.command import ROOT, Answer, Command
from tools.live.releases import SHARES, needs
from tools.live.tables import memory, shared

Json = dict[str, Any]


class Cli:
    """Runs commands on one test's share of the cluster."""

    def __init__(self, cluster: Cluster, command: Command) -> None:
        self.cluster = cluster
        self._command = command

    def __call__(self, *words: str, user: str = "") -> Answer:
        connection = ["--kubeconfig", str(self.cluster.plane.kubeconfig), "--context", "admin"]
        return self._command(*words, *connection, *(["--as", user] if user else []))

    def devices(self, *words: str, user: str = "") -> Json:
        """The devices of the test's driver, by name."""
        answer = self("devices", "--driver", self.cluster.driver, "-o", "json", *words, user=user)
        assert answer.code in (0, 3), answer.text
        report = json.loads(answer.out)
        assert (answer.code == 3) is any(item["state"] == "unknown" for item in report["items"])
        schema = json.loads((ROOT / "schemas" / "devices.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(report)
        return {item["device"]: item for item in report["items"]}

    def saved_and_live(self, path: Path, asked: str, *words: str, user: str = "") -> tuple[Json, Json, Answer]:
        """What explain says of a snapshot and of the cluster that it was taken of, and how taking it went.

        Taken again where the answer was another one before and after: other tests change the cluster too.
        """
        before = self.explain(asked, user=user)
        for _ in range(10):
            path.unlink(missing_ok=True)
            written = self("snapshot", "-o", str(path), *words, user=user)
            live = self.explain(asked, user=user)
            if live == before:
                break
            before = live
        return self.explain(asked, "--snapshot", str(path)), live, written

    def explain(self, *words: str, user: str = "") -> Json:
        """What explain says, without what other tests in the same cluster change."""
        connected = () if "--snapshot" in words else ("--kubeconfig", str(self.cluster.plane.kubeconfig))
        impersonated = ("--as", user) if user else ()
        answer = self._command("explain", *words, "-n", self.cluster.namespace, "-o", "json", *connected, *impersonated)
        report = answer.report
        kept = ("verdict", "exitCode", "answer", "assumed", "causes", "claims", "scheduler")
        hidden = [note for note in report["notes"] if note.startswith("not seen") or "could be read" in note]
        return {**{key: without_commands(report[key]) for key in kept}, "hidden": hidden}


@pytest.fixture
def cli(cluster: Cluster, command: Command) -> Cli:
    return Cli(cluster, command)


def test_devices_with_holders_shares_and_taints(cli: Cli) -> None:
    cluster = cli.cluster
    node, gpu = cluster.node(), cluster.device_class()
    bad = device("gpu-3", taints=[{"key": "example.com/broken", "effect": "NoExecute"}])
    devices = [device("gpu-0"), device("gpu-1"), device("gpu-2"), bad]
    cluster.publish(devices, pool="pool", node=node)
    pinned = {"kubernetes.io/hostname": node}
    scheduled = cluster.scheduled(
        cluster.pod("one", claims={"gpu": cluster.claim([request(gpu)])}, nodeSelector=pinned)
    )
    free = sorted({"pool/gpu-0", "pool/gpu-1", "pool/gpu-2"} - set(scheduled.devices("gpu")))
    version, *_ = versions_of("DeviceTaintRule", release_of(cluster.plane))
    rule = cluster.create(
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "DeviceTaintRule",
            "metadata": {"name": cluster.name("rule")},
            "spec": {
                "deviceSelector": {"driver": cluster.driver, "pool": "pool", "device": free[0].removeprefix("pool/")},
                "taint": {"key": "example.com/maintenance", "effect": "NoSchedule"},
            },
        }
    )
    listed = cli.devices()
    (held,) = (listed[name.removeprefix("pool/")] for name in scheduled.devices("gpu"))
    pods = [{"resource": "pods", "name": "one"}]
    assert held["state"] == "held"
    assert held["heldBy"] == [{"namespace": cluster.namespace, "name": "claim", "consumers": pods}]
    assert held["node"] == node and held["classes"] == [gpu]
    assert listed["gpu-3"]["taints"][0]["owner"]["kind"] == "ResourceSlice" and listed["gpu-3"]["state"] == "tainted"
    tainted = listed[free[0].removeprefix("pool/")]
    assert tainted["state"] == "tainted"
    assert tainted["taints"][0]["owner"] == {"kind": "DeviceTaintRule", "name": rule["metadata"]["name"]}
    assert listed[free[1].removeprefix("pool/")]["state"] == "free"
    names = cli("devices", "--driver", cluster.driver, "--node", node, "--free", "-o", "name")
    assert names.out == f"{cluster.driver}/{free[1]}\n"


def test_devices_that_are_shared(cli: Cli) -> None:
    cluster = cli.cluster
    needs(cluster.plane, SHARES)
    gpu = cluster.device_class()
    cluster.publish([shared("gpu-0", "40Gi")], pool="pool", node=cluster.node())
    for name, amount in (("one", "10Gi"), ("two", "20Gi")):
        cluster.scheduled(cluster.pod(name, claims={"gpu": cluster.claim([request(gpu, **memory(amount))], name)}))
    item = cli.devices()["gpu-0"]
    assert item["state"] == "shared" and len(item["heldBy"]) == 2
    assert item["capacity"] == {"memory": {"value": "40Gi", "consumed": "30Gi"}}


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_explain_says_the_same_on_the_snapshot(cli: Cli, tmp_path: Path, suffix: str) -> None:
    cluster = cli.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.pod(claims={"gpu": cluster.claim([request(gpu, count=2)])})
    cluster.unschedulable("pod")
    path = tmp_path / f"snapshot.{suffix}"
    saved, live, written = cli.saved_and_live(path, "pod/pod")
    assert written.code == 0 and not written.out, written.text
    assert live["exitCode"] == 1 and live["causes"]
    assert saved == live
    text = path.read_text()
    for absent in ("managedFields", "last-applied", "example.com/none"):
        assert absent not in text


def test_gaps_of_a_restricted_user_survive(cli: Cli, tmp_path: Path) -> None:
    cluster = cli.cluster
    user, gpu = cluster.namespace, cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.claim([request(gpu)])
    everywhere = [kind for kind in CLUSTER_WIDE if kind != "nodes"]
    grant(cluster, here=NAMESPACED, everywhere=everywhere)
    path = tmp_path / "snapshot.json"
    saved, live, written = cli.saved_and_live(path, "claim/claim", "-n", cluster.namespace, user=user)
    assert written.code == 0, written.text
    assert "note: not in the snapshot: no Nodes" in written.err
    assert live["exitCode"] == 3 and len(live["hidden"]) >= 3
    for answer in (saved, live):
        # Of a live cluster only those of the claim's namespace are asked for, which the user may be allowed to see.
        answer["hidden"] = [
            entry for entry in answer["hidden"] if "ResourceQuotas" not in entry and "Events" not in entry
        ]
    assert saved == live
    listed = cli.devices(user=user)
    assert listed["gpu-0"]["state"] == "unknown"


def test_nothing_may_be_read(cli: Cli, tmp_path: Path) -> None:
    answer = cli("devices", user="nobody")
    assert answer.code == 3 and "no ResourceSlices could be read" in answer.err and answer.err.count("\n") == 1
