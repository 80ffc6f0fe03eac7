"""Every request fits alone, but not all together: they compete, need different nodes, or a constraint fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.allocation.constraints import as_compared, attribute_of, values_of
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.allocation.search_context import Lack
from kubectl_dra.api.claims import ALL, DeviceConstraint, Request, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family
from kubectl_dra.explain.causes.devices_held import ALL_INCOMPLETE
from kubectl_dra.explain.causes.devices_not_given import CAPACITY, COUNTERS, GROUPS
from kubectl_dra.explain.causes.pools_and_limits import plain, without_constraint
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import lower_count
from kubectl_dra.explain.funnel.device_view import PublishedDevice
from kubectl_dra.explain.funnel.located import Located, by_request, made_by_scheduler
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Subject, Words, named, nodes_named, say
from kubectl_dra.explain.remedies.change import DropConstraint
from kubectl_dra.explain.remedies.proof_result import Proof, Tried
from kubectl_dra.text import nearest

MAX_EVIDENCE = 8
COMPETITION = CauseKind(code="requests-compete", family=Family.DEVICES)
ADMIN_BLOCKS = CauseKind(code="admin-request-blocks", family=Family.DEVICES)


def _competition(analysis: Analysis) -> Iterator[Finding]:
    """The first request without which the others fit; an admin request is the dispensable one."""
    several = sum(len(claim.requests) for claim in analysis.claims) > 1
    entries = [
        (claim_index, request_index, claim, request)
        for claim_index, claim in enumerate(analysis.claims if several else ())
        for request_index, request in enumerate(claim.requests)
    ]
    for claim_index, request_index, claim, request in sorted(entries, key=lambda place: not _admin(place[3])):
        proof = analysis.what_if.without_request(claim_index, request_index).proof()
        if proof is None:
            continue
        kind = ADMIN_BLOCKS if _admin(request) else COMPETITION
        without = replace(proof, tried=Tried.WITHOUT_REQUEST, request=request.name)
        place: Words = say('request "{name}" of claim {claim}', name=request.name, claim=claim.key)
        if made_by_scheduler(claim):
            place = _located(analysis, claim, request).where
        text = "{place} and the pod's other requests want the same devices: each fits alone, all together on no node"
        facts, remedy = tuple(_usable(analysis)), Remedy(kind.fix, without)
        yield Finding(kind, say(text, place=place), facts, remedy, claim=claim.key, request=request.name)
        return


def _located(analysis: Analysis, claim: ResourceClaim, request: Request) -> Located:
    return next(own for own in analysis.funnels if (own.claim, own.names[0]) == (claim, request.name))


_KINDS: Final[Mapping[type[Lack], tuple[CauseKind, str]]] = {
    CounterShortage: (COUNTERS, "counters"),
    CapacityShortage: (CAPACITY, "capacity"),
    GroupClash: (GROUPS, "groups"),
}


def _used_up(analysis: Analysis) -> Iterator[Finding]:
    """The devices picked first leave too little counter or capacity for the rest."""
    refusal = analysis.what_if.refusals().most_frequent()
    if refusal is None:
        return
    kind, shared = _KINDS[type(refusal.lack)]
    text = 'the devices for request "{request}" cannot be allocated together: they share {shared}, and {lack}'
    if kind is GROUPS:
        text = 'the devices for request "{request}" cannot be allocated together: {lack}'
    summary = say(text, request=refusal.request, shared=shared, lack=refusal.said)
    facts = (Evidence(Subject("device", refusal.device), shared, refusal.said), *_usable(analysis))
    for claim in analysis.claims:
        for request in claim.requests:
            spec = request.exactly
            if spec is None or request.name != refusal.request:
                continue
            every = spec.allocation_mode == ALL
            if every:
                kind = ALL_INCOMPLETE
            place = _located(analysis, claim, request).place
            most = _most_on_one_node(analysis, request.name) if every else spec.count
            fewer = range(min(most, MAX_RESULTS) - 1, 0, -1)
            remedy = lower_count(analysis.what_if, place, fewer, every=every)
            if remedy is not None:
                yield Finding(kind, summary, facts, remedy, claim=claim.key, request=request.name)
                return
    yield Finding(kind, summary, facts, request=refusal.request)


def _most_on_one_node(analysis: Analysis, name: str) -> int:
    """The largest number of devices of a request on one node."""
    nodes = analysis.view.different_nodes
    own = [located.funnel for located in analysis.funnels if located.funnel.name == name]
    return max((len(funnel.usable_on(node.name)) for funnel in own for node in nodes), default=0)


def _nothing_known(analysis: Analysis) -> Iterator[Finding]:
    yield Finding(COMPETITION, "every request fits alone, but not all together on one node", tuple(_usable(analysis)))


def _usable(analysis: Analysis) -> Iterator[Evidence]:
    text = "devices usable for {where} (needs {needed})"
    for located in analysis.funnels[:MAX_EVIDENCE]:
        devices = say("{devices:some else none}", devices=[item.id for item in located.funnel.usable])
        about = Subject("claim", named("ResourceClaim", located.claim))
        yield Evidence(about, say(text, where=located.where, needed=located.needed), devices)


def _admin(request: Request) -> bool:
    return any(spec.admin_access for spec in request.alternatives())


# No node has enough devices for every request: each fits, but on different nodes.

DIFFERENT_NODES = CauseKind(code="claims-need-different-nodes", family=Family.DEVICES)


def _different_nodes(analysis: Analysis) -> Iterator[Finding]:
    fitting: dict[Phrase, Phrase] = {}
    common = {node.name for node in analysis.view.nodes}
    for group in by_request(analysis.funnels):
        names = [
            node.name
            for node in analysis.view.nodes
            if any(located.funnel.shortfall(node.name) is None for located in group)
        ]
        first = group[0]
        claim, request = named("ResourceClaim", first.claim), first.names[0]
        where = say('claim {claim}, request "{request}"', claim=claim, request=request)
        fitting[where] = say("{names:some}", names=nodes_named(names))
        common &= set(names)
    if common or len(fitting) < 2:
        return
    places = Joined(tuple(say("{where} on {names}", where=where, names=names) for where, names in fitting.items()))
    evidence = tuple(Evidence(where, "fits alone on", names) for where, names in fitting.items())
    yield Finding(DIFFERENT_NODES, say("the pod's requests fit on different nodes only: {told}", told=places), evidence)


# A constraint between the devices cannot be met, or they lack its attribute.

MAX_ATTRIBUTES = 6
MAX_VALUES = 5
_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
CONSTRAINT = CauseKind(code="constraint-unsatisfiable", family=Family.DEVICES)
ATTRIBUTE_MISSING = CauseKind(code="constraint-attribute-missing", family=Family.DEVICES)


def _together(analysis: Analysis) -> Iterator[Finding]:
    """The first constraint without which the claims fit."""
    for index, constraint, proof in islice(without_constraint(analysis), 1):
        yield _finding(analysis, index, analysis.claims[index], constraint, proof)


def _finding(
    analysis: Analysis, index: int, claim: ResourceClaim, constraint: DeviceConstraint, proof: Proof
) -> Finding:
    name = constraint.attribute
    group = [located for located in analysis.funnels if located.claim is claim and constraint.covers(*located.names)]
    evidence = list(_values(analysis, group, constraint))
    covered = say("{requests: else all requests}", requests=tuple(constraint.requests))
    words = {"name": name, "constraint": constraint, "covered": covered}
    only = sum(len(resource_claim.constraints) for resource_claim in analysis.claims) == 1
    change = DropConstraint(index, claim.key, constraint, only)
    remedy = Remedy(say("Drop or widen the constraint {constraint}.", **words), proof, offers=(change,))
    kind = CONSTRAINT
    text = "no node has free devices for {together} with {same} {name}"
    if name == _PCIE_ROOT and constraint.match_attribute:
        text = "no node has free devices for {together} under one PCIe root"
    same = "the same" if constraint.match_attribute else "different values of"
    requests = tuple(constraint.requests) or tuple(dict.fromkeys(located.funnel.name for located in group))
    summary = say(text, **words, same=same, together=Joined(requests, " and "))
    if _lacking(analysis, group, constraint):
        kind = ATTRIBUTE_MISSING
        summary = say("too few devices have {name}, which the constraint {constraint} over {covered} reads", **words)
        remedy = _other_attribute(analysis, group, constraint) or remedy
        evidence.extend(_instead(group, name))
    return Finding(kind, summary, tuple(evidence[:MAX_EVIDENCE]), remedy, claim=claim.key)


def _value(analysis: Analysis, located: Located, item: PublishedDevice, constraint: DeviceConstraint) -> str:
    """The value that the constraint compares, which the request may derive; empty if there is none."""
    name = constraint.attribute
    device = item.device
    if located.funnel.spec.derived_attributes:
        try:
            device = as_compared(located.funnel.spec, constraint, device, item.id, analysis.view.cycle.selectors)
        except AllocationError:
            return ""
    value = attribute_of(device, name)
    if value is None:
        return ""
    return str(value[1]) if value[0] else ", ".join(sorted(str(part) for _, part in values_of(device, name)))


def _lacking(analysis: Analysis, group: Sequence[Located], constraint: DeviceConstraint) -> bool:
    """Whether on every node some request has too few usable devices with the attribute."""
    return all(
        any(
            sum(1 for item in located.funnel.usable_on(node.name) if _value(analysis, located, item, constraint))
            < located.funnel.needed_on(node.name)
            for located in group
        )
        for node in analysis.view.nodes
    )


def _other_attribute(analysis: Analysis, group: Sequence[Located], constraint: DeviceConstraint) -> Remedy | None:
    """An attribute that usable devices of all the requests have, and with which the claims fit."""
    if not group or not constraint.match_attribute:
        return None
    names = [
        {
            name if "/" in name else f"{item.device.driver}/{name}"
            for item in located.funnel.usable
            for name in item.device.attributes
        }
        for located in group
    ]
    old = constraint.match_attribute
    common = sorted(name for name in set.intersection(*names) - {old} if _alike(_identifier(old), name))
    for name in common[:MAX_ATTRIBUTES]:
        other = replace(constraint, match_attribute=name)
        proof = analysis.what_if.with_constraint(group[0].claim_index, constraint, other).proof()
        if proof is not None:
            return Remedy(say("Write matchAttribute: {name}, which these devices have.", name=name), proof)
    return None


def _values(analysis: Analysis, group: Sequence[Located], constraint: DeviceConstraint) -> Iterator[Evidence]:
    """Node by node what usable devices of each request have of the constraint's attribute.

    Where devices are enough but for the constraint, the other nodes show nothing of it.
    """
    usable = {node.name: [located.funnel.usable_on(node.name) for located in group] for node in analysis.view.nodes}
    enough = [
        name
        for name, found in usable.items()
        if all(len(items) >= located.funnel.needed_on(name) for located, items in zip(group, found, strict=True))
    ]
    for node in enough or usable:
        for located, items in zip(group, usable[node], strict=True):
            if not items:
                continue
            values = Counter(_value(analysis, located, item, constraint) or "absent" for item in items)
            common = values.most_common(MAX_VALUES)
            shown = [say("{value} on {count}", value=value, count=count) for value, count in common]
            more = len(values) - MAX_VALUES
            text = "{shown} and {more:,} more values" if more > 0 else "{shown}"
            about = say("{where} on {node}", where=located.where, node=ObjectName("Node", node))
            yield Evidence(about, constraint.attribute, say(text, shown=shown, more=more))


def _instead(group: Sequence[Located], name: str) -> Iterator[Evidence]:
    """Names similar to the missing attribute, on the devices that lack it."""
    for located in group:
        lacking = [item.device for item in located.funnel.usable if attribute_of(item.device, name) is None]
        names = sorted({other for device in lacking for other in device.attributes if _alike(_identifier(name), other)})
        if names:
            yield Evidence(located.where, "its devices have instead", say("{names:some}", names=names))


def _alike(wanted: str, name: str) -> bool:
    """Whether two attributes seem to mean the same: their identifiers are nearly equal."""
    identifier = _identifier(name)
    return wanted == identifier or bool(nearest(wanted, [identifier]))


def _identifier(name: str) -> str:
    return name.rpartition("/")[2].casefold()


FINDERS = (
    Finder(When.TOGETHER, _competition, 50),
    Finder(When.TOGETHER, _used_up, 60),
    Finder(When.TOGETHER, _nothing_known, 99),
    Finder(When.TOGETHER, _different_nodes, 40),
    Finder(When.TOGETHER, _together, 10),
    Finder(When.ERROR, partial(plain, CONSTRAINT), of=AllocationCheck.CONSTRAINT_ALL),
)
