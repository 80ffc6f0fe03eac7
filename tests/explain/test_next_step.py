"""What ``explain`` says to do next: a command that goes on from the one just run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kubectl_dra.cli.main import run
from tools.examples import EXAMPLES, arguments


def next_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The words of the command after ``Next:`` in the answer, without ``kubectl dra``."""
    run(words)
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    following = re.fullmatch(r"(?:Next|Full report)( \([\w ,]+\))?: (?P<command>.*)", last)
    assert following is not None, last
    return shlex.split(following["command"])[2:]


@pytest.mark.parametrize(
    ("example", "last"),
    [
        ("no-device-matches", ["--trace"]),
        ("all-held", ["devices", "--class"]),
        ("tpu-all-one-held", ["devices"]),
    ],
)
def test_it_leads_on_step_by_step(
    example: str, last: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the answer to what supports it, to every device, to one device or who holds which; each command works."""
    monkeypatch.chdir(EXAMPLES / example)
    first = arguments(EXAMPLES / example)
    assert next_of(capsys, *first)[: len(first) + 1] == [*first, "--full"]
    second = next_of(capsys, *first, "--full")
    assert second == [*first, "--devices"]
    third = next_of(capsys, *second)
    assert third != second
    assert all(word in third for word in last)
    assert run(third) in (0, 1)
    assert "error" not in capsys.readouterr().err


def test_where_it_is_undetermined_it_says_how_to_see_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "half.yaml"
    path.write_text(
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: gpu, namespace: ml}, "
        "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}"
    )
    assert next_of(capsys, "explain", "claim/gpu", "-n", "ml", "--snapshot", str(path)) == [
        "snapshot",
        "-o",
        "cluster.yaml",
    ]


def test_what_does_not_compile_is_shown_as_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: a.b}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1}
spec: {driver: d, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: gpu, namespace: ml, uid: u},
 spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
"""
    )
    run(["explain", "claim/gpu", "-n", "ml", "--snapshot", str(path)])
    told = capsys.readouterr().out.splitlines()
    assert "    In the cluster, not the snapshot: $ kubectl get deviceclass/gpu -o yaml" in told


@pytest.mark.parametrize(
    "example",
    ["all-held", "different-reason-per-node", "tpu-all-one-held"],
)
def test_a_first_fix_of_another_cause_is_told(
    example: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is about one cause, and the first fix ends that, unless another fix asks less of people."""
    monkeypatch.chdir(EXAMPLES / example)
    run(arguments(EXAMPLES / example))
    assert (
        "\nFixes, what changes the cluster last, proved by running the scheduler's steps with them\n"
        in capsys.readouterr().out
    )
