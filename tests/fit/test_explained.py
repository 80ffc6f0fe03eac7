"""``explain -f`` of a workload ends as ``fit`` does: the same answer first, the same verdict, the same exit code."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fit.test_existing import after_applying
from tests.fit.worlds import CLASS, JSON, bare, deployment, files, fitted, node, running, said, template
from tests.ran import ran, unwrapped

UNDETERMINED = 3
FIT = Path(__file__).parents[2] / "examples" / "fit"


def quiet(*words: str) -> tuple[int, str]:
    code, out, errors = ran(*words, "--color", "never")
    assert errors == ""
    return code, out


def agree(manifest: Path, snapshot: Path, *flags: str) -> None:
    """Both commands about one manifest."""
    asked = ("-f", str(manifest), "--snapshot", str(snapshot), *flags)
    code, told = quiet("fit", *asked, "-o", "json")
    fit = json.loads(told)["items"]
    again, told = quiet("explain", *asked, "-o", "json")
    explained: JSON = json.loads(told)
    counted = {one["workload"]["name"]: one for one in explained.get("workloads", ())}
    assert again == code
    if code == UNDETERMINED:
        return
    for one in fit:
        if one["podCounts"]["wanted"] > 1 or one["podCounts"]["running"]:
            same = counted[one["workload"]["name"]]
            assert (same["verdict"], same["answer"], same["podCounts"]) == (
                one["verdict"],
                one["answer"],
                one["podCounts"],
            )
    items: list[Any] = explained.get("items", [explained])
    if code == 0:
        assert {item["verdict"] for item in items} <= {"can-be-scheduled", "allocated"}
    assert all("web-0" not in json.dumps(item.get("tryWith", "")) for item in items)
    first = quiet("explain", *asked)
    assert first[0] == code
    for one in counted.values():
        start = one["answer"].removesuffix(".")
        assert start in unwrapped(first[1])


@pytest.mark.parametrize("folder", ["deployment-in-part", "groups-of-pods"])
def test_examples(folder: str) -> None:
    words = (FIT / folder / "command").read_text().split()
    agree(FIT / folder / "manifest.yaml", FIT / folder / words[words.index("--snapshot") + 1])


@pytest.mark.parametrize("seed", range(30))
def test_deployments(seed: int, tmp_path: Path) -> None:
    """They are new, in part there, or all of their pods that fit run."""
    random = Random(seed)
    gpus = random.choice((1, 2))
    web = deployment(random.randint(1, 5), gpus=gpus, cpu=random.choice(("", "1", "3")))
    cluster = [template(1), template(2)]
    for name in "abc"[: random.randint(1, 3)]:
        cluster += node(name, random.randint(0, 3), cpu=random.choice(("2", "4", "8")))
    _, report = fitted(tmp_path, cluster, [web])
    stored, *there = after_applying(web, report["items"][0], gpus)
    there = there[: 2 * random.randint(0, len(there) // 2)]
    snapshot = tmp_path / "cluster.json"
    snapshot.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [CLASS, *cluster, stored, *there]}))
    agree(tmp_path / "manifest.json", snapshot, "--kubernetes-version", "1.36")


@pytest.mark.parametrize("there", [False, True])
def test_what_only_the_manifest_has_is_not_looked_for_in_the_cluster(there: bool, tmp_path: Path) -> None:
    """A template of the manifest is shared there; one of the cluster is shown."""
    cluster = [*node("n1", 2), *([template(1)] if there else [])]
    code, out, _ = said(tmp_path, cluster, [template(1), deployment(3)], "--max", unseen=["LimitRange"])
    assert code == UNDETERMINED
    assert ("kubectl get resourceclaimtemplate/gpu-1" in out) is there
    shared = f"kubectl dra share -f {tmp_path / 'manifest.json'} --snapshot {tmp_path / 'cluster.json'}"
    assert (shared in out) is not there


@pytest.mark.parametrize(
    ("flags", "counted", "code"),
    [
        ((), "3 of 3 replicas of Deployment default/web fit", 3),
        (("--max",), "At most 4 replicas of Deployment default/web fit", 3),
        (("--replicas", "1"), "Deployment default/web fits on n1", 3),
        (("--replicas", "5"), "4 of 5 replicas of Deployment default/web fit", 3),
    ],
)
def test_the_answer_if_nothing_unread_changes_the_pods(
    flags: tuple[str, ...], counted: str, code: int, tmp_path: Path
) -> None:
    """No LimitRange was read: what fits without one is said, and how to say that there is none."""
    manifest, cluster = [template(1), deployment(3)], node("n1", 4)
    found, out, _ = said(tmp_path, cluster, manifest, *flags, unseen=["LimitRange"])
    one = "it" if flags == ("--replicas", "1") else "them"
    condition = f"if there is no LimitRange in namespace default that changes {one} (not in what was read)."
    assert found == code
    assert unwrapped(out).startswith(f"{counted} {condition}")
    assert out.splitlines()[-1].startswith("Next: kubectl dra fit ") and out.endswith(" --complete\n")
    _, report = fitted(tmp_path, cluster, manifest, *flags, unseen=["LimitRange"])
    assert report["items"][0]["verdict"] == "undetermined" and report["items"][0]["undetermined"]
    words = (*flags, "--complete")
    assert said(tmp_path, cluster, manifest, *words, unseen=["LimitRange"])[0] == (1 if "5" in flags else 0)


def test_the_same_condition_where_it_is_explained(tmp_path: Path) -> None:
    said(tmp_path, node("n1", 4), [template(1), deployment(3)], unseen=["LimitRange"])
    code, out = quiet("explain", *files(tmp_path), "--kubernetes-version", "1.36")
    text = unwrapped(out)
    assert code == UNDETERMINED
    assert text.startswith(
        "3 of 3 replicas of Deployment default/web fit if there is no LimitRange in namespace default"
    )
    assert (
        "pod of Deployment default/web can be scheduled if there is no LimitRange in namespace default that changes it"
        in text
    )
    assert out.endswith(" --complete\n")


def test_what_saves_more_is_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nodes decide, nobody says that there are none."""
    monkeypatch.chdir(tmp_path)
    said(tmp_path, [], [template(1), deployment(3)], unseen=["Node", "ResourceSlice"])
    (tmp_path / "cluster.json").rename(tmp_path / "cluster.yaml")
    code, out = quiet("explain", "-f", "manifest.json", "--snapshot", "cluster.yaml")
    assert code == UNDETERMINED and out.endswith("kubectl dra snapshot -o cluster-all.yaml\n")


