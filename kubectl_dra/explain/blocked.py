"""A request that falls short on some nodes, and what every maker of its cause needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kubectl_dra.allocation.extended import CLAIM_NAME, MADE_FOR_EXTENDED
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.funnel.stages import StageResult
from kubectl_dra.explain.remedies.prove import Proof, WhatIf
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.view import Published, View

MAX_TRIES = 12
MAX_EVIDENCE = 6


@dataclass(frozen=True, slots=True)
class Located:
    """A funnel with its place: indices of claim, request and alternative."""

    claim_index: int
    request_index: int
    alternative: int
    claim: ResourceClaim
    funnel: RequestFunnel

    @property
    def where(self) -> str:
        return f'request "{self.funnel.name}"'


@dataclass(frozen=True, slots=True)
class Blocked:
    """A request that falls short on these nodes at one stage, with the devices that it loses there."""

    located: Located
    stage: StageResult
    nodes: tuple[str, ...]
    lost: tuple[Published, ...]
    reasons: tuple[str, ...]
    left: int

    @property
    def spec(self) -> DeviceRequest:
        return self.located.funnel.spec

    @property
    def tested(self) -> int:
        """Devices of these nodes that reached the stage."""
        return self.left + len(self.lost)


class Surroundings:
    """The cluster as the question sees it, and a way to ask what would be."""

    def __init__(self, view: View, whatif: WhatIf, holders: HolderIndex) -> None:
        self.view = view
        self.whatif = whatif
        self.holders = holders

    def change(
        self, blocked: Blocked, change: Callable[[DeviceRequest], DeviceRequest], near: Sequence[Node] = ()
    ) -> Proof | None:
        """The proof that the claims fit when the blocked request is changed; ``near`` is tried as well."""
        place = blocked.located
        return self.whatif.with_request(place.claim_index, place.request_index, place.alternative, change, near)

    def best(self, blocked: Blocked) -> int:
        """The most devices that any eligible node has left after the stage."""
        funnel = blocked.located.funnel
        position = funnel.stages.index(blocked.stage)
        return max((funnel.left_on(node.name, position) for node in self.view.nodes), default=0)

    def lower_count(self, blocked: Blocked, best: int, fix: str) -> tuple[str, str]:
        """The largest count up to ``best`` that fits, as a fix with its proof; else ``fix`` without one."""
        if blocked.spec.allocation_mode == ALL:
            return fix, ""
        for count in range(best, max(0, best - MAX_TRIES), -1):
            proof = self.change(blocked, partial(_counted, count))
            if proof is not None:
                return f"L{lower(blocked.located.claim, count)[1:]}.", str(proof)
        return fix, ""


def serves_extended(claim: ResourceClaim) -> bool:
    """Whether the scheduler makes the claim for a pod's extended resources: nobody writes its requests."""
    return claim.metadata.name == CLAIM_NAME or claim.metadata.annotations.get(MADE_FOR_EXTENDED) == "true"


def lower(claim: ResourceClaim, count: int) -> str:
    """How to ask for fewer devices, without a full stop: in the claim, or in the container's limits."""
    return f"lower {'the limit of the extended resource' if serves_extended(claim) else 'count'} to {count}"


def _counted(count: int, spec: DeviceRequest) -> DeviceRequest:
    return replace(spec, count=count)


def needed(funnel: RequestFunnel) -> str:
    """How many devices the request needs, as text."""
    return "all" if funnel.spec.allocation_mode == ALL else str(funnel.spec.count)


def by_device(blocked: Blocked, field: str) -> tuple[Evidence, ...]:
    """The lost devices by their reasons: the first one of each with how many more there are."""
    alike: dict[str, list[str]] = {}
    for item, text in zip(blocked.lost, blocked.reasons, strict=True):
        alike.setdefault(text, []).append(str(item.id))
    lines = tuple(
        Evidence(f"device {names[0]}" + (f" and {len(names) - 1:,} more" if len(names) > 1 else ""), field, text)
        for text, names in list(alike.items())[:MAX_EVIDENCE]
    )
    if len(alike) <= MAX_EVIDENCE:
        return lines
    return (*lines, Evidence("in all", "devices are refused like this", str(len(blocked.lost))))


def in_all(count: int, what: str) -> tuple[Evidence, ...]:
    """How many there are, where not all are shown."""
    return (Evidence("in all", what, str(count)),) if count > MAX_EVIDENCE else ()


def most_common(reasons: Sequence[str]) -> str:
    """The most frequent reason."""
    return Counter(reasons).most_common(1)[0][0]
