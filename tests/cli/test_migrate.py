"""``kubectl dra migrate`` as a person runs it: exit codes, formats, what is written where, and what never is."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_dra.cli.migrate import MigrateFlags
from kubectl_dra.cli.migrate import run as migrate_run
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.reverse.run import reverse
from tests.cli.conftest import Dra, Ran, write_list
from tests.migrate import cluster

OLD = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      deviceClassName: gpu.example.com # ours
"""
NEW = OLD.replace("v1beta1", "v1").replace("      device", "      exactly:\n        device")
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: main
    image: a:1
    resources:
      limits: {nvidia.com/gpu: 2}
"""
REFUSED = "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaimParameters\nmetadata: {name: a}\n"


def names() -> list[str]:
    """What lies in the folder, hidden files too."""
    return sorted(path.name for path in Path().iterdir())


def test_the_plan_is_1_and_nothing_to_do_is_0(dra: Dra) -> None:
    Path("a.yaml").write_text(OLD)
    ran = dra("migrate", "a.yaml")
    assert (ran.code, ran.err) == (1, "") and "MIG301" in ran.out and "Nothing is written" in ran.out
    assert Path("a.yaml").read_text() == OLD
    Path("a.yaml").write_text(NEW)
    assert dra("migrate", "a.yaml").code == 0
    assert dra("migrate", "--check", ".").code == 0


@pytest.mark.parametrize(("labels", "unsafe"), [("{a: b}", ""), ("{nvidia.com/gpu.replicas: '2'}", "--unsafe ")])
def test_the_next_command_shows_the_changes_that_there_are(dra: Dra, labels: str, unsafe: str) -> None:
    Path("a.yaml").write_text(POD.replace("spec:\n", f"spec:\n  nodeSelector: {labels}\n"))
    shown = dra("migrate", "a.yaml").out
    assert shown.endswith(
        f"Next: kubectl dra migrate a.yaml {unsafe}--diff\n      kubectl dra migrate a.yaml {unsafe}--live\n"
    )
    assert "+  resourceClaims:" in dra("migrate", "a.yaml", *unsafe.split(), "--diff").out


def test_the_answer_and_what_the_cluster_needs_come_first(dra: Dra) -> None:
    Path("a.yaml").write_text(POD.replace("gpu: 2", "gpu: 2, intel.com/sriov_1: 1"))
    first, needs, part = dra("migrate", "a.yaml").out.replace("\n", " ").split("a.yaml")[0].partition("Before")
    assert first.startswith("2 changes and 1 new object in 1 file, 1 refusal, ")
    assert "Migrated in part only. Refused, and left as it is: Pod train (intel.com/sriov_1)." in first
    assert needs and "DRA driver gpu.nvidia.com with DeviceClass gpu.nvidia.com; no device plugin may" in part
    shown = dra("migrate", "a.yaml", "-o", "json")
    assert shown.json["moved"] == [
        {"resource": "nvidia.com/gpu", "deviceClassName": "gpu.nvidia.com", "driver": "gpu.nvidia.com"}
    ]
    diff = dra("migrate", "a.yaml", "--diff").err
    assert "  do: Map the name" in diff and "Migrated in part only." in diff and "no device plugin may" in diff


def test_that_nothing_changes_is_said_first(dra: Dra) -> None:
    Path("a.yaml").write_text(POD.replace("nvidia.com/gpu", "intel.com/sriov_1"))
    assert dra("migrate", "a.yaml").out.startswith("nothing is changed in 1 file: 1 refusal, for Kubernetes 1.37.\n")


def test_f_is_not_for_manifests(dra: Dra) -> None:
    Path("a.yaml").write_text(POD)
    assert "to migrate manifests: kubectl dra migrate a.yaml" in dra("migrate", "-f", "a.yaml").err


def test_the_way_back_needs_the_device_plugin(dra: Dra) -> None:
    Path("a.yaml").write_text(POD)
    dra("migrate", "a.yaml", "--write")
    assert "the nodes need the device plugin of nvidia.com/gpu" in dra("migrate", "--reverse", "a.yaml").out


def test_unsafe_says_when_it_makes_no_difference(dra: Dra) -> None:
    Path("a.yaml").write_text(POD)
    assert "Nothing here is unsafe: --unsafe makes no difference." in dra("migrate", "a.yaml", "--unsafe", "--diff").err
    assert "no difference" not in dra("migrate", "a.yaml", "--diff").err
    Path("a.yaml").write_text(POD.replace("spec:\n", "spec:\n  nodeSelector: {nvidia.com/gpu.replicas: '2'}\n"))
    assert "no difference" not in dra("migrate", "a.yaml", "--unsafe", "--diff").err


def test_what_only_unsafe_changes_need_is_said_so(dra: Dra) -> None:
    Path("a.yaml").write_text(POD.replace("spec:\n", "spec:\n  nodeSelector: {nvidia.com/gpu.replicas: '2'}\n"))
    assert "With --unsafe, the cluster also needs DRA driver" in dra("migrate", "a.yaml").out


def test_what_is_the_same_is_said_once(dra: Dra) -> None:
    Path("a.yaml").write_text(f"{POD}---\n{POD.replace('train', 'other')}")
    shown = dra("migrate", "a.yaml").out
    assert shown.count("adds a toleration for taint nvidia.com/gpu") == 1 and "the same as for line 4" in shown
    # A refusal and what to do about it stand there together, and once is enough to say so.
    refused = POD.replace("nvidia.com/gpu", "rdma/roce_gdr")
    Path("a.yaml").write_text(f"{refused}---\n{refused.replace('train', 'other')}")
    said = [line.split("the same as")[1] for line in dra("migrate", "a.yaml").out.splitlines() if "the same as" in line]
    assert len(said) == len({*said}) == 1


def test_selectors_that_no_label_asked_for_are_explained(dra: Dra) -> None:
    Path("a.yaml").write_text(POD.replace("nvidia.com/gpu", "amd.com/gpu"))
    shown = dra("migrate", "a.yaml").flat
    assert 'class gpu.amd.com has other devices than amd.com/gpu, too, so the claim selects type == "amdgpu"' in shown


def test_diff_is_alone_on_standard_output(dra: Dra) -> None:
    Path("a.yaml").write_text(OLD)
    ran = dra("migrate", "--diff", "a.yaml")
    assert ran.code == 1
    assert ran.out.startswith("--- a/a.yaml\n+++ b/a.yaml\n@@ ") and ran.out.count("\n+") == 4
    assert "1 change in 1 file" in ran.err


def test_check_lists_files(dra: Dra) -> None:
    Path("a.yaml").write_text(OLD)
    Path("b.yaml").write_text(REFUSED)
    ran = dra("migrate", "--check", ".")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == [
        "a.yaml: would change",
        "b.yaml:2:1: MIG307 refused: ResourceClaimParameters has no successor in newer versions",
    ]


def test_write_keeps_the_mode_and_is_done_once(dra: Dra) -> None:
    Path("a.yaml").write_bytes(b"\xef\xbb\xbf" + OLD.replace("\n", "\r\n").encode())
    Path("a.yaml").chmod(0o640)
    assert dra("migrate", "--write", "a.yaml").code == 0
    assert Path("a.yaml").read_bytes() == b"\xef\xbb\xbf" + NEW.replace("\n", "\r\n").encode()
    assert stat.S_IMODE(Path("a.yaml").stat().st_mode) == 0o640
    assert names() == ["a.yaml"]
    assert dra("migrate", "--write", "a.yaml").code == 0
    assert dra("migrate", "--to", "v1beta1", "--write", "a.yaml").code == 0
    assert Path("a.yaml").read_bytes() == b"\xef\xbb\xbf" + OLD.replace("\n", "\r\n").encode()


def test_what_is_refused_makes_the_exit_code_1_also_when_the_rest_is_written(dra: Dra) -> None:
    Path("a.yaml").write_text(OLD + "---\n" + REFUSED)
    ran = dra("migrate", "--write", "a.yaml")
    assert ran.code == 1 and "1 refusal" in ran.out
    assert Path("a.yaml").read_text() == NEW + "---\n" + REFUSED


def test_json_is_that_of_the_schema(dra: Dra) -> None:
    Path("a.yaml").write_text(OLD + "---\n" + POD)
    Path("b.yaml").write_text(REFUSED)
    ran = dra("migrate", "-o", "json", ".")
    assert ran.code == 1
    report = ran.valid("migrate")
    assert report["summary"]["filesChanged"] == 1 and report["summary"]["newObjects"] == 1
    assert {item["sort"] for file in report["files"] for item in file["items"]} >= {"change", "object", "refusal"}


def test_json_says_where_pods_would_land_if_a_cluster_is_given(dra: Dra) -> None:
    Path("a.yaml").write_text(POD)
    objects = [cluster.device_class(), cluster.node("old", 2), cluster.node("new"), cluster.slice_of("new", 2)]
    write_list(Path("cluster.json"), objects)
    assert "equivalence" not in dra("migrate", "-o", "json", "a.yaml").json
    report = dra("migrate", "-o", "json", "--snapshot", "cluster.json", "a.yaml").valid("migrate")
    (workload,) = report["equivalence"]
    assert (workload["before"], workload["after"]) == (["old"], ["new"])


@pytest.mark.parametrize(
    ("complete", "objects", "said", "seen"),
    [
        (
            True,
            [cluster.device_class()],
            "has DeviceClass gpu.nvidia.com; it lacks ResourceSlices of driver gpu.nvidia.com.",
            (True, False),
        ),
        (
            False,
            [cluster.device_class()],
            "has DeviceClass gpu.nvidia.com. Not read, so it is not known whether",
            (True, None),
        ),
        (
            True,
            [cluster.node("n"), cluster.slice_of("n", 2)],
            "has ResourceSlices of driver gpu.nvidia.com; it lacks DeviceClass",
            (False, True),
        ),
    ],
)
def test_what_the_cluster_has_of_what_it_needs(
    dra: Dra, complete: bool, objects: list[cluster.Json], said: str, seen: tuple[bool | None, bool | None]
) -> None:
    Path("a.yaml").write_text(POD)
    write_list(Path("cluster.json"), objects)
    words = ["migrate", "a.yaml", "--snapshot", "cluster.json", *(["--complete"] if complete else [])]
    told = dra(*words).flat
    assert f"The cluster {said}" in told
    report = dra(*words, "-o", "json").valid("migrate")
    (moved,) = report["moved"]
    assert (moved.get("deviceClassExists"), moved.get("driverPublishes")) == seen
    assert "The cluster has" not in dra("migrate", "a.yaml").out


OWN_CLASS = """apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: device.driver == 'gpu.nvidia.com'}}]}
"""


def test_a_class_among_the_files_is_no_lack(dra: Dra) -> None:
    """It is applied with them, so the migrated pod is tried with it; the plan does not write it again."""
    (folder := Path("mine")).mkdir()
    (folder / "pod.yaml").write_text(POD)
    (folder / "class.yaml").write_text(OWN_CLASS)
    objects = [cluster.node("n"), cluster.slice_of("n", 2)]
    write_list(Path("cluster.json"), objects)
    for words in ((), ("--snapshot", "cluster.json", "--complete")):
        told = dra("migrate", "mine", *words).flat
        assert "needs DRA driver gpu.nvidia.com; no device plugin" in told and "lacks" not in told
    report = dra("migrate", "mine", *words, "-o", "json").json
    assert "deviceClassExists" not in report["moved"][0] and report["equivalence"][0]["after"] == ["n"]
    planned = dra("migrate", "plan", "mine", "--output-dir", "out")
    assert planned.code == 0 and "1-classes.yaml" not in planned.out


def test_what_comes_next_is_for_the_same_cluster(dra: Dra) -> None:
    """And where a pod would run is undetermined without what decides it, but for --check, which asks something else."""
    Path("a.yaml").write_text(POD)
    write_list(Path("cluster.json"), [cluster.device_class()])
    ran = dra("migrate", "a.yaml", "--snapshot", "cluster.json")
    assert ran.out.splitlines()[-1] == "Next: kubectl dra migrate a.yaml --snapshot cluster.json --diff"
    assert ran.code == 3 and dra("migrate", "a.yaml", "--snapshot", "cluster.json", "--check").code == 1
    whole = dra("migrate", "a.yaml", "--snapshot", "cluster.json", "--complete", "--kubernetes-version", "1.36")
    assert whole.code == 1 and whole.out.splitlines()[-1] == (
        "Next: kubectl dra migrate a.yaml --kubernetes-version 1.36 --snapshot cluster.json --complete --diff"
    )


def test_yaml_is_the_migrated_stream(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(OLD.encode())))
    ran = dra("migrate", "-", "-o", "yaml")
    assert (ran.code, ran.out) == (0, NEW)
    Path("a.yaml").write_text(OLD)
    Path("b.yaml").write_text("kind: Other\napiVersion: v1")
    ran = dra("migrate", ".", "-o", "yaml")
    assert (ran.code, ran.out) == (0, NEW + "---\nkind: Other\napiVersion: v1\n")


def test_output_dir_holds_everything(dra: Dra) -> None:
    Path("in/sub").mkdir(parents=True)
    Path("in/sub/a.yaml").write_text(OLD)
    Path("in/other.yaml").write_text("a: 1\n")
    ran = dra("migrate", "in", "--output-dir", "out/x")
    assert ran.code == 0 and "2 files written below out/x" in ran.out
    assert Path("out/x/sub/a.yaml").read_text() == NEW and Path("out/x/other.yaml").read_text() == "a: 1\n"
    assert Path("in/sub/a.yaml").read_text() == OLD
    ran = dra("migrate", "in", "--output-dir", "in")
    assert ran.code == 2 and "--write" in ran.err
    Path("b").mkdir()
    Path("b/a.yaml").write_text(OLD)
    assert dra("migrate", "in/sub/a.yaml", "b/a.yaml", "--output-dir", "both").code == 0
    assert Path("both/in/sub/a.yaml").exists() and Path("both/b/a.yaml").exists()


@pytest.mark.parametrize("there", ["file", "link", "directory"])
def test_output_dir_overwrites_nothing(dra: Dra, there: str) -> None:
    """A file that is there stays, and no other is written either; what is the same already is no obstacle."""
    Path("in").mkdir()
    Path("in/a.yaml").write_text("a: 1\n")
    Path("in/b.yaml").write_text(OLD)
    Path("out").mkdir()
    if there == "directory":
        Path("out/b.yaml").mkdir()
    else:
        Path("kept.yaml").write_text("mine: 1\n")
        Path("out/b.yaml").symlink_to("../kept.yaml") if there == "link" else Path("kept.yaml").rename("out/b.yaml")
    ran = dra("migrate", "in", "--output-dir", "out")
    assert ran.code == 2 and "out/b.yaml" in ran.err and not Path("out/a.yaml").exists()
    if there != "directory":
        assert "already exists with other content" in ran.err and Path("out/b.yaml").read_text() == "mine: 1\n"
        Path("out/b.yaml").unlink()
        assert dra("migrate", "in", "--output-dir", "out").code == 0 and Path("out/b.yaml").read_text() == NEW
        assert dra("migrate", "in", "--output-dir", "out").code == 0


def test_claims_file(dra: Dra) -> None:
    Path("a.yaml").write_text(POD)
    assert dra("migrate", "--claims-file", "claims.yaml", "--write", "a.yaml").code == 0
    assert "kind: ResourceClaimTemplate" in Path("claims.yaml").read_text()
    assert "ResourceClaimTemplate\n" not in Path("a.yaml").read_text()
    before = Path("claims.yaml").read_text()
    assert dra("migrate", "--claims-file", "claims.yaml", "--write", ".").code == 0
    assert Path("claims.yaml").read_text() == before
    assert dra("migrate", "--claims-file", "gone/claims.yaml", "--write", "a.yaml").code == 0


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nowhere.yaml",),
        ("empty",),
        ("a.yaml", "--write", "--diff"),
        ("a.yaml", "--check", "--output-dir", "x"),
        ("a.yaml", "-o", "yaml", "--write"),
        ("a.yaml", "-o", "json", "--diff"),
        ("a.yaml", "--interactive"),
        ("a.yaml", "--kubernetes-version", "1.31"),
        ("a.yaml", "--kubernetes-version", "x"),
        ("a.yaml", "--kubernetes-version", "1.33", "--to", "v1"),
        ("a.yaml", "--kubernetes-version", "1.35", "--strategy", "extended-resource"),
        ("a.yaml", "--vendors", "nowhere.yaml"),
        ("--explain", "MIG000"),
    ],
)
def test_usage(dra: Dra, words: tuple[str, ...]) -> None:
    Path("a.yaml").write_text(OLD)
    Path("empty").mkdir()
    ran = dra("migrate", *words)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1 and ran.err.startswith("error: ")
    assert Path("a.yaml").read_text() == OLD


def test_releases_choose_the_version(dra: Dra) -> None:
    Path("a.yaml").write_text(NEW)
    ran = dra("migrate", "a.yaml", "--kubernetes-version", "1.32", "-o", "yaml")
    assert (ran.code, ran.out) == (0, OLD)
    ran = dra("migrate", "a.yaml", "--kubernetes-version", "1.33", "-o", "yaml")
    assert (ran.code, ran.out) == (0, NEW.replace("/v1", "/v1beta2"))


def test_code_explains(dra: Dra) -> None:
    ran = dra("migrate", "--explain", "mig301")
    assert ran.code == 0 and ran.out.startswith("MIG301: An older API version\n\napi-version\n")
    assert dra("migrate", "--explain", "api-version").out == ran.out
    assert "did you mean api-version?" in dra("migrate", "--explain", "api-versions").err
    assert "migrate prints it beside each change" in dra("migrate", "--explain", "QQQ").err


def test_stdin_is_not_written(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(OLD.encode())))
    ran = dra("migrate", "-", "--write")
    assert ran.code == 2 and "-o yaml" in ran.err


# --- what goes wrong while writing ---------------------------------------------------------------


def test_a_file_that_is_read_only_stops_all_of_them(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.yaml").write_text(OLD)
    Path("b.yaml").write_text(OLD)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("b.yaml") and real(path, mode))
    ran = dra("migrate", "--write", ".")
    assert ran.code == 2 and "b.yaml: cannot be written: it is read-only; nothing is written" in ran.err
    assert Path("a.yaml").read_text() == OLD


def test_a_disk_that_fills_leaves_all_files_as_they_were(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.yaml").write_text(OLD)
    Path("b.yaml").write_text(OLD)
    calls = []
    real = os.fsync

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    ran = dra("migrate", "--write", ".")
    assert ran.code == 2
    assert "b.yaml: cannot be written: No space left on device (nothing is written)" in ran.err
    assert (Path("a.yaml").read_text(), Path("b.yaml").read_text()) == (OLD, OLD)
    assert names() == ["a.yaml", "b.yaml"]


def test_a_file_that_cannot_be_replaced_at_last_says_which_are_done(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.yaml").write_text(OLD)
    Path("b.yaml").write_text(OLD)
    real = Path.replace

    def refused(path: Path, target: Path) -> Path:
        if target.name == "b.yaml":
            raise PermissionError(1, "Operation not permitted")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    ran = dra("migrate", "--write", ".")
    assert ran.code == 2
    assert "b.yaml: cannot be written: Operation not permitted (written before: a.yaml)" in ran.err
    assert (Path("a.yaml").read_text(), Path("b.yaml").read_text()) == (NEW, OLD)
    assert names() == ["a.yaml", "b.yaml"]


def test_the_file_of_claims_is_not_one_of_those_that_were_read(dra: Dra) -> None:
    Path("a.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {containers: [{name: a, image: a:1, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
    )
    ran = dra("migrate", "--claims-file", "claims.yaml", "a.yaml")
    assert ran.code == 1 and "2 changes and 1 new object in 2 files" in ran.out


def test_interactive(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.yaml", "b.yaml", "c.yaml", "d.yaml"):
        Path(name).write_text(OLD)

    def answered(text: str) -> Ran:
        terminal = io.StringIO(text)
        monkeypatch.setattr(terminal, "isatty", lambda: True)
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        return dra("migrate", "--interactive", ".")

    ran = answered("y\nwhat\nn\nq\n")
    assert ran.code == 1 and "1 file written, 3 left as they are." in ran.out
    assert [Path(name).read_text() == NEW for name in ("a.yaml", "b.yaml", "c.yaml", "d.yaml")] == [
        True,
        False,
        False,
        False,
    ]
    ran = answered("a\n")
    assert ran.code == 0 and "3 files written, 0 left as they are." in ran.out


def test_defects_write_nothing(dra: Dra, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.yaml").write_text(OLD)

    def broken(inputs: Any, job: Any) -> Any:
        return migrate(inputs, job)._replace(defects=("x",))

    monkeypatch.setattr(migrate_run, "migrate_built", broken)
    asked = MigrateFlags(paths=("a.yaml",), write=True)
    with pytest.raises(InputError):
        migrate_run.run(asked, ConnectionFlags())
    assert Path("a.yaml").read_text() == OLD


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("words", [("--check",), ("--reverse", "--check"), ("--write",)])
def test_a_directory_that_cannot_be_read_leaves_something_open(dra: Dra, words: tuple[str, ...]) -> None:
    closed = Path("closed")
    closed.mkdir()
    closed.chmod(0)
    Path("a.yaml").write_text(NEW)
    try:
        ran = dra("migrate", *words, ".")
        assert (ran.code, ran.err) == (1, "") and "closed" in ran.out and "MIG902" in ran.out
        assert dra("migrate", *words, ".", "--exclude", "closed").code == 0
    finally:
        closed.chmod(0o700)


def test_what_is_not_let_be_read_is_refused() -> None:
    """The same without the system's help, which does not refuse anything to root."""
    inputs = [Input("a.yaml", True, NEW.encode()), Input("closed", False, None, "cannot be read: Permission denied")]
    job = MigrationJob(migrate_run._settings(MigrateFlags()))
    for report in (migrate(inputs, job), reverse(inputs, job)):
        (item,) = report.items("refusal")
        assert (item.code, item.file, item.message) == ("MIG902", "closed", "cannot be read: Permission denied")
        assert report.open and not report.notes