def test_the_full_page_of_a_pod_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """Brief text leaves out what has no room, and says how to see it; fit looks at all pods."""
    web = deployment(3)
    web["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/kind": "other"}
    said(tmp_path, node("a", 4), [template(1), web])
    words = files(tmp_path)
    code, out = quiet("explain", *words)
    assert code == 1
    (full,) = [line for line in out.splitlines() if line.startswith("Full report")]
    assert full.endswith(f": kubectl dra explain {' '.join(words)} --full")
    assert f"\nNext: kubectl dra fit {' '.join(words)}\n" in out
    assert quiet("explain", *words, "--full")[1].count("--full") == 0


def test_pods_that_keep_apart_are_named_before_who_holds_other_devices(tmp_path: Path) -> None:
    """Free devices are left where the first pods of the workload are; where none of them is, all devices are held."""
    web = deployment(3)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web["spec"]["template"]["spec"]["affinity"] = rule
    cluster = [*node("a", 2), *node("b", 2), *node("c", 1), *running("other", "c", [0])]
    code, out, _ = said(tmp_path, cluster, [template(1), web])
    text = unwrapped(out)
    assert code == 1 and "2 of 3 replicas" in text
    first = 'no-devices-on-eligible-nodes: 2 free devices for request "gpu" are on nodes where the pod cannot run'
    assert text.index(first) < text.index("devices-held: ")
    assert "Fix: Add a node, run fewer such pods, or correct the anti-affinity. " in text
    code, out = quiet("explain", *files(tmp_path))
    text = unwrapped(out)
    assert code == 1 and "cannot be scheduled: 2 free devices" in text


def test_a_fix_says_how_many_replicas_fit_with_it(tmp_path: Path) -> None:
    """The fix with which most do stands first, and not the one that is enough for one more pod."""
    cluster = [
        *node("a", 1),
        *node("b", 3),
        *node("c", 1),
        *running("one", "a", [0]),
        *running("three", "b", [0, 1, 2]),
    ]
    manifest = [template(1), deployment(4)]
    said(tmp_path, cluster, manifest)
    _, text = quiet(*("explain", *files(tmp_path), "--full"))
    told = unwrapped(text)
    assert told.startswith("1 of 4 replicas of Deployment default/web fits.")
    assert (
        "End pod default/three" in told
        and "then it fits on b: gpu.example.com/b/gpu-0, and so do all 4 replicas" in told
    )
    assert "and 2 of 4 replicas do" in told
    assert told.index("so do all 4 replicas") < told.index("2 of 4 replicas do")


def test_a_workload_of_the_manifest_by_its_name(tmp_path: Path) -> None:
    said(tmp_path, node("a", 4), [template(1), deployment(2)])
    asked = ("explain", *files(tmp_path))
    code, out, errors = ran(*asked, "deployment/web")
    assert code == 0 and "A pod of Deployment default/web can be scheduled" in unwrapped(out)
    assert "Deployment web has no pod" in errors
    code, out, errors = ran(*asked, "deployment/webb")
    assert code == 2 and "the manifest has deployment/web" in unwrapped(errors)


def test_what_if_beside_a_pod_without_its_template(tmp_path: Path) -> None:
    """It has no request that could be changed; the other one is told what would come of it."""
    said(tmp_path, node("a", 4), [template(1), deployment(1), bare("lone", 9)])
    code, told = quiet("explain", *files(tmp_path), "--what-if", "count=4")
    text = unwrapped(told)
    assert code == 1
    assert "Pod default/lone cannot be scheduled: ResourceClaimTemplate default/gpu-9 does not exist" in text
    assert "A pod of Deployment default/web could be scheduled with this change" in text
    assert "Deployment default/web fits on a." in text


def test_what_the_server_refuses_is_not_placed_again(tmp_path: Path) -> None:
    web = deployment(2)
    web["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    said(tmp_path, node("a", 4), [template(1), web])
    _, told = quiet("explain", *files(tmp_path))
    assert "do not match the selector" in unwrapped(told) and "dra fit" not in told
