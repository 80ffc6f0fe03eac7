"""Causes of an allocation that finds nothing: what each request lacks, else what they lack together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.features import Quirks
from kubectl_dra.api.claims import ALL, EXACT_COUNT, MAX_RESULTS, Constraint, Request, ResourceClaim
from kubectl_dra.explain.blocked import Blocked, Located, lower, needed
from kubectl_dra.explain.causes import devices
from kubectl_dra.explain.causes.request import SELECTOR_MATCHES_NOTHING
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.explain.of_release import defect, mixed_up, too_large_together, way_round
from kubectl_dra.explain.of_request import RequestCauses
from kubectl_dra.explain.remedies.prove import Proof, WhatIf
from kubectl_dra.explain.scene.holders import HolderIndex
from kubectl_dra.explain.scene.view import View
from kubectl_dra.names import nearest
from kubectl_dra.wording import amount, join, some

# Stages at which a node loses devices that are what was asked for; before them it has none of that kind.
MAX_ATTRIBUTES = 6
MAX_VALUES = 5
_CLOSE = ("binding", "capacity", "taint", "held", "counters")


class Finder:
    """Finds causes for one question whose claims do not fit on any node."""

    def __init__(self, view: View, claims: Sequence[ResourceClaim], whatif: WhatIf, holders: HolderIndex) -> None:
        self._view = view
        self._claims = claims
        self._whatif = whatif
        self._holders = holders
        self._requests = RequestCauses(view, whatif, holders)

    def causes(self, funnels: Sequence[Located]) -> list[Cause]:
        """The causes: of each request that fails by itself, else of the combination; proved ones first."""
        groups = [
            group for group in _by_request(funnels) if all(entry.funnel.blocking_stage() is not None for entry in group)
        ]
        if not groups:
            return self._of_combination(funnels)
        found = self._of_several(groups) if len(groups) > 1 else self._of_request(groups[0], self._requests)
        # A selector that sets devices of other nodes apart comes after what is wrong with those that it admits.
        return sorted(found, key=lambda cause: (cause.kind is SELECTOR_MATCHES_NOTHING, not cause.proved))

    def _of_several(self, groups: Sequence[Sequence[Located]]) -> list[Cause]:
        """The causes of several requests: each proved with the unsolved others set aside, the last with all changes."""
        found: list[Cause] = []
        world = self._whatif
        unsolved = [(group[0].claim_index, group[0].request_index) for group in groups]
        for group in groups:
            place = (group[0].claim_index, group[0].request_index)
            aside = [other for other in unsolved if other != place]
            causes = self._of_request(group, RequestCauses(self._view, world.setting_aside(aside), self._holders))
            remedy = causes[0].remedy
            if callable(remedy):
                world = remedy(world)
                unsolved.remove(place)
            how = "other requests left aside" if aside else "with the fixes of the other requests made as well"
            found.extend(_with_proof(cause, f"{cause.proved} ({how})") for cause in causes)
        return found

    def _of_request(self, group: Sequence[Located], requests: RequestCauses) -> list[Cause]:
        """The causes of the alternative that gets furthest; of several, the one with the smallest change."""
        reach = max(_reach(entry) for entry in group)
        candidates = [self._of_alternative(entry, group, requests) for entry in group if _reach(entry) == reach]
        return min(candidates, key=lambda causes: (not causes[0].proved, causes[0].weight))

    def _of_alternative(self, furthest: Located, group: Sequence[Located], requests: RequestCauses) -> list[Cause]:
        """One cause per stage that blocks nodes close to success, then a selector term that alone stands apart."""
        blocked = self._blocked(furthest)
        close = [
            entry
            for entry in blocked
            if entry.stage.name in _CLOSE or (entry.stage.name == "pool" and requests.matching_in_unusable_pools(entry))
        ]
        causes = [requests.cause(entry) for entry in close or blocked[:1]]
        if close:
            apart = [requests.cause(entry) for entry in blocked if entry.stage.name == "request-selector"]
            causes.extend(cause for cause in apart[:1] if cause.proved)
        if len(group) > 1:
            others = join(entry.funnel.name for entry in group if entry is not furthest)
            text = f"none of the {len(group)} alternatives fits; this one gets furthest (others: {others})"
            evidence = Evidence(f"claim {furthest.claim.key}", "firstAvailable", text)
            causes = [replace(cause, evidence=(*cause.evidence, evidence)) for cause in causes]
        return causes

    def _blocked(self, located: Located) -> list[Blocked]:
        """The nodes by the stage at which they fall short, the stage nearest to success first."""
        funnel = located.funnel
        nodes: dict[int, list[str]] = {}
        for node in self._view.nodes:
            short = funnel.shortfall(node.name)
            if short is not None:
                nodes.setdefault(short[0], []).append(node.name)
        if set(nodes) <= {0}:
            last = funnel.blocking_stage() or funnel.stages[0]
            return [Blocked(located, last, (), tuple(last.failed), tuple(last.reasons), last.passed)]
        out: list[Blocked] = []
        for position in sorted(nodes, reverse=True):
            if position:
                out.append(self._at(located, position, nodes[position]))
        return out

    def _at(self, located: Located, position: int, nodes: Sequence[str]) -> Blocked:
        funnel = located.funnel
        lost, reasons, left = funnel.lost_on(nodes, position)
        return Blocked(
            located,
            funnel.stages[position],
            tuple(nodes),
            lost,
            reasons,
            left,
        )

    def _of_combination(self, funnels: Sequence[Located]) -> list[Cause]:
        for index, claim in enumerate(self._claims):
            for constraint in claim.constraints:
                proof = self._whatif.without_constraint(index, constraint)
                if proof is not None:
                    return [self._constraint(claim, constraint, funnels, proof)]
        defect = self._defect()
        if defect is not None:
            return [defect]
        return [self._competition(funnels)]

    def _constraint(
        self, claim: ResourceClaim, constraint: Constraint, funnels: Sequence[Located], proof: Proof
    ) -> Cause:
        name = constraint.match_attribute or constraint.distinct_attribute
        evidence: list[Evidence] = []
        for located in funnels:
            if located.claim is not claim or not constraint.covers(*_names(located)):
                continue
            for node, values in self._values(located, name):
                evidence.append(Evidence(f"{located.where} on {node}", name, values))
        covered = join(constraint.requests) or "all requests"
        kind = devices.CONSTRAINT
        summary = f"constraint {constraint} over {covered} cannot be met together with the rest on any node"
        fix = f"Drop or widen the constraint {constraint}."
        group = [entry for entry in funnels if entry.claim is claim and constraint.covers(*_names(entry))]
        if self._lacking(group, name):
            kind = devices.ATTRIBUTE_MISSING
            summary = f"too few devices have {name}, which the constraint {constraint} over {covered} reads"
            fix, proof = self._other_attribute(group, constraint) or (fix, proof)
            evidence.extend(_instead(group, name))
        return Cause(kind, summary, tuple(evidence[:8]), fix, str(proof), claim=claim.key)

    def _lacking(self, group: Sequence[Located], name: str) -> bool:
        """Whether on every node some request has too few usable devices with the attribute."""
        return all(
            any(
                sum(1 for item in entry.funnel.usable_on(node.name) if attribute_of(item.device, name))
                < entry.funnel.needed_on(node.name)
                for entry in group
            )
            for node in self._view.nodes
        )

    def _other_attribute(self, group: Sequence[Located], constraint: Constraint) -> tuple[str, Proof] | None:
        """An attribute that usable devices of all the requests have, with which the claims fit."""
        if not group or not constraint.match_attribute:
            return None
        names = [
            {
                name if "/" in name else f"{item.device.driver}/{name}"
                for item in entry.funnel.usable
                for name in item.device.attributes
            }
            for entry in group
        ]
        old = constraint.match_attribute
        wanted = _identifier(old)
        common = sorted(name for name in set.intersection(*names) - {old} if _alike(wanted, name))
        for name in common[:MAX_ATTRIBUTES]:
            proof = self._whatif.with_constraint(
                group[0].claim_index, constraint, replace(constraint, match_attribute=name)
            )
            if proof is not None:
                return f"Write matchAttribute: {name}, which these devices have.", proof
        return None

    def _values(self, located: Located, name: str) -> Iterator[tuple[str, str]]:
        """Per node that has usable devices: the constraint's attribute on them."""
        for node in self._view.nodes:
            usable = located.funnel.usable_on(node.name)
            if usable:
                values = Counter(
                    str(value[1]) if (value := attribute_of(item.device, name)) else "absent" for item in usable
                )
                shown = join(f"{value} on {count}" for value, count in values.most_common(MAX_VALUES))
                more = len(values) - MAX_VALUES
                yield node.name, shown + (f" and {more:,} more values" if more > 0 else "")

    def _defect(self) -> Cause | None:
        proof = self._whatif.with_quirks(Quirks.none())
        if proof is None:
            return None
        if not self._view.cycle.quirks.counters_keyed_by_pool_name:
            return self._of_defects(proof)
        mixed = self._whatif.with_quirks(self._view.cycle.quirks.without("counters_keyed_by_pool_name"))
        named = mixed_up(self._view, str(mixed)) if mixed else None
        return named or self._of_defects(proof)

    def _of_defects(self, proof: Proof) -> Cause:
        kind = devices.KNOWN_DEFECT
        quirks = self._view.cycle.quirks
        alone = [name for name in Quirks.__slots__ if self._whatif.with_quirks(quirks.without(name)) is not None]
        told = "; ".join(defect(name) for name in alone) or "several defects together"
        return Cause(
            kind,
            f"the devices would suffice, but a known defect of this release's scheduler refuses them: {told}",
            (Evidence("kube-scheduler", "defect", told),),
            way_round(alone[0]) if len(alone) == 1 else kind.fix,
            str(proof),
        )

    def _competition(self, funnels: Sequence[Located]) -> Cause:
        large = too_large_together(self._claims, self._whatif)
        if large is not None:
            return large
        apart = self._different_nodes(funnels)
        if apart is not None:
            return apart
        kind = devices.COMPETITION
        evidence = tuple(self._usable(funnels))
        several = sum(len(claim.requests) for claim in self._claims) > 1
        entries = [
            (claim_index, request_index, claim, entry)
            for claim_index, claim in enumerate(self._claims if several else ())
            for request_index, entry in enumerate(claim.requests)
        ]
        # Of two requests that exclude each other, the admin request is the one that could be done without.
        entries.sort(key=lambda place: not _admin(place[3]))
        for claim_index, request_index, claim, entry in entries:
            proof = self._whatif.without_request(claim_index, request_index)
            if proof is None:
                continue
            if _admin(entry):
                kind = devices.ADMIN_BLOCKS
            return Cause(
                kind,
                f'request "{entry.name}" of claim {claim.key} and the pod\'s other requests want the same '
                "devices: each fits alone, all together on no node",
                evidence,
                kind.fix,
                f'without request "{entry.name}" {str(proof).removeprefix("then ")}',
                claim=claim.key,
                request=entry.name,
            )
        return self._used_up(funnels, evidence) or Cause(
            kind, "every request fits alone, but not all together on one node", evidence, kind.fix
        )

    def _used_up(self, funnels: Sequence[Located], evidence: tuple[Evidence, ...]) -> Cause | None:
        """The cause where the devices picked first leave too few counters or too little capacity for the rest."""
        found = self._whatif.refusals()
        described = found.describe()
        if described is None:
            return None
        check, name, device, lack = described
        kind = devices.COUNTERS if check == "counters" else devices.CAPACITY
        facts = (Evidence(f"device {device}", check, lack), *evidence)
        summary = f'the devices for request "{name}" cannot be had together: they share {check}, and {lack}'
        for claim_index, claim in enumerate(self._claims):
            for request_index, entry in enumerate(claim.requests):
                spec = entry.exactly
                if spec is None or entry.name != name:
                    continue
                every = spec.allocation_mode == ALL
                if every:
                    kind = devices.ALL_INCOMPLETE
                most = self._most_on_one_node(funnels, name) if every else spec.count
                smaller = self._largest_count(claim_index, request_index, min(most, MAX_RESULTS))
                if smaller is not None:
                    fewer, proof = smaller
                    fix = f"Ask for {amount(fewer)} instead of all." if every else f"L{lower(claim, fewer)[1:]}."
                    return Cause(kind, summary, facts, fix, str(proof), claim=claim.key, request=name)
        return Cause(kind, summary, facts, kind.fix, request=name)

    def _most_on_one_node(self, funnels: Sequence[Located], name: str) -> int:
        """How many devices of a request one node has at most."""
        nodes = self._view.different_nodes()
        own = [entry.funnel for entry in funnels if entry.funnel.name == name]
        return max((len(funnel.usable_on(node.name)) for funnel in own for node in nodes), default=0)

    def _largest_count(self, claim: int, request: int, count: int) -> tuple[int, Proof] | None:
        """The largest smaller count of a request with which everything fits, with the proof."""
        for fewer in range(count - 1, 0, -1):
            change = partial(replace, allocation_mode=EXACT_COUNT, count=fewer)
            proof = self._whatif.with_request(claim, request, 0, change)
            if proof is not None:
                return fewer, proof
        return None

    def _different_nodes(self, funnels: Sequence[Located]) -> Cause | None:
        """The cause where no node has enough devices for every request: each fits, but elsewhere."""
        fitting: dict[str, list[str]] = {}
        common = {node.name for node in self._view.nodes}
        for group in _by_request(funnels):
            names = [
                node.name
                for node in self._view.nodes
                if any(entry.funnel.shortfall(node.name) is None for entry in group)
            ]
            first = group[0]
            where = f'claim {first.claim.key}, request "{_names(first)[0]}"'
            fitting[where] = names
            common &= set(names)
        if common or len(fitting) < 2:
            return None
        kind = devices.DIFFERENT_NODES
        told = "; ".join(f"{where} on {some(names)}" for where, names in fitting.items())
        evidence = tuple(Evidence(where, "fits alone on", some(names)) for where, names in fitting.items())
        return Cause(kind, f"the pod's requests fit on different nodes only: {told}", evidence, kind.fix)

    def _usable(self, funnels: Sequence[Located]) -> Iterator[Evidence]:
        for located in funnels[:8]:
            yield Evidence(
                f"claim {located.claim.key}",
                f"devices usable for {located.where} (needs {needed(located.funnel)})",
                some([str(item.id) for item in located.funnel.usable]) or "none",
            )