def test_what_cannot_be_written_in_place_is_not_said_to_be(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.yaml").write_text(OLD)
    assert "--write makes it" in dra("migrate", "a.yaml").out
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(OLD.encode())))
    told = dra("migrate", "-").flat
    assert "--write" not in told and "-o yaml prints the result, --output-dir DIR writes it" in told


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("apiVersion: v1\nkind: List\nitems: [1, {a: b}]\n", 2, "item 0 of the List has no apiVersion and kind"),
        ("just text\n", 0, "note: a.yaml:1:1: a manifest is a mapping, this is a scalar"),
    ],
)
def test_a_named_file_that_is_no_manifest(dra: Dra, text: str, code: int, said: str) -> None:
    Path("a.yaml").write_text(text)
    for words in ((), ("--reverse",)):
        ran = dra("migrate", *words, "a.yaml")
        assert ran.code == code and said in ran.err


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl builds the kustomization")
def test_the_files_of_a_kustomization_are_changed_and_not_only_its_build(dra: Dra) -> None:
    for folder in ("base", "over"):
        Path(folder).mkdir()
    Path("base/train.yaml").write_text(POD)
    Path("base/kustomization.yaml").write_text("resources: [train.yaml]\n")
    Path("over/kustomization.yaml").write_text("resources: [../base]\n")
    assert dra("migrate", "-k", "over", "--write").code == 0
    assert "resourceClaimTemplateName" in Path("base/train.yaml").read_text()
    assert dra("migrate", "-k", "over", "--check").code == 0
    assert "kind: ResourceClaimTemplate" in dra("migrate", "-k", "over", "-o", "yaml").out


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl builds the kustomization")
def test_files_that_are_added_are_not_among_those_that_were_read(dra: Dra) -> None:
    Path("pod.yaml").write_text(POD)
    Path("kustomization.yaml").write_text(
        "resources: [pod.yaml]\npatches:\n- target: {kind: Pod}\n  patch: |-\n    - op: replace\n"
        "      path: /spec/containers/0/resources/limits/nvidia.com~1gpu\n      value: 8\n"
    )
    ran = dra("migrate", "--check", ".")
    assert "in 2 files and 1 new file" in ran.flat
    assert "kubectl-dra-counts.yaml: would be added" in ran.out


