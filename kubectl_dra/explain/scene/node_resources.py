"""What a node lacks of what a pod requests."""

from __future__ import annotations

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.explain.phrase import Phrase, Statement, say


class PodLimitReached(Statement, frozen=True):
    """The node runs as many pods as it takes."""

    TEXT = "Too many pods"


class ResourceShort(Statement, frozen=True):
    """The node has less left of a resource than the pod requests."""

    TEXT = "Insufficient {name}: {numbers}"
    name: str
    needed: Quantity
    left: Quantity
    total: Quantity

    @property
    def numbers(self) -> Phrase:
        """What is needed and what is left."""
        return say("needs {needed}, {left} of {total} left", needed=self.needed, left=self.left, total=self.total)

    @property
    def passes(self) -> bool:
        """Whether room can be made: pods take some of it, and it is nothing that the node does not offer."""
        return bool(self.total) and self.left != self.total and "/" not in self.name
