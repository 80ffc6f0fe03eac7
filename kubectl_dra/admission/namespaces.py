"""NamespaceLifecycle: a new pod needs a namespace that exists and is not being deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from msgspec import structs

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import PodAffinity, PodAffinityTerm
from kubectl_dra.api.pods import Pod

_ALWAYS: Final = ("default", "kube-system", "kube-public")
"""Namespaces that every cluster has, because the plugin prevents their deletion."""


class NamespaceMissing(Refusal, frozen=True):
    """The pod's namespace does not exist."""

    plugin: ClassVar = AdmissionPlugin.NAMESPACE_LIFECYCLE

    @property
    def words(self) -> str:
        """The whole text of the server, which answers 404."""
        return f'namespaces "{self.concerned.name}" not found'


class NamespaceEnding(Refusal, frozen=True):
    """The pod's namespace is being deleted."""

    plugin: ClassVar = AdmissionPlugin.NAMESPACE_LIFECYCLE

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return f"unable to create new content in namespace {self.concerned.name} because it is being terminated"


def refusal(name: str, namespaces: Mapping[str, ObjectMeta] | None) -> Refusal | None:
    """Why a pod is refused for its namespace; None if it is not, or namespaces were not read."""
    if namespaces is None:
        return None
    found = namespaces.get(name)
    if found is None:
        return None if name in _ALWAYS else NamespaceMissing(Concerned("Namespace", name))
    return NamespaceEnding(Concerned("Namespace", name)) if found.deletion_timestamp else None


# What the API server adds to pod affinity: the pod's values of matchLabelKeys and mismatchLabelKeys (KEP-3633).


def with_label_keys(pod: Pod) -> Pod:
    """The pod as stored, with those keys in the label selectors of its terms; the scheduler reads only these."""
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    labels = pod.metadata.labels
    resolved = structs.replace(
        affinity,
        pod_affinity=_resolved(affinity.pod_affinity, labels),
        pod_anti_affinity=_resolved(affinity.pod_anti_affinity, labels),
    )
    return structs.replace(pod, spec=structs.replace(pod.spec, affinity=resolved))


def _resolved(affinity: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    return PodAffinity(
        tuple(_term(entry, labels) for entry in affinity.required),
        tuple(structs.replace(entry, term=_term(entry.term, labels)) for entry in affinity.preferred),
    )


def _term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = term.label_selector
    added = tuple(_requirements(term, labels))
    if selector is None or not added:
        return term
    expressions = (*selector.match_expressions, *added)
    return structs.replace(term, label_selector=structs.replace(selector, match_expressions=expressions))


def _requirements(term: PodAffinityTerm, labels: Mapping[str, str]) -> Iterator[Requirement]:
    """The requirements for keys that are labels of the pod; other keys are ignored."""
    for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys)):
        for key in keys:
            if key in labels:
                yield Requirement(key, operator, (labels[key],))
