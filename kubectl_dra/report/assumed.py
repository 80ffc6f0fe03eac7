"""The Kubernetes assumed by an answer, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_dra.api.releases import default_features, parse_release

if TYPE_CHECKING:
    from kubectl_dra.explain.diagnosis import Diagnosis
    from kubectl_dra.fit.result import FitAnswer


def assumed(answer: Diagnosis | FitAnswer) -> str:
    """Release, feature gates that differ from the defaults, and the source of the release."""
    defaults, gates = default_features(parse_release(answer.release)), frozenset(answer.gates)
    other = [f"{gate} {'on' if gate in gates else 'off'}" for gate in sorted(defaults ^ gates)]
    source = f" ({answer.release_source.removeprefix('assumed: ')})" if answer.release_source else ""
    but = f" but {', '.join(other)}" if other else ""
    return f"assumed: Kubernetes {answer.release}, default feature gates{but}{source}"
