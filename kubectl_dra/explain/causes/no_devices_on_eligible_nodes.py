"""The devices are where the pod cannot run, or in slices that the scheduler passes over."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes import device_needs_feature
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.funnel.request_funnel import PARTITIONS
from kubectl_dra.explain.funnel.stages import FeatureOff, counted
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.remedies import way_in

MAX_REASONS = 4

NOT_FOR_NODE = CauseKind(
    code="no-devices-on-eligible-nodes",
    title="The devices are on nodes where the pod cannot run",
    why="Slices belong to nodes. Where every node with devices is ruled out by the pod's placement rules, by node "
    "taints, or does not exist, none is left.",
    fix="Correct the pod's nodeSelector, affinity or tolerations, or run the driver on the nodes meant.",
    seen_as="node counts by other filters, or cannot allocate all claims",
    family=Family.POOLS,
    look=Look.NODES,
)
OLD_SLICES = CauseKind(
    code="slice-form-outdated",
    title="The driver publishes counters and devices in one ResourceSlice",
    why="In 1.34 a slice held the devices and the counters that they share. From 1.35 counters stand in slices of "
    "their own; the devices of a slice that has both are passed over.",
    fix="Upgrade the driver to a version for this Kubernetes release.",
    seen_as="cannot allocate all claims",
    family=Family.RELEASE,
)


def _node(blocked: Blocked) -> Iterator[Finding]:
    reasons = counted(blocked.reasons)[:MAX_REASONS]
    if reasons and isinstance(reasons[0][0], FeatureOff):
        yield device_needs_feature.finding(blocked, PARTITIONS, partitionable_devices=True)
    elif all(item.slice.shared_counters for item in blocked.lost):
        yield _old_form(blocked)
    else:
        yield _out_of_reach(blocked)


def _out_of_reach(blocked: Blocked) -> Finding:
    reasons = counted(blocked.reasons)[:MAX_REASONS]
    first = reasons[0][0] if reasons else say("no node sees them")
    ineligible = blocked.view.ineligible
    evidence: list[Evidence] = []
    for reason, count in reasons:
        nodes = sorted({node for node, why in ineligible.items() if why == reason})
        about = say("nodes {nodes:some}", nodes=nodes) if nodes else "devices"
        evidence.append(Evidence(about, reason, say("{count:device}", count=count)))
    barred = sorted({node for node, why in ineligible.items() if why == first})
    return Finding(
        NOT_FOR_NODE,
        say(
            "{lost:device} for {where} {lost:is|are} {away}: {first}",
            lost=len(blocked.lost),
            where=blocked.where,
            away="on nodes where the pod cannot run" if reasons else "out of reach",
            first=first,
        ),
        tuple(evidence),
        way_in.remedy(first, barred, blocked.world) or Remedy(NOT_FOR_NODE.fix),
    )


def _old_form(blocked: Blocked) -> Finding:
    """The driver publishes counters and devices in one slice, as only 1.34 reads them."""
    names = sorted({item.slice.name for item in blocked.lost})
    text = "{lost:device} for {where} {lost:is|are} passed over: their slices hold counters as well"
    return Finding(
        OLD_SLICES,
        say(text, lost=len(blocked.lost), where=blocked.where),
        tuple(
            Evidence(Subject("ResourceSlice", name), "spec", "devices and sharedCounters")
            for name in names[:MAX_EVIDENCE]
        ),
    )


KINDS = (NOT_FOR_NODE, OLD_SLICES)
FINDERS = (Finder(When.STAGE, _node, of="node"),)
