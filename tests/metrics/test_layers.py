"""What serves the metrics follows the objects of other layers that pods point to, and names the causes of explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.cli.flags import MetricsFlags
from kubectl_dra.cli.metrics import Counting
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.follow import FollowedCluster
from kubectl_dra.cluster.kinds import is_namespaced
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import FORBIDDEN, KINDS
from kubectl_dra.metrics.exposition import FleetKeeper
from kubectl_dra.metrics.fleet import NODE_POOL_LABELS
from tests.cli.conftest import Ran
from tests.metrics.test_follow import until
from tests.metrics.test_same_answers import counted, explained, pending
from tools.cases import CASES, Case
from tools.watched_server import WatchedServer, collection

Dra = Callable[..., Ran]


def kinds_of(case: Case) -> frozenset[str]:
    """The kinds of other layers that a case has."""
    names = {kind_here(entry["kind"], entry["apiVersion"]) for entry in case.objects}
    return frozenset(names & NEIGHBOUR_KINDS.keys())


FIRST = {
    (case.file, kinds): case
    for case in reversed(CASES)
    if (kinds := kinds_of(case)) and not case.raw.get("unseen") and not case.raw.get("flags")
}
"""One case of each file and set of kinds."""


def in_namespaces(case: Case) -> Iterator[dict[str, Any]]:
    """The objects as a server has them."""
    for entry in case.objects:
        spaced = is_namespaced(kind_here(entry["kind"], entry["apiVersion"]))
        yield {**entry, "metadata": {"namespace": "default", **entry["metadata"]}} if spaced else entry


def told(server: WatchedServer, dra: Dra, folder: Path) -> tuple[str, str]:
    """What the followed cluster's metrics say, and what ``explain -A -o json`` does."""
    path = server.kubeconfig(folder)
    options = ConnectionOptions(kubeconfig=path, request_timeout=5.0)
    followed = FollowedCluster(lambda: ApiServer(options))
    keeper = FleetKeeper(followed, Counting(MetricsFlags(), NODE_POOL_LABELS), lambda _: None)
    try:
        followed.start((*KINDS, "DaemonSet"))
        while not keeper.ready:
            until(lambda: followed.known)
            keeper.count()
        text = generate_latest(keeper.registry()).decode()
        return text, dra("explain", "-A", "--kubeconfig", path, "-o", "json").out
    finally:
        followed.stop()
        server.close()


@pytest.mark.parametrize("case", FIRST.values(), ids=[file for file, _ in FIRST])
def test_the_causes_of_explain(case: Case, dra: Dra, tmp_path: Path) -> None:
    text, overview = told(WatchedServer(in_namespaces(case)), dra, tmp_path)
    assert pending(text) == explained(overview)


@pytest.mark.parametrize("case", FIRST.values(), ids=[file for file, _ in FIRST])
def test_what_may_not_be_read_is_not_denied(case: Case, dra: Dra, tmp_path: Path) -> None:
    for kind in sorted(kinds_of(case)):
        server = WatchedServer(in_namespaces(case))
        server.refused[collection(kind)] = 403
        text, overview = told(server, dra, tmp_path)
        assert pending(text) == explained(overview), kind
        # It is named, as where nothing points to it: then nobody asked for it.
        asked = collection(kind) in server.asked
        assert (counted(text, "unread", "kind", "reason")[kind, FORBIDDEN] == 1) == asked, kind


def test_the_deployment_may_follow_what_explain_reads() -> None:
    folder = Path(__file__).parents[2] / "examples"
    (reader,) = yaml.safe_load_all((folder / "rbac" / "read.yaml").read_text())
    deployed = yaml.safe_load_all((folder / "monitoring" / "kubectl-dra-metrics.yaml").read_text())
    (role,) = (entry for entry in deployed if entry["kind"] == "ClusterRole")
    # A question about a virtual machine leads to it, no pod does.
    layers = {(row.group, row.plural) for row in NEIGHBOUR_KINDS.values() if row.group != "kubevirt.io"}
    assert resources(role, "watch") == resources(role, "list") >= resources(reader, "list") & layers


def resources(role: dict[str, Any], verb: str) -> set[tuple[str, str]]:
    rules = [rule for rule in role["rules"] if verb in rule["verbs"]]
    return {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
