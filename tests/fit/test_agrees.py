"""``fit -f`` and ``explain -f`` of the same manifest: what one says does not fit, the other does not call fitting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.explain.authored import authored
from tests.fit.test_rollout import STATEFUL
from tests.fit.worlds import (
    HOST,
    REPLICA_SET,
    ZONE,
    bare,
    claim,
    deployment,
    existing,
    files,
    made_claim,
    node,
    pod_spec,
    running,
    said,
    template,
)
from tests.ran import ran, unwrapped
from tools.asked import Asked
from tools.cases import JSON, QUICK_CASES, Case, asked

KINDS_OF_PODS = ("Pod", "Job", "Deployment", "StatefulSet", "JobSet", "DaemonSet", "ReplicaSet")
WRITTEN = [
    case
    for case in QUICK_CASES
    if "explain" not in case.raw and any(each["kind"] in KINDS_OF_PODS for each in case.raw["manifest"])
]
NARROWED = ("--what-if", "--request", "--node", "--with-node")
APPLIED = [
    case
    for case in QUICK_CASES
    # A device that is not ready yet has its node: one of them says where, the other what is waited for.
    if case.raw.get("explain", "").startswith("pod/")
    and case.file != "binding-condition-pending"
    and not any(str(word).startswith(NARROWED) for word in case.raw.get("flags", ()))
]


def codes(case: Case, folder: Path, manifest: JSON | None = None) -> tuple[int, int, str]:
    """The exit codes of both about a manifest, and what they say."""
    question = asked(case)
    rest = [word for word in question.arguments[1:] if word not in (case.raw.get("explain"), "--full")]
    files = dict(question.files)
    if manifest is not None:
        files["again.yaml"] = [manifest]
        rest += ["-f", "again.yaml"]
    explained, fitted = (Asked(case.name, files, (verb, *rest)).ask(folder=folder) for verb in ("explain", "fit"))
    assert fitted.code != 2, fitted.errors
    return explained.code, fitted.code, f"{explained.out}\n{fitted.out}"


@pytest.mark.parametrize("case", WRITTEN, ids=[f"{case.file}: {case.name}" for case in WRITTEN])
def test_a_manifest(case: Case, tmp_path: Path) -> None:
    explained, fitted, said = codes(case, tmp_path)
    assert (explained == 0) is (fitted == 0), said


@pytest.mark.parametrize("case", WRITTEN, ids=[f"{case.file}: {case.name}" for case in WRITTEN])
def test_what_does_not_fit_has_a_cause(case: Case, tmp_path: Path) -> None:
    """A no without a word why helps nobody."""
    question = asked(case)
    rest = [word for word in question.arguments[1:] if word != "--full"]
    for verb in ("explain", "fit"):
        answer = Asked(case.name, question.files, (verb, *rest, "-o", "json")).ask(folder=tmp_path)
        if answer.code == 1:
            assert list(whys(json.loads(answer.out))), answer.out


def whys(answer: Any) -> Iterator[str]:
    """What an answer has that says why: causes, what a group lacks, a namespace that is missing."""
    if isinstance(answer, list):
        for each in answer:
            yield from whys(each)
    for name, value in answer.items() if isinstance(answer, dict) else ():
        if value and name in ("causes", "cause", "denied", "groupMinimum", "missingNamespaces", "notStarting"):
            yield name
        yield from whys(value)


@pytest.mark.parametrize("case", APPLIED, ids=[f"{case.file}: {case.name}" for case in APPLIED])
def test_a_pod_that_is_new(case: Case, tmp_path: Path) -> None:
    """The pod of the case, as if it had not been there."""
    name = case.raw["explain"].removeprefix("pod/")
    own = [raw for raw in case.objects if raw["kind"] == "Pod" and raw["metadata"]["name"] == name]
    if len(own) != 1:
        pytest.skip("which pod is meant, its namespace says")
    case = case._replace(objects=[raw for raw in case.objects if raw is not own[0]])
    explained, fitted, said = codes(case, tmp_path, authored(own[0]))
    assert (explained == 0) is (fitted == 0), said


QUEUED = [case for case in WRITTEN if case.file == "kueue-rejected"]


@pytest.mark.parametrize("case", QUEUED, ids=[case.name for case in QUEUED])
def test_what_kueue_refuses_of_several_pods(case: Case, tmp_path: Path) -> None:
    manifest = deepcopy(case.raw["manifest"])
    for each in manifest:
        if each["kind"] == "Job":
            each["spec"] |= {"parallelism": 2, "completions": 2}
    case = case._replace(raw={**case.raw, "manifest": manifest})
    explained, fitted, said = codes(case, tmp_path)
    assert (explained == 0) is (fitted == 0), said
    assert ("Kueue has to admit it first" in unwrapped(said.rpartition("Job default")[2])) is (fitted == 0), said


def both(folder: Path, cluster: list[JSON], manifest: list[JSON]) -> tuple[int, int, str]:
    """The same of a small cluster."""
    fitted, out, _ = said(folder, cluster, manifest)
    explained, text, _ = ran("explain", *files(folder))
    return explained, fitted, unwrapped(f"{text}\n{out}")


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_selector_that_nobody_can_change(tmp_path: Path, kind: str, replicas: int) -> None:
    stateful = kind == "StatefulSet"
    pod = existing("web-0" if stateful else "web-a-x", pod_spec(1), "a", STATEFUL if stateful else REPLICA_SET)
    pod["metadata"]["labels"] = {"app": "other"}
    cluster = [*node("a", 4), template(1), pod, made_claim(pod["metadata"]["name"], "a", [0])]
    explained, fitted, text = both(tmp_path, cluster, [{**deployment(replicas), "kind": kind}])
    assert (explained, fitted) == (1, 1), text
    assert text.count("its spec.selector") == 2


def quota(hard: int, used: int) -> JSON:
    key = "count/resourceclaims.resource.k8s.io"
    status = {"hard": {key: str(hard)}, "used": {key: str(used)}}
    return {
        "kind": "ResourceQuota",
        "apiVersion": "v1",
        "metadata": {"name": "t", "namespace": "default"},
        "status": status,
    }


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize(("used", "expected"), [(3, 0), (4, 1)])
def test_the_quota_of_a_claim_that_pods_share(tmp_path: Path, replicas: int, used: int, expected: int) -> None:
    web = deployment(replicas)
    web["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    cluster = [*node("a", 4), quota(4, used)]
    explained, fitted, text = both(tmp_path, cluster, [claim("shared", 1), web])
    assert (explained, fitted) == (expected, expected), text
    assert ("4 used, 1 more needed" in text) is bool(expected)


def test_sharing_needs_a_claim_that_the_quota_allows(tmp_path: Path) -> None:
    cluster = [*node("a", 1), quota(4, 4), template(1)]
    explained, fitted, text = both(tmp_path, cluster, [template(1), deployment(3)])
    assert (explained, fitted) == (1, 1) and "dra share" not in text, text
    code, out, _ = ran("share", *files(tmp_path))
    assert code == 1 and "4 used, 1 more needed" in out
    # There is room for the claim that all share, and not for one of each pod.
    _, _, text = both(tmp_path, [*node("a", 1), quota(4, 3), template(1)], [template(1), deployment(3)])
    assert "dra share" in text


def test_a_claim_that_no_pod_names_counts_as_well(tmp_path: Path) -> None:
    cluster = [*node("a", 4), quota(4, 3), template(1)]
    explained, fitted, text = both(tmp_path, cluster, [claim("other", 1), template(1), deployment(1)])
    assert (explained, fitted) == (1, 1), text


def test_where_the_pod_of_a_rollout_goes(tmp_path: Path) -> None:
    """It needs both devices of its node, of which the pod of the former template holds one."""
    pod = existing("web-0", pod_spec(1), "a", STATEFUL)
    pod["metadata"]["labels"] = {"app": "web"}
    cluster = [*node("a", 2), *node("b", 2), template(1), pod, made_claim("web-0", "a", [0])]
    web = {**deployment(1, gpus=2), "kind": "StatefulSet"}
    explained, fitted, text = both(tmp_path, cluster, [template(2), web])
    assert (explained, fitted) == (0, 0), text
    assert text.count("StatefulSet default/web fits on a; the rollout ends 1 pod") == 2
    assert "its claims fit on 2 nodes (a, b)" in text
    assert "once the pods of the former template have ended" in text


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_no_replica_needs_no_room(tmp_path: Path, kind: str, free: int) -> None:
    cluster = [*node("a", free), *node("b", 0), template(1)]
    explained, fitted, text = both(tmp_path, cluster, [{**deployment(0), "kind": kind}])
    assert (explained, fitted) == (0, 0) and text.count(f"{kind} default/web makes no pod: it has 0 replicas") == 2, (
        text
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_volumes_of_a_stateful_set(tmp_path: Path, replicas: int) -> None:
    web = {**deployment(replicas), "kind": "StatefulSet"}
    claimed = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1"}},
    }
    web["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claimed}]
    explained, fitted, text = both(tmp_path, [*node("a", 4), template(1)], [web])
    assert (explained, fitted) == (1, 1), text
    assert text.count("StorageClass fast of PersistentVolumeClaim data-web-0 does not exist") >= 2


@pytest.mark.parametrize(("held", "expected"), [(2, 1), (1, 0)])
def test_bare_pods_take_devices_from_one_another(tmp_path: Path, held: int, expected: int) -> None:
    manifest = [template(held), bare("a", held), bare("b", held)]
    explained, fitted, text = both(tmp_path, node("n", 2), manifest)
    assert (explained, fitted) == (expected, expected), text
    assert "Pod default/a can be scheduled" in text
    stopped = "Pod default/b cannot be scheduled: both devices" in text
    assert stopped is bool(expected) is ("others of the manifest that come first have their nodes" in text), text
    # It would change what both ask for.
    assert "--what-if gpu:count" not in text


def test_a_bare_pod_beside_a_workload(tmp_path: Path) -> None:
    explained, fitted, text = both(tmp_path, node("n", 2), [template(1), deployment(2), bare("b", 1)])
    assert (explained, fitted) == (1, 1), text
    assert "Both replicas of Deployment default/web fit. Pod default/b cannot be scheduled" in text


def test_bare_pods_with_a_claim_that_the_manifest_has(tmp_path: Path) -> None:
    def own(name: str) -> list[JSON]:
        pod = bare(name, 1)
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        return [claim(name, 2), pod]

    explained, fitted, text = both(tmp_path, node("n", 3), [*own("a"), *own("b")])
    assert (explained, fitted) == (1, 1), text


def test_whether_a_workload_is_there_may_only_follow_from_its_pods(tmp_path: Path) -> None:
    pod = existing("web-a-x", pod_spec(1), "a", REPLICA_SET)
    pod["metadata"]["labels"] = {"app": "other"}
    cluster = [*node("a", 4), template(1), pod, made_claim("web-a-x", "a", [0])]
    _, _, text = both(tmp_path, cluster, [deployment(2)])
    assert text.count("Deployment default/web exists already, as pods of it show") == 2
    assert "kubectl get deployment/web -n default -o yaml" in text and "delete deployment" not in text


def test_a_template_that_nobody_can_change_is_no_change_of_the_workload(tmp_path: Path) -> None:
    changed = template(2, "gpu-1")
    explained, fitted, text = both(tmp_path, [*node("a", 4), template(1)], [changed, deployment(2)])
    assert (explained, fitted) == (1, 1), text
    assert text.count("Deployment default/web does not fit") == 2
    assert "A pod of Deployment default/web is not made like that: ResourceClaimTemplate default/gpu-1 exists" in text
    assert "cannot be changed like that" not in text


def supposing(folder: Path, cluster: list[JSON], manifest: list[JSON], *flags: str) -> tuple[int, str]:
    """What ``explain`` says of a manifest with what its flags suppose."""
    said(folder, cluster, manifest)
    code, text, errors = ran("explain", *files(folder), *flags)
    assert code != 2, errors
    return code, unwrapped(text)


@pytest.mark.parametrize(("count", "expected"), [(2, 1), (1, 0)])
def test_a_supposed_count_is_of_all_workloads(tmp_path: Path, count: int, expected: int) -> None:
    """Another count than is written says the same as one that is written."""
    cluster = [*node("n", 2), template(1)]
    manifest = [template(1), deployment(1, "a"), deployment(1, "b")]
    code, text = supposing(tmp_path, cluster, manifest, "--what-if", f"gpu:count={count}")
    assert code == expected, text
    assert "Deployment default/a fits on n." in text
    assert ("Deployment default/b does not fit." in text) is bool(expected), text
    code, text = supposing(tmp_path, cluster, manifest, "--what-if", f"gpu:count={count}", "-o", "json")
    verdicts = [each["verdict"] for each in json.loads(text)["workloads"]]
    assert verdicts == ["can-be-scheduled", "cannot-be-scheduled" if expected else "can-be-scheduled"]


def test_a_supposed_count_is_of_bare_pods(tmp_path: Path) -> None:
    manifest = [template(4), *(bare(name, 4) for name in "abc")]
    cluster = [*node("n", 3), *node("m", 3)]
    code, text = supposing(tmp_path, cluster, manifest, "--what-if", "gpu:count=3")
    assert code == 1 and text.count("could be scheduled with this change") == 2, text
    assert "Pod default/c cannot be scheduled with this change" in text


def test_a_supposed_count_of_a_claim_that_pods_share(tmp_path: Path) -> None:
    web = deployment(3)
    web["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    manifest = [claim("shared", 4), web]
    for count, expected in ((2, 0), (3, 1)):
        code, text = supposing(tmp_path, node("n", 2), manifest, "--what-if", f"gpu:count={count}")
        assert code == expected, text
        assert ("All 3 replicas" in text) is not bool(expected), text


def test_a_change_of_a_request_that_only_one_of_them_has(tmp_path: Path) -> None:
    other = template(1, "other")
    other["spec"]["spec"]["devices"]["requests"][0]["name"] = "nic"
    lone = bare("lone", 1)
    lone["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "other"
    manifest = [template(1), other, deployment(1), lone]
    code, text = supposing(tmp_path, node("n", 4), manifest, "--what-if", "gpu:count=2", "--what-if", "nic:count=3")
    assert code == 1, text
    assert "Deployment default/web fits on n." in text and "Pod default/lone cannot be scheduled" in text


def test_a_new_node_that_only_the_others_need(tmp_path: Path) -> None:
    cluster, manifest = node("n", 2), [template(2), deployment(1, "a", 2), deployment(1, "b", 2)]
    code, text = supposing(tmp_path, cluster, manifest, "--with-node", "n")
    assert code == 0, text
    assert "A pod of Deployment default/a can be scheduled without this change: its claims fit on n already" in text
    assert "A pod of Deployment default/b could be scheduled with this change" in text
    assert text.count("on n: gpu:") == 1 and "does not help" not in text.partition("Deployment default/b could")[2]
    code, text = supposing(tmp_path, cluster, [template(2), deployment(2, "a", 2)], "--with-node", "n")
    assert code == 0 and "without this change" not in text, text


def test_what_ends_gives_each_workload_its_own_devices(tmp_path: Path) -> None:
    cluster = [*node("n", 2), *node("m", 2), *running("busy", "m", [0, 1])]
    manifest = [template(2), deployment(1, "a", 2), deployment(1, "b", 2)]
    code, text = supposing(tmp_path, cluster, manifest, "--what-if", "end=busy")
    assert code == 0, text
    assert text.count("on n: gpu:") == text.count("on m: gpu:") == 1, text


def test_claims_take_devices_from_one_another(tmp_path: Path) -> None:
    cluster = [*node("n", 2), *node("m", 1)]
    code, text = supposing(tmp_path, cluster, [claim("a", 2), claim("b", 2)])
    assert code == 1, text
    assert "Claim default/a can be allocated" in text and "Claim default/b cannot be allocated" in text
    assert "once others of the manifest have their devices" in text and "kubectl delete" not in text
    # The one that fits on fewer nodes does not lose its devices to the other.
    code, text = supposing(tmp_path, cluster, [claim("a", 1), claim("b", 2)])
    assert code == 0 and "on m: gpu:" in text and "on n: gpu:" in text, text


@pytest.mark.parametrize("name", ["deployment/web", "web"])
def test_the_name_of_a_workload_keeps_its_counts(tmp_path: Path, name: str) -> None:
    manifest = [template(2), deployment(3, gpus=2), deployment(1, "other", 2)]
    code, text = supposing(tmp_path, node("n", 2), manifest, name)
    assert code == 1 and "1 of 3 replicas of Deployment default/web fits." in text, text
    assert "default/other" not in text


def test_a_pod_that_only_stands_for_others_is_none(tmp_path: Path) -> None:
    said(tmp_path, node("n", 2), [template(1), deployment(1)])
    code, _, errors = ran("explain", "pod/web", *files(tmp_path))
    assert code == 2 and "Pod web does not exist in namespace default; write deployment/web" in unwrapped(errors)


@pytest.mark.parametrize("verb", ["explain", "fit"])
def test_an_object_that_kubernetes_does_not_have(tmp_path: Path, verb: str) -> None:
    said(tmp_path, node("n", 2), [template(1), deployment(1)])
    known = json.loads((tmp_path / "manifest.json").read_text())
    for changed, meant in (({"apiVersion": "v1"}, "apps/v1"), ({"kind": "Deploymnet"}, "Deployment")):
        items = [{**each, **changed} if each["kind"] == "Deployment" else each for each in known["items"]]
        (tmp_path / "wrong.json").write_text(json.dumps({**known, "items": items}))
        words = ("-f", str(tmp_path / "wrong.json"), "--snapshot", str(tmp_path / "cluster.json"))
        code, _, errors = ran(verb, *words)
        assert code == 2, errors
        assert f"is not an object of Kubernetes; did you mean {meant}?" in unwrapped(errors)


def test_an_object_of_an_unknown_kind_is_said_to_be_left_out(tmp_path: Path) -> None:
    custom = {**deployment(1), "apiVersion": "example.com/v1", "kind": "Trainer"}
    code, text = supposing(tmp_path, node("n", 2), [template(1), custom, deployment(1)], "--full")
    assert code == 0 and "Trainer default/web has containers, and its kind is not known: its pods are left out" in text


def test_what_the_manifest_has_in_place_of_a_name_that_it_has_not(tmp_path: Path) -> None:
    said(tmp_path, node("n", 2), [template(1), deployment(1), {**deployment(1, "api"), "kind": "StatefulSet"}])
    code, _, errors = ran("explain", "deployment/trainer", *files(tmp_path))
    assert code == 2 and "the manifest has deployment/web, statefulset/api" in unwrapped(errors), errors


def test_devices_match_where_the_pod_may_not_run_as_well(tmp_path: Path) -> None:
    labels = {"matchLabels": {"app": "web"}}
    apart = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
    cluster = [*node("n", 2), *node("m", 2), *running("busy", "n", [0, 1])]
    code, text = supposing(tmp_path, cluster, [template(1), deployment(2, topologySpreadConstraints=[apart])], "--full")
    assert code == 1 and "1 of 2 replicas of Deployment default/web fits." in text, text
    assert "on nodes where the pod may run, both devices that match" in text, text
    assert "topology spread: 1 matching pod there" in text


@pytest.mark.parametrize("key", [HOST, ZONE])
def test_a_spread_that_keeps_pods_off_devices_is_what_the_fix_eases(tmp_path: Path, key: str) -> None:
    labels = {"matchLabels": {"app": "web"}}
    apart = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labels}
    nodes = {"A100": node("n", 2, zone="z1"), "H100": node("m", 2, zone="z2")}
    for model, (_, devices) in nodes.items():
        for device in devices["spec"]["devices"]:
            device["attributes"] = {"model": {"string": model}}
    wanted = template(1)
    (request,) = wanted["spec"]["spec"]["devices"]["requests"]
    request["exactly"]["selectors"] = [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "A100"'}}]
    manifest = [wanted, deployment(2, topologySpreadConstraints=[apart])]
    code, text = supposing(tmp_path, [*nodes["A100"], *nodes["H100"]], manifest)
    assert code == 1 and "topology spread: 1 matching pod " in text, text
    fixes = text.partition("Fixes")[2]
    assert "Correct the pod's nodeSelector" not in text
    assert "Raise maxSkew, use ScheduleAnyway, or make room in the emptiest domain." in fixes, text
