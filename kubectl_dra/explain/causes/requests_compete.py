"""Every request fits alone, but the devices picked first leave too little for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.claims import ALL, MAX_RESULTS, Request
from kubectl_dra.explain.causes.capacity_insufficient import CAPACITY
from kubectl_dra.explain.causes.counters_exhausted import COUNTERS, GROUPS
from kubectl_dra.explain.causes.devices_held import ALL_INCOMPLETE
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import made_by_scheduler
from kubectl_dra.explain.phrase import Subject, Words, named, say
from kubectl_dra.explain.remedies.change import LowerCount
from kubectl_dra.explain.remedies.claim_edits import RequestPlace
from kubectl_dra.explain.remedies.proof import Tried
from kubectl_dra.explain.trial import Trial

MAX_EVIDENCE = 8

COMPETITION = CauseKind(code="requests-compete", family=Family.DEVICES)
ADMIN_BLOCKS = CauseKind(code="admin-request-blocks", family=Family.DEVICES)


def _competition(trial: Trial) -> Iterator[Finding]:
    """The first request without which the others fit; an admin request is the dispensable one."""
    several = sum(len(claim.requests) for claim in trial.claims) > 1
    entries = [
        (claim_index, request_index, claim, entry)
        for claim_index, claim in enumerate(trial.claims if several else ())
        for request_index, entry in enumerate(claim.requests)
    ]
    for claim_index, request_index, claim, entry in sorted(entries, key=lambda place: not _admin(place[3])):
        proof = trial.world.without_request(claim_index, request_index).proof()
        if proof is None:
            continue
        kind = ADMIN_BLOCKS if _admin(entry) else COMPETITION
        without = replace(proof, tried=Tried.WITHOUT_REQUEST, request=entry.name)
        place: Words = say('request "{name}" of claim {claim}', name=entry.name, claim=claim.key)
        if made_by_scheduler(claim):
            place = next(one.where for one in trial.funnels if (one.claim, one.names[0]) == (claim, entry.name))
        text = "{place} and the pod's other requests want the same devices: each fits alone, all together on no node"
        yield Finding(
            kind,
            say(text, place=place),
            tuple(_usable(trial)),
            Remedy(kind.fix, without),
            claim=claim.key,
            request=entry.name,
        )
        return


_KINDS: Final = {"counters": COUNTERS, "capacity": CAPACITY, "groups": GROUPS}


def _used_up(trial: Trial) -> Iterator[Finding]:
    """The devices picked first leave too little counter or capacity for the rest."""
    refusal = trial.world.refusals().most_frequent()
    if refusal is None:
        return
    kind = _KINDS[refusal.check]
    text = 'the devices for request "{request}" cannot be had together: they share {check}, and {lack}'
    if refusal.check == "groups":
        text = 'the devices for request "{request}" cannot be had together: {lack}'
    summary = say(text, request=refusal.request, check=refusal.check, lack=refusal.lack)
    facts = (Evidence(Subject("device", refusal.device), refusal.check, refusal.lack), *_usable(trial))
    for claim in trial.claims:
        for entry in claim.requests:
            spec = entry.exactly
            if spec is None or entry.name != refusal.request:
                continue
            every = spec.allocation_mode == ALL
            if every:
                kind = ALL_INCOMPLETE
            place = next(one.place for one in trial.funnels if (one.claim, one.names[0]) == (claim, entry.name))
            most = _most_on_one_node(trial, entry.name) if every else spec.count
            remedy = _fewer(trial, place, min(most, MAX_RESULTS), every)
            if remedy is not None:
                yield Finding(kind, summary, facts, remedy, claim=claim.key, request=entry.name)
                return
    yield Finding(kind, summary, facts, request=refusal.request)


def _fewer(trial: Trial, place: RequestPlace, count: int, every: bool) -> Remedy | None:
    """The largest smaller count of a request with which everything fits."""
    for fewer in range(count - 1, 0, -1):
        change = LowerCount(place, fewer, every)
        proof = trial.world.proof_with(change)
        if proof is not None:
            return Remedy(say("{what:capital}.", what=change.what), proof, offers=(change,))
    return None


def _most_on_one_node(trial: Trial, name: str) -> int:
    """The largest number of devices of a request on one node."""
    nodes = trial.view.different_nodes()
    own = [entry.funnel for entry in trial.funnels if entry.funnel.name == name]
    return max((len(funnel.usable_on(node.name)) for funnel in own for node in nodes), default=0)


def _nothing_known(trial: Trial) -> Iterator[Finding]:
    yield Finding(COMPETITION, "every request fits alone, but not all together on one node", tuple(_usable(trial)))


def _usable(trial: Trial) -> Iterator[Evidence]:
    text = "devices usable for {where} (needs {needed})"
    for located in trial.funnels[:MAX_EVIDENCE]:
        yield Evidence(
            Subject("claim", named("ResourceClaim", located.claim)),
            say(text, where=located.where, needed=located.needed),
            say("{devices:some else none}", devices=[item.id for item in located.funnel.usable]),
        )


def _admin(entry: Request) -> bool:
    return any(spec.admin_access for spec in entry.alternatives())


FINDERS = (
    Finder(When.TOGETHER, _competition, 50),
    Finder(When.TOGETHER, _used_up, 60),
    Finder(When.TOGETHER, _nothing_known, 99),
)
