"""Every node whose device plugin offers an extended resource has too little of it left."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.extended_resources import amount_of, resources_of
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.scene.node_reasons import ResourceShort
from kubectl_dra.explain.trial import Trial

MAX_NODES = 6

PLUGIN_EXHAUSTED = CauseKind(code="device-plugin-exhausted", family=Family.EXTENDED, look=Look.ALL_PODS)


def _exhausted(trial: Trial) -> Iterator[Finding]:
    pod = trial.question.pod
    if trial.view.nodes or pod is None:
        return
    for resource in resources_of(pod):
        nodes = trial.scene.snapshot.nodes.values()
        offering = [node.name for node in nodes if amount_of(node.allocatable.get(resource))]
        reasons = {name: trial.view.ineligible.get(name) for name in offering}
        short = {
            name: reason
            for name, reason in reasons.items()
            if isinstance(reason, ResourceShort) and reason.name == resource
        }
        if not short or len(short) < len(offering):
            continue
        where = say("each of the {count} nodes that offer it", count=len(short))
        text = "too little {resource} is left on {where} by device plugin: {first}"
        first = next(iter(short.values()))
        yield Finding(
            PLUGIN_EXHAUSTED,
            say(
                text,
                resource=resource,
                where="the only node that offers it" if len(short) == 1 else where,
                first=first.numbers,
            ),
            tuple(
                Evidence(Subject("node", ObjectName("Node", name)), resource, reason)
                for name, reason in list(short.items())[:MAX_NODES]
            ),
        )
        return


FINDERS = (Finder(When.FAILS, _exhausted, 20),)
