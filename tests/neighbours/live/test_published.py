"""What the cases say of other layers' objects, the layers' own definitions accept, and explain says the same of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_dra.api.neighbour_kinds import kind_here
from tests.explain.test_cases import judged, shown
from tests.neighbours.live.published import applied, define, layer_kinds, moved, only_served, published
from tests.neighbours.test_foundation import OBJECTS
from tools.cases import CASES, Case
from tools.controlplane.client import Api
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import Program
from tools.live.command import Command

KINDS = published()
OTHERWISE = (
    "its PodGroup has a field of a type that is not known",  # Its definition refuses it.
    "Karpenter waits for the driver on the new node",  # The server says that the node was made just now,
    "four NodeClaims in nine minutes",  # and so here.
    "a group that was let in and fits nowhere keeps the quota",  # No group of another namespace is read.
)
"""Cases that cannot be the same on a server."""
OF_LAYERS = [
    case
    for case in CASES
    if (kinds := layer_kinds(case)) and kinds <= KINDS and "unseen" not in case.raw and case.name not in OTHERWISE
]
Server = tuple[ControlPlane, Api]


@pytest.fixture(scope="module")
def server(control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API server that serves other layers' kinds, and nobody that acts on them."""
    directory = tmp_path_factory.mktemp("published")
    with own_plane(control_plane_program, ["--profile=full"], directory) as plane, only_served(plane):
        yield plane, define(plane)


def test_an_object_of_each_definition_is_served(server: Server) -> None:
    objects = [one for one in OBJECTS if kind_here(one["kind"], one["apiVersion"]) in KINDS]
    assert {kind_here(one["kind"], one["apiVersion"]) for one in objects} == KINDS
    with applied(server[1], Case("objects", "", objects, {})):
        pass


@pytest.mark.parametrize("case", OF_LAYERS, ids=[f"{case.file}: {case.name}" for case in OF_LAYERS])
def test_a_case_as_it_is_served(case: Case, server: Server, command: Command, tmp_path: Path) -> None:
    plane, api = server
    with applied(api, moved(case)) as served:
        asked = ["explain", served.raw["explain"], *served.raw.get("flags", ())]
        asked += ["--kubeconfig", str(plane.kubeconfig), "--context", "admin", "--full"]
        answer = command(*asked, "-o", "json")
        judged(served, answer.code, answer.out)
        if "text" in served.raw["expect"]:
            shown(served, command(*asked).out)
