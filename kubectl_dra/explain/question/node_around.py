"""What a node in words has besides its devices: taints and labels that are known, or that a pod asks for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.labels import InvalidNodeSelector, Requirement, requirement_matches
from kubectl_dra.api.nodes import Node, NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.taints import BLOCKING_EFFECTS
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot, stand_in
from kubectl_dra.data.clouds import cloud_of_label, machine_types
from kubectl_dra.data.drivers import Driver, vendor_files
from kubectl_dra.explain.question.device_facts import attribute_text, products_there
from kubectl_dra.explain.question.node_in_words import INSTANCE_TYPE, NodeInWords
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.inter_pod_affinity import (
    is_about,
    namespace_labels,
    required_affinity,
    required_anti_affinity,
)
from kubectl_dra.scheduling.node_copy import passes
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME, constraints
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.scheduling.simple_filters import required_affinity as required_node_affinity
from kubectl_dra.text import whole_number

_PLACES: Final = ("topology.kubernetes.io/", "topology.gke.io/", "failure-domain.beta.kubernetes.io/")
"""Prefixes of labels with a node's place, which is unknown for a node that does not exist."""
_FORM: Final = '{}.replace(" ", "-")'
_LOWER: Final = '{}.lowerAscii().replace(" ", "-")'
_PARTS: Final = {"{}.major()": 0, "{}.minor()": 1}
"""Forms of labels that are a part of a version."""


