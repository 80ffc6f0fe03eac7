"""The pod fits, and would be evicted as soon as it has its node: its toleration lets it be placed, not stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.funnel.stages import with_rule
from kubectl_dra.explain.phrase import Phrase, Subject, Words, nodes_named, say
from kubectl_dra.explain.trial import Trial

if TYPE_CHECKING:
    from kubectl_dra.explain.eviction import Eviction

MAX_NODES = 3

AT_ONCE = CauseKind(
    code="evicted-at-once",
    family=Family.DEVICES,
    look=Look.TAINTED_DEVICES,
    never_binds=True,
    state="would be scheduled and evicted at once",
)


def _at_once(trial: Trial) -> Iterator[Finding]:
    evicted = {name: found for name, found in trial.evictions.items() if not found.seconds}
    if not evicted:
        return
    from kubectl_dra.explain.choice import certain_choice

    winners = certain_choice(trial) if evicted.keys() < set(trial.takers) else tuple(evicted)
    if winners and evicted.keys() >= set(winners):
        yield _finding({name: evicted[name] for name in winners})


def _finding(evicted: Mapping[str, Eviction]) -> Finding:
    first = next(iter(evicted.values()))
    names = {"device": first.result.device, "taint": with_rule(first.taint), "request": first.result.request}
    facts = [
        Evidence(Subject("device", found.result.device), "taint", with_rule(found.taint))
        for found in list(evicted.values())[:MAX_NODES]
    ]
    return Finding(
        AT_ONCE,
        say("device {device} has taint {taint}, and {why}", why=_why(first), **names),
        (*facts, Evidence(say("request {request}", **names), "tolerations that count there", _counting(first))),
        Remedy(say("{fix}", fix=AT_ONCE.fix)),
        request=first.result.request,
        device=first.result.device,
    )


def _why(found: Eviction) -> Words:
    names = {"request": found.result.request, "time": found.taint.time_added}
    if found.tolerated:
        return say("request {request} tolerates that for a time only, which is over since {time}", **names)
    if any(entry.effect == "NoExecute" and entry.tolerates(found.taint) for entry in found.result.tolerations):
        return say("request {request} tolerates that for no second", **names)
    if any(entry.tolerates(found.taint) for entry in found.result.tolerations):
        return say("the toleration of request {request} has no effect, which does not protect the pod", **names)
    return say("no toleration in the allocation of request {request} protects the pod", **names)


def _counting(found: Eviction) -> Words:
    """The tolerations that protect: those of effect NoExecute that cover the taint."""
    counting = [entry for entry in found.result.tolerations if entry.effect == "NoExecute"]
    shown = [
        say("{key} for {seconds:second}", key=entry.key or "*", seconds=entry.seconds or 0)
        for entry in counting
        if entry.tolerates(found.taint)
    ]
    return say("{shown: else none}", shown=shown)


def eviction_notes(trial: Trial) -> Iterator[Phrase]:
    """Where and when the pod would be evicted, if that is not the answer already."""
    later: dict[int, list[str]] = {}
    for name, found in trial.evictions.items():
        later.setdefault(found.seconds, []).append(name)
    for seconds, nodes in sorted(later.items()):
        found = trial.evictions[nodes[0]]
        values = {"nodes": nodes_named(nodes), "device": found.result.device, "taint": with_rule(found.taint)}
        when: Words = say("after {seconds:second}", seconds=seconds) if seconds else "at once"
        text = "on {nodes:some} the pod would be evicted {when}: device {device} has taint {taint}"
        yield say(text, when=when, **values)


FINDERS = (Finder(When.FITS, _at_once, 40),)
