"""One more node like one that exists, of each kind that there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.fit.ground import Ground
from kubectl_dra.fit.result import OneMoreNode
from kubectl_dra.scheduling.node_copy import node_copies

MAX_KINDS: Final = 8


class WithNode(NamedTuple):
    """The cluster with one more node, and what the node is called."""

    change: OneMoreNode
    ground: Ground
    node: str


def with_new_nodes(ground: Ground) -> Iterator[WithNode]:
    """The cluster with a node of each kind, the most frequent first."""
    local: dict[str, list[ResourceSlice]] = defaultdict(list)
    for entry in ground.snapshot.slices:
        if entry.scope.node_name and ground.homes.get(entry.pool.name) == entry.scope.node_name:
            local[entry.scope.node_name].append(entry)
    for more in islice(node_copies(ground.state, local), MAX_KINDS):
        changed = ground.adding(more.node, list(more.pods), list(more.slices))
        yield WithNode(OneMoreNode(more.like, more.exist), changed, more.node.name)
