from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.api.releases import Release
from kubectl_dra.cluster.apply import with_kinds
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import ABSENT, EVERY_KIND, FORBIDDEN, KINDS, NOT_FOUND, NOT_SERVED, UNREADABLE, Gap
from kubectl_dra.errors import ClusterError
from tests.gaps import gap_reason
from tools.api_server import GROUP, Answer, APIServer, Asked, forbidden, kubeconfig, own_certificate, paged, status

ALL = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "devicetaintrules")


@pytest.fixture
def server() -> Iterator[APIServer]:
    server = _serving(APIServer())
    yield server
    server.close()
    assert {asked.method for asked in server.asked} <= {"GET"}


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[APIServer]:
    """A token is only sent over TLS."""
    server = _serving(APIServer(tls=own_certificate(tmp_path)))
    yield server
    server.close()
    assert {asked.method for asked in server.asked} <= {"GET"}


def _serving(server: APIServer) -> APIServer:
    server.routes["/version"] = {"major": "1", "minor": "36", "gitVersion": "v1.36.2"}
    server.serve_group(v1=ALL[:4], v1beta2=ALL)
    for plural in ALL[:4]:
        server.routes[f"/apis/{GROUP}/v1/{plural}"] = []
    server.routes[f"/apis/{GROUP}/v1beta2/devicetaintrules"] = []
    for plural in ("pods", "nodes", "namespaces", "resourcequotas", "events"):
        server.routes[f"/api/v1/{plural}"] = []
    return server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def cluster(server: APIServer, tmp_path: Path, waits: list[float]) -> ApiServer:
    return ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path)), sleep=waits.append)


def _pod(name: str, namespace: str = "team") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "managedFields": [{"x": 1}]}, "spec": {}}


def _slice(name: str) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": name}, "spec": {"driver": "d", "pool": pool, "devices": [{"name": "gpu"}]}}


def _list(kind: str, *items: Any, version: str = f"{GROUP}/v1") -> dict[str, Any]:
    return {"kind": f"{kind}List", "apiVersion": version, "metadata": {}, "items": list(items)}


def test_a_whole_snapshot(secure: APIServer, tmp_path: Path) -> None:
    cluster = ApiServer(ConnectionOptions(kubeconfig=secure.kubeconfig(tmp_path)))
    secure.routes[f"/apis/{GROUP}/v1/resourceslices"] = _list("ResourceSlice", _slice("a"), _slice("b"))
    taint = {"key": "k", "effect": "NoSchedule"}
    rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": {}, "taint": taint}}
    rules = _list("DeviceTaintRule", rule, version=f"{GROUP}/v1beta2")
    secure.routes[f"/apis/{GROUP}/v1beta2/devicetaintrules"] = rules
    secure.routes["/api/v1/nodes"] = _list("Node", {"metadata": {"name": "n"}}, version="v1")
    secure.routes["/api/v1/pods"] = _list("Pod", _pod("p"), version="v1")
    snapshot = cluster.read_snapshot()
    assert [entry.name for entry in snapshot.slices] == ["a", "b"]
    assert snapshot.taint_rules[0].taint.key == "k"
    assert list(snapshot.nodes) == ["n"]
    assert list(snapshot.pods) == [("team", "p")]
    assert snapshot.unread(KINDS) == ()
    # The others are read where a pod needs them.
    assert {gap.kind for gap in snapshot.gaps} == SCHEDULING_KINDS.keys()
    assert (snapshot.release, snapshot.release_source) == (Release(1, 36, 2), "server")
    assert snapshot.sources == (secure.url,)
    assert (cluster.context, cluster.namespace) == ("test", "team")
    queries = [asked.query.get("fieldSelector") for asked in secure.asked if asked.path == "/api/v1/events"]
    assert queries == ["involvedObject.kind=Pod", "involvedObject.kind=ResourceClaim"]
    # The bearer token is sent, and answers may be compressed.
    assert all(("authorization", "Bearer secret") in _lower(asked) for asked in secure.asked)


