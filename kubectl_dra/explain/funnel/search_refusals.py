"""What the search itself refuses while it combines devices: counters and capacity that the pod's own picks use up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.allocation.counters import CounterShortage
from kubectl_dra.allocation.request import Alternative
from kubectl_dra.allocation.search import Candidate

_KINDS = ("counters", "capacity")


@dataclass(slots=True)
class Refusals:
    """An observer of one attempt that keeps the refusals which depend on devices picked before."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[str, str, object]] = field(default_factory=dict)

    def rejected(self, alternative: Alternative, candidate: Candidate, check: str, detail: object) -> None:
        """Takes one refusal of the search."""
        if check in _KINDS:
            self.counts[check] += 1
            self.first.setdefault(check, (alternative.result_name, str(candidate.id), detail))

    def describe(self) -> tuple[str, str, str, str] | None:
        """The most frequent kind with a request, a device and what it lacks; None where nothing was refused."""
        if not self.counts:
            return None
        kind = self.counts.most_common(1)[0][0]
        request, device, detail = self.first[kind]
        return kind, request, device, _lack(detail)


def _lack(detail: object) -> str:
    if isinstance(detail, CounterShortage):
        return (
            f"counter {detail.counter} of set {detail.counter_set}: {detail.available} available, {detail.charged} "
            f"taken by the pod's other devices, {detail.needed} more needed"
        )
    if isinstance(detail, CapacityShortage):
        return f"{detail.capacity}: {detail.used} of {detail.value} used, {detail.amount} more needed"
    return ""
