"""Whether a pod waits for a kind of device that no node has, and that a node of a group without nodes may bring."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from kubectl_dra.cel import Program
from kubectl_dra.cel.columns import Column
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.messages import CLUSTER_AUTOSCALER, COMING, KARPENTER, UNKNOWN
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.devices.device_state import unpublished
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice
from kubectl_dra.explain.funnel.located import Located, by_request
from kubectl_dra.explain.funnel.selector_terms import values_of
from kubectl_dra.explain.remedies.selector_values import names_single, slots
from kubectl_dra.neighbours.autoscalers import NODE_POOL, PROVISION_MINUTES, ScaleSign, groups, scale_signs
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.text import nearest

PATIENCE: Final = timedelta(minutes=PROVISION_MINUTES)
_MODEL: Final = re.compile(r"\w*\d\w*")
"""The words of a name that tell one product from the next."""


def deciding_sign(analysis: Analysis) -> ScaleSign | None:
    """What the autoscaler said that counts: of two the one that makes a node, unless that was to be there long ago."""
    pod, clock = analysis.pod, Clock(analysis.snapshot)
    if pod is None:
        return None
    newest_first = sorted(scale_signs(pod, analysis.snapshot), key=lambda sign: sign.event.last, reverse=True)
    return min(newest_first, key=lambda sign: sign.outcome != COMING or _is_stale(sign, clock), default=None)


def _is_stale(sign: ScaleSign, clock: Clock) -> bool:
    """Whether the node should have come; of a NodeClaim its own conditions say so."""
    return not sign.node_claim and clock.age(sign.event.last) > PATIENCE


def scales_from_zero(analysis: Analysis) -> bool:
    """Whether no node has what a request asks for, as far as published, and a group that has no node may bring it."""
    sign = deciding_sign(analysis)
    if not analysis.claims or (sign is not None and not _may_grow(sign, analysis.snapshot)) or _is_away(analysis):
        return False
    requests = by_request(analysis.funnels)
    return any(all(_is_of_no_node(analysis.view, located) for located in group) for group in requests)


def names_group_without_nodes(analysis: Analysis) -> bool:
    """Whether no node has the labels that the pod wants, and the autoscaler has a group whose next node would.

    It looks at them before it looks at claims.
    """
    sign, outcome = deciding_sign(analysis), analysis.pod_outcome
    if sign is None or outcome is None or sign.who != CLUSTER_AUTOSCALER or not _may_grow(sign, analysis.snapshot):
        return False
    labels = {outcome.filtered[name].plugin for name in analysis.view.ineligible if name in outcome.filtered}
    return labels == {PluginName.NODE_AFFINITY} and any(message.entry.scale == UNKNOWN for message in sign.reasons)


def _may_grow(sign: ScaleSign, snapshot: Snapshot) -> bool:
    """Whether the autoscaler has a group of which it knows no node, as far as that was read.

    A NodePool makes nodes of several kinds, so one that has a node counts as well.
    """
    if sign.who == KARPENTER:
        pools = snapshot.others.get(NODE_POOL)
        return pools is None or bool(pools)
    known = groups(snapshot)
    return not known or any(not group.health.node_counts.registered.total for group in known)


def _is_away(analysis: Analysis) -> bool:
    """Whether such devices are there and not published any more: claims hold them."""
    wanted = analysis.wanted_drivers
    return any(lost.silent and (not wanted or lost.driver in wanted) for lost in unpublished(analysis.snapshot))


def _is_of_no_node(view: DeviceView, located: Located) -> bool:
    """Whether no published device is what a request asks for, and not by a slip of the pen."""
    selectors, left = view.cycle.selectors, list(view.kinds)
    wanted = (*located.funnel.device_class.selectors, *located.funnel.spec.selectors)
    for term in (term for text in wanted for term in selectors.terms(text or "")):
        verdicts = term.evaluate_devices(selectors.table([item.device for item in left])) if left else ()
        passing = [item for item, verdict in zip(left, verdicts, strict=True) if verdict is True]
        if left and not passing:
            return not any(_slips(term, left))
        left = passing
    return not left


def _slips(term: Program, refused: Sequence[PublishedDevice]) -> Iterator[bool]:
    """Whether a term that all devices fail is badly written: it reads what is never published, or misspells a value."""
    for column in term.columns or ():
        if column.id and not any(value is not None for value in values_of(refused, column)):
            yield not _is_known(column, refused)
    for slot in slots(term):
        if names_single(slot.comparison):
            yield True
        elif slot.kind == "string":
            seen = {value for column in term.columns or () for value in values_of(refused, column) if value}
            yield any(_is_slip(slot.value, value) for value in seen)


def _is_known(column: Column, devices: Sequence[PublishedDevice]) -> bool:
    """Whether a driver is known to publish the attribute or capacity on some of its devices."""
    from kubectl_dra.data.drivers import catalogue, name_in

    for name in {column.domain or "", *(item.device.driver for item in devices)}:
        driver = catalogue().driver(name)
        if driver is not None and name_in(name, column) in (*driver.attributes, *driver.capacities):
            return True
    return False


def _is_slip(written: str, published: str) -> bool:
    """Whether a name is another one badly written; of another model it is another thing, however alike they look."""
    own, other = (set(_MODEL.findall(text.lower())) for text in (written, published))
    return bool(nearest(written, (published,))) and (own <= other or other <= own)
