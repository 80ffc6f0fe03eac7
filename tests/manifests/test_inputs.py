"""Inputs: bad ones give a finding or one clear error, the others are still read; what kustomize says when it fails."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kubectl_dra.errors import InputError
from kubectl_dra.lint import check_file
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import Report
from kubectl_dra.manifests import inputs
from kubectl_dra.manifests.inputs import Input, cause_of, find_inputs, matches
from tests.lint.support import CLAIM, findings, job, report

WRONG = CLAIM.replace("count", "cuont") + "        cuont: 1\n"
HEAD = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
BOMB = "apiVersion: v1\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)


def run(*paths: str, processes: int = 1) -> Report:
    found = lint(find_inputs(paths), job(), processes)
    assert not found.defects
    return found


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\x01\x02\x03", "not a text file"),
        (b"\x7fELF\x02\x01" + bytes(range(256)), "not a text file"),
        (HEAD.encode() + b"metadata: {name: \xff\xfe}\n", "not UTF-8"),
        (BOMB.encode(), "aliases expand"),
        (HEAD.encode() + b"a: " + b"[" * 10_000, "nested"),
        (b'{"apiVersion": "v1", "a": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested"),
        (b"apiVersion: v1\n\tkind: Pod\n", "tab"),
        (b"apiVersion: v1\na: &a [*a]\n", "contains itself"),
        (b"apiVersion: v1\nkind: List\nitems: 3\n", "must be a list"),
    ],
)
def test_unreadable_text_is_one_finding(data: bytes, words: str) -> None:
    (found,) = findings(data)
    assert found.code == "DRA901" and words in found.message
    assert "f.yaml" not in found.message and found.line >= 1


def test_syntax_errors_have_their_place() -> None:
    (found,) = findings(HEAD + "a: [\n")
    assert (found.line, found.severity) == (4, "error")


def test_other_files_are_still_checked(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"apiVersion: \x00")
    (tmp_path / "b.yaml").write_text(BOMB)
    (tmp_path / "c.yaml").write_text(WRONG)
    assert [found.code for found in run(str(tmp_path)).findings] == ["DRA901", "DRA901", "DRA101"]


def test_links_pipes_and_hidden_files_of_directories(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yml").write_text(WRONG)
    (tmp_path / ".hidden.yaml").write_text(WRONG)
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    (tmp_path / "sub" / "gone.yaml").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert [Path(found.name).name for found in find_inputs([str(tmp_path)])] == ["a.yml"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_directory(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "z.yaml").write_text(WRONG)
    assert [found.code for found in run(str(tmp_path)).findings] == ["DRA906", "DRA101"]


def test_a_file_that_is_gone_when_it_is_read() -> None:
    found = lint([Input("/nowhere/a.yaml", False), Input("b.yaml", True, WRONG.encode())], job(), 1)
    assert [one.code for one in found.findings] == ["DRA906", "DRA101"]


def test_a_path_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(InputError, match="no such file"):
        find_inputs(["/nowhere/a.yaml"])


def test_large_files_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inputs, "LARGEST", 1000)
    monkeypatch.setattr(check_file, "LARGEST", 1000)
    monkeypatch.setattr(check_file, "LARGEST_YAML", 400)
    monkeypatch.setattr(check_file, "LARGEST_DOCUMENT", 300)
    (tmp_path / "a.yaml").write_text(CLAIM + "#" * 300)
    (tmp_path / "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "X", "a": "x" * 500}))
    (tmp_path / "c.yaml").write_text("#" * 5000)
    assert [(Path(found.file).name, found.code) for found in run(str(tmp_path)).findings] == [
        ("a.yaml", "DRA905"),
        ("c.yaml", "DRA905"),
    ]
    (tmp_path / "a.yaml").write_text(CLAIM + "---\n" + "#" * 50)
    (tmp_path / "c.yaml").write_text("---\n" + "#" * 320 + "\n---\na: 1\n")
    (found,) = run(str(tmp_path)).findings
    assert (Path(found.file).name, found.code) == ("c.yaml", "DRA905") and "document" in found.message


def test_templates_are_left_out_with_a_note() -> None:
    found = report("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n")
    assert found.findings == () and found.manifests == 0
    assert len(found.notes) == 1 and "template" in found.notes[0]


def test_broken_files_of_others_in_directories_are_left_out() -> None:
    found = report("a: !!python/tuple [\n", named=False)
    assert found.findings == () and "left out" in found.notes[0]


def test_many_files_in_several_processes_give_the_same(tmp_path: Path) -> None:
    for index in range(40):
        (tmp_path / f"{index:02}.yaml").write_text(WRONG if index % 3 else CLAIM)
    one, two = run(str(tmp_path)), run(str(tmp_path), processes=2)
    assert one == two and len(one.findings) == 26


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("vendor/a/b.yaml", "vendor/**", True),
        ("x/vendor/a.yaml", "vendor/", True),
        ("a.gen.yaml", "*.gen.yaml", True),
        ("x/a.gen.yaml", "*.gen.yaml", True),
        ("vendored/a.yaml", "vendor/**", False),
    ],
)
def test_patterns(name: str, pattern: str, expected: bool) -> None:
    assert matches(name, pattern) is expected


# What is left of kustomize's errors: the cause, and not the way to it.


LOGGED = 'E1122 12:00:00.1 7 run.go:72] "command failed" err='
CHAIN = (
    "accumulating resources: accumulation err='accumulating resources from '../base': '/r/base' must resolve to a "
    "file': recursed accumulation of path '/r/base': "
)


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (
            f"{LOGGED}\"{CHAIN}loading KV pairs: env source files: [a.env]: evalsymlink failure on '/r/base/a.env' : "
            'lstat /r/base/a.env: no such file or directory"\n',
            "/r/base/a.env does not exist",
        ),
        (
            f"{LOGGED}\"{CHAIN}security; file '/r/x.yaml' is not in or below '/r/base': must build at directory\"",
            "/r/x.yaml is outside the directory /r/base, from which kustomize reads no files",
        ),
        (
            f'{LOGGED}<\n\t{CHAIN}Get "https://example.com/a.yaml": no such host\n\t: exit status 128\n >\n',
            "https://example.com/a.yaml cannot be fetched",
        ),
        (
            f'# Warning: old\n{LOGGED}"no resource matches strategic merge patch \\"B.v1.[noGrp]/a.[noNs]\\""\n',
            'no resource matches strategic merge patch "B.v1.[noGrp]/a.[noNs]"',
        ),
        (
            f'{LOGGED}"{CHAIN}yaml: line 1: x"',
            "yaml: line 1: x",
        ),
        ("Error: unable to find one of 'kustomization.yaml'\n", "unable to find one of 'kustomization.yaml'"),
        ("", "no message"),
    ],
)
def test_cause(stderr: str, cause: str) -> None:
    assert cause_of(stderr) == cause
