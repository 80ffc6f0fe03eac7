"""What each device means to the claims of a diagnosis, from its placements and funnels."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_dra.explain.diagnosis import Diagnosis, Funnel
from kubectl_dra.explain.funnel.stages import SelectorFalse
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.html.cells import FITS, GOT, KEPT, PASSED_OVER, Mark
from kubectl_dra.report.phrases import written

USABLE = "usable"
# These stages say what a device is; the others, whether it can be had.
_SELECTING = {
    "published": "not published for it",
    "node": "not where the pod may run",
    "pool": "its pool cannot be used",
    "class-selector": "not of the class",
    "operations": "its node does not skip operations",
    "request-selector": "refused by a selector",
}


def funnels_of(diagnosis: Diagnosis) -> list[Funnel]:
    """The funnels of all claims, in the order in which ``Mark.requests`` numbers them."""
    return [funnel for claim in diagnosis.claims for funnel in claim.funnels]


def marks_of(diagnosis: Diagnosis) -> dict[str, Mark]:
    """The marks by ``driver/pool/device``; the diagnosis must have the devices in its funnels."""
    kinds: dict[str, str] = {}
    requests: dict[str, tuple[int, ...]] = {}
    sentences: dict[str, tuple[str, ...]] = {}
    got = _got(diagnosis)
    for number, funnel in enumerate(funnels_of(diagnosis)):
        said: dict[tuple[str, Words], tuple[str]] = {}
        for line in funnel.devices:
            name = str(line.device)
            kind = _kind(line.stage)
            if kind != PASSED_OVER:
                requests[name] = (*requests.get(name, ()), number)
            if kind == FITS or kinds.get(name, PASSED_OVER) == PASSED_OVER:
                kinds[name] = kind
            known = said.get((line.stage, line.reason))
            if known is None:
                known = said[line.stage, line.reason] = (_sentence(funnel, line.stage, line.reason),)
            sentences[name] = (*sentences[name], *known) if name in sentences else known
    for name, sentence in got.items():
        kinds[name] = GOT
        sentences[name] = (sentence, *sentences.get(name, ()))
    return {name: Mark(kind, requests.get(name, ()), sentences[name]) for name, kind in kinds.items()}


def _got(diagnosis: Diagnosis) -> Mapping[str, str]:
    """The devices that claims have, or would get on a node that works."""
    out: dict[str, str] = {}
    for claim in diagnosis.claims:
        for request, device in claim.devices:
            out[str(device)] = f"held by claim {claim.claim or claim.entry} for request {request}"
    for placement in diagnosis.placements:
        for placed in placement.devices:
            taken = ", ".join(f"{part} of {name}" for name, part in placed.consumed_capacity.items())
            what = f"gets {taken} of it" if taken else "gets it"
            out.setdefault(str(placed.device), f"on {placement.node}, request {placed.request} {what}")
    return out


def _kind(stage: str) -> str:
    if stage == USABLE:
        return FITS
    return PASSED_OVER if stage in _SELECTING else KEPT


def _sentence(funnel: Funnel, stage: str, reason: Words) -> str:
    if stage == USABLE:
        return f"request {funnel.request}: it would do"
    what = _SELECTING.get(stage, f"asked for, but cannot be had ({stage})")
    more = f": {written(reason)}" if reason and not isinstance(reason, SelectorFalse) else ""
    return f"request {funnel.request}: {what}{more}"
