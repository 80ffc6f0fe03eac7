"""What the cases say of other layers' objects, the layers' own definitions accept, and explain says the same of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.explain.test_cases import judged, shown
from tests.migrate.test_virtual_machines import gpu, machine, migrated
from tests.neighbours.live.published import applied, define, layer_kinds, moved, only_served, published
from tests.neighbours.test_foundation import OBJECTS
from tests.neighbours.test_kubevirt import TWICE, event, instance
from tests.neighbours.test_volcano import group
from tools.cases import CASES, Case
from tools.controlplane.client import Api, ApiError
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import Program
from tools.live.command import Command

KINDS = published()
OTHERWISE = (
    "its PodGroup has a field of a type that is not known",  # Its definition refuses it.
    "Karpenter waits for the driver on the new node",  # The server says that the node was made just now,
    "four NodeClaims in nine minutes",  # and so here.
    "a Job of Volcano has no pods before its queue lets it in",  # Its group is called after the UID that it gets,
    "a Job of Volcano that was let in, and has no pods",  # and so here.
)
"""Cases that cannot be the same on a server."""
OF_LAYERS = [
    case
    for case in CASES
    if (kinds := layer_kinds(case)) and kinds <= KINDS and "unseen" not in case.raw and case.name not in OTHERWISE
]
LIST = {"apiVersion": "v1", "kind": "List"}
Server = tuple[ControlPlane, Api]


@pytest.fixture(scope="module")
def server(control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API server that serves other layers' kinds, and nobody that acts on them."""
    directory = tmp_path_factory.mktemp("published")
    with own_plane(control_plane_program, ["--profile=full"], directory) as plane, only_served(plane):
        yield plane, define(plane)


def test_an_object_of_each_definition_is_served(server: Server) -> None:
    # explain reads the instance of a virtual machine, which has its name.
    known = [*OBJECTS, machine({"gpus": [gpu("a")]})]
    objects = [one for one in known if f"{one['kind']}.{one['apiVersion'].rpartition('/')[0]}" in KINDS]
    assert {f"{one['kind']}.{one['apiVersion'].rpartition('/')[0]}" for one in objects} == KINDS
    with applied(server[1], Case("objects", "", objects, {})):
        pass


@pytest.mark.parametrize("case", OF_LAYERS, ids=[f"{case.file}: {case.name}" for case in OF_LAYERS])
def test_a_case_as_it_is_served(case: Case, server: Server, command: Command, tmp_path: Path) -> None:
    plane, api = server
    with applied(api, moved(case)) as served:
        asked = ["explain", *([served.raw["explain"]] if "explain" in served.raw else ()), *served.raw.get("flags", ())]
        if "manifest" in served.raw:
            (file := tmp_path / "manifest.json").write_text(json.dumps({**LIST, "items": served.raw["manifest"]}))
            asked += ["-f", str(file)]
        asked += ["--kubeconfig", str(plane.kubeconfig), "--context", "admin", "--full"]
        answer = command(*asked, "-o", "json")
        judged(served, answer.code, answer.out)
        if "text" in served.raw["expect"]:
            shown(served, command(*asked).out)


@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
def test_what_migrate_writes_is_served(kind: str, server: Server, tmp_path: Path) -> None:
    devices = {"gpus": [gpu("a"), gpu("b")], "hostDevices": [gpu("c")]}
    _, (after, template), _ = migrated(tmp_path, machine(devices, kind))
    # The definition has each field, and no other.
    with applied(server[1], Case("migrated", "", [template, after], {})) as served:
        assert "claimName" in json.dumps(served.objects)
    after = json.loads(json.dumps(after).replace("claimName", "claimNames"))
    with pytest.raises(ApiError, match="claimNames"), applied(server[1], Case("wrong", "", [after], {})):
        pass


def test_why_a_machine_has_no_pod(server: Server, command: Command) -> None:
    plane, api = server
    refused = {**event(TWICE), "metadata": {"name": "desktop.1", "namespace": "vms"}}
    with applied(api, Case("machine", "", [instance(TWICE), refused], {})):
        asked = ["explain", "vm/desktop", "-n", "vms", "--kubeconfig", str(plane.kubeconfig), "--context", "admin"]
        answer = command(*asked)
    assert answer.code == 1 and "give each device a claim of its own" in " ".join(answer.out.split())


def test_a_job_of_volcano_and_its_group(server: Server, command: Command) -> None:
    plane, api = server
    queued = [one for one in OBJECTS if "volcano" in one["apiVersion"] and one["kind"] in ("Job", "Queue")]
    with applied(api, Case("job", "", queued, {})):
        uid = api.get("batch.volcano.sh/v1alpha1", "Job", "sweep", "ml")["metadata"]["uid"]
        with applied(api, Case("group", "", [group(f"sweep-{uid}", "Pending")], {})):
            asked = ["explain", "vcjob/sweep", "-n", "ml", "--kubeconfig", str(plane.kubeconfig), "--context", "admin"]
            answer = command(*asked)
    said = " ".join(answer.out.split())
    assert answer.code == 1 and f"has not admitted its PodGroup sweep-{uid} yet" in said