def test_a_baseline_leaves_out_what_is_known(dra: Dra) -> None:
    Path("a.yaml").write_text(POD)
    Path("b.yaml").write_text(REFUSED)
    assert dra("migrate", "--baseline", "known.json", "--write-baseline", ".").code == 0
    ran = dra("migrate", "--check", "--baseline", "known.json", ".")
    assert (ran.code, "nothing to migrate" in ran.out) == (0, True)
    Path("c.yaml").write_text(REFUSED.replace("name: a", "name: c"))
    ran = dra("migrate", "--check", "--baseline", "known.json", ".")
    assert ran.code == 1 and "c.yaml:" in ran.out and "a.yaml" not in ran.out and "b.yaml" not in ran.out
    Path("a.yaml").unlink()
    assert "no longer found" in dra("migrate", "--check", "--baseline", "known.json", ".").err
    # lint keeps the entries of migrate in the file that both share.
    dra("lint", "--baseline", "known.json", "--write-baseline", ".")
    assert "a.yaml" in Path("known.json").read_text()
    assert dra("migrate", "--write", "--baseline", "known.json", ".").code == 2
    assert dra("migrate", "--baseline", "none.json", ".").code == 2
    Path("known.json").write_text("[]")
    assert dra("migrate", "--baseline", "known.json", ".").code == 2


