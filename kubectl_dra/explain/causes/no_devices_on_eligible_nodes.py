"""The devices are where the pod cannot run, or in slices that the scheduler skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.explain.causes import devices_published as device_needs_feature
from kubectl_dra.explain.causes.nodes import kind_on
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, NextStep, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.funnel.stages import FeatureOff, counted
from kubectl_dra.explain.phrase import ObjectName, Subject, Words, nodes_named, say
from kubectl_dra.explain.remedies import node_rules

MAX_REASONS = 4
MAX_SAID = 3

NOT_FOR_NODE = CauseKind(code="no-devices-on-eligible-nodes", family=Family.POOLS, look=Look.NODES)
OLD_SLICES = CauseKind(code="slice-form-outdated", family=Family.RELEASE)


def _node(blocked: Blocked) -> Iterator[Finding]:
    reasons = counted(blocked.reasons)[:MAX_REASONS]
    if reasons and isinstance(off := reasons[0][0], FeatureOff):
        yield device_needs_feature.of_reason(blocked, off)
    elif all(item.slice.shared_counters for item in blocked.lost):
        yield _old_form(blocked)
    else:
        yield _out_of_reach(blocked)


def _out_of_reach(blocked: Blocked) -> Finding:
    """The devices by the reason that keeps the pod off their nodes; the first reason that can be removed counts."""
    reasons = counted(blocked.reasons)
    barred = {
        reason: sorted(node for node, why in blocked.view.ineligible.items() if why == reason) for reason, _ in reasons
    }
    evidence: list[Evidence] = []
    for reason, count in reasons[:MAX_REASONS]:
        text = "node {nodes}" if len(barred[reason]) == 1 else "nodes {nodes:some}"
        about = say(text, nodes=nodes_named(barred[reason])) if barred[reason] else "devices"
        evidence.append(Evidence(about, reason, say("{count:device}", count=count)))
    remedy = node_rules.best(((reason, barred[reason]) for reason, _ in reasons[:MAX_REASONS]), blocked.world)
    first = reasons[0][0] if reasons else say("no node sees them")
    nodes = barred.get(first, ())
    kind = kind_on(blocked.analysis.pod_outcome, nodes[0]) if nodes else None
    space = blocked.analysis.question.namespace
    look = NextStep(kind.look, namespace=space) if kind is not None else node_rules.look_at(first, nodes)
    return Finding(
        NOT_FOR_NODE,
        say(
            "{lost:device} for {where} {lost:is|are} {away}: {reasons}",
            lost=len(blocked.lost),
            where=blocked.where,
            away="on nodes where the pod cannot run" if reasons else "out of reach",
            reasons=_each(reasons) if reasons else first,
        ),
        tuple(evidence),
        remedy or Remedy((kind or NOT_FOR_NODE).fix),
        next=look,
    )


def _each(reasons: Sequence[tuple[Words, int]]) -> Words:
    """The reasons, each with its number of devices; a single one without, because it covers all."""
    if len(reasons) == 1:
        return reasons[0][0]
    said = [say("{reason} ({count:device})", reason=reason, count=count) for reason, count in reasons[:MAX_SAID]]
    more = len(reasons) - len(said)
    return say("{said} and {more:more reason}" if more else "{said}", said=said, more=more)


def _old_form(blocked: Blocked) -> Finding:
    """The driver publishes counters and devices in one slice, which only 1.34 can read."""
    names = sorted({item.slice.name for item in blocked.lost})
    text = "{lost:device} for {where} {lost:is|are} passed over: their slices hold counters as well"
    return Finding(
        OLD_SLICES,
        say(text, lost=len(blocked.lost), where=blocked.where),
        tuple(
            Evidence(Subject("ResourceSlice", ObjectName("ResourceSlice", name)), "spec", "devices and sharedCounters")
            for name in names[:MAX_EVIDENCE]
        ),
    )


FINDERS = (Finder(When.STAGE, _node, of=StageName.NODE),)
