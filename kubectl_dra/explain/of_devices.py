"""Causes in devices that match but cannot be had: too few, tainted, held by somebody else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kubectl_dra.api.claims import ALL, MAX_RESULTS, ResourceClaim
from kubectl_dra.api.taints import DeviceTaint, DeviceToleration, blocking_taint
from kubectl_dra.explain.blocked import MAX_EVIDENCE, MAX_TRIES, Blocked, Surroundings, in_all, needed
from kubectl_dra.explain.causes import devices
from kubectl_dra.explain.diagnosis import Cause, CauseKind, Evidence
from kubectl_dra.explain.remedies.prove import Proof, tolerating
from kubectl_dra.wording import amount, are, join, some


def too_few(around: Surroundings, blocked: Blocked) -> Cause:
    kind = devices.TOO_FEW
    best = around.best(blocked)
    fix, proof = around.lower_count(blocked, best, kind.fix)
    evidence = tuple(
        Evidence(f"node {name}", "devices of this kind", str(len(around.view.on_node(name))))
        for name in blocked.nodes[:MAX_EVIDENCE]
    )
    apart = _in_shares(around, blocked) if best else None
    if apart is not None:
        fix = f"Write {blocked.spec.count} requests of count 1: they may share a device, which one request takes once."
        proof = str(apart)
    return Cause(
        kind,
        f"{blocked.located.where} needs {amount(blocked.spec.count)} on one node, and no eligible node has more "
        f"than {best}",
        evidence,
        fix,
        proof,
    )


def _in_shares(around: Surroundings, blocked: Blocked) -> Proof | None:
    """The proof that a request fits as several requests of count 1, where its devices may be shared."""
    funnel, count = blocked.located.funnel, blocked.spec.count
    if blocked.spec.allocation_mode == ALL or not 1 < count <= MAX_RESULTS:
        return None
    if not any(item.device.allow_multiple_allocations for item in funnel.usable):
        return None
    return around.whatif.with_split(blocked.located.claim_index, blocked.located.request_index)


def taint(around: Surroundings, blocked: Blocked) -> Cause:
    kind = devices.ALL_INCOMPLETE if blocked.spec.allocation_mode == ALL else devices.TAINTED
    found: dict[str, list[DeviceTaint]] = {}
    for item in blocked.lost:
        taint = blocking_taint(item.device.taints, blocked.spec.tolerations)
        if taint is not None:
            found.setdefault(str(taint), []).append(taint)
    tolerations = [
        DeviceToleration(key=taints[0].key, value=taints[0].value, effect=taints[0].effect) for taints in found.values()
    ]
    rules = sorted({taint.rule for taints in found.values() for taint in taints if taint.rule})
    # A taint that the driver set says that the device is unfit: tolerating it is no way out to offer.
    proof = around.change(blocked, lambda old: tolerating(old, tolerations)) if rules else None
    listed = ", ".join(
        f"{text} on {len(taints)}" for text, taints in sorted(found.items(), key=lambda entry: -len(entry[1]))
    )
    fix = (
        "The driver set the taint: repair or reset the device, then the driver takes the taint away (some do so only "
        "when they are restarted)."
    )
    if rules:
        fix = f"End the maintenance (DeviceTaintRule {join(rules)}), or let the request tolerate the taint."
    missed = _missed(blocked)
    if missed and kind is devices.TAINTED:
        kind = devices.TOLERATION
        fix = f"Correct the toleration in a new claim: {missed}."
        if rules:
            fix += f" Or end the maintenance (DeviceTaintRule {join(rules)})."
        proof = around.change(blocked, lambda old: tolerating(old, tolerations))
    rest = f"; {blocked.left} untainted, {needed(blocked.located.funnel)} needed" if blocked.left else ""
    evidence = tuple(
        Evidence(f"device {item.id}", "taint", text.removeprefix("taint ") + _since(item.device.taints))
        for item, text in list(zip(blocked.lost, blocked.reasons, strict=True))[:MAX_EVIDENCE]
    )
    count = len(blocked.lost)
    return Cause(
        kind,
        f"{amount(count)} that {'matches' if count == 1 else 'match'} {blocked.located.where} {are(count)} tainted: "
        f"{listed}{rest}",
        (*evidence, *in_all(count, "devices tainted")),
        fix,
        str(proof) if proof else "",
    )


def held(around: Surroundings, blocked: Blocked) -> Cause:
    held: dict[str, list[str]] = {}
    claims: dict[str, ResourceClaim] = {}
    for item in blocked.lost:
        for claim in around.holders.claims(item.id):
            held.setdefault(claim.key, []).append(f"{item.id.pool}/{item.id.device}")
            claims[claim.key] = claim
    kind = devices.ALL_INCOMPLETE if blocked.spec.allocation_mode == ALL else devices.ALL_HELD
    if kind is devices.ALL_HELD and blocked.left >= blocked.spec.count:
        kind = devices.TOO_FEW
    ranked = sorted(claims.values(), key=lambda claim: (around.holders.rank(claim), len(held[claim.key])))
    if kind is devices.ALL_HELD and all(item.device.allow_multiple_allocations for item in blocked.lost):
        kind = devices.HELD_WHOLE
    kind, fix, proof, weight = _free(around, ranked, kind)
    if blocked.left and kind is not devices.ALL_INCOMPLETE:
        best = around.best(blocked)
        lower, lower_proof = around.lower_count(blocked, best, "")
        if lower_proof:
            fix += f" Or: {lower[0].lower()}{lower[1:]}"
    evidence = tuple(
        Evidence(around.holders.describe_claim(claim), "holds", some(held[claim.key]))
        for claim in ranked[:MAX_EVIDENCE]
    )
    if blocked.left:
        best = around.best(blocked)
        summary = (
            f"{blocked.left:,} of {blocked.tested:,} matching devices {are(blocked.left)} free, at most {best} on one "
            f"node; {blocked.located.where} needs {needed(blocked.located.funnel)}"
        )
    elif blocked.tested == 1:
        summary = f"the only device that matches {blocked.located.where} is held by another claim"
    else:
        every = "both" if blocked.tested == 2 else f"all {blocked.tested:,}"
        summary = f"{every} devices that match {blocked.located.where} are held by other claims"
    return Cause(
        kind,
        summary,
        (*evidence, *in_all(len(held), "claims hold devices")),
        fix,
        str(proof) if proof else "",
        weight=weight,
    )


def _free(
    around: Surroundings, claims: Sequence[ResourceClaim], kind: CauseKind
) -> tuple[CauseKind, str, Proof | None, int]:
    """Which holder has to give up its devices, proved: the first of the ranked claims that suffices, else all."""
    for claim in claims[:MAX_TRIES]:
        proof = around.whatif.without_holders([claim], around.view.held_near(claim))
        if proof is None:
            continue
        described, weight = around.holders.describe_claim(claim), around.holders.size(claim)
        if not claim.reserved_for:
            command = f"kubectl delete resourceclaim -n {claim.metadata.namespace} {claim.metadata.name}"
            return devices.ORPHANED, f"Delete the claim that nobody uses: {command}", proof, 0
        if around.holders.stuck(claim):
            return devices.HOLDER_STUCK, f"{devices.HOLDER_STUCK.fix} Here: {described}.", proof, weight
        return kind, f"It is enough that {described} gives its devices back{_rank(around, claim)}.", proof, weight
    proof = around.whatif.without_holders(claims) if claims else None
    if proof is None:
        return kind, kind.fix, None, 0
    weight = sum(around.holders.size(claim) for claim in claims)
    return kind, "Several of these claims have to give their devices back; one alone is not enough.", proof, weight


def _rank(around: Surroundings, claim: ResourceClaim) -> str:
    """Priority and age of the pods that hold a claim: whom to ask is for people to decide."""
    said = [
        f"priority {pod.priority}"
        + (f", since {pod.metadata.creation_timestamp}" if pod.metadata.creation_timestamp else "")
        for pod in around.holders.pods_of(claim)[:2]
        if pod.priority or pod.metadata.creation_timestamp
    ]
    return f" ({'; '.join(said)})" if said else ""


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


def _since(taints: Collection[DeviceTaint]) -> str:
    times = sorted(taint.time_added for taint in taints if taint.time_added)
    return f", since {times[0]}" if times else ""
