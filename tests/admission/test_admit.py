"""New pods as the API server admits them; the texts are those of kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kubectl_dra.admission.admit import Admission, AdmissionObjects, admit
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from kubectl_dra.cluster.snapshot import ABSENT, FORBIDDEN, Gap, Snapshot

JSON = dict[str, Any]


def pod(spec: JSON | None = None, **resources: Any) -> Pod:
    containers = [{"name": "main", "resources": resources}]
    return Pod.from_json(
        {"metadata": {"name": "p", "namespace": "ml"}, "spec": {"containers": containers} | (spec or {})}
    )


def words(admission: Admission) -> list[str]:
    return [refusal.words for refusal in admission.refusals]


def limits(**item: Any) -> AdmissionObjects:
    raw = {"metadata": {"name": "l", "namespace": "ml"}, "spec": {"limits": [{"type": "Container"} | item]}}
    return AdmissionObjects(limit_ranges=[LimitRange.from_json(raw)])


def quota(hard: JSON, used: JSON | None = None, **spec: Any) -> AdmissionObjects:
    status = {"hard": hard, "used": used or dict.fromkeys(hard, "0")}
    raw = {"metadata": {"name": "q", "namespace": "ml"}, "spec": {"hard": hard} | spec, "status": status}
    return AdmissionObjects(quotas=[ResourceQuota.from_json(raw)])


def priorities(*raws: JSON) -> AdmissionObjects:
    return AdmissionObjects(priority_classes={raw["metadata"]["name"]: PriorityClass.from_json(raw) for raw in raws})


HIGH: JSON = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
USUAL: JSON = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}


def runtime(**more: Any) -> AdmissionObjects:
    return AdmissionObjects(runtime_classes={"vm": RuntimeClass.from_json({"metadata": {"name": "vm"}} | more)})


@pytest.mark.parametrize(
    ("item", "resources", "expected"),
    [
        ({"max": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, "maximum cpu usage per Container is 1, but limit is 2"),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "50m"}},
            "minimum cpu usage per Container is 1, but request is 50m",
        ),
        (
            {"type": "Pod", "min": {"memory": "1Gi"}},
            {},
            "minimum memory usage per Pod is 1Gi.  No request is specified",
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            {"requests": {"cpu": "1"}},
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"memory": "1"}},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
    ],
)
def test_a_limit_range_bounds(item: JSON, resources: JSON, expected: str) -> None:
    assert words(admit(pod(**resources), limits(**item))) == [expected]


def test_a_limit_range_gives_defaults_and_they_count_for_quotas() -> None:
    known = limits(default={"cpu": "2"}, defaultRequest={"cpu": "500m"})
    assert dict(admit(pod(), known).pod.containers[0].resources.requests) == {"cpu": "500m"}
    assert dict(admit(pod(), known).pod.containers[0].resources.limits) == {"cpu": "2"}
    written = admit(pod(limits={"cpu": "1"}), known).pod.containers[0]
    assert written.requests == {"cpu": "1"}
    narrow = AdmissionObjects(limit_ranges=known.limit_ranges, quotas=quota({"requests.cpu": "400m"}).quotas)
    assert words(admit(pod(), narrow)) == [
        "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=0, limited: requests.cpu=400m"
    ]


@pytest.mark.parametrize(
    ("hard", "used", "made", "expected"),
    [
        ({"pods": "1"}, {"pods": "1"}, pod(), "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
        (
            {"requests.nvidia.com/gpu": "1"},
            None,
            pod(requests={"nvidia.com/gpu": "2"}, limits={"nvidia.com/gpu": "2"}),
            "exceeded quota: q, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, "
            "limited: requests.nvidia.com/gpu=1",
        ),
        (
            {"limits.memory": "1Gi"},
            None,
            pod(requests={"cpu": "1"}),
            "failed quota: q: must specify limits.memory for: main",
        ),
        (
            {"cpu": "8", "limits.cpu": "8"},
            None,
            pod(),
            "failed quota: q: must specify cpu for: main; limits.cpu for: main",
        ),
        (
            {"requests.cpu": "2"},
            {"requests.cpu": "1500m"},
            pod({"resources": {"limits": {"cpu": "1"}}}),
            "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1500m, limited: requests.cpu=2",
        ),
    ],
)
def test_a_quota_refuses(hard: JSON, used: JSON | None, made: Pod, expected: str) -> None:
    assert words(admit(made, quota(hard, used))) == [expected]


@pytest.mark.parametrize(
    ("scopes", "refused"),
    [
        ({"scopes": ["BestEffort"]}, True),
        ({"scopes": ["NotBestEffort"]}, False),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["CrossNamespacePodAffinity"]}, False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}}, True),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]
                }
            },
            False,
        ),
    ],
)
def test_a_quota_counts_pods_in_its_scope(scopes: JSON, refused: bool) -> None:
    known = AdmissionObjects(
        quotas=quota({"pods": "0"}, **scopes).quotas, priority_classes=priorities(HIGH).priority_classes
    )
    assert bool(admit(pod({"priorityClassName": "high"}), known).refusals) is refused


def test_priorities() -> None:
    known = priorities(HIGH, USUAL)
    assert admit(pod(), known).pod.spec.priority == 7
    high = admit(pod({"priorityClassName": "high"}), known).pod.spec
    assert (high.priority, high.preemption_policy) == (1000, "Never")
    assert words(admit(pod({"priorityClassName": "nope"}), known)) == ["no PriorityClass with name nope was found"]
    assert words(admit(pod({"priority": 5}), known)) == [
        "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 7 "
        "from the given PriorityClass name"
    ]
    assert admit(pod({"priorityClassName": "system-node-critical"}), known).pod.spec.priority == 2_000_001_000


def test_what_was_not_read_is_said_and_refuses_nothing() -> None:
    spec = {"priorityClassName": "a", "runtimeClassName": "b", "serviceAccountName": "c"}
    found = admit(pod(spec), AdmissionObjects())
    assert (found.refusals, found.unread) == ((), ("PriorityClass", "RuntimeClass", "ServiceAccount"))


def test_runtime_classes() -> None:
    named = {"runtimeClassName": "vm"}
    assert words(admit(pod({"runtimeClassName": "no"}), runtime())) == ['pod rejected: RuntimeClass "no" not found']
    heavy = runtime(overhead={"podFixed": {"cpu": "250m"}})
    assert admit(pod(named), heavy).pod.spec.overhead == {"cpu": "250m"}
    assert not admit(pod(named | {"overhead": {"cpu": "0.25"}}), heavy).refusals
    assert words(admit(pod(named | {"overhead": {"cpu": "1"}}), heavy)) == [
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    ]
    assert words(admit(pod({"overhead": {"cpu": "1"}}), heavy)) == [
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    ]
    toleration = {"key": "vm", "operator": "Exists"}
    placed = runtime(scheduling={"nodeSelector": {"vm": "yes"}, "tolerations": [toleration, toleration]})
    found = admit(pod(named), placed).pod.spec
    assert found.node_selector == {"vm": "yes"}
    assert [each.key for each in found.tolerations].count("vm") == 1
    assert words(admit(pod(named | {"nodeSelector": {"vm": "no"}}), placed)) == [
        "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no"
    ]


def test_service_accounts() -> None:
    known = AdmissionObjects(service_accounts=frozenset(("default",)))
    assert not admit(pod(), known).refusals
    assert words(admit(pod({"serviceAccountName": "bot"}), known)) == [
        'error looking up service account ml/bot: serviceaccount "bot" not found'
    ]


def test_a_pod_waits_five_minutes_for_a_node_unless_it_says_otherwise() -> None:
    found = admit(
        pod({"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}), AdmissionObjects()
    )
    added = [toleration for toleration in found.pod.spec.tolerations if toleration.toleration_seconds == 300]
    assert [toleration.key for toleration in added] == ["node.kubernetes.io/unreachable"]


def test_a_pod_needs_a_namespace_that_exists_and_stays() -> None:
    def known(**ending: str) -> AdmissionObjects:
        return AdmissionObjects(
            namespaces={name: ObjectMeta(name, deletion_timestamp=at) for name, at in ending.items()}
        )

    assert not admit(pod(), AdmissionObjects()).refusals
    assert not admit(pod(), known(ml="")).refusals
    assert words(admit(pod({"priorityClassName": "nope"}), known(other=""))) == ['namespaces "ml" not found']
    assert words(admit(pod(), known(ml="2026-01-01T00:00:00Z"))) == [
        "unable to create new content in namespace ml because it is being terminated"
    ]
    in_default = structs.replace(pod(), metadata=ObjectMeta("p", "default"))
    assert not admit(in_default, known(ml="")).refusals, "every cluster has that one"


def test_kinds_that_nobody_read_are_told() -> None:
    seen: JSON = {"metadata": {"name": "l", "namespace": "other"}, "spec": {"limits": []}}
    hidden = (Gap("RuntimeClass", ABSENT), Gap("PriorityClass", ABSENT), Gap("ServiceAccount", FORBIDDEN))
    read = Snapshot(others={"LimitRange": {("other", "l"): LimitRange.from_json(seen)}}, gaps=hidden)
    forbidden = Snapshot(gaps=(Gap("ResourceQuota", FORBIDDEN, "ml"), Gap("LimitRange", ABSENT)))
    named = pod({"runtimeClassName": "vm"})
    assert admit(named, AdmissionObjects.of(read, "ml")).unread == ("RuntimeClass",)
    assert admit(pod(), AdmissionObjects.of(forbidden, "ml")).unread == ("LimitRange", "ResourceQuota")


@pytest.mark.parametrize(
    ("source", "others", "gaps", "expected"),
    [
        ("server", {"ServiceAccount": {}, "PriorityClass": {}, "RuntimeClass": {}}, (), 1),
        ("server", {"ServiceAccount": {}}, (Gap("ServiceAccount", FORBIDDEN, "ml"),), 0),
        ("file", {}, (Gap("ServiceAccount", ABSENT),), 0),
        ("file", {"ServiceAccount": {("ml", "other"): object()}}, (), 1),
    ],
)
def test_what_a_server_does_not_have_is_missing(
    source: str, others: dict[str, Any], gaps: tuple[Gap, ...], expected: int
) -> None:
    known = AdmissionObjects.of(Snapshot(others=others, gaps=gaps, release_source=source), "ml")
    assert len(admit(pod({"serviceAccountName": "robot"}), known).refusals) == expected
    assert not admit(pod(), known).refusals