def _lower(asked: Asked) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in asked.headers]


def test_only_the_kinds_asked_for(server: APIServer, cluster: ApiServer) -> None:
    snapshot = cluster.read_snapshot(("Node",))
    assert sorted(server.paths()) == ["/api/v1/nodes", "/version"]
    assert {gap.kind: gap.reason for gap in snapshot.gaps} == {kind: ABSENT for kind in EVERY_KIND if kind != "Node"}


def test_one_namespace(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/namespaces/a%2Fb/pods"] = _list("Pod", _pod("p", "a/b"), version="v1")
    snapshot = cluster.read_snapshot(("Pod", "Node"), namespace="a/b")
    assert list(snapshot.pods) == [("a/b", "p")]
    assert "/api/v1/nodes" in server.paths()


def test_pages(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/pods"] = paged("Pod", [_pod(f"p{i}") for i in range(25)], 10)
    said: list[str] = []
    snapshot = cluster.read_snapshot(("Pod",), progress=said.append)
    assert len(snapshot.pods) == 25
    assert said == ["Pod: 10 of about 25", "Pod: 20 of about 25", "Pod: 25"]
    pages = [asked.query for asked in server.asked if asked.path == "/api/v1/pods"]
    assert pages == [{"limit": "500"}, {"limit": "500", "continue": "10"}, {"limit": "500", "continue": "20"}]
    raw = cluster.objects("Pod")
    assert (raw[0]["apiVersion"], raw[0]["kind"]) == ("v1", "Pod")
    assert "managedFields" not in raw[0]["metadata"]


def test_expired_list_is_read_once_more(server: APIServer, cluster: ApiServer) -> None:
    pages = paged("Pod", [_pod(f"p{i}") for i in range(25)], 10)
    expired = status(410, "Expired", "The provided continue parameter is too old")
    left = [1]

    def answer(asked: Asked) -> Answer:
        if asked.query.get("continue") == "20" and left:
            left.pop()
            return expired
        return pages(asked)

    server.routes["/api/v1/pods"] = answer
    assert len(cluster.read_snapshot(("Pod",)).pods) == 25

    server.routes["/api/v1/pods"] = lambda asked: expired if "continue" in asked.query else pages(asked)
    server.asked.clear()
    snapshot = cluster.read_snapshot(("Pod",))
    assert gap_reason(snapshot, "Pod").startswith(f"{UNREADABLE}: ")
    assert "too old" in gap_reason(snapshot, "Pod")
    assert server.paths().count("/api/v1/pods") == 4


def test_forbidden_kinds_are_gaps(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/nodes"] = forbidden("nodes")
    server.routes["/api/v1/pods"] = forbidden("pods")
    server.routes["/api/v1/namespaces/team/pods"] = _list("Pod", _pod("p"), version="v1")
    server.routes[f"/apis/{GROUP}/v1/resourceclaims"] = forbidden("resourceclaims")
    claims = f"/apis/{GROUP}/v1/namespaces/team/resourceclaims"
    server.routes[claims] = forbidden("resourceclaims", 'in the namespace "team"')
    snapshot = cluster.read_snapshot(("Node", "Pod", "ResourceClaim"))
    assert list(snapshot.pods) == [("team", "p")]
    gaps = [gap for gap in snapshot.gaps if gap.reason != ABSENT]
    assert [(gap.kind, gap.reason, gap.namespace, gap.read_in) for gap in gaps] == [
        ("Node", FORBIDDEN, "", ""),
        ("Pod", FORBIDDEN, "", "team"),
        ("ResourceClaim", FORBIDDEN, "", ""),
        ("ResourceClaim", FORBIDDEN, "team", ""),
    ]
    assert 'User "jane" cannot list' in gaps[0].detail
    assert gaps[2].permission == ("list", "resourceclaims", GROUP)
    assert snapshot.is_gap("Pod") and snapshot.is_gap("Pod", "other") and not snapshot.is_gap("Pod", "team")
    assert [str(gap) for gap in gaps] == [
        "no Nodes could be read (list nodes is forbidden)",
        "only namespace team could be read of the Pods (list pods is forbidden)",
        f"no ResourceClaims could be read (list resourceclaims.{GROUP} is forbidden)",
        f"the ResourceClaims of namespace team could not be read (list resourceclaims.{GROUP} is forbidden)",
    ]


def test_own_namespace_is_read_where_others_are_forbidden(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/namespaces"] = forbidden("namespaces")
    server.routes["/api/v1/namespaces/team"] = {"metadata": {"name": "team", "labels": {"a": "b"}}}
    snapshot = cluster.read_snapshot(("Namespace",))
    assert snapshot.namespaces["team"].labels == {"a": "b"}
    assert not snapshot.is_gap("Namespace", "team") and snapshot.is_gap("Namespace", "other")
    del server.routes["/api/v1/namespaces/team"]
    assert cluster.read_snapshot(("Namespace",)).is_gap("Namespace", "team")


def test_kinds_that_are_not_served(server: APIServer, cluster: ApiServer) -> None:
    server.serve_group(v1=("resourceclaims",))
    del server.routes["/api/v1/pods"]
    snapshot = cluster.read_snapshot(("DeviceTaintRule", "ResourceClaim", "Pod"))
    detail = f"{server.url} does not serve devicetaintrules.{GROUP}"
    assert snapshot.gaps[0] == Gap("DeviceTaintRule", NOT_SERVED, detail=detail)
    assert (snapshot.gaps[1].kind, snapshot.gaps[1].reason) == ("Pod", NOT_FOUND)
    assert {gap.reason for gap in snapshot.gaps[2:]} == {ABSENT}
    snapshot.require_dra()


def test_group_is_not_served(server: APIServer, cluster: ApiServer) -> None:
    del server.routes[f"/apis/{GROUP}"]
    snapshot = cluster.read_snapshot(("ResourceSlice", "DeviceClass", "Node"))
    assert [(gap.kind, gap.reason) for gap in snapshot.gaps if gap.reason != ABSENT] == [
        ("ResourceSlice", NOT_SERVED),
        ("DeviceClass", NOT_SERVED),
    ]
    assert server.paths().count(f"/apis/{GROUP}") == 1


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_old_servers(server: APIServer, cluster: ApiServer, version: str) -> None:
    server.serve_group(**{version: ALL[:4]})
    old = _slice("a")
    old["spec"]["devices"] = [{"name": "gpu", "basic": {"attributes": {"x": {"int": 1}}}}]
    listed = _list("ResourceSlice", old, version=f"{GROUP}/{version}")
    server.routes[f"/apis/{GROUP}/{version}/resourceslices"] = listed
    snapshot = cluster.read_snapshot(("ResourceSlice",))
    assert snapshot.slices[0].devices[0].attributes == {"x": {"int": 1}}


def test_an_odd_object_is_a_gap_and_the_rest_is_read(server: APIServer, cluster: ApiServer) -> None:
    odd = {"metadata": {"name": "odd"}, "spec": {"devices": "x"}}
    server.routes[f"/apis/{GROUP}/v1/resourceslices"] = _list("ResourceSlice", odd, _slice("a"))
    snapshot = cluster.read_snapshot(("ResourceSlice",))
    assert [entry.name for entry in snapshot.slices] == ["a"]
    assert "ResourceSlice odd: spec.devices must be a list" in gap_reason(snapshot, "ResourceSlice")


def test_one_object(server: APIServer, cluster: ApiServer) -> None:
    path = f"/apis/{GROUP}/v1/namespaces/team/resourceclaims/c"
    server.routes[path] = {"kind": "ResourceClaim", "metadata": {"name": "c"}}
    found = cluster.get("ResourceClaim", "c", "team")
    assert found is not None
    assert found["metadata"]["name"] == "c"
    assert cluster.get("ResourceClaim", "none", "team") is None
    server.routes["/api/v1/nodes/n"] = forbidden("nodes")
    with pytest.raises(ClusterError, match="cannot list"):
        cluster.get("Node", "n")


def test_busy_server(server: APIServer, cluster: ApiServer, waits: list[float]) -> None:
    answers = [
        Answer(429, {"message": "busy"}, (("Retry-After", "3"),)),
        Answer(503, b"unavailable"),
        Answer(429, {"message": "busy"}, (("Retry-After", "9999"),)),
        Answer(200, _list("Node", {"metadata": {"name": "n"}}, version="v1")),
    ]
    server.routes["/api/v1/nodes"] = lambda asked: answers.pop(0)
    assert list(cluster.read_snapshot(("Node",)).nodes) == ["n"]
    assert waits == [3.0, 1.0, 10.0]


def test_server_that_stays_busy(server: APIServer, cluster: ApiServer, waits: list[float]) -> None:
    server.routes["/api/v1/nodes"] = status(429, "TooManyRequests", "too many requests")
    snapshot = cluster.read_snapshot(("Node",))
    assert len(waits) == 3
    assert gap_reason(snapshot, "Node").endswith("cannot answer /api/v1/nodes now (429): too many requests")


def test_server_that_says_when_to_come_back_is_asked_more_often(
    server: APIServer, cluster: ApiServer, waits: list[float]
) -> None:
    server.routes["/api/v1/nodes"] = Answer(429, {"message": "busy"}, (("Retry-After", "1"),))
    assert "(429): busy" in gap_reason(cluster.read_snapshot(("Node",)), "Node")
    assert waits == [1.0] * 9


def test_internal_error(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/nodes"] = status(500, "InternalError", "etcd\nis gone")
    assert "now (500): etcd is gone" in gap_reason(cluster.read_snapshot(("Node",)), "Node")
    server.routes[f"/apis/{GROUP}"] = Answer(500, b"<html>")
    with pytest.raises(ClusterError, match=r"cannot answer /apis/resource.k8s.io now \(500\): HTTP 500"):
        cluster.read_snapshot(("ResourceSlice",))


def test_credentials_that_are_not_accepted(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/nodes"] = status(401, "Unauthorized", "Unauthorized")
    with pytest.raises(ClusterError, match=r"does not accept the credentials \(401\): log in again"):
        cluster.read_snapshot(("Node",))


def test_slow_answer(server: APIServer, tmp_path: Path) -> None:
    server.routes["/version"] = Answer(200, {}, delay=20)
    options = ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path), request_timeout=0.2)
    began = time.monotonic()
    with pytest.raises(ClusterError, match=r"did not answer within 0.2 s; try again, or give --request-timeout"):
        ApiServer(options).read_snapshot()
    assert time.monotonic() - began < 10


def test_nobody_listens(tmp_path: Path) -> None:
    server = APIServer()
    options = ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path))
    server.close()
    with pytest.raises(ClusterError, match=r"no connection: .*refused; is the cluster up, and the address right\?"):
        ApiServer(options).read_snapshot()


def test_unknown_host(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig("http://no-such-host.invalid:1", {})))
    options = ConnectionOptions(kubeconfig=str(config))
    with pytest.raises(ClusterError, match=r"no-such-host.invalid:1: no connection: "):
        ApiServer(options).read_snapshot()


def test_no_tls(server: APIServer, tmp_path: Path) -> None:
    secure = server.url.replace("http:", "https:")
    options = ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path), server=secure)
    with pytest.raises(ClusterError, match=r"no TLS connection: .*check the certificate authority"):
        ApiServer(options).read_snapshot()
    server.asked.clear()


