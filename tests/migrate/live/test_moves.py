"""A Deployment of the device plugin's days, on a real control plane: looked at, migrated, run, and taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.migrate.live.fleet import (
    DRIVER,
    GROUP,
    RESOURCE,
    apply,
    connection,
    driver_class,
    gpu_node,
    legacy,
)
from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster, wait
from tools.live.command import ROOT, Answer, Command

pytestmark = pytest.mark.xdist_group(GROUP)


@pytest.fixture
def fleet(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the driver's class."""
    driver_class(cluster)
    yield cluster


def report(answer: Answer, schema: str) -> Any:
    assert answer.out, answer.err
    found = json.loads(answer.out)
    jsonschema.validate(found, json.loads((ROOT / "schemas" / schema).read_text()))
    return found


def pods(cluster: Cluster) -> list[Json]:
    return cluster.api.list("v1", "Pod", cluster.namespace)


def test_two_devices_for_each_pod_and_the_way_back(fleet: Cluster, command: Command, tmp_path: Path) -> None:
    nodes = [gpu_node(fleet, part, 2) for part in ("a", "b")]
    gpu_node(fleet, "old", 2, plugin=2, driver=False)
    text = legacy(fleet)
    file = tmp_path / "tuner.yaml"
    file.write_text(text)

    planned = report(command("migrate", str(file), "--live", "-o", "json", *connection(fleet)), "migrate.json")
    (found,) = planned["equivalence"]
    assert found["before"] == [fleet.name("old")]
    assert sorted(found["after"]) == sorted(nodes) and found["difference"] == 1
    assert [lost["nodes"] for lost in found["lost"]] == [[fleet.name("old")]]
    foretold = {landing["node"]: landing["deviceNames"] for landing in found["landings"]}
    assert foretold == {node: [f"{DRIVER}/{node}/gpu-{index}" for index in (0, 1)] for node in nodes}

    assert command("migrate", "--write", str(file)).code == 0
    apply(fleet, file)

    def bound() -> list[Json] | None:
        found = [pod for pod in pods(fleet) if pod["spec"].get("nodeName")]
        return found if len(found) == 2 else None

    given: dict[str, list[str]] = {}
    for pod in wait(bound, "two pods to be scheduled", 40, lambda: [one.get("status") for one in pods(fleet)]):
        (status,) = pod["status"]["resourceClaimStatuses"]
        claim = fleet.get("ResourceClaim", status["resourceClaimName"])
        results = claim["status"]["allocation"]["devices"]["results"]
        given[pod["spec"]["nodeName"]] = [
            f"{result['driver']}/{result['pool']}/{result['device']}" for result in results
        ]
    assert given == foretold

    settled = report(
        command("migrate", "--live", "-n", fleet.namespace, "-o", "json", *connection(fleet)), "migrate-live.json"
    )
    assert settled["uses"] == [] and [one["state"] for one in settled["namespaces"]] == ["migrated"]

    assert command("migrate", "--reverse", "--write", "--unsafe", str(file)).code == 0
    assert file.read_text() == text


def test_what_uses_device_plugins(fleet: Cluster, command: Command, tmp_path: Path) -> None:
    both = gpu_node(fleet, "both", 2, plugin=2)
    plugin = gpu_node(fleet, "plugin", 2, plugin=2, driver=False)
    file = tmp_path / "tuner.yaml"
    file.write_text(legacy(fleet))
    apply(fleet, file)
    fleet.quota({f"requests.{RESOURCE}": "8"})
    wait(lambda: len(pods(fleet)) == 2 or None, "two pods")

    before = pods(fleet)
    found = report(
        command("migrate", "--live", "-n", fleet.namespace, "-o", "json", *connection(fleet)), "migrate-live.json"
    )
    (use,) = found["uses"]
    assert (use["namespace"], use["ownedBy"], use["resource"]) == (fleet.namespace, "Deployment tuner", RESOURCE)
    assert (use["podCount"], use["deviceCount"], use["each"], use["outcome"]) == (2, 4, 2, "auto")
    mine = {clash["node"]: clash for clash in found["clashes"] if clash["node"].startswith(fleet.name(""))}
    assert mine.keys() == {both} and plugin not in mine
    assert mine[both]["same"] == [f"{both}/gpu-0", f"{both}/gpu-1"] and mine[both]["amount"] == 2
    (standing,) = found["namespaces"]
    assert standing["state"] == "ready" and "quota" in standing["todo"][0].lower()
    names = [pod["metadata"]["name"] for pod in before]
    assert [pod["metadata"]["name"] for pod in pods(fleet)] == names

    text = command("migrate", "--live", "-n", fleet.namespace, *connection(fleet))
    assert text.code == 0 and "Deployment tuner" in text.out and both in text.out
    assert command("migrate", "--live", "--check", "-n", fleet.namespace, *connection(fleet)).code == 1


def test_nothing_in_the_way_of_those_who_may_not_read_all(fleet: Cluster, command: Command, tmp_path: Path) -> None:
    fleet.grant(["list", "get"], ["pods", "resourceclaims.resource.k8s.io"])
    file = tmp_path / "tuner.yaml"
    file.write_text(legacy(fleet))
    apply(fleet, file)
    wait(lambda: len(pods(fleet)) == 2 or None, "two pods")
    flags = ["--kubeconfig", str(fleet.plane.kubeconfig), "--context", "restricted"]
    found = report(command("migrate", "--live", "-n", fleet.namespace, "-o", "json", *flags), "migrate-live.json")
    assert [use["podCount"] for use in found["uses"]] == [2]
    assert any("deployments" in note for note in found["notes"])
    assert any("no Nodes could be read" in note and "forbidden" in note for note in found["notes"])
