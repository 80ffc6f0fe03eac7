"""Escapes, invisible characters and line ends in every text of every object: none reaches the terminal as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra import safe_output
from tests.cli.conftest import EXAMPLES, Dra, Ran, write_list

CANARY = "\x1b[2J\x07\x7f\x9b31m\u202e\u200b\u2028\r\n::error::FORGED"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
FORGED = re.compile(r"^\s*::", re.MULTILINE)
NAMES = ("mixed-fleet", "no-device-matches", "taint-rule-maintenance", "shared-capacity-fits", "extended-resource")
KEPT = re.compile(
    r"apiVersion|kind|op|operator|effect|phase|status|allocationMode|.*[tT]ime(stamp|Added)?|value|expression|uid"
)
AMOUNTS = frozenset(("allocatable", "capacity", "requests", "limits", "hard", "used", "counters", "consumedCapacity"))


def marked(value: Any, key: str = "") -> Any:
    """The value with the canary in every text that is not read as something else; equal texts stay equal."""
    if isinstance(value, dict):
        return {name: each if name in AMOUNTS else marked(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [marked(each, key) for each in value]
    return value + CANARY if isinstance(value, str) and not KEPT.fullmatch(key) else value


@pytest.fixture(params=NAMES)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    text = (EXAMPLES / request.param / "cluster.yaml").read_text()
    items = [item for found in yaml.safe_load_all(text) if found for item in found.get("items", [found])]
    path = tmp_path / f"cluster{CANARY.replace('/', '')}.json"
    write_list(path, [marked(item) for item in items])
    return str(path)


def pod_of(path: str) -> tuple[str, str]:
    items = json.loads(Path(path).read_text())["items"]
    pods = [item for item in items if item["kind"] == "Pod"]
    found = next((pod for pod in pods if "nodeName" not in pod["spec"]), pods[0])["metadata"]
    return f"pod/{found['name']}", found["namespace"]


def test_no_format_of_a_snapshot_shows_them_raw(dra: Dra, cluster: str) -> None:
    pod, namespace = pod_of(cluster)
    runs = [
        *(["devices", "-o", output] for output in ("text", "wide", "json", "yaml", "name", "html")),
        *(["explain", "-A", "-o", output] for output in ("text", "json", "yaml", "html")),
        *(["explain", pod, "-n", namespace, "-o", output] for output in ("text", "json", "yaml", "html")),
        ["explain", pod, "-n", namespace, "--full", "--verify"],
        ["explain", f"claim/{CANARY}"],
        *(["taint", "--list", "-o", output] for output in ("text", "json", "yaml", "name")),
        *(["snapshot", "-o", "-", *more] for more in ([], ["--anonymize"])),
    ]
    for words in runs:
        _check(dra(*words, "--snapshot", cluster), words)


def test_no_format_of_files_shows_them_raw(dra: Dra, cluster: str) -> None:
    for words in (
        *(["lint", "-o", output] for output in ("text", "json", "sarif", "github", "junit")),
        *(["migrate", *more] for more in ([], ["-o", "json"], ["-o", "github"], ["--diff"], ["--check"], ["--plan"])),
    ):
        _check(dra(*words, cluster), words)


def _check(ran: Ran, words: list[str]) -> None:
    # Line ends mean nothing in HTML and YAML, and GitHub's own format is line commands.
    github = re.compile(r"^::(error|warning|notice) [^:]*::.*$", re.MULTILINE)
    for text in (ran.out, ran.err):
        found = RAW.search(text) or (FORGED.search(github.sub("", text)) if not {"html", "yaml"} & {*words} else None)
        assert found is None, (words, text[max(0, found.start() - 200) : found.end() + 50])
    if "json" in words or "sarif" in words:
        assert ran.json is not None
    if "yaml" in words:
        yaml.safe_load(ran.out)


@pytest.mark.parametrize("kind", ["file", "context", "flag"])
def test_what_is_typed_is_no_exception(dra: Dra, tmp_path: Path, kind: str) -> None:
    words = {
        "file": ["lint", f"missing{CANARY}.yaml"],
        "context": ["devices", "--context", CANARY],
        "flag": ["explain", f"--{CANARY}"],
    }[kind]
    ran = dra(*words)
    assert ran.code == 2
    _check(ran, words)


def test_json_stays_the_same_and_exact_documents_too(capsys: pytest.CaptureFixture[str]) -> None:
    safe_output.install()
    value = "".join(map(chr, (*range(0x20, 0x250), *range(0x2000, 0x2100), 0xFEFF, 0xE0041, 0x1F600)))
    safe_output.put(json.dumps(value, ensure_ascii=False))
    assert json.loads(capsys.readouterr().out) == value
    safe_output.document("a\u202eb\r\n")
    assert capsys.readouterr().out == "a\u202eb\r\n"


def test_secrets_are_not_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_output, "_secrets", set())
    safe_output.install()
    safe_output.conceal("short")
    safe_output.conceal("a-long-secret")
    safe_output.put("short a-long-secret\n")
    assert capsys.readouterr().out == "short …\n"


def test_a_runner_takes_no_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    safe_output.install()
    safe_output.put("a::b\n  ::error::x ##[warning]y\n")
    assert capsys.readouterr().out == "a::b\n  \\u003a:error::x #\\u0023[warning]y\n"


def test_commands_are_quoted_for_a_shell(dra: Dra, tmp_path: Path) -> None:
    evil = "$(touch${IFS}PWNED)"
    text = (EXAMPLES / "all-held" / "cluster.yaml").read_text()
    items = yaml.safe_load(json.dumps(yaml.safe_load(text)))["items"]
    for item in items:
        if item["kind"] in ("Pod", "ResourceClaim"):
            item["metadata"]["namespace"] = evil
    path = write_list(tmp_path / "cluster.json", items)
    name = next(item["metadata"]["name"] for item in items if item["kind"] == "Pod" and "nodeName" not in item["spec"])
    for more in ([], ["--full"], ["-o", "json"]):
        ran = dra("explain", f"pod/{name}", "-n", evil, "--snapshot", path, *more)
        commands = re.findall(r"kubectl [^\n]*-n [^\n]*", ran.out)
        assert commands and all(evil not in re.sub(r"'[^']*'", "", command) for command in commands), commands