def test_certificate_authority_that_is_none(server: APIServer, tmp_path: Path) -> None:
    data = base64.b64encode(b"no certificate").decode()
    config = tmp_path / "config"
    broken = kubeconfig(server.url.replace("http:", "https:"), {}, **{"certificate-authority-data": data})
    config.write_text(json.dumps(broken))
    with pytest.raises(ClusterError, match="the certificate authority of the kubeconfig's cluster is not a") as caught:
        ApiServer(ConnectionOptions(kubeconfig=str(config))).read_snapshot()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(200, b"<html>log in</html>"), "the answer is not JSON; is this an API server"),
        (Answer(200, [1]), "the answer is not JSON"),
        (Answer(200, {"items": "x"}), "not a list of Kubernetes objects"),
        (Answer(200, {"items": ["x"]}), "not a list of Kubernetes objects"),
        (Answer(200, {"items": [], "metadata": "x"}), "not a list of Kubernetes objects"),
    ],
)
def test_answers_that_are_not_kubernetes(server: APIServer, cluster: ApiServer, answer: Answer, message: str) -> None:
    server.routes["/api/v1/nodes"] = answer
    with pytest.raises(ClusterError, match=message):
        cluster.read_snapshot(("Node",))


def test_redirects_are_not_followed(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/api/v1/nodes"] = Answer(302, {}, (("Location", "/api/v1/pods"),))
    assert "answers with a redirect" in gap_reason(cluster.read_snapshot(("Node",)), "Node")
    assert "/api/v1/pods" not in server.paths()


def test_a_server_that_does_not_tell_its_release(server: APIServer, cluster: ApiServer) -> None:
    server.routes["/version"] = {"gitVersion": "unknown"}
    node = {"metadata": {"name": "n"}, "status": {"nodeInfo": {"kubeletVersion": "v1.35.0"}}}
    server.routes["/api/v1/nodes"] = _list("Node", node, version="v1")
    snapshot = cluster.read_snapshot(("Node",))
    assert snapshot.release == Release(1, 35)
    assert snapshot.release_source.startswith("kubelet of node n")


def test_impersonation_and_token(secure: APIServer, tmp_path: Path) -> None:
    options = ConnectionOptions(
        kubeconfig=secure.kubeconfig(tmp_path),
        token="other",
        as_user="jane",
        as_groups=("dev", "ops"),
        as_uid="7",
        namespace="mine",
    )
    cluster = ApiServer(options)
    cluster.read_snapshot(("Node",))
    sent = [entry for entry in _lower(secure.asked[-1]) if entry[0].startswith(("imp", "auth"))]
    assert sorted(sent) == [
        ("authorization", "Bearer other"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-uid", "7"),
        ("impersonate-user", "jane"),
    ]
    assert cluster.namespace == "mine"


def test_further_kinds_are_read_where_they_are_served(server: APIServer, cluster: ApiServer) -> None:
    claim = {"metadata": {"name": "data", "namespace": "team"}, "spec": {"volumeName": "v"}}
    server.routes["/api/v1/persistentvolumeclaims"] = _list("PersistentVolumeClaim", claim, version="v1")
    server.routes["/apis/storage.k8s.io/v1/csinodes"] = []
    server.routes["/apis/scheduling.k8s.io"] = {"versions": [{"version": "v1alpha2"}, {"version": "v1"}]}
    group = {"metadata": {"name": "g", "namespace": "team"}}
    groups = _list("PodGroup", group, version="scheduling.k8s.io/v1alpha2")
    server.routes["/apis/scheduling.k8s.io/v1alpha2/podgroups"] = groups
    server.routes["/apis/policy/v1/poddisruptionbudgets"] = forbidden("poddisruptionbudgets")
    kinds = ("PersistentVolumeClaim", "CSINode", "PodGroup", "PodDisruptionBudget", "StorageClass")
    base = cluster.read_snapshot()
    snapshot = with_kinds(base, cluster.read_snapshot(kinds), kinds)
    assert snapshot.others["PersistentVolumeClaim"]["team", "data"].spec.volume_name == "v"
    assert list(snapshot.others["PodGroup"]) == [("team", "g")]
    assert snapshot.others["CSINode"] == {} and not snapshot.is_gap("CSINode")
    assert gap_reason(snapshot, "PodDisruptionBudget").startswith(FORBIDDEN)
    assert snapshot.is_gap("StorageClass")
