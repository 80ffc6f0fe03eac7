"""What the alerts and the dashboard read of the control plane is there, on a real one in which something happened."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

import pytest

from tests.monitoring.exposed import IMAGINED, grouped, scraped, uses
from tests.monitoring.files import expressions
from tests.monitoring.scrape import open_components, read
from tests.monitoring.test_files import CONTROL_PLANE
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request
from tools.controlplane.plane import own_plane
from tools.controlplane.program import Program

WAIT_SECONDS = 60


@pytest.fixture(scope="module")
def metrics(
    control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, frozenset[str]]]:
    """Name to labels, of API server, scheduler and controllers together."""
    if not control_plane_program.built:
        pytest.skip("programs of KUBEBUILDER_ASSETS: their scheduler and controllers cannot be started a second time")
    directory = tmp_path_factory.mktemp("metrics")
    with (
        own_plane(control_plane_program, [], directory) as plane,
        open_components(control_plane_program, plane, directory) as addresses,
    ):
        share = Cluster(plane, f"dra-{secrets.token_hex(4)}")
        _happen(share)
        wanted = {use.name for _, text in expressions() for use in uses(text) if use.name.startswith(CONTROL_PLANE)}
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            found = scraped(share.api.text("/metrics"))
            for address in addresses.values():
                found |= scraped(read(address))
            if wanted <= found.keys() or time.monotonic() > deadline:
                break
            time.sleep(0.5)
        yield found
        share.remove()


def _happen(share: Cluster) -> None:
    """A claim is allocated, pods ask in vain, and a pod is evicted."""
    node, gpu = share.node(), share.device_class()
    share.publish([device("gpu-0"), device("gpu-1")], pool="gpus", node=node)
    share.pod("runs", claims={"gpu": share.claim([request(gpu)], "runs")})
    share.scheduled("runs")
    template = share.template([request(gpu, count=9)], "many")
    for number in range(3):
        share.pod(f"waits-{number}", templates={"gpu": template})
    share.create(
        {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": share.name("rule")},
            "spec": {
                "deviceSelector": {"driver": share.driver, "pool": "gpus", "device": "gpu-0"},
                "taint": {"key": "example.com/broken", "effect": "NoExecute"},
            },
        }
    )


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_names_and_labels_are_there(metrics: dict[str, frozenset[str]], where: str, expression: str) -> None:
    for use in uses(expression):
        if use.name.startswith(CONTROL_PLANE):
            assert use.name in metrics, f"{where}: Kubernetes does not expose {use.name}"
            assert use.labels <= metrics[use.name], f"{where}: {use.name} has {sorted(metrics[use.name])}"
            assert grouped(expression) <= metrics[use.name] | {"instance"}, where


def test_names_that_go_around_are_not_there(metrics: dict[str, frozenset[str]]) -> None:
    assert not set(IMAGINED) & metrics.keys()


def test_nothing_else_speaks_of_claims(metrics: dict[str, frozenset[str]]) -> None:
    """The list in docs/monitoring.md is complete, as far as a scrape shows."""
    from tests.monitoring.test_files import PAGE

    about = {
        name.removesuffix("_bucket")
        for name in metrics
        if name.startswith(("resourceclaim_controller_", "device_taint_eviction_controller_", "scheduler_dra_"))
        and not name.endswith(("_sum", "_count", "_created"))
    }
    assert about
    assert not sorted(name for name in about if f"`{name}`" not in PAGE)
