"""What a yes supposes of nodes that are not there yet, as far as nothing shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.pod_resources import Amounts, add, pod_requests
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.explain.phrase import Joined, Phrase, Words, nodes_named, say
from kubectl_dra.explain.question.node_around import AskedLabel
from kubectl_dra.explain.question.with_node_flag import Addition
from kubectl_dra.text import some

_FOR_PODS: Final = 80
"""So many percent of a machine's CPUs and memory are for pods at least. Of small ones GKE and AKS reserve up to 17
percent of the memory (1 + 0.8 + 0.8 of the first 16 GiB, and what is kept free), and pods of each node come to that.
"""
PUBLISHES_NOTHING = (DriverState.SILENT, DriverState.PART_OFF)


def unknown_labels(added: Sequence[Addition]) -> list[AskedLabel]:
    """The labels that pods ask for and of which nobody knows whether these nodes have them."""
    return list({asked.said: asked for addition in added for asked in addition.around.unknown}.values())


def broken_everywhere(driver: str, snapshot: Snapshot) -> list[NodeDriver]:
    """The driver on the nodes that are there, where it is broken on each of them."""
    rows = [row for row in joined(snapshot).rows if row.driver == driver and row.node]
    rows = [row for row in rows if row.state is not DriverState.NODE_DOWN]
    bad = [row for row in rows if row.state.starts_no_pod or row.state in PUBLISHES_NOTHING]
    return bad if len(bad) == len(rows) else []


def not_seen(drivers: Iterable[str], snapshot: Snapshot) -> Iterator[str]:
    """Those of the drivers that neither publish devices nor have pods on nodes that are there."""
    there = {row.driver for row in joined(snapshot).rows if not row.wanted_by}
    yield from (driver for driver in drivers if driver not in there)


def drivers_of(added: Sequence[Addition]) -> list[str]:
    """The drivers of devices of new nodes that are not like others."""
    return sorted({slice_.driver for addition in added for copy in addition.nodes for slice_ in copy.slices})


def doubts(added: Sequence[Addition], snapshot: Snapshot) -> Iterator[Phrase]:
    """What is supposed of new nodes though nothing shows it, or much speaks against it."""
    for driver in not_seen(drivers_of(added), snapshot):
        yield say("driver {driver} is taken to be installed, which nothing here shows", driver=driver)
    for label in unknown_labels(added):
        text = "whether a new node has label {label} is not known: it is taken to have it; add {typed} if it has"
        yield say(text, label=label.said, typed=label.typed)
    for driver in drivers_of(added):
        if broken := broken_everywhere(driver, snapshot):
            text = "driver {driver} is taken to work on a new node, though it does not on {nodes:some 2}"
            yield say(text, driver=driver, nodes=nodes_named([row.node for row in broken]))


def conditions(
    taken: Mapping[str, Sequence[Pod]],
    drivers: Iterable[str],
    added: Sequence[Addition],
    snapshot: Snapshot,
    each: str = "",
) -> Words:
    """What a yes supposes of new nodes that nothing shows; empty if nothing.

    ``taken`` are the new nodes that count, each with the pods that it takes; ``each`` stands for the nodes.
    """
    whole: list[Words] = [
        say("driver {driver} is installed, which nothing here shows", driver=driver)
        for driver in not_seen(drivers, snapshot)
    ]
    for addition in added:
        own = {name: pods for name, pods in taken.items() if addition.has(name)}
        if wanted := list(_wanted(addition, list(own.values()))):
            *others, last = wanted
            what = Joined((Joined(tuple(others), ", "), last), " and ") if others else last
            which = each or ("each of {nodes:some 2}" if len(own) > 1 else "{nodes:some 2}")
            whole.append(say(f"{which} has {{what}}", nodes=nodes_named(sorted(own)), what=what))
    return Joined(tuple(dict.fromkeys(whole)), ", and ") if whole else ""


def _wanted(addition: Addition, taken: Sequence[Sequence[Pod]]) -> Iterator[Words]:
    """What nodes must have, or must not, for the pods that each of them takes."""
    pods = [pod for own in taken for pod in own]
    yield from _room(addition, taken)
    taints_known = addition.words is None or bool(addition.around.likes)
    if not taints_known and not all(map(_tolerates_all, pods)):
        yield "no taint"
    if pods:
        yield from (say("label {label}", label=label.said) for label in unknown_labels([addition]))
        without = {each.key: _refused(each) for each in addition.around.without}
        yield from (say("no label {label}", label=label) for label in without.values())


def _refused(requirement: Requirement) -> str:
    """The labels that a node must not have, by a requirement that it meets without."""
    key, values = requirement.key, requirement.values
    if not values:
        return key
    return f"{key}={values[0]}" if len(values) == 1 else f"{key} of {some(values)}"


def _tolerates_all(pod: Pod) -> bool:
    return any(toleration.operator == "Exists" and not toleration.key for toleration in pod.spec.tolerations)


def _room(addition: Addition, taken: Sequence[Sequence[Pod]]) -> Iterator[Words]:
    """The CPUs and memory that the pods of one node ask for, the most of any node, where they may not be there."""
    totals = [_total(pods) for pods in taken if pods]
    most = {name: max(total[name] for total in totals if name in total) for total in totals for name in total}
    if most and not _certain(addition, most):
        pods = max(map(len, taken))
        text = "room for the pod ({amounts:some})" if pods == 1 else "room for {pods:pod} ({amounts:some})"
        yield say(text, pods=pods, amounts=[f"{name} {most[name]}" for name in sorted(most)])


def _certain(addition: Addition, most: Amounts) -> bool:
    """Whether nodes have so much for pods, whatever their system takes."""
    if not addition.room_known:
        return False
    machine = addition.words.machine if addition.words is not None else None
    room = machine.room if machine is not None else {}
    return all(most[name] * 100 <= Quantity.parse(whole) * _FOR_PODS for name, whole in room.items() if name in most)


def _total(pods: Sequence[Pod]) -> Amounts:
    total: Amounts = {}
    for pod in pods:
        add(total, pod_requests(pod))
    return {name: total[name] for name in ("cpu", "memory") if name in total}
