"""``explain --message``: what a pasted message means, without any cluster."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
import yaml

from kubectl_dra.data.messages import known_messages
from tests.cli.conftest import Dra

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
