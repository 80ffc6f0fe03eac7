"""The rollout's files on a real control plane: accepted, and the policy refuses what it says, where it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.migrate.rollout.plan import CLASSES
from kubectl_dra.migrate.rollout.survey import LABEL
from tests.migrate.live.fleet import GROUP, RESOURCE, connection, documents, driver_class, legacy
from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import Cluster, wait
from tools.live.command import Command

pytestmark = pytest.mark.xdist_group(GROUP)


def pod_spec(**limits: str) -> Json:
    return {
        "restartPolicy": "Never",
        "containers": [
            {"name": "plain", "image": "none"},
            {"name": "main", "image": "none", "resources": {"limits": limits}},
        ],
    }


LEGACY = pod_spec(**{RESOURCE: "1"})


def workload(kind: str, spec: Json, name: str = "w") -> Json:
    """An object of a kind with a pod spec."""
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    always = {**template, "spec": {**spec, "restartPolicy": "Always"}}
    by_kind: dict[str, tuple[str, Json]] = {
        "Pod": ("v1", spec),
        "Deployment": ("apps/v1", {"selector": selector, "template": always}),
        "DaemonSet": ("apps/v1", {"selector": selector, "template": always}),
        "StatefulSet": ("apps/v1", {"selector": selector, "serviceName": "s", "template": always}),
        "Job": ("batch/v1", {"template": template}),
        "CronJob": ("batch/v1", {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}),
    }
    version, made = by_kind[kind]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": made}


KINDS = ("Pod", "Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob")


def refusal(cluster: Cluster, raw: Json) -> str:
    """What the server says against creating it; empty if nothing."""
    path = cluster.api.path(raw["apiVersion"], raw["kind"], cluster.namespace)
    try:
        cluster.api.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", raw)
    except ApiError as error:
        assert error.status == 403, str(error)
        return error.message
    return ""


def label(cluster: Cluster, value: str | None) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}}
    cluster.api.patch(namespace, {"metadata": {"labels": {LABEL: value}}})


def policy(cluster: Cluster, command: Command, folder: Path) -> None:
    """Writes the plan for a legacy manifest and applies its policy, under names of this test."""
    file = folder / "tuner.yaml"
    file.write_text(legacy(cluster))
    assert command("migrate", "plan", str(file), "--output-dir", str(folder / "rollout")).code == 0
    made = folder / "rollout" / "3-policy.yaml"
    made.write_text(made.read_text().replace("kubectl-dra-device-plugins", cluster.name("plugins")))
    for raw in documents(made):
        cluster.create(raw)


def test_the_policy_refuses_where_the_label_says_so(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    standing = workload("Deployment", LEGACY, "standing")
    cluster.create(standing)
    policy(cluster, command, tmp_path)
    label(cluster, "refuse")
    message = wait(lambda: refusal(cluster, workload("Pod", LEGACY)) or None, "the policy to be in force")
    assert 'container "main"' not in message and "container main" in message and RESOURCE in message

    for kind in KINDS:
        assert refusal(cluster, workload(kind, LEGACY)), kind
        assert not refusal(cluster, workload(kind, pod_spec(cpu="1"))), kind
    init = {**pod_spec(cpu="1"), "initContainers": [LEGACY["containers"][1] | {"name": "first"}]}
    assert "first" in refusal(cluster, workload("Pod", init))

    # What stands already can be labelled and scaled, and its template cannot become another legacy one.
    at = {**standing, "metadata": {**standing["metadata"], "namespace": cluster.namespace}}
    cluster.api.patch(at, {"metadata": {"labels": {"team": "a"}}, "spec": {"replicas": 2}})
    with pytest.raises(ApiError) as refused:
        cluster.api.patch(
            at,
            {
                "spec": {
                    "template": {"metadata": {"labels": {"more": "1"}}, "spec": {"priority": None, "hostname": "x"}}
                }
            },
        )
    assert refused.value.status == 403

    label(cluster, "warn")
    wait(lambda: None if refusal(cluster, workload("Pod", LEGACY)) else True, "the policy to let it through")
    label(cluster, None)
    assert not refusal(cluster, workload("Job", LEGACY))


def test_the_files_of_a_live_plan_are_accepted(cluster: Cluster, command: Command, tmp_path: Path) -> None:
    driver_class(cluster)
    cluster.create(workload("Deployment", LEGACY))
    cluster.quota({f"requests.{RESOURCE}": "8"})
    folder = tmp_path / "rollout"
    answer = command(
        "migrate", "plan", "--live", "-n", cluster.namespace, "--output-dir", str(folder), *connection(cluster)
    )
    assert answer.code == 0, answer.text
    written = {path.name for path in folder.iterdir()}
    assert written - {CLASSES} == {"2-quotas.yaml", "3-policy.yaml", "README.md"}
    page = (folder / "README.md").read_text()
    # Tests beside this one make and remove classes, which all namespaces have in common.
    assert f"1. **{cluster.namespace}**" in page
    assert (CLASSES in written) != ("The cluster has the DeviceClasses." in page)
    (quota,) = documents(folder / "2-quotas.yaml")
    assert quota["spec"]["hard"] == {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "8"}
    cluster.create(quota)
    for number, raw in enumerate(documents(folder / "3-policy.yaml")):
        raw["metadata"]["name"] = cluster.name(f"plan-{number}")
        if raw["kind"].endswith("Binding"):
            raw["spec"]["policyName"] = cluster.name("plan-0")
        cluster.create(raw)
