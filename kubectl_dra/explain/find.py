"""Causes of an allocation that finds nothing: what each request lacks, then what they lack together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kubectl_dra.allocation.capacity import NOTHING, shortage
from kubectl_dra.allocation.features import Quirks
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.taints import DeviceToleration, blocking_taint
from kubectl_dra.explain.causes import devices, pools, request
from kubectl_dra.explain.funnel import RequestFunnel, StageResult
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.judge import term_texts
from kubectl_dra.explain.model import Cause, CauseKind, Evidence
from kubectl_dra.explain.observe import observations
from kubectl_dra.explain.view import View
from kubectl_dra.explain.whatif import Proof, WhatIf, tolerating, without_terms

MAX_TRIES = 12
_DRIVER = re.compile(r"""device\.driver\s*==\s*(["'])(?P<driver>[^"']+)\1""")


@dataclass(frozen=True, slots=True)
class Located:
    """A funnel with its place: indices of claim, request and alternative."""

    claim_index: int
    request_index: int
    alternative: int
    claim: ResourceClaim
    funnel: RequestFunnel

    @property
    def where(self) -> str:
        return f'request "{self.funnel.name}"'


class Finder:
    """Finds causes for one question whose claims do not fit on any node."""

    def __init__(self, view: View, claims: Sequence[ResourceClaim], whatif: WhatIf, holders: HolderIndex) -> None:
        self._view = view
        self._claims = claims
        self._whatif = whatif
        self._holders = holders

    def causes(self, funnels: Sequence[Located]) -> list[Cause]:
        """The causes: of each request that fails by itself, else of the combination."""
        found: list[Cause] = []
        for group in _by_request(funnels):
            if all(entry.funnel.blocking_stage() is not None for entry in group):
                furthest = max(group, key=lambda entry: _reach(entry.funnel))
                found.append(self._of_request(furthest, len(group)))
        return found or self._of_combination(funnels)

    def _of_request(self, located: Located, alternatives: int) -> Cause:
        stage = located.funnel.blocking_stage()
        assert stage is not None
        makers = {
            "published": self._published,
            "node": self._node,
            "pool": self._pool,
            "class-selector": self._class_selector,
            "request-selector": self._request_selector,
            "capacity": self._capacity,
            "taint": self._taint,
            "held": self._held,
            "counters": self._counters,
        }
        cause = makers.get(stage.name, self._published)(located, stage)
        if alternatives > 1:
            evidence = Evidence(
                f"claim {located.claim.key}",
                located.where,
                f"all {alternatives} alternatives fail; this one gets furthest",
            )
            cause = replace(cause, evidence=(*cause.evidence, evidence))
        return replace(cause, claim=located.claim.key, request=located.funnel.name)

    def _published(self, located: Located, stage: StageResult) -> Cause:
        kind = pools.NO_SLICES
        drivers = self._view.drivers()
        if not drivers:
            evidence = (Evidence("ResourceSlices", "number of devices", "0"),)
            return Cause(kind, "no driver publishes any device in this cluster", evidence, kind.fix)
        listed = ", ".join(f"{driver} ({count} devices)" for driver, count in sorted(drivers.items()))
        return Cause(
            kind,
            f"no eligible node sees any device for {located.where}",
            (Evidence("ResourceSlices", "drivers", listed),),
            kind.fix,
        )

    def _node(self, located: Located, stage: StageResult) -> Cause:
        kind = pools.NOT_FOR_NODE
        reasons = Counter(stage.reasons).most_common(4)
        first = reasons[0][0] if reasons else "no node sees them"
        return Cause(
            kind,
            f"{_amount(len(stage.failed))} for {located.where} {_are(len(stage.failed))} out of reach: {first}",
            tuple(Evidence("devices", reason, str(count)) for reason, count in reasons),
            kind.fix,
        )

    def _pool(self, located: Located, stage: StageResult) -> Cause:
        seen = {item.slice.pool for item in stage.failed}
        incomplete = [pool for pool_id in seen if (pool := self._view.pool_seen.get(pool_id)) and pool.incomplete]
        invalid = [pool for pool_id in seen if (pool := self._view.pool_seen.get(pool_id)) and pool.invalid]
        evidence = [
            Evidence(
                f"pool {pool.id}",
                f"slices of generation {pool.generation}",
                f"{pool.found} exist, spec.pool.resourceSliceCount says {pool.expected}",
            )
            for pool in sorted(incomplete, key=lambda pool: pool.id)
        ] + [Evidence(f"pool {pool.id}", "problem", pool.invalid) for pool in sorted(invalid, key=lambda pool: pool.id)]
        reason = Counter(stage.reasons).most_common(1)[0][0]
        kind: CauseKind = pools.OBSOLETE
        if incomplete:
            kind = pools.INCOMPLETE
        elif invalid:
            kind = pools.INVALID
        return Cause(
            kind,
            f"{_amount(len(stage.failed))} for {located.where} cannot be used: {reason}",
            tuple(evidence[:6]),
            kind.fix,
        )

    def _class_selector(self, located: Located, stage: StageResult) -> Cause:
        wanted = _DRIVER.search(stage.expression)
        drivers = self._view.drivers()
        if wanted and wanted["driver"] not in drivers:
            kind = pools.NO_SLICES
            listed = ", ".join(sorted(drivers)) or "none"
            return Cause(
                kind,
                f"driver {wanted['driver']} publishes no devices (class {located.funnel.device_class.name} wants "
                f"it; drivers here: {listed})",
                (
                    Evidence(f"DeviceClass {located.funnel.device_class.name}", "spec.selectors", stage.expression),
                    Evidence("ResourceSlices", f"with spec.driver {wanted['driver']}", "0"),
                ),
                kind.fix,
            )
        return self._selector(
            located, stage, request.CLASS_MATCHES_NOTHING, f"DeviceClass {located.funnel.device_class.name}"
        )

    def _request_selector(self, located: Located, stage: StageResult) -> Cause:
        return self._selector(located, stage, request.SELECTOR_MATCHES_NOTHING, f"claim {located.claim.key}")

    def _selector(self, located: Located, stage: StageResult, kind: CauseKind, owner: str) -> Cause:
        tested = stage.passed + len(stage.failed)
        what = (
            f"class {located.funnel.device_class.name}"
            if stage.name == "class-selector"
            else f"{stage.label} of {located.where}"
        )
        evidence = [Evidence(owner, "selector term", stage.expression)]
        if stage.errors and not stage.passed:
            item, message, _ = stage.errors[0]
            kind = request.SELECTOR_ERROR
            summary = (
                f"{what} fails with an error on {len(stage.errors)} of {tested} devices: {message} (for instance "
                f"{item.id})"
            )
        elif stage.passed:
            kind = devices.TOO_FEW
            summary = (
                f"{what} is true on {stage.passed} of {tested} devices, but {located.where} needs "
                f"{_needed(located.funnel)} on one node and no node has more than {self._best(located.funnel, stage)}"
            )
        else:
            summary = f"{what} is false on all {_amount(tested)}: {stage.expression}"
        have = self._have(stage)
        if have and not stage.passed:
            summary += f" ({have})"
        evidence.extend(Evidence("devices", "have instead", have) for have in ([have] if have else []))
        proof, change = self._without_term(located, stage)
        if stage.passed and not stage.errors:
            best = self._best(located.funnel, stage)
            return Cause(kind, summary, tuple(evidence), *self._lower_count(located, best, kind.fix))
        fix = change or kind.fix
        return Cause(kind, summary, tuple(evidence), fix, str(proof) if proof else "")

    def _without_term(self, located: Located, stage: StageResult) -> tuple[Proof | None, str]:
        if stage.name != "request-selector":
            return None, ""
        spec = located.funnel.spec
        selectors = self._view.cycle.selectors
        terms = [term_texts(selectors, expression or "") for expression in spec.selectors]
        index = next((number for number, expression in enumerate(spec.selectors) if expression == stage.program), 0)
        changed = without_terms(spec.selectors, terms, index, stage.term)
        proof = self._whatif.with_request(
            located.claim_index,
            located.request_index,
            located.alternative,
            lambda old: replace(old, selectors=changed),
        )
        if proof is None:
            return None, ""
        return proof, f"Relax or drop the term {stage.expression}"

    def _have(self, stage: StageResult) -> str:
        terms = self._view.cycle.selectors.terms(stage.program)
        if not terms:
            return ""
        source = terms[stage.term]
        parts: list[str] = []
        for seen in observations(source, [item.device for item in stage.failed])[:2]:
            values = [f"{'absent' if value is None else value} on {count}" for value, count in seen.values[:4]]
            more = len(seen.values) - 4
            parts.append(f"{seen.name}: {', '.join(values)}" + (f", {more} other values" if more > 0 else ""))
        return "; ".join(parts)

    def _capacity(self, located: Located, stage: StageResult) -> Cause:
        state, spec = self._view.cycle.state, located.funnel.spec
        shorts = [
            (item, short)
            for item in stage.failed
            if (short := shortage(item.device, spec.capacity, state.consumed.get(item.id, NOTHING), NOTHING))
        ]
        reasons = Counter(short.reason for _, short in shorts)
        kind = {"unknown": devices.CAPACITY_UNKNOWN, "policy": devices.CAPACITY_POLICY}.get(
            reasons.most_common(1)[0][0] if reasons else "", devices.CAPACITY
        )
        reason = Counter(stage.reasons).most_common(1)[0][0]
        fix = kind.fix
        if kind is devices.CAPACITY_UNKNOWN:
            keys = sorted({key for item, _ in shorts for key in item.device.capacity})
            fix = f"Use a capacity that the devices have: {', '.join(keys) or 'none'}."
        return Cause(
            kind,
            f"{_amount(len(stage.failed))} for {located.where} cannot give the requested capacity: {reason}",
            tuple(
                Evidence(f"device {item.id}", "capacity", text)
                for (item, _), text in zip(shorts[:4], stage.reasons[:4], strict=False)
            ),
            fix,
        )

    def _taint(self, located: Located, stage: StageResult) -> Cause:
        kind = devices.TAINTED
        if located.funnel.spec.allocation_mode == ALL:
            kind = devices.ALL_INCOMPLETE
        taints = Counter(
            taint
            for item in stage.failed
            if (taint := blocking_taint(item.device.taints, located.funnel.spec.tolerations))
        )
        tolerations = [
            DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            for taint in taints
        ]
        proof = self._whatif.with_request(
            located.claim_index,
            located.request_index,
            located.alternative,
            lambda old: tolerating(old, tolerations),
        )
        listed = ", ".join(f"{taint} on {count}" for taint, count in taints.most_common(3))
        evidence = [
            Evidence(
                f"device {item.id}",
                "taint",
                f"{reason}" + _since(item.device.taints),
            )
            for item, reason in list(zip(stage.failed, stage.reasons, strict=True))[:4]
        ]
        left = stage.passed
        rest = f", {left} untainted" if left else ""
        rules = sorted({taint.rule for taint in taints if taint.rule})
        fix = kind.fix
        if rules:
            fix = f"End the maintenance (DeviceTaintRule {', '.join(rules)}), or tolerate the taint in the request."
        elif proof:
            fix = f"Repair the devices, or let the request tolerate {', '.join(str(taint) for taint in taints)}."
        return Cause(
            kind,
            f"{_amount(len(stage.failed))} that match {located.where} {_are(len(stage.failed))} tainted: {listed}{rest}",
            tuple(evidence),
            fix,
            str(proof) if proof else "",
        )

    def _held(self, located: Located, stage: StageResult) -> Cause:
        holders: dict[str, list[str]] = {}
        claims: dict[str, ResourceClaim] = {}
        for item in stage.failed:
            for claim in self._holders.claims(item.id):
                holders.setdefault(claim.key, []).append(item.id.device)
                claims[claim.key] = claim
        kind = devices.ALL_INCOMPLETE if located.funnel.spec.allocation_mode == ALL else devices.ALL_HELD
        orphans = [claim for claim in claims.values() if not claim.reserved_for]
        proof, fix = None, kind.fix
        for claim in [*orphans, *(claim for claim in claims.values() if claim.reserved_for)][:MAX_TRIES]:
            proof = self._whatif.without_holders([claim])
            if proof is not None:
                if claim in orphans:
                    kind = devices.ORPHANED
                    fix = (
                        "Delete the claim that nobody uses: kubectl delete resourceclaim "
                        f"-n {claim.metadata.namespace} {claim.metadata.name}"
                    )
                else:
                    fix = f"It is enough that {self._holders.describe_claim(claim)} gives its devices back."
                break
        if proof is None and claims:
            proof = self._whatif.without_holders(claims.values())
            if proof is not None:
                fix = "Several of these claims have to give their devices back; one alone is not enough."
        evidence = tuple(
            Evidence(self._holders.describe_claim(claims[key]), "holds", _some(names))
            for key, names in sorted(holders.items(), key=lambda entry: -len(entry[1]))[:6]
        )
        left = (
            f"{stage.passed} of {stage.passed + len(stage.failed)}" if stage.passed else f"none of {len(stage.failed)}"
        )
        where = f" on one node (most: {self._best(located.funnel, stage)})" if stage.passed else ""
        return Cause(
            kind,
            f"{left} matching devices {_are(stage.passed)} free; {located.where} needs {_needed(located.funnel)}{where}",
            evidence,
            fix,
            str(proof) if proof else "",
        )

    def _counters(self, located: Located, stage: StageResult) -> Cause:
        kind = devices.COUNTERS
        reason = Counter(stage.reasons).most_common(1)[0][0]
        pool_ids = {item.slice.pool for item in stage.failed}
        users = {
            id(claim): claim
            for device, claims in self._view.cycle.state.holders.items()
            for claim in claims
            if any(device[:2] == pool_id for pool_id in pool_ids)
        }
        proof, fix = None, kind.fix
        for claim in list(users.values())[:MAX_TRIES]:
            proof = self._whatif.without_holders([claim])
            if proof is not None:
                fix = f"It is enough that {self._holders.describe_claim(claim)} gives its partition back."
                break
        return Cause(
            kind,
            f"{_amount(len(stage.failed))} for {located.where} {'is' if len(stage.failed) == 1 else 'are'} blocked by partitions in use: {reason}",
            tuple(
                Evidence(f"device {item.id}", "consumesCounters", text)
                for item, text in list(zip(stage.failed, stage.reasons, strict=True))[:4]
            ),
            fix,
            str(proof) if proof else "",
        )

    def _lower_count(self, located: Located, best: int, fix: str) -> tuple[str, str]:
        if not best or located.funnel.spec.allocation_mode == ALL:
            return fix, ""
        proof = self._whatif.with_request(
            located.claim_index,
            located.request_index,
            located.alternative,
            lambda old: replace(old, count=best),
        )
        return (f"Lower count to {best}.", str(proof)) if proof else (fix, "")

    def _best(self, funnel: RequestFunnel, stage: StageResult) -> int:
        """The most devices that any eligible node has left after a stage."""
        position = funnel.stages.index(stage)
        best = 0
        for node in self._view.nodes:
            left = sum(
                1
                for item in self._view.on_node(node.name)
                if (failure := funnel.failed_at.get(id(item.device))) is None or failure[0] > position
            )
            best = max(best, left)
        return best

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

    def _constraint(self, claim: ResourceClaim, constraint: object, funnels: Sequence[Located], proof: Proof) -> Cause:
        from kubectl_dra.allocation.constraints import attribute_of
        from kubectl_dra.api.claims import Constraint

        assert isinstance(constraint, Constraint)
        kind = devices.CONSTRAINT
        name = constraint.match_attribute or constraint.distinct_attribute
        evidence: list[Evidence] = []
        for located in funnels:
            if located.claim is not claim or not constraint.covers(*_names(located)):
                continue
            values = Counter(
                f"{value[1]}" if (value := attribute_of(item.device, name)) else "absent"
                for item in located.funnel.usable
            )
            listed = ", ".join(f"{value} on {count}" for value, count in values.most_common(5))
            evidence.append(Evidence(f"devices usable for {located.where}", name, listed or "no devices"))
        covered = ", ".join(constraint.requests) or "all requests"
        return Cause(
            kind,
            f"constraint {constraint} over {covered} cannot be met together with the rest on any node",
            tuple(evidence),
            f"Drop or widen the constraint {constraint}.",
            str(proof),
            claim=claim.key,
        )

    def _defect(self) -> Cause | None:
        quirks = self._view.cycle.quirks
        proof = self._whatif.with_quirks(Quirks.none())
        if proof is None:
            return None
        kind = devices.KNOWN_DEFECT
        alone = [name for name in Quirks.__slots__ if self._whatif.with_quirks(quirks.without(name)) is not None]
        names = ", ".join(name.replace("_", " ") for name in alone) or "several together"
        return Cause(
            kind,
            f"the devices would suffice, but a known defect of this release's allocator refuses them: {names}",
            (Evidence("allocator", "defect", names),),
            kind.fix,
            str(proof),
        )

    def _competition(self, funnels: Sequence[Located]) -> Cause:
        kind = devices.COMPETITION
        total = sum(1 for claim in self._claims for _ in claim.requests)
        for claim_index, claim in enumerate(self._claims):
            for request_index, entry in enumerate(claim.requests):
                if total < 2:
                    break
                proof = self._whatif.without_request(claim_index, request_index)
                if proof is None:
                    continue
                return Cause(
                    kind,
                    f'request "{entry.name}" of claim {claim.key} and the pod\'s other requests want the same '
                    "devices: each fits alone, all together on no node",
                    tuple(self._usable(funnels)),
                    kind.fix,
                    f'without request "{entry.name}" it {str(proof).removeprefix("then ")}',
                    claim=claim.key,
                    request=entry.name,
                )
        if len(self._claims) > 1:
            return Cause(
                devices.DIFFERENT_NODES,
                "the pod's claims fit one by one, but not together on one node",
                tuple(self._usable(funnels)),
                devices.DIFFERENT_NODES.fix,
            )
        return Cause(
            kind,
            "every request fits alone, but not all together on one node",
            tuple(self._usable(funnels)),
            kind.fix,
        )

    def _usable(self, funnels: Sequence[Located]) -> Iterator[Evidence]:
        for located in funnels[:8]:
            names = [str(item.id) for item in located.funnel.usable]
            yield Evidence(
                f"claim {located.claim.key}",
                f"devices usable for {located.where} (needs {_needed(located.funnel)})",
                _some(names) or "none",
            )


def _by_request(funnels: Sequence[Located]) -> list[list[Located]]:
    groups: dict[tuple[int, int], list[Located]] = {}
    for located in funnels:
        groups.setdefault((located.claim_index, located.request_index), []).append(located)
    return list(groups.values())


def _reach(funnel: RequestFunnel) -> int:
    stage = funnel.blocking_stage()
    return len(funnel.stages) if stage is None else funnel.stages.index(stage)


def _names(located: Located) -> tuple[str, str]:
    main, _, sub = located.funnel.name.partition("/")
    return main, sub


def _needed(funnel: RequestFunnel) -> str:
    return "all" if funnel.spec.allocation_mode == ALL else str(funnel.spec.count)


def _amount(count: int) -> str:
    return f"{count} device" if count == 1 else f"{count} devices"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _some(names: Sequence[str], limit: int = 4) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _since(taints: Sequence[object]) -> str:
    times = sorted(time for taint in taints if (time := getattr(taint, "time_added", "")))
    return f", since {times[0]}" if times else ""


__all__ = ["DeviceRequest", "Finder", "Located"]
