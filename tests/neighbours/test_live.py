"""Domains and virtual machines of a live cluster: what is asked for, and what is answered."""

from __future__ import annotations

from pathlib import Path

from tests.neighbours.test_foundation import OBJECTS, Dra, explained, pod, serve
from tools.api_server import APIServer

DOMAINS = [one for one in OBJECTS if one["apiVersion"].startswith("resource.nvidia.com")]
MACHINES = [one for one in OBJECTS if one["apiVersion"].startswith("kubevirt.io")]
POLICIES = [one for one in OBJECTS if one["kind"] in ("ClusterPolicy", "NicClusterPolicy")]


def test_a_domain_and_its_daemons_are_read_once(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, *DOMAINS, *MACHINES)
    ran, paths = explained(server, dra, tmp_path, "explain", "computedomain/imex", "-n", "ml")
    root = "/apis/resource.nvidia.com/v1beta1"
    asked = [path for path in paths if "nvidia" in path or "kubevirt" in path]
    assert sorted(asked) == [f"{root}/computedomaincliques", f"{root}/namespaces/ml/computedomains"]
    assert ran.code == 1 and "no ResourceClaimTemplate imex-channel" in " ".join(ran.out.split())


def test_a_cluster_without_domains_says_so(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server)
    ran, paths = explained(server, dra, tmp_path, "explain", "computedomain/imex", "-n", "ml")
    assert ran.code == 3 and "does not serve computedomains.resource.nvidia.com" in " ".join(ran.err.split())
    assert not any("nvidia" in path for path in paths)


def test_an_instance_is_read_where_it_has_no_pod(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, *MACHINES, *DOMAINS)
    ran, paths = explained(server, dra, tmp_path, "explain", "vm/desktop", "-n", "ml")
    assert [path for path in paths if "kubevirt" in path or "nvidia" in path] == [
        "/apis/kubevirt.io/v1/namespaces/ml/virtualmachineinstances"
    ]
    assert ran.code == 1 and "the API server refuses it: cannot" in " ".join(ran.out.split())


def test_an_operator_is_read_where_its_driver_publishes_nothing(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    claimed = pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})
    serve(server, claimed, *POLICIES)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    api = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    claim = {**api, "metadata": {"name": "gpu", "namespace": "ml"}, "spec": {"devices": {"requests": [request]}}}
    selector = {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}
    device_class = {**api, "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}}
    server.routes["/apis/resource.k8s.io/v1/resourceclaims"] = [claim]
    server.routes["/apis/resource.k8s.io/v1/deviceclasses"] = [{**device_class, "spec": {"selectors": [selector]}}]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    server.routes["/api/v1/nodes"] = [{**node, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}]
    ran, paths = explained(server, dra, tmp_path, "explain", "pod/train-0", "-n", "ml", "--full")
    asked = [path for path in paths if "nvidia.com" in path or "mellanox" in path]
    assert asked == ["/apis/nvidia.com/v1/clusterpolicies"], "of the network operator nothing is asked"
    assert "states not ready: [state-driver]" in " ".join(ran.out.split())


def test_alignment_and_sharing_read_and_never_write(server: APIServer, dra: Dra, tmp_path: Path) -> None:
    serve(server, *DOMAINS)
    ran, paths = explained(server, dra, tmp_path, "claims", "--alignment")
    assert (ran.code, ran.out) == (1, "No pod has two devices or more.\n")
    assert not any("nvidia" in path for path in paths)
    ran, _ = explained(server, dra, tmp_path, "share", "--class", "gpu", "--pods", "2")
    assert ran.code == 2 and "there is no DeviceClass gpu" in ran.err
