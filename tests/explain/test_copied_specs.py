"""A fix that changes a request says that it goes into a new claim or template: those that exist cannot be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ran import ran
from tools.examples import arguments

EXAMPLES = Path(__file__).parents[2] / "examples" / "explain"
CHANGED = {
    "attribute-absent": "before the term (in a new template); then",
    "gaudi-too-few": "lower count to 7 (in a new template); then",
    "no-device-matches": 'in place of "80Gi" (in a new template); then',
    "intel-memory-unreported": "what it asks for (in a new claim); without",
}
"""Examples, and how their short text says it."""


def said(folder: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    monkeypatch.chdir(EXAMPLES / folder)
    _, out, err = ran(*arguments(EXAMPLES / folder), *more)
    return " ".join((out + err).split())


@pytest.mark.parametrize("folder", CHANGED)
def test_a_change_of_a_request_goes_into_a_copy(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CHANGED[folder] in said(folder, monkeypatch)
    assert "what exists cannot be changed." in said(folder, monkeypatch, "--full")


def test_a_manifest_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    full = said("attribute-absent-other-kind", monkeypatch, "--full")
    assert "cannot be changed" not in full


def test_a_guard_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    short = said("attribute-absent", monkeypatch)
    assert "--what-if 'gpu:selector=" in short
    value = short.partition("--what-if '")[2].partition("'")[0]
    assert "could be scheduled with this change" in said("attribute-absent", monkeypatch, "--what-if", value)


def test_a_pod_whose_siblings_hold_some_devices_is_told_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    full = said("extended-resource", monkeypatch, "--full")
    assert "hold 3 of the 4 that match (1 is free, 2 are needed)" in full
    fix = full.partition(" Fixes")[2].partition(" Timeline ")[0]
    assert "--with-node gpu-2" in fix and "kubectl dra devices" not in fix
    assert full.count("--with-node gpu-2") == 1


def test_short_text_explains_no_name_that_it_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "container-0-request-2" not in said("extended-resource", monkeypatch)
    assert '"container-0-request-2" is that of container main' in said("extended-resource", monkeypatch, "--full")


def test_what_can_be_supposed_of_an_extended_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = said("extended-resource", monkeypatch, "--what-if", "container-0-request-2:count=1")
    assert "there are: none" not in refused
    assert "nobody writes the request for nvidia.com/gpu" in refused and "--with-node" in refused
