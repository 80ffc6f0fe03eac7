"""``explain --explain`` and ``--message``: what is printed without a cluster."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from kubectl_dra.data.messages import known_messages
from kubectl_dra.text import page_of_cause
from tests.cli.conftest import Dra

# ``kubectl dra explain --explain CODE``: the page of a cause, without a cluster.


DOCS = Path(__file__).parents[2] / "docs" / "causes"


def test_it_prints_the_page_of_the_documentation(dra: Dra) -> None:
    ran = dra("explain", "--explain", "devices-held")
    assert ran.code == 0
    page = (DOCS / "devices-held.md").read_text()
    assert ran.out.startswith(page.splitlines()[0].removeprefix("# "))
    assert "\nWHY\n\n" in ran.out and "#" not in ran.out and "`" not in ran.out
    code = [line for block in page.split("```")[1::2] for line in block.splitlines()[1:]]
    assert all(f"  {line}".rstrip() in ran.out.splitlines() for line in code)


def test_a_terminal_gets_wrapped_prose_and_whole_commands(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = dra("explain", "--explain", "devices-held").out.splitlines()
    prose = lines[lines.index("WHY") :]
    assert all(len(line) <= 60 for line in prose if not line.startswith("  kubectl"))
    assert any(line.startswith("  kubectl get resourceclaims -A") and line.endswith("'") for line in prose)


def test_json_and_yaml_say_the_same(dra: Dra) -> None:
    found = dra("explain", "--explain", "no-consumer", "-o", "json").json
    assert found["kind"] == "Cause"
    assert found["page"] == page_of_cause("no-consumer")
    assert found["confirm"][0]["command"].startswith("kubectl get pods")
    assert yaml.safe_load(dra("explain", "--explain", "no-consumer", "-o", "yaml").out) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("device-held",), 'there is no cause "device-held"; did you mean devices-held or '),
        (("DRA999",), 'there is no cause "DRA999" (http'),
        (("dra101",), "kubectl dra lint --explain dra101"),
        (("MIG101",), "kubectl dra migrate --explain MIG101"),
        (("xyzzy",), "lists them"),
        (("devices-held", "pod/a"), "leave the pod, claim or manifest out"),
        (("devices-held", "-A"), "leave the pod, claim or manifest out"),
        (("devices-held", "-o", "html"), "not html"),
    ],
)
def test_what_it_does_not_take(dra: Dra, words: tuple[str, ...], said: str) -> None:
    ran = dra("explain", "--explain", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lint", "devices-held"), "kubectl dra explain --explain devices-held"),
        (("migrate", "DRA101"), "kubectl dra lint --explain DRA101"),
        (("migrate", "MIG999"), 'there is no code "MIG999" (migrate prints'),
    ],
)
def test_a_code_of_another_command_leads_there(dra: Dra, words: tuple[str, str], said: str) -> None:
    command, code = words
    ran = dra(command, "--explain", code)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


# ``explain --message``: what a pasted message means, without any cluster.


LINE = '"MPS" is selected as the GPU sharing strategy, but the "MPSSupport" feature gate is not enabled'


def test_a_message_is_answered(dra: Dra) -> None:
    ran = dra("explain", "--message", f"NodePrepareResources failed for ResourceClaim a: {LINE}")
    assert ran.code == 0
    assert ran.out.startswith("The claim asks to share its GPU by MPS, and the driver's feature gate MPSSupport is off")
    assert "featureGates.MPSSupport=true" in ran.out and "Feature gate: MPSSupport" in ran.out


def test_what_is_not_known_is_said(dra: Dra) -> None:
    ran = dra("explain", "--message", "the dog ate it")
    assert (ran.code, ran.out.splitlines()[0]) == (3, "This message is not known here.")
    assert dra("explain", "--message", "the dog ate it", "-o", "json").json["items"] == []


@pytest.mark.parametrize("entry", known_messages(), ids=lambda entry: entry.example[:40])
def test_json_fits_its_schema_and_yaml_says_the_same(dra: Dra, entry: object) -> None:
    text = str(getattr(entry, "example", ""))
    ran = dra("explain", "--message", text, "-o", "json")
    found = ran.valid("message")
    assert ran.code == 0 and len(found["items"]) == 1
    assert yaml.safe_load(dra("explain", "--message", text, "-o", "yaml").out) == found


def test_a_log_is_read_from_a_pipe(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    log = f"I1001 starting\nE1001 {LINE}\nE1001 {LINE}\nE1001 NodePrepareResources failed for ResourceClaim a: x\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(log.encode() + b"\xff\xfe\n")))
    ran = dra("explain", "--message", "-", "-o", "json")
    (found,) = ran.json["items"]
    assert ran.code == 0 and found["gate"] == "MPSSupport"


@pytest.mark.parametrize("words", [("pod/a",), ("-o", "html"), ("-A",)])
def test_what_does_not_go_with_it(dra: Dra, words: tuple[str, ...]) -> None:
    assert dra("explain", "--message", LINE, *words).code == 2