@pytest.mark.parametrize(
    ("output", "part"),
    [
        ("github", "::warning file=a.yaml,line=9,endLine=9,col=16"),
        ("sarif", '"ruleId": "MIG101"'),
        ("junit", '<testsuites name="kubectl dra migrate" tests="2" failures="2">'),
    ],
)
def test_formats_of_ci(dra: Dra, output: str, part: str) -> None:
    Path("a.yaml").write_text(POD)
    Path("b.yaml").write_text(REFUSED)
    ran = dra("migrate", "--check", "-o", output, ".")
    assert (ran.code, part in ran.out) == (1, True), ran.out
    assert dra("migrate", "--write", "-o", output, ".").code == 2


def test_a_comment_that_leaves_nothing_is_said(dra: Dra) -> None:
    Path("a.yaml").write_text(POD + "# kubectl-dra: ignore[MIG120] old\n")
    assert "nothing to ignore here for MIG120" in dra("migrate", "a.yaml").err
    Path("a.yaml").write_text(POD.replace("2}", "2} # kubectl-dra: ignore[MIG101] stays\n"))
    ran = dra("migrate", "--check", "a.yaml")
    assert (ran.code, "1 left by comments" in ran.out) == (0, True)
    assert "DRA90" not in dra("lint", "a.yaml").out


