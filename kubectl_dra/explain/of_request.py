"""Causes of one request that no node can satisfy by itself, one maker per stage of the funnel."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from kubectl_dra.allocation.capacity import NOTHING, CapacityShortage, amount_taken, shortage
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.api.claims import ALL, DeviceRequest, ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.taints import DeviceTaint, DeviceToleration, blocking_taint
from kubectl_dra.explain.causes import devices, pools, request
from kubectl_dra.explain.eligibility import UNTOLERATED, toleration_of
from kubectl_dra.explain.funnel import BINDING, PARTITIONS, RequestFunnel, StageResult
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.judge import judge, term_texts
from kubectl_dra.explain.model import Cause, CauseKind, Evidence
from kubectl_dra.explain.observe import observations
from kubectl_dra.explain.phrases import amount, are, join, some
from kubectl_dra.explain.view import Published, View
from kubectl_dra.explain.whatif import Proof, WhatIf, tolerating, without_terms

MAX_TRIES = 12
MAX_EVIDENCE = 6
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


@dataclass(frozen=True, slots=True)
class Blocked:
    """A request that falls short on these nodes at one stage, with the devices that it loses there."""

    located: Located
    stage: StageResult
    nodes: tuple[str, ...]
    lost: tuple[Published, ...]
    reasons: tuple[str, ...]
    left: int

    @property
    def spec(self) -> DeviceRequest:
        return self.located.funnel.spec

    @property
    def tested(self) -> int:
        """Devices of these nodes that reached the stage."""
        return self.left + len(self.lost)


class RequestCauses:
    """Makes the cause of one blocked request."""

    def __init__(self, view: View, whatif: WhatIf, holders: HolderIndex) -> None:
        self._view = view
        self._whatif = whatif
        self._holders = holders

    def cause(self, blocked: Blocked) -> Cause:
        """The cause for the stage at which the request is blocked."""
        makers = {
            "node": self._node,
            "binding": self._binding,
            "pool": self._pool,
            "class-selector": self._class_selector,
            "request-selector": self._request_selector,
            "capacity": self._capacity,
            "taint": self._taint,
            "held": self._held,
            "counters": self._counters,
        }
        maker = makers.get(blocked.stage.name, self._published)
        if blocked.left and not blocked.lost:
            maker = self._too_few
        self._whatif.remedy = None
        cause = maker(blocked)
        if cause.proved:
            cause = replace(cause, remedy=self._whatif.remedy)
        return replace(cause, claim=blocked.located.claim.key, request=blocked.located.funnel.name)

    def matching_in_unusable_pools(self, blocked: Blocked) -> bool:
        """Whether a device that the pool stage loses would fulfil the class's and the request's selectors."""
        funnel = blocked.located.funnel
        selectors = self._view.cycle.selectors
        items = [item.device for item in blocked.lost]
        for expression in (*funnel.device_class.selectors, *funnel.spec.selectors):
            verdicts = judge(selectors, expression or "", items)
            items = [device for device, verdict in zip(items, verdicts, strict=True) if verdict is None]
        return bool(items)

    def _too_few(self, blocked: Blocked) -> Cause:
        kind = devices.TOO_FEW
        best = _best(self._view, blocked.located.funnel, blocked.stage)
        fix, proof = self._lower_count(blocked, best, kind.fix)
        evidence = tuple(
            Evidence(f"node {name}", "devices of this kind", str(len(self._view.on_node(name))))
            for name in blocked.nodes[:MAX_EVIDENCE]
        )
        return Cause(
            kind,
            f"{blocked.located.where} needs {amount(blocked.spec.count)} on one node, and no eligible node has more "
            f"than {best}",
            evidence,
            fix,
            proof,
        )

    def _published(self, blocked: Blocked) -> Cause:
        kind = pools.NO_SLICES
        drivers = self._view.drivers()
        if not drivers:
            evidence = (Evidence("ResourceSlices", "number of devices", "0"), *self._empty_slices())
            return Cause(kind, "no driver publishes any device in this cluster", evidence, kind.fix)
        listed = ", ".join(f"{driver} ({amount(count)})" for driver, count in sorted(drivers.items()))
        return Cause(
            kind,
            f"no eligible node sees any device for {blocked.located.where}",
            (Evidence("ResourceSlices", "drivers", listed),),
            kind.fix,
        )

    def _binding(self, blocked: Blocked) -> Cause:
        return self._needs_feature(blocked, BINDING, binding_conditions=True)

    def _needs_feature(self, blocked: Blocked, gate: str, **features: bool) -> Cause:
        kind = pools.NEEDS_FEATURE
        proof = self._whatif.with_features(replace(self._view.cycle.features, **features))
        count = len(blocked.lost)
        return Cause(
            kind,
            f"{amount(count)} for {blocked.located.where} {are(count)} passed over: the feature {gate} is off",
            _by_device(blocked, "device"),
            f"Turn the feature gate {gate} on in kube-apiserver and kube-scheduler.",
            str(proof) if proof else "",
        )

    def _node(self, blocked: Blocked) -> Cause:
        kind = pools.NOT_FOR_NODE
        reasons = Counter(blocked.reasons).most_common(4)
        if reasons and reasons[0][0].endswith(f"{PARTITIONS} is off"):
            return self._needs_feature(blocked, PARTITIONS, partitionable_devices=True)
        first = reasons[0][0] if reasons else "no node sees them"
        proof = self._whatif.on_other_nodes()
        evidence: list[Evidence] = []
        for reason, count in reasons:
            nodes = sorted({node for node, why in self._view.ineligible.items() if why == reason})
            evidence.append(Evidence(f"nodes {some(nodes)}" if nodes else "devices", reason, amount(count)))
        fix = f"Let the pod run where the devices are ({first})." if proof else kind.fix
        if proof and first.startswith(UNTOLERATED):
            fix = f"Let the pod tolerate it: spec.tolerations: {toleration_of(first)}"
        return Cause(
            kind,
            f"{amount(len(blocked.lost))} for {blocked.located.where} {are(len(blocked.lost))} out of reach: {first}",
            tuple(evidence),
            fix,
            str(proof) if proof else "",
        )

    def _pool(self, blocked: Blocked) -> Cause:
        seen = sorted({item.slice.pool for item in blocked.lost})
        known = [pool for pool_id in seen if (pool := self._view.pool_seen.get(pool_id))]
        evidence = [
            Evidence(
                f"pool {pool.id}",
                f"slices of generation {pool.generation}",
                f"{pool.found} exist, spec.pool.resourceSliceCount says {pool.expected}",
            )
            for pool in known
            if pool.incomplete
        ] + [Evidence(f"pool {pool.id}", "problem", pool.invalid) for pool in known if pool.invalid]
        evidence.extend(line for pool in known if (line := _disagreement(pool)))
        kind: CauseKind = pools.OBSOLETE
        if any(pool.incomplete for pool in known):
            kind = pools.INCOMPLETE
        elif known:
            kind = pools.INVALID
        reason = Counter(blocked.reasons).most_common(1)[0][0]
        return Cause(
            kind,
            f"{amount(len(blocked.lost))} on {some(blocked.nodes) or 'no node'} cannot be used for "
            f"{blocked.located.where}: {reason}",
            tuple(evidence[:MAX_EVIDENCE]),
            kind.fix,
        )

    def _class_selector(self, blocked: Blocked) -> Cause:
        device_class = blocked.located.funnel.device_class
        drivers = self._view.drivers()
        for expression in device_class.selectors:
            wanted = _DRIVER.search(expression or "")
            if wanted is None or wanted["driver"] in drivers:
                continue
            kind = pools.NO_SLICES
            return Cause(
                kind,
                f"driver {wanted['driver']} publishes no devices (class {device_class.name} wants it; drivers "
                f"here: {', '.join(sorted(drivers)) or 'none'})",
                (
                    Evidence(
                        f"DeviceClass {device_class.name}", "spec.selectors", " ".join((expression or "").split())
                    ),
                    Evidence("ResourceSlices", f"with spec.driver {wanted['driver']}", "0"),
                    *self._empty_slices(wanted["driver"]),
                    *self._device_plugins(wanted["driver"]),
                ),
                kind.fix,
            )
        return self._selector(blocked, request.CLASS_MATCHES_NOTHING, f"DeviceClass {device_class.name}")

    def _empty_slices(self, driver: str = "") -> Iterator[Evidence]:
        """Slices (of one driver) that publish nothing: the driver runs there, and finds no device."""
        for entry in self._view.cycle.index.slices:
            if not entry.devices and not entry.shared_counters and driver in ("", entry.driver):
                yield Evidence(f"ResourceSlice {entry.name}", "spec.devices", f"none, for {entry.scope}")

    def _device_plugins(self, driver: str) -> Iterator[Evidence]:
        """Extended resources of the driver's vendor that nodes offer by a device plugin."""
        nodes: dict[str, list[str]] = {}
        for node in self._view.nodes:
            for resource in node.allocatable:
                domain = resource.partition("/")[0]
                if "/" in resource and driver.endswith(domain):
                    nodes.setdefault(resource, []).append(node.name)
        for resource, names in nodes.items():
            yield Evidence(
                f"nodes {some(names)}", "status.allocatable", f"{resource}: served by a device plugin, not by DRA"
            )

    def _request_selector(self, blocked: Blocked) -> Cause:
        return self._selector(blocked, request.SELECTOR_MATCHES_NOTHING, f"claim {blocked.located.claim.key}")

    def _selector(self, blocked: Blocked, kind: CauseKind, owner: str) -> Cause:
        funnel, stage = blocked.located.funnel, blocked.stage
        what = (
            f"class {funnel.device_class.name}"
            if stage.name == "class-selector"
            else f"{stage.label} of {blocked.located.where}"
        )
        evidence = [Evidence(owner, "selector term", stage.expression)]
        have = self._have(stage)
        if blocked.left:
            best = _best(self._view, funnel, stage)
            summary = (
                f"{what} is true on {blocked.left} of {blocked.tested} devices, but {blocked.located.where} needs "
                f"{needed(funnel)} on one node and no node has more than {best}"
            )
            fix, proof = self._lower_count(blocked, best, devices.TOO_FEW.fix)
            return Cause(devices.TOO_FEW, summary, tuple(evidence), fix, proof)
        where = f" of {some(blocked.nodes)}" if blocked.nodes and stage.passed else ""
        fails = "false" if not stage.errors else f"false or an error ({stage.errors[0][1]})"
        summary = f"{what} is {fails} on all {amount(blocked.tested)}{where}: {stage.expression}"
        if have:
            summary += f" ({have})"
        found = self._without_term(blocked)
        if found is None:
            return Cause(kind, summary, tuple(evidence), kind.fix)
        fix = f"Ask for what there is ({have}), or drop the term." if have else "Relax or drop the term."
        return Cause(kind, summary, tuple(evidence), fix, f"without the term it {str(found).removeprefix('then ')}")

    def _without_term(self, blocked: Blocked) -> Proof | None:
        stage, spec = blocked.stage, blocked.spec
        if stage.name != "request-selector":
            return None
        selectors = self._view.cycle.selectors
        terms = [term_texts(selectors, expression or "") for expression in spec.selectors]
        index = next(number for number, expression in enumerate(spec.selectors) if expression == stage.program)
        changed = without_terms(spec.selectors, terms, index, stage.term)
        return self._change(blocked, lambda old: replace(old, selectors=changed))

    def _have(self, stage: StageResult) -> str:
        terms = self._view.cycle.selectors.terms(stage.program)
        if not terms or not stage.failed:
            return ""
        parts: list[str] = []
        for seen in observations(terms[stage.term], [item.device for item in stage.failed])[:2]:
            values = [f"{'absent' if value is None else value} on {count}" for value, count in seen.values[:4]]
            more = len(seen.values) - 4
            parts.append(f"{seen.name}: {', '.join(values)}" + (f", {more} other values" if more > 0 else ""))
        return "; ".join(parts)

    def _capacity(self, blocked: Blocked) -> Cause:
        shorts = [(item, short) for item in blocked.lost if (short := self._shortage(item, blocked.spec))]
        first = Counter(short.reason for _, short in shorts).most_common(1)[0][0]
        kind = {"unknown": devices.CAPACITY_UNKNOWN, "policy": devices.CAPACITY_POLICY}.get(first, devices.CAPACITY)
        fix, proof = kind.fix, None
        if kind is devices.CAPACITY_UNKNOWN:
            keys = sorted({key for item, _ in shorts for key in item.device.capacity})
            fix = f"Use a capacity that the devices have: {join(keys) or 'none'}."
        elif kind is devices.CAPACITY:
            fix, proof = self._lower_capacity(blocked, shorts) or (fix, None)
        reason = Counter(blocked.reasons).most_common(1)[0][0]
        if kind is devices.CAPACITY:
            reason = _most_left(shorts)
        return Cause(
            kind,
            f"{amount(len(blocked.lost))} for {blocked.located.where} cannot give the requested capacity: {reason}",
            _by_device(blocked, "capacity"),
            fix,
            str(proof) if proof else "",
        )

    def _shortage(self, item: Published, spec: DeviceRequest) -> CapacityShortage | None:
        used = self._view.cycle.state.consumed.get(item.id, NOTHING)
        return shortage(item.device, spec.capacity, used, NOTHING)

    def _lower_capacity(
        self, blocked: Blocked, shorts: Sequence[tuple[Published, CapacityShortage]]
    ) -> tuple[str, Proof] | None:
        """The largest amount of the capacity that is short which some device still gives."""
        name = shorts[0][1].capacity
        offers: list[Quantity] = []
        for item, short in shorts:
            if short.capacity == name and short.value is not None and short.used is not None:
                left = short.value - short.used
                if left > Quantity.parse("0") and amount_taken(left, item.device.capacity[name]) <= left:
                    offers.append(left)
        if not offers:
            return None
        most = max(offers)
        proof = self._change(blocked, lambda old: replace(old, capacity={**(old.capacity or {}), name: most}))
        return (f"Ask for at most {most} of {name}.", proof) if proof else None

    def _taint(self, blocked: Blocked) -> Cause:
        kind = devices.ALL_INCOMPLETE if blocked.spec.allocation_mode == ALL else devices.TAINTED
        found: dict[str, list[DeviceTaint]] = {}
        for item in blocked.lost:
            taint = blocking_taint(item.device.taints, blocked.spec.tolerations)
            if taint is not None:
                found.setdefault(str(taint), []).append(taint)
        tolerations = [
            DeviceToleration(key=taints[0].key, value=taints[0].value, effect=taints[0].effect)
            for taints in found.values()
        ]
        rules = sorted({taint.rule for taints in found.values() for taint in taints if taint.rule})
        # A taint that the driver set says that the device is unfit: tolerating it is no way out to offer.
        proof = self._change(blocked, lambda old: tolerating(old, tolerations)) if rules else None
        listed = ", ".join(
            f"{text} on {len(taints)}" for text, taints in sorted(found.items(), key=lambda entry: -len(entry[1]))
        )
        fix = "The driver set the taint: repair or reset the device, then the driver takes the taint away."
        if rules:
            fix = f"End the maintenance (DeviceTaintRule {join(rules)}), or let the request tolerate the taint."
        missed = _missed(blocked)
        if missed and kind is devices.TAINTED:
            kind = devices.TOLERATION
            fix = f"Correct the toleration in a new claim: {missed}."
            if rules:
                fix += f" Or end the maintenance (DeviceTaintRule {join(rules)})."
            proof = self._change(blocked, lambda old: tolerating(old, tolerations))
        rest = f"; {blocked.left} untainted, {needed(blocked.located.funnel)} needed" if blocked.left else ""
        evidence = tuple(
            Evidence(f"device {item.id}", "taint", text.removeprefix("taint ") + _since(item.device.taints))
            for item, text in list(zip(blocked.lost, blocked.reasons, strict=True))[:MAX_EVIDENCE]
        )
        count = len(blocked.lost)
        return Cause(
            kind,
            f"{amount(count)} that match {blocked.located.where} {are(count)} tainted: {listed}{rest}",
            (*evidence, *_more(count, "devices tainted")),
            fix,
            str(proof) if proof else "",
        )

    def _held(self, blocked: Blocked) -> Cause:
        held: dict[str, list[str]] = {}
        claims: dict[str, ResourceClaim] = {}
        for item in blocked.lost:
            for claim in self._holders.claims(item.id):
                held.setdefault(claim.key, []).append(f"{item.id.pool}/{item.id.device}")
                claims[claim.key] = claim
        kind = devices.ALL_INCOMPLETE if blocked.spec.allocation_mode == ALL else devices.ALL_HELD
        if kind is devices.ALL_HELD and blocked.left >= blocked.spec.count:
            kind = devices.TOO_FEW
        ranked = sorted(claims.values(), key=lambda claim: (self._holders.rank(claim), len(held[claim.key])))
        if kind is devices.ALL_HELD and all(item.device.allow_multiple_allocations for item in blocked.lost):
            kind = devices.HELD_WHOLE
        kind, fix, proof, weight = self._free(ranked, kind)
        if blocked.left and kind is not devices.ALL_INCOMPLETE:
            best = _best(self._view, blocked.located.funnel, blocked.stage)
            lower, lower_proof = self._lower_count(blocked, best, "")
            if lower_proof:
                fix += f" Or: {lower[0].lower()}{lower[1:]}"
        evidence = tuple(
            Evidence(self._holders.describe_claim(claim), "holds", some(held[claim.key]))
            for claim in ranked[:MAX_EVIDENCE]
        )
        if blocked.left:
            best = _best(self._view, blocked.located.funnel, blocked.stage)
            summary = (
                f"{blocked.left} of {blocked.tested} matching devices {are(blocked.left)} free, at most {best} on one "
                f"node; {blocked.located.where} needs {needed(blocked.located.funnel)}"
            )
        elif blocked.tested == 1:
            summary = f"the only device that matches {blocked.located.where} is held by another claim"
        else:
            summary = f"all {blocked.tested} devices that match {blocked.located.where} are held by other claims"
        return Cause(
            kind,
            summary,
            (*evidence, *_more(len(held), "claims hold devices")),
            fix,
            str(proof) if proof else "",
            weight=weight,
        )

    def _free(self, claims: Sequence[ResourceClaim], kind: CauseKind) -> tuple[CauseKind, str, Proof | None, int]:
        """Which holder has to give up its devices, proved: the first of the ranked claims that suffices, else all."""
        for claim in claims[:MAX_TRIES]:
            proof = self._whatif.without_holders([claim])
            if proof is None:
                continue
            described, weight = self._holders.describe_claim(claim), self._holders.size(claim)
            if not claim.reserved_for:
                command = f"kubectl delete resourceclaim -n {claim.metadata.namespace} {claim.metadata.name}"
                return devices.ORPHANED, f"Delete the claim that nobody uses: {command}", proof, 0
            if self._holders.stuck(claim):
                return devices.HOLDER_STUCK, f"{devices.HOLDER_STUCK.fix} Here: {described}.", proof, weight
            return kind, f"It is enough that {described} gives its devices back.", proof, weight
        proof = self._whatif.without_holders(claims) if claims else None
        if proof is None:
            return kind, kind.fix, None, 0
        weight = sum(self._holders.size(claim) for claim in claims)
        return kind, "Several of these claims have to give their devices back; one alone is not enough.", proof, weight

    def _counters(self, blocked: Blocked) -> Cause:
        if not self._view.cycle.features.partitionable_devices:
            return self._needs_feature(blocked, PARTITIONS, partitionable_devices=True)
        overdrawn = all("is overdrawn" in reason for reason in blocked.reasons)
        kind = devices.OVERDRAWN if overdrawn else devices.COUNTERS
        pool_ids = {item.slice.pool for item in blocked.lost}
        users = {
            id(claim): claim
            for device, claims in self._view.cycle.state.holders.items()
            for claim in claims
            if device[:2] in pool_ids
        }
        fix, proof = kind.fix, None
        for claim in list(users.values())[:MAX_TRIES]:
            proof = self._whatif.without_holders([claim])
            if proof is not None:
                fix = f"It is enough that {self._holders.describe_claim(claim)} gives its partition back."
                break
        count = len(blocked.lost)
        return Cause(
            kind,
            f"{amount(count)} for {blocked.located.where} {are(count)} blocked by partitions in use: "
            f"{blocked.reasons[0]}",
            _by_device(blocked, "consumesCounters"),
            fix,
            str(proof) if proof else "",
        )

    def _lower_count(self, blocked: Blocked, best: int, fix: str) -> tuple[str, str]:
        if blocked.spec.allocation_mode == ALL:
            return fix, ""
        for count in range(best, max(0, best - MAX_TRIES), -1):
            proof = self._change(blocked, partial(replace, count=count))
            if proof is not None:
                return f"Lower count to {count}.", str(proof)
        return fix, ""

    def _change(self, blocked: Blocked, change: object) -> Proof | None:
        assert callable(change)
        located = blocked.located
        return self._whatif.with_request(located.claim_index, located.request_index, located.alternative, change)


