"""``lint --from``: what is judged, what is said beside the findings, and what is refused."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from kubectl_dra.cli.main import run
from kubectl_dra.lint.rules.upgrades import CountsAfter, RejectedAfter, Rescheduled
from tests.golden.cases import serving
from tests.lint.support import CLAIM

CLUSTER = Path(__file__).parents[2] / "examples/explain/pool-incomplete/cluster.yaml"


def lint(*words: str) -> int:
    return run(["lint", "--no-config", *words])


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "m.yaml"
    path.write_text(f"{RejectedAfter.bad()}---\n{CountsAfter.bad()}---\n{CLAIM.replace('gpu.example.com', 'GPU')}")
    return str(path)


def test_only_what_the_upgrade_changes_is_found(manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("--from", "1.35", "--kubernetes-version", "1.37", "-o", "json", manifest) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in found["findings"]] == ["DRA512", "DRA513"]
    assert found["assumed"]["kubernetesVersion"] == "1.37"
    assert found["upgrade"]["older"]["kubernetesVersion"] == "1.35"
    assert "DRADeviceTaints" in found["upgrade"]["gatesTurnOn"]
    assert "DRADeviceTaints" not in found["upgrade"]["older"]["featureGates"]


def test_a_gate_that_is_set_is_on_before_and_after(manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("--from", "1.35", "--feature-gates", "DRADeviceTaints=true", manifest) == 0
    assert "no findings" in capsys.readouterr().out


def test_pods_that_run_are_judged_as_if_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("--from", "1.34", "--snapshot", str(CLUSTER), "-o", "json") == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["severity"], found["object"]) == ("DRA516", "error", "Pod serving/ner-0")
    assert found["message"].startswith("made again: on 1.34 it gets its devices on a30-1; on 1.37 it gets none (")
    assert found["file"] == str(CLUSTER)
    assert lint("--from", "1.35", "--snapshot", str(CLUSTER)) == 0


def test_a_manifest_is_not_what_a_cluster_has(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(Rescheduled.bad())
    assert lint("--from", "1.34", "--snapshot", str(path)) == 1
    assert lint("--from", "1.34", str(path)) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "1.37"), "--from 1.37 is not older than 1.37"),
        (("--from", "1.36", "--kubernetes-version", "1.34"), "--from 1.36 is not older than 1.34"),
        (("--from", "1.30"), "--from 1.30: lint knows 1.31 to 1.37"),
        (("--from", "1.35", "--fix"), "leave --fix and --diff out"),
        (("--from", "1.35", "--old", "x.yaml"), "exclude one another"),
    ],
)
def test_usage(words: tuple[str, ...], says: str, manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint(*words, manifest) == 2
    assert says in capsys.readouterr().err


def test_what_somebody_has_to_do_beside_is_noted(manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    lint("--from", "1.35", "--feature-gates", "DRAExtendedResource=false", manifest)
    assert "1.37 locks the gate DRAExtendedResource" in capsys.readouterr().err
    lint("--from", "1.33", "--snapshot", str(CLUSTER))
    told = capsys.readouterr().err
    assert "the scheduler's answers are compared from 1.34 on" in told
    assert "1.34 no longer reads resource.k8s.io/v1alpha3" in told


WORKLOADS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mig, namespace: serving}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: mig.nvidia.com}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: one, namespace: serving}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: mig}]
      containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
---
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: serving}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: mig}]
  containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: unused}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: mig.nvidia.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: none, namespace: serving}
spec:
  containers: [{name: c, image: x}]
"""


def test_pods_of_manifests_are_put_to_both_schedulers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(WORKLOADS)
    asked = ("--from", "1.34.10", "--kubernetes-version", "1.37.1", "-o", "json", str(path))
    assert lint(*asked, "--snapshot", str(CLUSTER)) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["code"], one["severity"], one["object"], one["field"]) for one in found] == [
        ("DRA516", "error", "Deployment serving/one", "spec.template.spec.resourceClaims"),
        ("DRA516", "error", "Pod serving/one", "metadata.name"),
        ("DRA516", "error", "ResourceClaim unused", "metadata.name"),
    ]
    assert found[0]["message"].startswith("a pod of it: on 1.34 it gets its devices on a30-1; on 1.37 it gets none (")
    assert all(one["message"].endswith("(https://github.com/kubernetes/kubernetes/pull/134189)") for one in found)
    assert lint(*asked) == 0
    told = capsys.readouterr().err
    assert "the schedulers are not asked without a cluster: add --live or --snapshot" in told
    assert "lint without --from finds what is wrong in both releases" in told


REFUSED = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mig, namespace: serving}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: mig.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: odd, namespace: serving}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: mig}]
  containers: [{name: c, image: x, restartPolicy: Sometimes, resources: {claims: [{name: gpu}]}}]
"""


def test_fields_that_one_api_server_refuses_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Up to 1.34 the server drops the restart policy of a container that is not Always."""
    path = tmp_path / "m.yaml"
    path.write_text(REFUSED)
    asked = ("--from", "1.34.10", "--kubernetes-version", "1.35.1", "--snapshot", str(CLUSTER), "--select", "DRA516")
    assert lint(*asked, str(path), "-o", "json") == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert found["code"] == "DRA516"
    assert "the API server refuses to create the pod: spec.containers[0].restartPolicy: " in found["message"]


def test_what_cannot_be_put_to_schedulers_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.yaml"
    wrong = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {resourceClaims: 5}\n---\nkind: [\n"
    path.write_text(WORKLOADS + wrong)
    assert lint("--from", "1.34.10", "--snapshot", str(CLUSTER), str(path)) == 1
    told = capsys.readouterr()
    assert "Pod bad: spec.resourceClaims must be a list, not the number 5" in told.err
    assert told.out.count("DRA516") == 3 and told.out.count("DRA901") == 1


def test_manifests_and_the_live_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = yaml.safe_load(Rescheduled.bad())["items"]
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump({**objects[-1], "metadata": {"name": "mine"}}))
    with ExitStack() as running:
        kubeconfig = serving(objects, running).kubeconfig(tmp_path)
        assert lint("--from", "1.34", "--live", "--kubeconfig", str(kubeconfig), str(path)) == 1
    assert "ResourceClaim mine, metadata.name" in capsys.readouterr().out


def test_a_patch_that_nobody_names_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    lint("--from", "1.36", "--snapshot", str(CLUSTER))
    assert "--from" not in (told := capsys.readouterr().err)
    assert "the scheduler of 1.36 is taken for that of its first patches" in told
    lint("--from", "1.36.6", "--snapshot", str(CLUSTER))
    assert capsys.readouterr().err == ""


def test_the_live_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = yaml.safe_load(Rescheduled.bad())["items"]
    with ExitStack() as running:
        kubeconfig = serving(objects, running).kubeconfig(tmp_path)
        assert lint("--from", "1.34", "--live", "--kubeconfig", str(kubeconfig)) == 1
    told = capsys.readouterr()
    assert "<cluster>" in told.out
    assert "ResourceClaim default/gpu" in told.out
