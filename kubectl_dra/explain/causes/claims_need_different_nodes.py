"""No node has enough devices for every request: each fits, but on different nodes."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding
from kubectl_dra.explain.funnel.blocked import by_request
from kubectl_dra.explain.phrase import Joined, Phrase, named, nodes_named, say
from kubectl_dra.explain.trial import Trial

DIFFERENT_NODES = CauseKind(code="claims-need-different-nodes", family=Family.DEVICES)


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
