"""Pods of all classes on a real kube-scheduler: what it does with each, and what we say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.conformance.pods import of_command, of_library
from tools.controlplane.program import Program
from tools.scheduling.clusters import CLASSES, MIXED
from tools.scheduling.differential import recorded

PODS = 50
"""For each part: as large as the others, so that workers share them. All but the first are for `make exhaustive`."""
PARTS = [0, *(pytest.param(part, marks=pytest.mark.exhaustive) for part in range(1, 4))]
SEED = 20_261_122


@pytest.mark.parametrize("part", PARTS)
def test_answers_are_the_schedulers(part: int, control_plane_program: Program) -> None:
    """What differs is tried once more: on a busy machine the scheduler may decide before it has seen all objects."""
    if not control_plane_program.built:
        pytest.skip("programs of KUBEBUILDER_ASSETS: their scheduler cannot be started a second time")
    first = differing(recorded((*CLASSES, MIXED), SEED + part * PODS, PODS))
    again = [said for line, _ in first for said in differing(recorded((line["class"],), line["seed"], 1))]
    assert [f"{line['id']}: {said}" for line, said in again] == []
    assert len(first) <= PODS // 50


def differing(lines: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """The pods for which the library or ``explain`` says something else, and what."""
    return list(_differing(lines))


def _differing(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    for line in lines:
        said = ("" if isinstance(line["pod"], dict) else of_library(line)) or of_command(line)
        if said:
            yield line, said
