"""The files of a rollout: what is in them, what is not, and that lint has nothing against them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.api.releases import Release
from kubectl_dra.command import CURRENT, ClusterFlags
from kubectl_dra.migrate.rollout.plan import CLASSES, POLICY, QUOTAS, README, _overrides, files, rollout
from kubectl_dra.migrate.rollout.survey import LABEL, survey
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tests.migrate.cluster import Json, device_class, node, pod, slice_of, snapshot
from tests.migrate.runs import NEWEST, settings
from tools.pasted import inline

GPU = {"nvidia.com/gpu": 2}


def planned(
    *objects: Json, live: bool = True, release: Release = NEWEST, where: ClusterFlags = CURRENT
) -> Mapping[str, str]:
    cluster, chosen = snapshot(objects), settings(release=release)
    return files(rollout(survey(cluster, chosen), cluster, chosen, live=live)._replace(where=where))


def parsed(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def quota(name: str, hard: Mapping[str, str], namespace: str = "ml") -> Json:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": dict(hard)}}


def test_all_files() -> None:
    made = planned(pod("p", GPU), quota("q", {"requests.nvidia.com/gpu": "8"}), live=False)
    assert list(made) == [CLASSES, QUOTAS, POLICY, README]
    (found,) = parsed(made[CLASSES])
    assert found["metadata"]["name"] == "gpu.nvidia.com"
    assert [raw["kind"] for raw in parsed(made[POLICY])] == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
    ]
    selected = [raw["spec"]["matchResources"]["namespaceSelector"] for raw in parsed(made[POLICY])[1:]]
    assert selected == [{"matchLabels": {LABEL: "warn"}}, {"matchLabels": {LABEL: "refuse"}}]
    for phase in range(1, 7):
        assert f"\n## {phase}. " in made[README]
    assert made[README].count("Check:") == 6 and made[README].count("Back:") == 6


def test_the_commands_are_for_the_release_of_the_cluster() -> None:
    """And each stands alone: migrate ends with 1 where something is left to decide, which stops nothing after it."""
    commands = [line.split("  #")[0].strip() for line in planned(pod("p", GPU))[README].splitlines() if "DIR" in line]
    assert {"kubectl dra migrate DIR --write", "kubectl diff -f DIR", "kubectl apply -f DIR"} <= set(commands)
    assert not any("&&" in command or "--kubernetes-version" in command for command in commands)
    older = planned(pod("p", GPU), release=Release(1, 33))[README]
    assert "kubectl dra migrate DIR --kubernetes-version 1.33 --write" in older


def test_the_overrides_is_json_whatever_a_resource_is_called() -> None:
    name = 'example.com/a"b\\c'
    (container,) = json.loads(_overrides(name))["spec"]["containers"]
    assert container["resources"] == {"limits": {name: "1"}}


def test_the_overrides_asks_for_what_its_namespace_uses() -> None:
    page = planned(pod("a", {"amd.com/gpu": 1}, namespace="b"), pod("p", GPU, namespace="a"))[README]
    (probe,) = [line for line in page.splitlines() if "run probe" in line]
    assert ("-n a " in probe) == ('"nvidia.com/gpu"' in probe) and ("-n b " in probe) == ('"amd.com/gpu"' in probe)


def test_a_resource_that_becomes_two_classes_has_both() -> None:
    shared = pod("shared", {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 8000}, namespace="edge")
    hard = {"requests.nvidia.com/gpu": "8"}
    made = planned(pod("p", GPU), shared, quota("q", hard), quota("q", hard, "edge"), live=False)
    hami = "hami-core-gpu.project-hami.io"
    assert [found["metadata"]["name"] for found in parsed(made[CLASSES])] == ["gpu.nvidia.com", hami]
    keys = {found["metadata"]["namespace"]: list(found["spec"]["hard"]) for found in parsed(made[QUOTAS])}
    end = "deviceclass.resource.k8s.io/devices"
    assert keys == {"ml": [f"gpu.nvidia.com.{end}"], "edge": [f"{hami}.{end}"]}
    assert f"| nvidia.com/gpu | {hami} | {hami} | edge |" in made[README]
    assert made[README].count("- `requests.nvidia.com/gpu`") == 1


def test_classes_that_are_there_are_not_written() -> None:
    made = planned(device_class(), node("n"), slice_of("n", 2), pod("p", GPU))
    assert CLASSES not in made and "The cluster has the DeviceClasses." in made[README]
    assert CLASSES in planned(node("n"), pod("p", GPU))


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ([{"requests.nvidia.com/gpu": "8"}], "8"),
        ([{"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "4"}], "4"),
        ([{"requests.nvidia.com/gpu": "1k"}], "1000"),
        ([{"pods": "8"}], None),
        ([{"requests.nvidia.com/gpu": "8"}, {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "2"}], None),
    ],
)
def test_quotas(quotas: Sequence[Mapping[str, str]], expected: str | None) -> None:
    made = planned(pod("p", GPU), *(quota(f"q{number}", hard) for number, hard in enumerate(quotas)))
    found = [raw["spec"]["hard"] for raw in parsed(made[QUOTAS])] if QUOTAS in made else []
    key = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
    assert found == ([{key: expected}] if expected else [])


def test_the_name_of_a_quota_that_is_taken() -> None:
    made = planned(pod("p", GPU), quota("device-claims", {"requests.nvidia.com/gpu": "8"}))
    assert parsed(made[QUOTAS])[0]["metadata"]["name"] == "device-claims-2"


def test_what_stays_is_said_and_not_refused() -> None:
    made = planned(pod("p", GPU), pod("q", {"example.org/thing": 1}), pod("r", {"nvidia.com/gpu.shared": 1}))
    variables = {variable["name"]: variable["expression"] for variable in parsed(made[POLICY])[0]["spec"]["variables"]}
    assert variables["resources"] == '["nvidia.com/gpu"]'
    assert "- example.org/thing: " in made[README] and "- nvidia.com/gpu.shared: " in made[README]


def test_the_order_of_namespaces() -> None:
    objects = [device_class(), node("n"), slice_of("n", 2)]
    objects += [pod(f"big-{number}", GPU, namespace="big") for number in range(3)]
    objects += [pod("p", {"example.org/thing": 1}, namespace="a-blocked"), pod("p", GPU, namespace="small")]
    text = planned(*objects)[README]
    places = [text.index(f". **{space}** ") for space in ("small", "big", "a-blocked")]
    assert places == sorted(places)


def test_nothing_to_move() -> None:
    made = planned(node("n"))
    assert list(made) == [README] and "Nothing that is known here" in made[README]


def test_nodes_with_both_come_first() -> None:
    made = planned(device_class(), node("both", 2), slice_of("both", 2), pod("p", GPU))
    assert "- node both: 2 nvidia.com/gpu" in made[README]


# --- the command -----------------------------------------------------------------------------------

MANIFEST = yaml.safe_dump_all([pod("p", GPU), quota("q", {"requests.nvidia.com/gpu": "8"})])


def test_the_command_writes_what_lint_accepts(dra: Any) -> None:
    Path("pods.yaml").write_text(MANIFEST)
    ran: Ran = dra("migrate", "plan", "pods.yaml", "--output-dir", "out")
    assert ran.code == 0 and sorted(path.name for path in Path("out").iterdir()) == [CLASSES, QUOTAS, POLICY, README]
    told = " ".join(ran.out.split())
    assert "1 workload with 1 pod in 1 namespace moves to claims. Nothing has been applied." in told
    assert "out/1-classes.yaml adds DeviceClass gpu.nvidia.com" in told and told.endswith("Begin with out/README.md.")
    again: Ran = dra("migrate", "plan", "pods.yaml", "--output-dir", "out")
    assert again.code == 0
    linted: Ran = dra("lint", "out")
    assert linted.code == 0, linted.out
    (Path("out") / README).write_text("mine")
    kept: Ran = dra("migrate", "plan", "pods.yaml", "--output-dir", "out")
    assert kept.code == 2 and (Path("out") / README).read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ["plan"],
        ["plan", "--output-dir", "out"],
        ["plan", "pods.yaml", "--snapshot", "pods.yaml", "--output-dir", "out"],
        ["plan", "pods.yaml", "--write", "--output-dir", "out"],
        ["--live", "--snapshot", "pods.yaml"],
        ["-A", "pods.yaml"],
        ["-A", "-n", "x", "--snapshot", "pods.yaml"],
        ["--snapshot", "pods.yaml", "--write"],
        ["--snapshot", "pods.yaml", "-o", "yaml"],
        ["--reverse", "--share", "claim", "pods.yaml"],
    ],
)
def test_usage(dra: Any, words: list[str]) -> None:
    Path("pods.yaml").write_text(MANIFEST)
    ran: Ran = dra("migrate", *words)
    assert ran.code == 2 and ran.err.startswith("error: ") and not Path("out").exists()


def test_a_survey_of_files(dra: Any) -> None:
    Path("pods.yaml").write_text(MANIFEST)
    ran: Ran = dra("migrate", "--snapshot", "pods.yaml")
    assert ran.code == 0 and "Pod p" in ran.out and ", 0 claims and templates" in ran.out
    assert dra("migrate", "--snapshot", "pods.yaml", "--check").code == 1


def test_objects_of_equal_names_are_kept_apart(dra: Any) -> None:
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: c, resources: {limits: {RESOURCE: 1}}}
"""
    Path("many").mkdir()
    Path("many/a.yaml").write_text(text.replace("RESOURCE", "nvidia.com/gpu"))
    Path("many/b.yaml").write_text(text.replace("RESOURCE", "amd.com/gpu"))
    assert dra("migrate", "plan", "many", "--output-dir", "out").code == 0
    page = Path("out/README.md").read_text()
    assert "| nvidia.com/gpu |" in page and "| amd.com/gpu |" in page


def test_the_commands_of_the_page_are_for_the_cluster_that_was_read() -> None:
    text = planned(pod("p", GPU), where=ClusterFlags(("--context", "my prod")))[README]
    commands = [*inline(text), *re.findall(r"^    (kubectl [^#\n]*)", text, re.MULTILINE)]
    asking = [line for line in commands if not re.match(r"kubectl (kustomize|dra migrate (?!.*--live))", line)]
    assert len(asking) > 10
    for line in asking:
        assert line.rstrip().endswith(" --context 'my prod'"), line
    saved = planned(pod("p", GPU), where=ClusterFlags(("--snapshot", "a.yaml"), saved=True))[README]
    assert saved == planned(pod("p", GPU))[README] and "--snapshot" not in saved
