"""A change that a remedy proposes: what it says, what it costs, and the cluster with it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.phrase import Statement
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.proof import ChangeStep, Price

if TYPE_CHECKING:
    from kubectl_dra.explain.remedies.prove import WhatIf


class Change(Statement, frozen=True, eq=False):
    """One change. Two that are ``about`` the same thing exclude each other.

    ``ASIDE`` names fields that do not distinguish changes, such as the nodes on which to try them. ``PRICE`` is what
    a change asks of people, and larger ``COST`` is tried later; both as far as its fields do not decide.
    """

    ASIDE: ClassVar[frozenset[str]] = frozenset()
    PRICE: ClassVar[Price] = Price.EDIT
    COST: ClassVar[int] = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._told() == other._told()

    def __hash__(self) -> int:
        return hash(self._told())

    def _told(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in self.ASIDE)

    @property
    def about(self) -> Hashable:
        """What is changed."""
        raise NotImplementedError

    @property
    def price(self) -> Price:
        """What it asks of people."""
        return self.PRICE

    @property
    def cost(self) -> int:
        """Larger costs are tried later."""
        return self.COST

    @property
    def what_if(self) -> WhatIfChange | None:
        """The change as a value of ``--what-if``, if possible."""
        return None

    @property
    def ended_pods(self) -> tuple[Pod, ...]:
        """The pods that end."""
        return ()

    def made_in(self, world: WhatIf) -> WhatIf:
        """The world with the change."""
        raise NotImplementedError

    def made_for_all(self, cluster: Cluster, keep: Key | None) -> Cluster | None:
        """The cluster with the change, where other pods than ``keep``, which waits, may profit; None elsewhere."""
        return None

    def step(self, world: WhatIf) -> ChangeStep:
        """The change as data, with what is in this world before it."""
        raise NotImplementedError
