"""Causes of one request that no node can satisfy by itself: which maker is asked for which stage of the funnel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kubectl_dra.explain.blocked import Blocked, Surroundings
from kubectl_dra.explain.diagnosis import Cause
from kubectl_dra.explain.funnel.selector_terms import judge
from kubectl_dra.explain.of_devices import held, taint, too_few
from kubectl_dra.explain.of_pools import binding, node, pool, published
from kubectl_dra.explain.of_selector import class_selector, request_selector
from kubectl_dra.explain.of_shares import capacity, counters
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.view import View

_MAKERS: Final[Mapping[str, Callable[[Surroundings, Blocked], Cause]]] = {
    "published": published,
    "node": node,
    "pool": pool,
    "binding": binding,
    "class-selector": class_selector,
    "request-selector": request_selector,
    "capacity": capacity,
    "taint": taint,
    "held": held,
    "counters": counters,
}


class RequestCauses:
    """Makes the cause of one blocked request."""

    def __init__(self, view: View, whatif: WhatIf, holders: HolderIndex) -> None:
        self._around = Surroundings(view, whatif, holders)

    def cause(self, blocked: Blocked) -> Cause:
        """The cause for the stage at which the request is blocked."""
        maker = _MAKERS[blocked.stage.name]
        if blocked.left and not blocked.lost:
            maker = too_few
        whatif = self._around.whatif
        whatif.remedy = None
        cause = maker(self._around, blocked)
        if cause.proved:
            cause = replace(cause, remedy=whatif.remedy)
        return replace(cause, claim=blocked.located.claim.key, request=blocked.located.funnel.name)

    def matching_in_unusable_pools(self, blocked: Blocked) -> bool:
        """Whether a device that the pool stage loses would fulfil the class's and the request's selectors."""
        funnel = blocked.located.funnel
        selectors = self._around.view.cycle.selectors
        items = [item.device for item in blocked.lost]
        for expression in (*funnel.device_class.selectors, *funnel.spec.selectors):
            verdicts = judge(selectors, expression or "", items)
            items = [device for device, verdict in zip(items, verdicts, strict=True) if verdict is None]
        return bool(items)