class Around(Struct, frozen=True):
    """What is around the devices of a node in words.

    ``likes`` are the nodes that have devices of its driver. ``taints`` and ``labels`` are those that all of these have.
    ``unknown`` are labels that pods ask for and of which nobody knows whether the node has them; ``without`` are
    requirements that it meets only without a label that it may have.
    """

    likes: tuple[str, ...] = ()
    taints: tuple[NodeTaint, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    unknown: tuple[AskedLabel, ...] = ()
    without: tuple[Requirement, ...] = ()


def furnished(
    words: NodeInWords, questions: Sequence[Question], snapshot: Snapshot, scheduler: Scheduler
) -> tuple[NodeInWords, Around]:
    """The node with the taints and labels that follow from the cluster and its product, for what is asked."""
    pods = [question.pod for question in questions if question.pod is not None]
    likes = _likes(words.driver, snapshot)
    lasting = [
        [taint for taint in node.taints if taint.effect in BLOCKING_EFFECTS and not passes(taint.key)] for node in likes
    ]
    taints = tuple(taint for taint in lasting[0] if all(taint in other for other in lasting)) if lasting else ()
    labels = dict(words.node.node.labels)
    asked = {each.key for pod in pods for each in asked_labels(pod, labels).labels}
    implied = {key: values for key, values in _implied(words).items() if _labelled(key, words, asked, snapshot)}
    labels |= {key: values[0] for key, values in implied.items() if len(values) == 1 and key not in labels}
    implied |= {key: values for key, values in _derived(words).items() if key in asked and key not in labels}
    same = [node for node in likes if _is_same(node, words, snapshot)]
    common: dict[str, str] = {}
    unknown: dict[str, AskedLabel] = {}
    without: dict[Requirement, None] = {}
    for pod in pods:
        wanted = asked_labels(pod, labels)
        for each in wanted.labels:
            key = each.key
            there = {node.labels.get(key) for node in same}
            value = next(iter(there), None) if len(there) == 1 else None
            met = set(map(each.met_by, implied.get(key, ())))
            if len(met) == 1:
                labels[key] = implied[key][0]
            elif _of_another_cloud(key, words):
                continue
            elif key not in implied and value is not None and each.met_by(value) and not key.startswith(_PLACES):
                labels[key] = common[key] = value
            else:
                labels[key] = each.value
                unknown[key] = each
        without |= dict.fromkeys(each for each in wanted.without if not _of_another_cloud(each.key, words))
    state = scheduler.sees(Cluster(snapshot))
    name = words.node.node.name
    for pod in pods:
        for each in asked_domains(pod, stand_in(pod) is not None, name, state):
            if each.key not in labels:
                labels[each.key] = each.value
                unknown[each.key] = each
    old = words.node.node
    meta = replace(old.metadata, labels=labels)
    node = Node(meta, replace(old.spec, taints=taints), old.status)
    around = Around(
        tuple(node.name for node in likes), taints, tuple(common.items()), tuple(unknown.values()), tuple(without)
    )
    return replace(words, node=words.node._replace(node=node)), around


def _likes(driver: Driver, snapshot: Snapshot) -> list[Node]:
    """The nodes that have devices of a driver."""
    names = dict.fromkeys(slice_.scope.node_name for slice_ in snapshot.slices if slice_.driver == driver.name)
    return [node for name in names if (node := snapshot.real.nodes.get(name)) is not None]


def _is_same(node: Node, words: NodeInWords, snapshot: Snapshot) -> bool:
    """Whether a node has as many devices of one of the products, or of any where none is named, and is of no other
    machine type: labels may tell the size.
    """
    machine, there = words.described.machine, node.labels.get(INSTANCE_TYPE, "")
    if machine and there and there != machine:
        return False
    own = [slice_ for slice_ in snapshot.slices if slice_.scope.node_name == node.name]
    devices = sum(len(slice_.devices) for slice_ in own if slice_.driver == words.driver.name)
    if devices != sum(len(slice_.devices) for slice_ in words.node.slices):
        return False
    return not words.products or any(
        name in words.products for name in products_there(words.driver, snapshot, node.name)
    )


def _of_another_cloud(key: str, words: NodeInWords) -> bool:
    """Whether only nodes of a cloud have the label, and the machine type is none of that one."""
    machines, machine = cloud_of_label(key), words.described.machine
    return bool(machine) and machines is not None and machine not in machines


def _labelled(key: str, words: NodeInWords, asked: Collection[str], snapshot: Snapshot) -> bool:
    """Whether the node has a label of its product: one that a cloud gives nodes only if it is a node of that cloud.

    Of a node whose machine type is not known, others of the cluster tell, or a pod that asks for the label.
    """
    machines = cloud_of_label(key)
    if machines is None:
        return True
    if machine := words.described.machine:
        return machine in machines
    nodes = snapshot.real.nodes.values()
    return key in asked or any(cloud_of_label(label) == machines for node in nodes for label in node.labels)


def _implied(words: NodeInWords) -> dict[str, tuple[str, ...]]:
    """Labels that clouds and vendors give nodes with such devices: their possible values."""
    out: dict[str, tuple[str, ...]] = {}
    for rule in _rules(words.driver):
        if (attribute := rule.get("attribute")) is None:
            continue
        products = attribute == words.driver.product_attribute
        texts = words.products if products else filter(None, [attribute_text(words.device, attribute)])
        if values := tuple(dict.fromkeys(value for text in texts for value in _values(rule, text))):
            out[rule["key"]] = values
    machine = machine_types().get(words.described.machine)
    return {**out, **{key: (value,) for key, value in machine.labels.items()}} if machine is not None else out


def _derived(words: NodeInWords) -> dict[str, tuple[str, ...]]:
    """Further labels of which rules tell how they are made of an attribute or a capacity: their possible values.

    They are told of only where a pod asks for them. Nothing where a product lacks the fact.
    """
    out: dict[str, tuple[str, ...]] = {}
    for rule in _rules(words.driver):
        name = rule.get("attribute") or rule["capacity"]
        texts = _facts(words, name)
        values = [_made(rule, text) for text in texts]
        if values and all(values):
            out[rule["key"]] = tuple(dict.fromkeys(value for value in values if value is not None))
    return out


def _facts(words: NodeInWords, name: str) -> list[str]:
    """What the devices have of a name; of several products each one's. Empty where one lacks it."""
    if text := attribute_text(words.device, name) or str((words.device.capacity.get(name) or {}).get("value", "")):
        return [text]
    own = [words.driver.products.get(product, {}).get(name, "") for product in words.products]
    return own if all(own) else []


def _made(rule: Mapping[str, Any], text: str) -> str | None:
    """The value of a label that is made of a text; None where a rule makes it in another way."""
    form = rule.get("form", "")
    if "when" in rule:
        return None
    if rule.get("compare") == "mebibytes":
        return str(Quantity.parse(text).value() >> 20)
    if form in _PARTS:
        parts = text.split(".")
        return parts[_PARTS[form]] if len(parts) > _PARTS[form] else None
    return text.lower().replace(" ", "-") if form == _LOWER else None


def _rules(driver: Driver) -> Iterator[Mapping[str, Any]]:
    """The rules of labels that an attribute of a driver's devices tells."""
    for file in vendor_files().values():
        for rule in file.raw.get("labels") or ():
            vendors = (vendor_files().get(vendor) for vendor in rule.get("only_for") or [file.id])
            own = any(vendor is not None and driver.name in vendor.drivers for vendor in vendors)
            known = rule.get("attribute") in driver.attributes or rule.get("capacity") in driver.capacities
            if own and "key" in rule and known and "class" not in rule:
                yield rule


def _values(rule: Mapping[str, Any], text: str) -> Iterator[str]:
    """The values of a label for an attribute's value; nothing where a rule says that in another way."""
    spelling = rule.get("spelling") or {}
    if spelling.get("map"):
        yield from (value for value, pattern in spelling["map"].items() if re.search(pattern, text))
    elif rule.get("form", _FORM) == _FORM and "when" not in rule:
        yield text.replace(" ", "-") if "form" in rule else text


# What a pod asks of the labels of a node in words, as far as nobody knows whether it has them.

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
