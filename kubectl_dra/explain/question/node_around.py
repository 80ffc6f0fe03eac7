"""What a node in words has besides its devices: taints and labels, as far as the cluster or the product tells them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.nodes import Node, NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.taints import BLOCKING_EFFECTS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import Driver, vendor_files
from kubectl_dra.data.machine_types import cloud_of_label
from kubectl_dra.explain.question.device_facts import attribute_text, products_there
from kubectl_dra.explain.question.node_in_words import NodeInWords
from kubectl_dra.scheduling.node_affinity import required_affinity
from kubectl_dra.scheduling.node_copy import passes
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME

_PLACES: Final = ("topology.kubernetes.io/", "topology.gke.io/", "failure-domain.beta.kubernetes.io/")
"""Prefixes of labels with a node's place, which is unknown for a node that does not exist."""
_FORM: Final = '{}.replace(" ", "-")'


class Around(Struct, frozen=True):
    """What is around the devices of a node in words.

    ``likes`` are the nodes that have devices of its driver. ``taints`` and ``labels`` are those that all of these have.
    ``unknown`` are labels that a pod asks for, each with the value that the node is given to see what else it lacks.
    """

    likes: tuple[str, ...] = ()
    taints: tuple[NodeTaint, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


def furnished(words: NodeInWords, pods: Sequence[Pod], snapshot: Snapshot) -> tuple[NodeInWords, Around]:
    """The node with the taints and labels that follow from the cluster and its product, for these pods."""
    likes = _likes(words.driver, snapshot)
    taints = reduce(_in_both, (_lasting(node) for node in likes)) if likes else ()
    labels = dict(words.node.node.labels)
    asked = {key for pod in pods for key, _ in _asked(pod, labels)}
    implied = {key: values for key, values in _implied(words).items() if _labelled(key, words, asked, snapshot)}
    labels |= {key: values[0] for key, values in implied.items() if len(values) == 1 and key not in labels}
    same = [node for node in likes if _has_product(node, words, snapshot)]
    common: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for pod in pods:
        for key, value in _asked(pod, labels):
            values = {node.labels.get(key) for node in same}
            if key in implied and value not in implied[key]:
                labels[key] = implied[key][0]
            elif values == {value} and not key.startswith(_PLACES):
                labels[key] = common[key] = value
            else:
                labels[key] = unknown[key] = value
    old = words.node.node
    meta = replace(old.metadata, labels=labels)
    node = Node(meta, replace(old.spec, taints=taints), old.status)
    around = Around(tuple(node.name for node in likes), taints, tuple(common.items()), tuple(unknown.items()))
    return replace(words, node=words.node._replace(node=node)), around


def _likes(driver: Driver, snapshot: Snapshot) -> list[Node]:
    """The nodes that have devices of a driver."""
    names = dict.fromkeys(slice_.scope.node_name for slice_ in snapshot.slices if slice_.driver == driver.name)
    return [node for name in names if (node := snapshot.real.nodes.get(name)) is not None]


def _has_product(node: Node, words: NodeInWords, snapshot: Snapshot) -> bool:
    """Whether a node has devices of one of the products; of any where none is named."""
    return not words.products or any(
        name in words.products for name in products_there(words.driver, snapshot, node.name)
    )


def _lasting(node: Node) -> tuple[NodeTaint, ...]:
    return tuple(taint for taint in node.taints if taint.effect in BLOCKING_EFFECTS and not passes(taint.key))


def _in_both(first: tuple[NodeTaint, ...], second: tuple[NodeTaint, ...]) -> tuple[NodeTaint, ...]:
    return tuple(taint for taint in first if taint in second)


def _asked(pod: Pod, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The labels that a pod asks for and that are not known, each with a value that would do."""
    wanted = dict(pod.spec.node_selector)
    required = required_affinity(pod)
    for requirement in required.terms[0].expressions if required is not None and len(required.terms) == 1 else ():
        if requirement.operator in ("In", "Exists"):
            wanted.setdefault(requirement.key, next(iter(requirement.values), ""))
    for key, value in wanted.items():
        if key not in labels and key != HOSTNAME:
            yield key, value


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
        attribute = rule["attribute"]
        products = attribute == words.driver.product_attribute
        texts = words.products if products else filter(None, [attribute_text(words.device, attribute)])
        if values := tuple(dict.fromkeys(value for text in texts for value in _values(rule, text))):
            out[rule["key"]] = values
    return out


def _rules(driver: Driver) -> Iterator[Mapping[str, Any]]:
    """The rules of labels that an attribute of a driver's devices tells."""
    for file in vendor_files().values():
        for rule in file.raw.get("labels") or ():
            vendors = (vendor_files().get(vendor) for vendor in rule.get("only_for") or [file.id])
            own = any(vendor is not None and driver.name in vendor.drivers for vendor in vendors)
            if own and "key" in rule and rule.get("attribute") in driver.attributes:
                yield rule


def _values(rule: Mapping[str, Any], text: str) -> Iterator[str]:
    """The values of a label for an attribute's value; nothing where a rule says that in another way."""
    spelling = rule.get("spelling") or {}
    if spelling.get("map"):
        yield from (value for value, pattern in spelling["map"].items() if re.search(pattern, text))
    elif rule.get("form", _FORM) == _FORM and "when" not in rule:
        yield text.replace(" ", "-") if "form" in rule else text
