"""Causes of an allocation that finds nothing: what each request lacks, else what they lack together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kubectl_dra.allocation.constraints import attribute_of
from kubectl_dra.allocation.features import Quirks
from kubectl_dra.api.claims import Constraint, ResourceClaim
from kubectl_dra.explain.causes import devices
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.model import Cause, Evidence
from kubectl_dra.explain.of_request import Blocked, Located, RequestCauses, needed
from kubectl_dra.explain.phrases import join, some
from kubectl_dra.explain.view import View
from kubectl_dra.explain.whatif import Proof, WhatIf

# Stages at which a node loses devices that are what was asked for; before them it has none of that kind.
_CLOSE = ("capacity", "taint", "held", "counters")


class Finder:
    """Finds causes for one question whose claims do not fit on any node."""

    def __init__(self, view: View, claims: Sequence[ResourceClaim], whatif: WhatIf, holders: HolderIndex) -> None:
        self._view = view
        self._claims = claims
        self._whatif = whatif
        self._requests = RequestCauses(view, whatif, holders)

    def causes(self, funnels: Sequence[Located]) -> list[Cause]:
        """The causes: of each request that fails by itself, else of the combination; proved ones first."""
        found: list[Cause] = []
        for group in _by_request(funnels):
            if all(entry.funnel.blocking_stage() is not None for entry in group):
                found.extend(self._of_request(group))
        if not found:
            return self._of_combination(funnels)
        return sorted(found, key=lambda cause: not cause.proved)

    def _of_request(self, group: Sequence[Located]) -> list[Cause]:
        """The causes of the alternative that gets furthest; of several, the one with the smallest change."""
        reach = max(_reach(entry) for entry in group)
        candidates = [self._of_alternative(entry, group) for entry in group if _reach(entry) == reach]
        return min(candidates, key=lambda causes: (not causes[0].proved, causes[0].weight))

    def _of_alternative(self, furthest: Located, group: Sequence[Located]) -> list[Cause]:
        """One cause per stage that blocks nodes close to success, then a selector term that alone stands apart."""
        blocked = self._blocked(furthest)
        close = [
            entry
            for entry in blocked
            if entry.stage.name in _CLOSE
            or (entry.stage.name == "pool" and self._requests.matching_in_unusable_pools(entry))
        ]
        causes = [self._requests.cause(entry) for entry in close or blocked[:1]]
        if close:
            apart = [self._requests.cause(entry) for entry in blocked if entry.stage.name == "request-selector"]
            causes.extend(cause for cause in apart[:1] if cause.proved)
        if len(group) > 1:
            others = join(entry.funnel.name for entry in group if entry is not furthest)
            text = f"none of the {len(group)} alternatives fits; this one gets furthest (others: {others})"
            causes = [
                replace(
                    cause, evidence=(*cause.evidence, Evidence(f"claim {furthest.claim.key}", "firstAvailable", text))
                )
                for cause in causes
            ]
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
        lost: dict[int, tuple[str, object]] = {}
        left: set[int] = set()
        items = {}
        for name in nodes:
            for item in self._view.on_node(name):
                key = id(item.device)
                failure = funnel.failed_at.get(key)
                items[key] = item
                if failure is None or failure[0] > position:
                    left.add(key)
                elif failure[0] == position:
                    lost[key] = (failure[1], item)
        return Blocked(
            located,
            funnel.stages[position],
            tuple(nodes),
            tuple(items[key] for key in lost),
            tuple(reason for reason, _ in lost.values()),
            len(left),
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
            main, _, sub = located.funnel.name.partition("/")
            if located.claim is not claim or not constraint.covers(main, sub):
                continue
            for node, values in self._values(located, name):
                evidence.append(Evidence(f"{located.where} on {node}", name, values))
        covered = join(constraint.requests) or "all requests"
        return Cause(
            devices.CONSTRAINT,
            f"constraint {constraint} over {covered} cannot be met together with the rest on any node",
            tuple(evidence[:8]),
            f"Drop or widen the constraint {constraint}.",
            str(proof),
            claim=claim.key,
        )

    def _values(self, located: Located, name: str) -> Iterator[tuple[str, str]]:
        """Per node that has usable devices: the constraint's attribute on them."""
        for node in self._view.nodes:
            usable = located.funnel.usable_on(node.name)
            if usable:
                values = Counter(
                    str(value[1]) if (value := attribute_of(item.device, name)) else "absent" for item in usable
                )
                yield node.name, join(f"{value} on {count}" for value, count in values.most_common(5))

    def _defect(self) -> Cause | None:
        proof = self._whatif.with_quirks(Quirks.none())
        if proof is None:
            return None
        kind = devices.KNOWN_DEFECT
        quirks = self._view.cycle.quirks
        alone = [name for name in Quirks.__slots__ if self._whatif.with_quirks(quirks.without(name)) is not None]
        names = join(name.replace("_", " ") for name in alone) or "several together"
        return Cause(
            kind,
            f"the devices would suffice, but a known defect of this release's allocator refuses them: {names}",
            (Evidence("allocator", "defect", names),),
            kind.fix,
            str(proof),
        )

    def _competition(self, funnels: Sequence[Located]) -> Cause:
        kind = devices.COMPETITION
        evidence = tuple(self._usable(funnels))
        several = sum(len(claim.requests) for claim in self._claims) > 1
        for claim_index, claim in enumerate(self._claims if several else ()):
            for request_index, entry in enumerate(claim.requests):
                proof = self._whatif.without_request(claim_index, request_index)
                if proof is not None:
                    return Cause(
                        kind,
                        f'request "{entry.name}" of claim {claim.key} and the pod\'s other requests want the same '
                        "devices: each fits alone, all together on no node",
                        evidence,
                        kind.fix,
                        f'without request "{entry.name}" it {str(proof).removeprefix("then ")}',
                        claim=claim.key,
                        request=entry.name,
                    )
        if len(self._claims) > 1:
            kind = devices.DIFFERENT_NODES
            return Cause(kind, "the pod's claims fit one by one, but not together on one node", evidence, kind.fix)
        return Cause(kind, "every request fits alone, but not all together on one node", evidence, kind.fix)

    def _usable(self, funnels: Sequence[Located]) -> Iterator[Evidence]:
        for located in funnels[:8]:
            yield Evidence(
                f"claim {located.claim.key}",
                f"devices usable for {located.where} (needs {needed(located.funnel)})",
                some([str(item.id) for item in located.funnel.usable]) or "none",
            )


def _by_request(funnels: Sequence[Located]) -> list[list[Located]]:
    groups: dict[tuple[int, int], list[Located]] = {}
    for located in funnels:
        groups.setdefault((located.claim_index, located.request_index), []).append(located)
    return list(groups.values())


def _reach(located: Located) -> int:
    stage = located.funnel.blocking_stage()
    return len(located.funnel.stages) if stage is None else located.funnel.stages.index(stage)
