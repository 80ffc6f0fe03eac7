"""``kubectl dra explain --explain CODE``: the page of a cause, without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kubectl_dra.text import page_of_cause
from tests.cli.conftest import Ran

DOCS = Path(__file__).parents[2] / "docs" / "causes"


def test_it_prints_the_page_of_the_documentation(dra: Callable[..., Ran]) -> None:
    ran = dra("explain", "--explain", "devices-held")
    assert ran.code == 0
    page = (DOCS / "devices-held.md").read_text()
    assert ran.out.startswith(page.splitlines()[0].removeprefix("# "))
    assert "\nWHY\n\n" in ran.out and "#" not in ran.out and "`" not in ran.out
    code = [line for block in page.split("```")[1::2] for line in block.splitlines()[1:]]
    assert all(f"  {line}".rstrip() in ran.out.splitlines() for line in code)


def test_a_terminal_gets_wrapped_prose_and_whole_commands(
    dra: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = dra("explain", "--explain", "devices-held").out.splitlines()
    prose = lines[lines.index("WHY") :]
    assert all(len(line) <= 60 for line in prose if not line.startswith("  kubectl"))
    assert any(line.startswith("  kubectl get resourceclaims -A") and line.endswith("'") for line in prose)


def test_json_and_yaml_say_the_same(dra: Callable[..., Ran]) -> None:
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
def test_what_it_does_not_take(dra: Callable[..., Ran], words: tuple[str, ...], said: str) -> None:
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
def test_a_code_of_another_command_leads_there(dra: Callable[..., Ran], words: tuple[str, str], said: str) -> None:
    command, code = words
    ran = dra(command, "--explain", code)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
