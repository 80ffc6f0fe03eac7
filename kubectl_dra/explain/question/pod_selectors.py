"""Whether the scheduler can parse the label selectors of the pod in question."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.labels import InvalidNodeSelector, LabelSelector, requirement_matches
from kubectl_dra.api.nodes import Affinity, PodAffinity
from kubectl_dra.api.pods import Pod
from kubectl_dra.errors import InputError

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_selectors(pod: Pod) -> None:
    """Refuse a pod that no API server would have stored.

    Raises:
        InputError: an entry of a label selector has an unknown operator, or unsuitable values.
    """
    for path, selector in _selectors(pod):
        for index, entry in enumerate(selector.match_expressions if selector is not None else ()):
            try:
                requirement_matches(entry, {})
            except InvalidNodeSelector as error:
                name = f"{pod.metadata.namespace}/{pod.metadata.name}"
                where = f"{path}.matchExpressions[{index}]"
                raise InputError(f"Pod {name} is not valid: {where}: {error}") from None


def _selectors(pod: Pod) -> Iterator[tuple[str, LabelSelector | None]]:
    affinity = pod.spec.affinity or Affinity()
    yield from _of_terms("spec.affinity.podAffinity", affinity.pod_affinity)
    yield from _of_terms("spec.affinity.podAntiAffinity", affinity.pod_anti_affinity)
    for index, entry in enumerate(pod.spec.topology_spread_constraints):
        yield f"spec.topologySpreadConstraints[{index}].labelSelector", entry.label_selector


def _of_terms(path: str, affinity: PodAffinity) -> Iterator[tuple[str, LabelSelector | None]]:
    terms = [(f"{path}.{_REQUIRED}[{index}]", term) for index, term in enumerate(affinity.required)]
    for index, weighted in enumerate(affinity.preferred):
        terms.append((f"{path}.{_PREFERRED}[{index}].podAffinityTerm", weighted.term))
    for where, term in terms:
        yield f"{where}.labelSelector", term.label_selector
        yield f"{where}.namespaceSelector", term.namespace_selector