def _disagreement(pool: Pool) -> Evidence | None:
    """What the slices of a pool announce, where they do not announce the same number of slices."""
    counts = {entry.name: entry.slice_count for entry in (*pool.slices, *pool.other_slices)}
    if len(set(counts.values())) < 2:
        return None
    said = join(f"{name}: {count}" for name, count in sorted(counts.items()))
    return Evidence(f"pool {pool.id}", "slices disagree on spec.pool.resourceSliceCount", said)


def _missed(blocked: Blocked) -> str:
    """What differs in tolerations that name the taints of all lost devices; empty where one has none near it."""
    texts: dict[str, None] = {}
    for item in blocked.lost:
        taint = blocking_taint(item.device.taints, blocked.spec.tolerations)
        near = [entry for entry in blocked.spec.tolerations if taint is not None and entry.key in ("", taint.key)]
        if taint is None or not near:
            return ""
        part = near[0].mismatch(taint)
        wanted = {"effect": taint.effect, "value": taint.value or '""'}.get(part or "", "Exists or Equal")
        texts[f"{part} has to be {wanted} for key {taint.key}"] = None
    return ", ".join(texts)


def needed(funnel: RequestFunnel) -> str:
    """How many devices the request needs, as text."""
    return "all" if funnel.spec.allocation_mode == ALL else str(funnel.spec.count)


