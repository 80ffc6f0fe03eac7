"""What this project believes of a release of Kubernetes, and what its server says."""

from __future__ import annotations

from kubectl_dra.api.releases import GROUP, LIFECYCLES, gate_default, known_gates
from tools.controlplane.client import Api
from tools.controlplane.plane import ControlPlane, gates_of, release_of


def test_full_profile_serves_every_kind_that_the_release_has(control_plane: ControlPlane) -> None:
    release = release_of(control_plane)
    assert served(control_plane.api()) == {
        (lifecycle.version, lifecycle.kind) for lifecycle in LIFECYCLES if lifecycle.exists(release)
    }


def test_defaults_profile_serves_what_the_release_does_by_default(defaults_plane: ControlPlane) -> None:
    release = release_of(defaults_plane)
    believed = {(lifecycle.version, lifecycle.kind) for lifecycle in LIFECYCLES if lifecycle.served_by_default(release)}
    assert served(defaults_plane.api()) == believed


def test_gates_of_the_server_are_those_of_the_release(defaults_plane: ControlPlane) -> None:
    release = release_of(defaults_plane)
    believed = {gate: gate_default(gate, release) for gate in known_gates()}
    assert gates_of(defaults_plane) == {gate: on for gate, on in believed.items() if on is not None}


def served(api: Api) -> set[tuple[str, str]]:
    """The kinds of resource.k8s.io by version."""
    return {(version, kind) for version in api.versions(GROUP) for kind in api.kinds(f"{GROUP}/{version}")}
