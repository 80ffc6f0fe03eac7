"""Pods read from the text of lists are what they are when read one by one, whatever was read before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import json, structs

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Pod, PodStatus
from kubectl_dra.api.volumes import PodVolume
from kubectl_dra.cluster import pod_lists
from kubectl_dra.cluster.pod_lists import KEPT_ANNOTATIONS
from kubectl_dra.cluster.reader import Reader, page

Json = dict[str, Any]
USUAL = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def raw_pod(name: str = "web-abcde", node: str = "n1", **changes: Any) -> Json:
    """A running pod of a ReplicaSet, as an API server writes it."""
    token = f"kube-api-access-{name[-5:]}"
    container = {
        "name": "web",
        "image": "web:1",
        "args": ["--name", "web"],
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }
    spec = {
        "volumes": [{"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        "containers": [container],
        "nodeName": node,
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
    }
    raw: Json = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"u-{name}",
            "resourceVersion": "7",
            "labels": {"app": "web"},
            "annotations": {"checksum": "0", "resource.kubernetes.io/pod-claim-name": "x"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}],
        },
        "spec": {key: value for key, value in {**spec, **changes}.items() if value is not None},
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": "t"} for kind in USUAL],
            "containerStatuses": [{"name": "web", "resources": {"requests": {"cpu": "1"}}, "state": {"running": {}}}],
        },
    }
    return raw


def expected(raw: Json) -> Pod:
    """The pod as the API has it, without what the reader leaves out."""
    pod = Pod.from_json(raw)
    spec, status = pod.spec, pod.status
    kept = {name: text for name, text in pod.metadata.annotations.items() if name.startswith(KEPT_ANNOTATIONS)}
    conditions, runs = status.conditions, pod.node_name and not pod.finished
    if pod.node_name and not spec.resource_claims:
        conditions = tuple(one for one in conditions if one.type not in USUAL)
    own: Any = structs.replace
    return Pod(
        own(pod.metadata, annotations=kept, resource_version="" if runs else pod.metadata.resource_version),
        own(spec, volumes=tuple(volume for volume in spec.volumes if volume != PodVolume(volume.name))),
        own(
            status,
            conditions=conditions,
            container_statuses=_telling(status.container_statuses, spec.containers),
            init_container_statuses=_telling(status.init_container_statuses, spec.init_containers),
        ),
        pod.node_name,
    )


def _telling(statuses: Any, containers: Any) -> Any:
    asked = {one.name: one.resources.requests for one in containers}

    def tells(one: Any) -> bool:
        given = {} if one.resources is None else one.resources.requests
        resized = one.resources is not None and given != asked.get(one.name, {})
        allocated = bool(one.allocated_resources) and one.allocated_resources != asked.get(one.name, {})
        return one.state.waiting is not None or bool(one.allocated_resources_status) or resized or allocated

    return statuses if any(tells(one) for one in statuses) else ()


def read(reader: Reader, raws: list[Json]) -> list[Pod | None]:
    found = page(json.encode({"kind": "PodList", "items": raws}), pods=True)
    assert found is not None and found.objects is not None
    return [reader.pod(one) for one in found.objects]


def test_a_spec_is_decoded_once_for_all_pods_of_an_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []
    plain: Callable[..., Any] = pod_lists._around

    def counted(text: bytes, *rest: Any) -> Any:
        looked.append(text)
        return plain(text, *rest)

    monkeypatch.setattr(pod_lists, "_around", counted)
    raws = [raw_pod(f"web-a{number:04}", f"node-{number % 7}") for number in range(40)]
    found = read(Reader(), raws)
    assert found == [expected(raw) for raw in raws]
    assert len(looked) == 1
    assert len({id(pod.spec.containers) for pod in found if pod is not None}) == 1


# Each is a pod of the same owner in which something else than usual depends on the names.
ODD: dict[str, Callable[[str, str], Json]] = {
    "pinned": lambda name, node: raw_pod(
        name,
        node,
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                    ]
                }
            }
        },
    ),
    "selected": lambda name, node: raw_pod(name, node, nodeSelector={"own": name, "nodeName": node}),
    "other key": lambda name, node: raw_pod(name, None, hostNames={"nodeName": node}),  # type: ignore[arg-type]
    "both keys": lambda name, node: raw_pod(name, node, hostNames={"nodeName": node}),
    "unbound": lambda name, node: raw_pod(name, ""),
    "absent": lambda name, node: raw_pod(name, None),  # type: ignore[arg-type]
    "called like the node": lambda name, node: raw_pod(node, node, priorityClassName=node),
    "claims of the volume": lambda name, node: raw_pod(
        name, node, volumes=[{"name": f"kube-api-access-{name[-5:]}", "ephemeral": {"volumeClaimTemplate": {}}}]
    ),
    "named like the volume": lambda name, node: raw_pod(name, node, nodeSelector={f"kube-api-access-{name}": "x"}),
    "quoted": lambda name, node: raw_pod(name, node, runtimeClassName=f'"kube-api-access-{name[-5:]}" "nodeName":"x"'),
    "escaped": lambda name, node: raw_pod(name, f'n"\\ü{node}'),
    "no token": lambda name, node: raw_pod(name, node, volumes=None),
    "last": lambda name, node: raw_pod(name, None, nodeName=node),  # type: ignore[arg-type]
    "with claims": lambda name, node: raw_pod(name, node, resourceClaims=[{"name": "gpu"}]),
}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([None, *ODD]), st.sampled_from(["web-aaaaa", "web-bbbbb", "web-b"]), st.sampled_from("xyz")
        ),
        max_size=12,
    )
)
def test_what_was_read_before_changes_nothing(chosen: list[tuple[str | None, str, str]]) -> None:
    raws = [ODD[odd](name, node) if odd else raw_pod(name, node) for odd, name, node in chosen]
    assert read(Reader(), raws) == [expected(raw) for raw in raws]
    reader = Reader()
    for raw in raws:
        # As kubectl writes it.
        found = reader.read("Pod", json.format(json.encode(raw), indent=2))
        assert found is not None and found.object == expected(raw)


_ANY = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from(["", "x", "1Gi", "n1"]))


def _object(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=dict(values))


_AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "1Gi", 1, 0.5]), max_size=2)
_STATUSES = st.lists(
    _object(
        name=st.sampled_from(["web", "other"]),
        resources=_object(requests=_AMOUNTS),
        allocatedResources=_AMOUNTS,
        allocatedResourcesStatus=st.just([{"name": "claim:gpu", "resources": []}]),
        state=st.sampled_from([{}, {"running": {}}, {"waiting": {"reason": "ErrImagePull"}}]),
    ),
    max_size=2,
)
_CONDITIONS = st.lists(
    _object(type=st.sampled_from([*USUAL, "DisruptionTarget"]), status=st.just("False"), reason=st.just("r")),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(_CONDITIONS, _STATUSES, _STATUSES, st.booleans(), st.booleans()), min_size=1, max_size=5))
def test_statuses_that_tell_something_are_kept(parts: list[tuple[Any, Any, Any, bool, bool]]) -> None:
    raws = []
    for conditions, statuses, first, bound, claims in parts:
        raw = raw_pod(node="n1" if bound else "", resourceClaims=[{"name": "gpu"}] if claims else None)
        raw["status"] |= {
            "conditions": conditions,
            "containerStatuses": statuses,
            "initContainerStatuses": first,
        }
        raws.append(raw)
    assert read(Reader(), raws) == [expected(raw) for raw in raws]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(
        [
            *(("metadata", name) for name in ("name", "uid", "labels", "annotations", "ownerReferences", "generation")),
            *(("spec", name) for name in ("nodeName", "containers", "volumes", "resourceClaims", "overhead")),
            *(("status", name) for name in ("phase", "conditions", "containerStatuses", "startTime")),
            *(("metadata",), ("spec",), ("status",)),
        ]
    ),
    _ANY | st.lists(_ANY, max_size=2) | st.dictionaries(st.sampled_from("ab"), _ANY, max_size=2),
)
def test_a_wrong_value_needs_a_closer_look(path: tuple[str, ...], value: Any) -> None:
    raw = raw_pod()
    place = raw
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    reader = Reader()
    assert reader.read("Pod", json.encode(raw_pod())) is not None
    found = reader.read("Pod", json.encode(raw))
    if found is not None:
        assert found.object == expected(raw)


def test_no_field_is_lost_between_a_list_and_the_pod() -> None:
    """A field that a pod's status or metadata has is read from a list, too: two structs name it."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    values: Json = {
        "labels": {"a": "b"},
        "annotations": {f"{KEPT_ANNOTATIONS[0]}a": "b"},
        "finalizers": ["f"],
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "u"}],
        "generation": 3,
        "deletionGracePeriodSeconds": 30,
        "conditions": [{"type": "PodScheduled", "status": "False"}],
        "resourceClaimStatuses": [{"name": "c", "resourceClaimName": "n"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "e"},
        "containerStatuses": [{"name": "web", "state": waiting}],
        "initContainerStatuses": [{"name": "web", "state": waiting}],
        "resources": {"requests": {"cpu": "1"}},
        "allocatedResources": {"cpu": "1"},
        "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}],
    }
    for part, struct in (("metadata", ObjectMeta), ("status", PodStatus)):
        for field, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
            raw: Json = {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": {}}
            raw[part] = {**raw[part], name: values.get(name, "x")}
            (pod,) = read(Reader(), [raw])
            whole = getattr(Pod.from_json(raw), part)
            assert getattr(whole, field) != getattr(struct(), field), f"give {name} a value"
            assert pod is not None and getattr(pod, part) == whole, name
