"""A request that falls short on some nodes at one stage, with the devices that it loses there."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubectl_dra.allocation.budgets import COUNTS_TRIED
from kubectl_dra.api.claims import ALL, DeviceRequest
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cel import Program
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.diagnosis import Evidence, Remedy
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice
from kubectl_dra.explain.funnel.located import Located
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.funnel.selector_terms import observations
from kubectl_dra.explain.funnel.shown import Observation
from kubectl_dra.explain.funnel.stages import StageResult, counted
from kubectl_dra.explain.phrase import Phrase, Words, say
from kubectl_dra.explain.remedies.change import LowerCount, RequestChange
from kubectl_dra.explain.remedies.claim_edits import RequestPlace
from kubectl_dra.explain.remedies.prove import WhatIf

MAX_EVIDENCE = 6


class Blocked(Struct, frozen=True):
    """A request that falls short on these nodes at one stage, with the devices that it loses there.

    ``what_if`` proves remedies.
    """

    analysis: Analysis
    what_if: WhatIf
    located: Located
    stage: StageResult
    nodes: tuple[str, ...]
    lost: tuple[PublishedDevice, ...]
    reasons: tuple[Words, ...]
    left: int

    @property
    def view(self) -> DeviceView:
        return self.analysis.view

    @property
    def funnel(self) -> RequestFunnel:
        return self.located.funnel

    @property
    def spec(self) -> DeviceRequest:
        return self.located.funnel.spec

    @property
    def where(self) -> Phrase:
        return self.located.among_all

    @property
    def tested(self) -> int:
        """Devices of these nodes that reached the stage."""
        return self.left + len(self.lost)

    @property
    def position(self) -> int:
        """The place of the stage in the funnel."""
        return self.funnel.stages.index(self.stage)

    @property
    def most_on_one_node(self) -> int:
        """The largest number of devices that an eligible node has left after the stage."""
        position = self.position
        return max((self.funnel.left_on(node.name, position) for node in self.view.nodes), default=0)

    @property
    def reason(self) -> Words:
        """The most frequent reason for losing devices."""
        return counted(self.reasons)[0][0]

    @property
    def term(self) -> Program | None:
        """The term of a selector at which it falls short; None where the selector does not compile."""
        terms = self.view.cycle.selectors.terms(self.stage.program)
        return terms[self.stage.term] if terms else None

    def observed(self, term: Program) -> tuple[Observation, ...]:
        """What the lost devices have of what a term reads."""
        if len(self.lost) == len(self.stage.failed):
            return self.funnel.observed(self.stage, term)
        return observations(term, self.lost)

    def lower_count(self, best: int) -> Remedy | None:
        """The largest count up to ``best`` with which the claims fit."""
        counts = range(best, max(0, best - COUNTS_TRIED), -1) if self.spec.allocation_mode != ALL else ()
        return lower_count(self.what_if, self.located.place, counts)

    def say(self, text: str, **values: object) -> Phrase:
        """A sentence in which the request is ``where``, and the number of its devices here ``lost``."""
        return say(text, where=self.where, lost=len(self.lost), **values)

    def by_device(self, field: str, first: DeviceID | None = None) -> tuple[Evidence, ...]:
        """The lost devices by reason: one of each, ``first`` before all others, and how many more there are."""
        alike: dict[Words, list[PublishedDevice]] = {}
        pairs = zip(self.lost, self.reasons, strict=True)
        for item, reason in sorted(pairs, key=lambda pair: pair[0].id != first) if first is not None else pairs:
            alike.setdefault(reason, []).append(item)
        text, lines = "{count:device|devices} {devices:some 1}", []
        for reason, items in list(alike.items())[:MAX_EVIDENCE]:
            about = say(text, count=len(items), devices=[item.id for item in items])
            lines.append(Evidence(about, field, reason))
        if len(alike) > MAX_EVIDENCE:
            lines.append(Evidence("in all", "devices are refused like this", len(self.lost)))
        return tuple(lines)


def in_all(count: int, what: str) -> tuple[Evidence, ...]:
    """The total number, if not all are shown."""
    return (Evidence("in all", what, count),) if count > MAX_EVIDENCE else ()


def proved(what_if: WhatIf, change: RequestChange, text: str = "{what:capital}.") -> Remedy | None:
    """A change as a remedy, where it is proved to help."""
    proof = what_if.proof_with(change)
    return Remedy(say(text, what=change.what), proof, offers=(change,)) if proof is not None else None


def lower_count(what_if: WhatIf, place: RequestPlace, counts: Iterable[int], *, every: bool = False) -> Remedy | None:
    """The first of these counts with which the claims fit; ``every``: the request asks for all devices."""
    remedies = (proved(what_if, LowerCount(place, count, every)) for count in counts)
    return next(filter(None, remedies), None)