HELM = """\
#!/bin/sh
echo '---'
echo '# Source: llm/templates/pod.yaml'
cat "$3/rendered"
"""


@pytest.fixture
def chart(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chart, and a helm that prints what its file ``rendered`` has."""
    Path("llm/templates").mkdir(parents=True)
    Path("llm/Chart.yaml").write_text("apiVersion: v2\nname: llm\nversion: 0.1.0\n")
    Path("llm/values.yaml").write_text("gpus: 2\n")
    Path("llm/templates/pod.yaml").write_text(POD.replace("train", "{{ .Release.Name }}"))
    Path("llm/rendered").write_text(POD)
    Path("bin").mkdir()
    Path("bin/helm").write_text(HELM)
    Path("bin/helm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path('bin').resolve()}:/usr/bin:/bin")
    return Path("llm")


def test_a_chart_is_rendered_and_its_templates_are_named(dra: Dra, chart: Path) -> None:
    ran = dra("migrate", "llm")
    assert ran.code == 1 and "from: llm/templates/pod.yaml:9" in ran.out
    assert "it has no values for claims" in ran.err
    assert "+  resourceClaims:" in dra("migrate", "llm", "--diff").out
    assert dra("migrate", "llm", "--write").code == 2
    assert '"origin": "llm/templates/pod.yaml:9"' in dra("migrate", "llm", "-o", "json").out
    assert "DRA703" in dra("lint", "llm").out
    (chart / "values.yaml").write_text("gpus: 2\nresourceClaims: []\n")
    assert "it speaks of claims itself, in llm/values.yaml:2" in dra("migrate", "llm").err


def test_a_chart_without_helm_is_not_called_clean(dra: Dra, chart: Path) -> None:
    Path("bin/helm").unlink()
    (chart / "crds").mkdir()
    (chart / "crds" / "a.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    ran = dra("migrate", "llm")
    assert ran.code == 1 and "MIG901" in ran.out and "helm is not there" in ran.err
    ran = dra("lint", "llm")
    assert ran.code == 2 and "a chart, which was not rendered" in ran.err
    assert dra("lint", "--allow-empty", "llm").code == 0


def test_a_chart_that_helm_does_not_render(dra: Dra, chart: Path) -> None:
    Path("bin/helm").write_text("#!/bin/sh\necho 'Error: nil pointer' >&2\nexit 1\n")
    ran = dra("migrate", "llm")
    assert (ran.code, "helm template failed: Error: nil pointer" in ran.err) == (2, True)


def test_a_chart_is_rendered_for_the_release_that_is_asked_for(dra: Dra, chart: Path) -> None:
    # Like a chart whose Chart.yaml has kubeVersion: what helm is told decides whether it renders at all.
    told = 'case "$*" in *"--kube-version 1.36.0"*) ;; *) echo "Error: incompatible: $*" >&2; exit 1;; esac'
    Path("bin/helm").write_text(HELM.replace("echo '---'", told))
    for command in ("lint", "migrate"):
        ran = dra(command, "--kubernetes-version", "1.36", "llm")
        assert ran.code != 2 and ran.out
        ran = dra(command, "llm")
        assert (ran.code, "--kube-version 1.37.0" in ran.err) == (2, True)


def test_notes_stand_beside_what_goes_to_standard_output(dra: Dra) -> None:
    """The first of them, and how to see the rest."""
    metadata = "{name: a, labels: {kueue.x-k8s.io/queue-name: q}}"
    container = "{name: c, image: 'a:1', securityContext: {privileged: true}, resources: {limits: {nvidia.com/gpu: 1}}}"
    labels = "{cloud.google.com/gke-spot: 'true', nvidia.com/gpu.deploy.driver: 'true'}"
    pod = f"{{priorityClassName: high, nodeSelector: {labels}, containers: [{container}]}}"
    Path("job.yaml").write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {pod}\n")
    shown = dra("migrate", "job.yaml").out.count(" note ")
    for flags in (["--diff"], ["-o", "yaml"]):
        err = dra("migrate", "job.yaml", *flags).err
        assert err.count(" note: ") == 3 < shown
        assert f"{shown - 3} more note" in err and f"without {' '.join(flags)} shows" in err


def test_values_without_a_chart_are_an_error(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    for flags in (("--values", "values.yaml"), ("--set", "a=b")):
        ran = dra("migrate", *flags, "--check", str(tmp_path / "pod.yaml"))
        assert ran.code == 2 and "are for charts, and no chart is named" in ran.err
