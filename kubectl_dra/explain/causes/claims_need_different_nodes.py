"""No node has enough devices for every request: each fits, but on different nodes."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding
from kubectl_dra.explain.funnel.blocked import by_request
from kubectl_dra.explain.phrase import Joined, Phrase, named, nodes_named, say
from kubectl_dra.explain.trial import Trial

DIFFERENT_NODES = CauseKind(
    code="claims-need-different-nodes",
    title="The pod's claims fit only on different nodes",
    why="All claims of a pod must be usable on one node.",
    fix="Choose devices that one node has, or split the pod.",
    seen_as="cannot allocate all claims, or resourceclaim not available on the node",
    normal="If one pod asks for devices of different machines. It has to be split into two pods.",
    confirm=(
        confirm.Check("The nodes of each driver's slices: none has what all claims want.", confirm.SLICES),
        confirm.PENDING,
    ),
    family=Family.DEVICES,
)


def _different_nodes(trial: Trial) -> Iterator[Finding]:
    fitting: dict[Phrase, Phrase] = {}
    common = {node.name for node in trial.view.nodes}
    for group in by_request(trial.funnels):
        names = [
            node.name for node in trial.view.nodes if any(entry.funnel.shortfall(node.name) is None for entry in group)
        ]
        first = group[0]
        where = say(
            'claim {claim}, request "{request}"', claim=named("ResourceClaim", first.claim), request=first.names[0]
        )
        fitting[where] = say("{names:some}", names=nodes_named(names))
        common &= set(names)
    if common or len(fitting) < 2:
        return
    told = Joined(tuple(say("{where} on {names}", where=where, names=names) for where, names in fitting.items()))
    evidence = tuple(Evidence(where, "fits alone on", names) for where, names in fitting.items())
    yield Finding(DIFFERENT_NODES, say("the pod's requests fit on different nodes only: {told}", told=told), evidence)


FINDERS = (Finder(When.TOGETHER, _different_nodes, 40),)