def _best(view: View, funnel: RequestFunnel, stage: StageResult) -> int:
    """The most devices that any eligible node has left after a stage."""
    position = funnel.stages.index(stage)
    return max((funnel.left_on(node.name, position) for node in view.nodes), default=0)


def _by_device(blocked: Blocked, field: str) -> tuple[Evidence, ...]:
    lines = tuple(
        Evidence(f"device {item.id}", field, text)
        for item, text in list(zip(blocked.lost, blocked.reasons, strict=True))[:MAX_EVIDENCE]
    )
    return (*lines, *_more(len(blocked.lost), "devices are refused like this"))


def _more(count: int, what: str) -> tuple[Evidence, ...]:
    return (Evidence("in all", what, str(count)),) if count > MAX_EVIDENCE else ()


def _most_left(shorts: Sequence[tuple[Published, CapacityShortage]]) -> str:
    """The shortage of the device that has most left."""
    known = [(item, short) for item, short in shorts if short.value is not None and short.used is not None]
    if not known:
        return shorts[0][1].capacity
    item, short = max(known, key=lambda entry: entry[1].value - entry[1].used)  # type: ignore[operator]
    assert short.value is not None and short.used is not None
    return f"{short.amount} of {short.capacity} wanted, at most {short.value - short.used} left (on {item.id})"


def _since(taints: Collection[DeviceTaint]) -> str:
    times = sorted(taint.time_added for taint in taints if taint.time_added)
    return f", since {times[0]}" if times else ""
