"""What ``explain`` can be asked about: workloads through their pods, templates, classes, devices, drivers, several."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cli.explain.target import find, targets_of
from kubectl_dra.cli.kind_words import kind_of
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.files import read_snapshot
from tests.cli.conftest import EXAMPLES, Dra, cluster_of, write_list

JSON = dict[str, Any]

ALL_HELD = cluster_of("all-held")
TRAIN = cluster_of("no-device-matches")


@pytest.mark.parametrize(
    "words", [["deployment/sdxl"], ["sdxl"], ["deploy", "sdxl"], ["Deployments.apps/sdxl"], ["rs/sdxl-66d9f7b8c"]]
)
def test_a_workload_is_explained_through_the_pod_that_hangs(dra: Dra, words: list[str]) -> None:
    ran = dra("explain", *words, "-n", "inference", "--snapshot", ALL_HELD)
    assert ran.code == 1
    assert "has 2 pods, 1 is stuck; this is about that one, pod/sdxl-66d9f7b8c-h7m6r" in " ".join(ran.err.split())
    assert ran.out.startswith("Pod inference/sdxl-66d9f7b8c-h7m6r cannot be scheduled")


def test_a_workload_whose_pods_all_run(dra: Dra) -> None:
    ran = dra("explain", "deploy/llama", "--snapshot", ALL_HELD)
    assert ran.code == 0 and "2 pods, none is stuck; this is about the newest" in " ".join(ran.err.split())
    assert "kubectl dra explain deployment/llama --snapshot" in ran.out


def test_a_pod_that_runs_and_has_lost_its_claim_hangs(dra: Dra, tmp_path: Path) -> None:
    owner = {"kind": "StatefulSet", "name": "a", "uid": "s", "controller": True, "apiVersion": "apps/v1"}

    def pod(number: int, claim: str) -> dict[str, Any]:
        name = f"a-{number}"
        metadata: dict[str, Any] = {"name": name, "namespace": "ml", "uid": name, "ownerReferences": [owner]}
        metadata["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
        claims = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
        spec = {"nodeName": "n", "containers": [{"name": "c"}], "resourceClaims": claims}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}

    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": ready}
    items = [node, pod(0, "gone"), pod(1, "")]
    path = write_list(tmp_path / "cluster.json", items)
    ran = dra("explain", "sts/a", "--snapshot", path, "--complete")
    assert "StatefulSet a has 2 pods, 1 is stuck; this is about that one, pod/a-0" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("snapshot", "target", "namespace", "hint"),
    [
        (TRAIN, "deployment/train", "ml", "there is a Job of that name: write job/train"),
        (TRAIN, "pod/train", "ml", "there is a Job of that name: write job/train"),
        (TRAIN, "claim/a100-80gb", "ml", "there is a ResourceClaimTemplate of that name: write template/a100-80gb"),
        (TRAIN, "template/a100-80gb", "default", "there is one in namespace ml (use -n ml)"),
        (ALL_HELD, "deployment/sdxl", "ml", "there is one in namespace inference (use -n inference)"),
        (ALL_HELD, "sdxl", "ml", "there is one in namespace inference (use -n inference)"),
        (TRAIN, "jb/train", "ml", "did you mean job/train?"),
    ],
)
def test_what_is_of_another_kind_or_elsewhere(dra: Dra, snapshot: str, target: str, namespace: str, hint: str) -> None:
    ran = dra("explain", target, "-n", namespace, "--snapshot", snapshot)
    assert ran.code == 2 and " ".join(ran.err.split()).endswith(f"; {hint}")


def test_the_only_namespace_that_has_it_is_found_in_a_file(dra: Dra) -> None:
    ran = dra("explain", "pod/sdxl-66d9f7b8c-h7m6r", "--snapshot", ALL_HELD)
    assert ran.code == 1 and ran.out.startswith("Pod inference/")
    ran = dra("explain", "pod/sdxl-66d9f7b8c-h7m6r", "-n", "ml", "--snapshot", ALL_HELD)
    assert ran.code == 2 and "there is one in namespace inference" in ran.err


def test_labels_choose_the_pod_that_hangs(dra: Dra, tmp_path: Path) -> None:
    def pod(name: str, phase: str, **labels: str) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "a", "uid": name, "labels": labels}
        spec = {"containers": [{"name": "c"}], **({"nodeName": "n"} if phase == "Running" else {})}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}

    pods = [pod("x", "Running", app="web"), pod("y", "Pending", app="web", tier="b"), pod("z", "Pending", app="db")]
    path = write_list(tmp_path / "pods.json", pods)
    for labels, name in (
        ("app=web", "y"),
        ("app==web, !tier", "x"),
        ("app in (db, mail)", "z"),
        ("app notin (web),app", "z"),
        ("tier!=b,app=db", "z"),
        ("tier", "y"),
    ):
        ran = dra("explain", "-l", labels, "--snapshot", path, "--complete")
        assert f"pod/{name}" in " ".join(ran.err.split()), (labels, ran)
    assert "has the labels app=nope" in " ".join(dra("explain", "-l", "app=nope", "--snapshot", path).err.split())
    assert "is no requirement" in dra("explain", "-l", "app=(", "--snapshot", path).err
    assert "leave other names" in dra("explain", "pod/x", "-l", "app=web", "--snapshot", path).err
    assert dra("claims", "-l", "nope", "--snapshot", ALL_HELD).out.startswith("No claim was found")


def test_a_workload_without_pods(dra: Dra) -> None:
    ran = dra("explain", "deploy/lama", "-n", "inference", "--snapshot", ALL_HELD)
    assert ran.code == 2 and "no pod of Deployment lama was found" in ran.err and "did you mean llama" in ran.err


def test_pods_of_another_workload_do_not_count(dra: Dra, tmp_path: Path) -> None:
    def pod(name: str, owner: str, kind: str, labels: dict[str, str]) -> dict[str, Any]:
        reference = {"kind": kind, "name": owner, "uid": "u", "controller": True}
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "a", "uid": name, "labels": labels, "ownerReferences": [reference]},
            "spec": {"containers": [{"name": "c"}], "nodeName": "n"},
            "status": {"phase": "Running"},
        }

    jobs = [
        pod("a-0", "train-w-0", "Job", {"jobset.sigs.k8s.io/jobset-name": "train"}),
        pod("b-0", "train-big-w-0", "Job", {"jobset.sigs.k8s.io/jobset-name": "train-big"}),
        pod("c-0", "nightly-29000000", "Job", {}),
        pod("d-0", "nightly-big-29000000", "Job", {}),
        pod("e-0", "gpu-train", "ReplicaSet", {}),
    ]
    path = write_list(tmp_path / "pods.json", jobs)
    ran = dra("explain", "deploy/gpu", "--snapshot", path, "--complete")
    assert ran.code == 2 and "no pod of Deployment gpu was found" in ran.err
    for words, name in (("jobset/train", "a-0"), ("jobset/train-big", "b-0"), ("cronjob/nightly", "c-0")):
        ran = dra("explain", words, "--snapshot", path, "--complete")
        assert f"has one pod; this is about it, pod/{name}" in " ".join(ran.err.split())


def test_unread_pods_may_be_those_of_a_workload(dra: Dra, tmp_path: Path) -> None:
    path = tmp_path / "slices.json"
    path.write_text(json.dumps({"kind": "List", "items": [], "metadata": {"unread": []}}))
    ran = dra("explain", "deploy/web", "--snapshot", str(path))
    assert ran.code != 0 and "does not exist" not in ran.err


def test_a_template_is_explained_by_the_claim_that_it_makes(dra: Dra) -> None:
    ran = dra("explain", "template/a100-80gb", "-n", "ml", "--snapshot", TRAIN)
    assert "a claim as ResourceClaimTemplate a100-80gb makes it; used by pod/train-0" in " ".join(ran.err.split())
    assert ran.code == 1 and ran.out.startswith("A claim of ResourceClaimTemplate ml/a100-80gb cannot be allocated")
    assert "no pod uses" not in dra("explain", "template/a100-80gb", "-n", "ml", "--full", "--snapshot", TRAIN).out


def test_an_allocated_claim_is_explained_by_the_pod_that_does_not_run_with_it(dra: Dra) -> None:
    gone = cluster_of("driver-gone-from-node")
    ran = dra("explain", "claim/rollout-3-gpu-bv9jq", "-n", "ml", "--snapshot", gone)
    assert ran.code == 1 and ran.out.startswith("Pod ml/rollout-3 has its devices but does not start")
    assert "claim rollout-3-gpu-bv9jq is allocated; this is about pod/rollout-3" in " ".join(ran.err.split())


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/cluster.yaml")))
def test_no_claim_is_well_while_its_pod_does_not_start(dra: Dra, name: str) -> None:
    path = cluster_of(name)
    snapshot = read_snapshot([path])
    for claim in snapshot.claims.values():
        if claim.allocation is not None and any(pod.node_name for pod in waiting_for(claim, snapshot)):
            pods = [pod for pod in waiting_for(claim, snapshot) if pod.node_name]
            answers = {
                dra("explain", f"pod/{p.metadata.name}", "-n", p.metadata.namespace, "--snapshot", path).code
                for p in pods
            }
            space, claim_name = claim.key.split("/")
            asked = dra("explain", f"claim/{claim_name}", "-n", space, "--snapshot", path)
            assert asked.code != 0 or answers <= {0, 3}, claim.key


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/cluster.yaml")))
def test_pages_of_classes_and_devices_say_what_to_do(dra: Dra, name: str) -> None:
    """Each no has a fix or a next command; and a device that one claim holds is as well as that claim."""
    given = ("--snapshot", cluster_of(name), "-o", "json")
    asked: dict[str, JSON] = {f"class/{device_class}": {} for device_class in read_snapshot([given[1]]).classes}
    known = set()
    for each in dra("devices", *given).json["items"]:
        if "node" in each and (like := f"{each['state']} {each.get('reason')} {each.get('heldBy')}") not in known:
            known.add(like)
            asked[f"device/{each['node']}/{each['device']}"] = each
    for target, device in asked.items():
        ran = dra("explain", target, *given)
        report = ran.json
        assert ran.code != 1 or "subject" not in report or report["fix"]["text"] or "next" in report, target
        holders = device.get("heldBy", ()) if device.get("state") == "held" else ()
        for claim in holders if len(holders) == 1 and "subject" in report else ():
            of_claim = dra("explain", f"claim/{claim['name']}", "-n", claim["namespace"], *given)
            assert ran.code == of_claim.code, target


def test_several_at_once(dra: Dra) -> None:
    names = ("pod/sdxl-66d9f7b8c-h7m6r", "claim/scratch-gpu")
    ran = dra("explain", *names, "--snapshot", ALL_HELD, "-o", "json")
    assert ran.code == 1
    assert [item["subject"]["name"] for item in ran.json["items"]] == ["sdxl-66d9f7b8c-h7m6r", "scratch-gpu"]


def test_each_of_several_has_commands_of_its_own(dra: Dra) -> None:
    ran = dra("explain", "pod/train-0", "pod/bert-eval-0", "-n", "ml", "--snapshot", TRAIN)
    commands = [line for line in ran.out.splitlines() if "kubectl dra explain" in line]
    assert len(commands) == 3 and not [line for line in commands if "train-0" in line and "bert-eval-0" in line]
    words = shlex.split(commands[0].partition("$ ")[2])
    assert words[2:6] == ["explain", "pod/train-0", "-n", "ml"]
    assert dra(*words[2:]).code == 0


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("class/gpu.nvidia.com", ("devices", "--class", "gpu.nvidia.com")),
        ("device/l40s-1/gpu-0", ("devices", "l40s-1/gpu-0")),
        ("driver/gpu.nvidia.com", ("drivers", "gpu.nvidia.com")),
    ],
)
def test_what_other_commands_list(dra: Dra, target: str, command: tuple[str, ...]) -> None:
    """The same objects with the same data; explain has an answer besides, and its exit code."""
    given = ("--snapshot", ALL_HELD, "-o", "json")
    asked, listed = (dra(*words, *given) for words in (("explain", target), command))
    own, other = asked.json, listed.json
    assert own["items"] == other["items"] != [] and asked.err == listed.err
    assert own.keys() - other.keys() >= {"subject", "answer"} and not other.keys() - own.keys()
    assert own["exitCode"] == asked.code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["node/l40s-1", "pod/x"], "name one at a time"),
        (["device/gpu-0"], "device/NODE/gpu-0"),
        (["device/l40s-1"], "If l40s-1 is a node: kubectl dra explain node/l40s-1"),
        (["class/gpu.nvidia.com", "--what-if", "count=2"], "--what-if needs a pod or claim"),
        (["class/gpu.nvidia.com", "--scheduler-config", "s.yaml"], "--scheduler-config needs a pod or claim"),
        (["node/l40s-1", "--scheduler-config", "s.yaml"], "--scheduler-config needs a pod or claim"),
        (["node/l40s-1", "--node", "l40s-1"], "--node needs a pod or claim"),
        (["driver/gpu.nvidia.com", "--kubernetes-version", "1.36"], "--kubernetes-version needs a pod or claim"),
        (["driver/gpu.nvidia.com", "--feature-gates", "DRAConsumableCapacity=true"], "--feature-gates needs a pod or"),
        (["driver/gpu.nvidia.com", "-o", "html"], "not html"),
        (["l40s-1"], "write node/l40s-1"),
        (["gpu.nvidia.com"], "write class/gpu.nvidia.com or driver/gpu.nvidia.com"),
        (["gpu-0"], "write device/l40s-1/gpu-0"),
        (["pod/sdxl-66d9f7b8c-h7m6r", "-n", "inference", "--what-if", "untaint=l40s-1/gpu-0"], "gpu-0 has no taint"),
        (["pot/x"], "did you mean pod/x?"),
    ],
)
def test_what_cannot_be_asked_says_what_can(dra: Dra, words: list[str], said: str) -> None:
    Path("s.yaml").write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    ran = dra("explain", *words, "--snapshot", ALL_HELD)
    assert ran.code == 2 and said in " ".join(ran.err.split()) and not ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "dep.yaml"], "kubectl dra fit -f dep.yaml"),
        (["claims", "gpus"], "kubectl dra explain claim/gpus"),
        (["snapshot", "now"], "snapshot takes no now; leave it out"),
        (["lint", "--select"], "kubectl dra lint --help"),
        (["completion"], "Choose from: bash, zsh, fish, powershell, kubectl"),
        (["explain", "--node"], "kubectl dra explain --help"),
    ],
)
def test_words_that_a_command_does_not_take(dra: Dra, words: list[str], said: str) -> None:
    ran = dra(*words)
    assert ran.code == 2 and said in ran.err


def test_flags_of_kubectl(dra: Dra) -> None:
    names = dra("claims", "-n", "research", "-o", "name", "--snapshot", ALL_HELD).out.split()
    assert "resourceclaim.resource.k8s.io/scratch-gpu" in names and len(names) == 3
    for command in ("devices", "top"):
        assert dra(command, "-A", "--snapshot", ALL_HELD) == dra(command, "--snapshot", ALL_HELD)
    assert dra("devices", "-A", "-n", "research", "--snapshot", ALL_HELD).code == 2


def test_devices_are_listed_by_the_names_that_the_list_prints(dra: Dra) -> None:
    ran = dra("devices", "l40s-1/gpu-0..2", "-o", "name", "--snapshot", ALL_HELD)
    assert ran.out.split() == [f"gpu.nvidia.com/l40s-1/gpu-{number}" for number in range(3)]
    ran = dra("devices", "t4-1/gpu-9", "--snapshot", ALL_HELD)
    assert ran.code == 2 and "no device is called t4-1/gpu-9; did you mean t4-1/gpu-0" in ran.err


def test_a_device_that_nobody_read_may_be_there(dra: Dra, tmp_path: Path) -> None:
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a", "namespace": "b"}}
    (tmp_path / "claim.json").write_text(json.dumps({**claim, "spec": {}}))
    ran = dra("devices", "n1/gpu-0", "--snapshot", str(tmp_path / "claim.json"))
    assert ran.code == 3 and "whether there is a device n1/gpu-0 is unknown" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["pod/zz", "-n", "research"], "there are: rl-agent-3, video-prep-1"),
        (["pod/zz"], "there are some in: inference, kube-system, research (use -n)"),
        (["claim/zz", "-n", "research"], "there are: rl-agent-3-gpu-gw772, scratch-gpu, video-prep-1-gpu-877fk"),
        (["pod/video-prep-1", "-n", "research", "--node", "zz"], "there are: cp-1, l40s-1, l40s-2 and 1 more"),
    ],
)
def test_a_name_that_nothing_has_is_answered_with_those_that_there_are(
    dra: Dra, words: list[str], way_out: str
) -> None:
    ran = dra("explain", *words, "--snapshot", ALL_HELD)
    assert ran.code == 2 and way_out in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("deployment.apps", "Deployment"),
        ("deployments.v1.apps", "Deployment"),
        ("job.batch", "Job"),
        ("jobs.v1.batch", "Job"),
        ("jobs.batch.volcano.sh", "Job.batch.volcano.sh"),
        ("job.v1alpha1.batch.volcano.sh", "Job.batch.volcano.sh"),
        ("vj", "Job.batch.volcano.sh"),
        ("vcjobs", "Job.batch.volcano.sh"),
        ("pods.v1.", "pod"),
        ("resourceclaims.v1.resource.k8s.io", "claim"),
        ("jobsets.jobset.x-k8s.io", "JobSet"),
        ("leaderworkersets.leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("rollouts.argoproj.io", "Rollout"),
        ("rayclusters.ray.io", "RayCluster"),
        ("pytorchjobs.kubeflow.org", "PyTorchJob"),
        ("virtualmachineinstance.kubevirt.io", "VirtualMachineInstance"),
        ("computedomains.resource.nvidia.com", "computedomain"),
        ("deployments.batch", ""),
        ("train.apps", ""),
    ],
)
def test_types_are_written_as_kubectl_takes_and_prints_them(word: str, kind: str) -> None:
    assert kind_of(word) == kind


def _made(kind: str, api_version: str, name: str, age: str) -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": "sweep", "uid": f"uid-{name}", "controller": True}
    meta = {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": age, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "main"}]}}


@pytest.mark.parametrize(
    ("asked", "pods", "answers"),
    [
        ("vcjob/sweep", "both", "volcano-0"),
        ("jobs.batch.volcano.sh/sweep", "both", "volcano-0"),
        ("job/sweep", "both", "batch-0"),
        ("jobs.batch/sweep", "both", "batch-0"),
        ("job/sweep", "volcano", "volcano-0"),
    ],
)
def test_two_jobs_of_one_name_are_told_apart(asked: str, pods: str, answers: str, tmp_path: Path) -> None:
    items = [_made("Job", "batch.volcano.sh/v1alpha1", "volcano-0", "2026-03-01T08:00:00Z")]
    if pods == "both":
        items.append(_made("Job", "batch/v1", "batch-0", "2026-03-01T09:00:00Z"))
    saved = write_list(tmp_path / "cluster.json", items)
    target = targets_of([asked])[0]
    looked = find(target, "ml", read_snapshot([saved]))
    assert looked.item.metadata.name == answers
