"""The Kubernetes assumed by a diagnosis, in words."""

from __future__ import annotations

from kubectl_dra.api.versions import default_features, parse_release
from kubectl_dra.explain.diagnosis import Diagnosis


def assumed(diagnosis: Diagnosis) -> str:
    """Release, feature gates that differ from the defaults, and the source of the release."""
    defaults, gates = default_features(parse_release(diagnosis.release)), frozenset(diagnosis.gates)
    other = [f"{gate} {'on' if gate in gates else 'off'}" for gate in sorted(defaults ^ gates)]
    source = f" ({diagnosis.release_source.removeprefix('assumed: ')})" if diagnosis.release_source else ""
    but = f" but {', '.join(other)}" if other else ""
    return f"assumed: Kubernetes {diagnosis.release}, default feature gates{but}{source}"
