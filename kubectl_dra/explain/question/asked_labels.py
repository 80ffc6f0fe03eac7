"""What a pod asks of the labels of a node in words, as far as nobody knows whether it has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from kubectl_dra.api.labels import InvalidNodeSelector, Requirement, requirement_matches
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.inter_pod_affinity import (
    is_about,
    namespace_labels,
    required_affinity,
    required_anti_affinity,
)
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME, constraints
from kubectl_dra.scheduling.simple_filters import required_affinity as required_node_affinity
from kubectl_dra.text import whole_number

_LACKING = ("NotIn", "DoesNotExist")
"""Operators that a node without the label meets."""


class AskedLabel(Struct, frozen=True):
    """A label that a pod asks for, with the ``value`` that a node is given to see what else it lacks.

    ``wanted`` is the requirement that it meets; None where pods are placed by the domain that the label names, of which
    the cluster has those that are ``there``.
    """

    key: str
    value: str
    wanted: Requirement | None = None
    there: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """What the node must have."""
        if self.wanted is None:
            return f"{self.key} with a value that suits the pods"
        if self.wanted.operator == "In":
            return f"{self.key}={self.value}"
        return self.key if self.wanted.operator == "Exists" else str(self.wanted)

    @property
    def typed(self) -> str:
        """How the flag says that it has it."""
        exact = self.wanted is not None and self.wanted.operator == "In"
        return f"label:{self.key}={self.value if exact else 'VALUE'}"

    def met_by(self, value: str) -> bool:
        """Whether this value would do as well."""
        return self.wanted is None or _meets(self.wanted, {self.key: value})


class LabelsAsked(Struct, frozen=True):
    """What a pod asks for, and the labels that it must not meet on a node that may have them."""

    labels: Sequence[AskedLabel] = ()
    without: Sequence[Requirement] = ()


def asked_labels(pod: Pod, labels: Mapping[str, str]) -> LabelsAsked:
    """What nodeSelector and required node affinity ask of labels that are not among those that are known.

    Of several terms one is enough: the first that the known labels allow.
    """
    wanted = [Requirement(key, "In", (value,)) for key, value in pod.spec.node_selector.items()]
    required = required_node_affinity(pod)
    for term in required.terms if required is not None else ():
        known = (each for each in term.expressions if each.key in labels)
        if not term.fields and all(_meets(each, labels) for each in known):
            wanted += term.expressions
            break
    unknown = [each for each in wanted if each.key not in labels and each.key != HOSTNAME]
    asked = {each.key: AskedLabel(each.key, _value(each), each) for each in unknown if each.operator not in _LACKING}
    without = [each for each in unknown if each.operator in _LACKING and each.key not in asked]
    return LabelsAsked(tuple(asked.values()), tuple(without))


def _value(requirement: Requirement) -> str:
    """A value that would do; what no value meets is left as it is."""
    text = next(iter(requirement.values), "")
    if requirement.operator not in ("Gt", "Lt"):
        return text
    number = whole_number(text.lstrip("+-"), 19)
    if number is None:
        return text
    number = -number if text.startswith("-") else number
    return str(number + 1 if requirement.operator == "Gt" else number - 1)


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    try:
        return requirement_matches(requirement, labels)
    except InvalidNodeSelector:
        return False


def asked_domains(pod: Pod, several: bool, name: str, state: ClusterState) -> Iterator[AskedLabel]:
    """The labels by whose domains the pod is placed: with that of a pod that it wants near, else one of its own.

    Anti-affinity is about a domain only where a pod that it means is there, or comes: ``several`` are placed.
    """

    def of_domain(key: str, value: str) -> AskedLabel:
        values = {node.node.labels.get(key, "") for node in state.nodes.values()} - {""}
        return AskedLabel(key, value, there=tuple(sorted(values)))

    for term in required_affinity(pod, state):
        near = (node.node.labels.get(term.key) for node in state.nodes.values() if any(map(term.means, node.pods)))
        yield of_domain(term.key, next(filter(None, near), name))
    for constraint in constraints(pod, "DoNotSchedule", state):
        yield of_domain(constraint.key, name)
    placed = list(chain.from_iterable(node.pods for node in state.nodes.values()))
    for term in required_anti_affinity(pod, state):
        if (several and term.means(pod)) or any(map(term.means, placed)):
            yield of_domain(term.key, name)
    own = namespace_labels(pod, state)
    for other in placed:
        for theirs in other.required_anti_affinity:
            if is_about(theirs, other, pod, own):
                yield of_domain(theirs.topology_key, name)
