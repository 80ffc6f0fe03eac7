"""One more node like one that exists, of each kind that there is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from kubectl_dra.fit.result import OneMoreNode
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_copy import node_copies

MAX_KINDS: Final = 8


class WithNode(NamedTuple):
    """The cluster with one more node, and what the node is called."""

    change: OneMoreNode
    ground: ClusterState
    node: str


def with_new_nodes(ground: ClusterState) -> Iterator[WithNode]:
    """The cluster with a node of each kind, the most frequent first."""
    for more in islice(node_copies(ground, ground.cycle.index), MAX_KINDS):
        yield WithNode(
            OneMoreNode(more.like, more.exist), ground.moved(ground.cluster.adding_node(more)), more.node.name
        )
