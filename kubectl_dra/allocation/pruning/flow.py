"""A maximal flow through a small graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable


class Flow:
    """A maximal flow between two nodes, by shortest augmenting paths; for graphs of a few hundred edges."""

    def __init__(self) -> None:
        self._room: dict[Hashable, dict[Hashable, int]] = {}
        self.edges = 0

    def edge(self, start: Hashable, end: Hashable, limit: int) -> None:
        """Add an edge, once per pair of nodes."""
        self.edges += 1
        self._room.setdefault(start, {})[end] = limit
        self._room.setdefault(end, {}).setdefault(start, 0)

    def maximum(self, source: Hashable, sink: Hashable) -> int:
        """The value of the maximal flow. Use once."""
        total = 0
        while source in self._room:
            came: dict[Hashable, Hashable] = {source: source}
            queue = deque([source])
            while queue and sink not in came:
                node = queue.popleft()
                for end, room in self._room[node].items():
                    if room > 0 and end not in came:
                        came[end] = node
                        queue.append(end)
            if sink not in came:
                break
            path: list[tuple[Hashable, Hashable]] = []
            node = sink
            while node != source:
                path.append((came[node], node))
                node = came[node]
            amount = min(self._room[start][end] for start, end in path)
            for start, end in path:
                self._room[start][end] -= amount
                self._room[end][start] += amount
            total += amount
        return total