def _names(located: Located) -> tuple[str, str]:
    """The names of a request and of its subrequest, empty where there is none."""
    main, _, sub = located.funnel.name.partition("/")
    return main, sub


def _alike(wanted: str, name: str) -> bool:
    """Whether an attribute seems to say the same: its identifier is as good as equal."""
    identifier = _identifier(name)
    return wanted == identifier or bool(nearest(wanted, [identifier]))


def _instead(group: Sequence[Located], name: str) -> Iterator[Evidence]:
    """Names like that of a missing attribute, on the devices that lack it."""
    for located in group:
        lacking = [item.device for item in located.funnel.usable if attribute_of(item.device, name) is None]
        names = sorted({other for device in lacking for other in device.attributes if _alike(_identifier(name), other)})
        if names:
            yield Evidence(located.where, "its devices have instead", some(names))


def _identifier(name: str) -> str:
    return name.rpartition("/")[2].casefold()


def _admin(entry: Request) -> bool:
    return any(spec.admin_access for spec in entry.alternatives())


def _by_request(funnels: Sequence[Located]) -> list[list[Located]]:
    groups: dict[tuple[int, int], list[Located]] = {}
    for located in funnels:
        groups.setdefault((located.claim_index, located.request_index), []).append(located)
    return list(groups.values())


def _reach(located: Located) -> int:
    stage = located.funnel.blocking_stage()
    return len(located.funnel.stages) if stage is None else located.funnel.stages.index(stage)


def _with_proof(cause: Cause, proved: str) -> Cause:
    return replace(cause, proved=proved) if cause.proved else cause
