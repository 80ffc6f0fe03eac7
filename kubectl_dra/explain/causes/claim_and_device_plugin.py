"""A pod with a claim and an extended resource fits only where a device plugin serves the resource."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.choice import choice
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Verdict
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.trial import Trial

MAX_NODES = 6

MIXED = CauseKind(
    code="claim-and-device-plugin", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES, never_binds=True
)


def never_bound(trial: Trial) -> set[str]:
    """Nodes that pass the filters and then fail to bind (``ExtendedRequests.never_binds``)."""
    extended = trial.scene.extended
    if extended is None:
        return set()
    return {name for name in trial.fitting if extended.never_binds(trial.view.node_by_name[name])}


def _mixed(trial: Trial) -> Iterator[Finding]:
    never, extended = never_bound(trial), trial.scene.extended
    if not never or extended is None:
        return
    text = (
        "the pod uses claims and {resources}, and fits only on nodes that serve {resources} by device plugin: "
        "{nodes:some}"
    )
    if not set(trial.fitting) - set(trial.unavailable) <= never:
        # It would fit elsewhere, but each attempt takes the node that scores best.
        taken = choice(trial, Verdict.ALLOCATABLE)
        if taken is None or not taken.certain or not never.issuperset(taken.nodes):
            return
        never = set(taken.nodes)
        text = (
            "the pod uses claims and {resources}, and the scheduler takes {nodes:some}, which scores best and serves "
            "{resources} by device plugin"
        )
    resources = sorted(extended.amounts)
    yield Finding(
        MIXED,
        say(text, resources=resources, nodes=sorted(never)),
        tuple(
            Evidence(
                Subject("node", ObjectName("Node", name)),
                say("status.allocatable {resource}", resource=resource),
                str(trial.view.node_by_name[name].allocatable.get(resource)),
            )
            for name in sorted(never)[:MAX_NODES]
            for resource in resources
        ),
    )


FINDERS = (Finder(When.FITS, _mixed, 30),)
