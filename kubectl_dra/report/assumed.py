"""The Kubernetes assumed by an answer, in words."""

from __future__ import annotations

from typing import Protocol

from kubectl_dra.api.releases import default_features, parse_release


class Assuming(Protocol):
    """An answer that rests on a release and its feature gates."""

    @property
    def release(self) -> str: ...

    @property
    def release_source(self) -> str: ...

    @property
    def gates(self) -> tuple[str, ...]: ...


def assumed(diagnosis: Assuming) -> str:
    """Release, feature gates that differ from the defaults, and the source of the release."""
    defaults, gates = default_features(parse_release(diagnosis.release)), frozenset(diagnosis.gates)
    other = [f"{gate} {'on' if gate in gates else 'off'}" for gate in sorted(defaults ^ gates)]
    source = f" ({diagnosis.release_source.removeprefix('assumed: ')})" if diagnosis.release_source else ""
    but = f" but {', '.join(other)}" if other else ""
    return f"assumed: Kubernetes {diagnosis.release}, default feature gates{but}{source}"
