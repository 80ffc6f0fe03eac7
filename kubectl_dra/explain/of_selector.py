"""Causes in selectors: of the class, and of the request, with the value that would do."""

from __future__ import annotations

from functools import partial

from kubectl_dra.explain.blocked import Blocked, Surroundings, needed
from kubectl_dra.explain.causes import devices, pools, request
from kubectl_dra.explain.diagnosis import Cause, CauseKind, Evidence
from kubectl_dra.explain.funnel.observed_values import observations
from kubectl_dra.explain.funnel.stages import StageResult
from kubectl_dra.explain.of_pools import device_plugins, empty_slices
from kubectl_dra.explain.remedies.other_class import instead
from kubectl_dra.explain.remedies.prove import Proof
from kubectl_dra.explain.remedies.selector_values import MAX_TEXTS, loosened, with_term
from kubectl_dra.explain.remedies.vendor_part_off import DRIVER_TERM, part_off
from kubectl_dra.explain.scene.view import View
from kubectl_dra.wording import amount, some


def class_selector(around: Surroundings, blocked: Blocked) -> Cause:
    device_class = blocked.located.funnel.device_class
    drivers = around.view.drivers()
    for expression in device_class.selectors:
        wanted = DRIVER_TERM.search(expression or "")
        if wanted is None or wanted["driver"] in drivers:
            continue
        kind = pools.NO_SLICES
        off = part_off(wanted["driver"], around.view.nodes, drivers)
        return Cause(
            kind,
            f"driver {wanted['driver']} publishes no devices (class {device_class.name} wants it; drivers "
            f"here: {', '.join(sorted(drivers)) or 'none'})",
            (
                Evidence(f"DeviceClass {device_class.name}", "spec.selectors", " ".join((expression or "").split())),
                Evidence("ResourceSlices", f"with spec.driver {wanted['driver']}", "0"),
                *empty_slices(around.view, wanted["driver"]),
                *device_plugins(around.view, wanted["driver"]),
                *(off.evidence if off else ()),
            ),
            off.fix if off else kind.fix,
        )
    return _selector(around, blocked, request.CLASS_MATCHES_NOTHING, f"DeviceClass {device_class.name}")


def request_selector(around: Surroundings, blocked: Blocked) -> Cause:
    return _selector(around, blocked, request.SELECTOR_MATCHES_NOTHING, f"claim {blocked.located.claim.key}")


def _selector(around: Surroundings, blocked: Blocked, kind: CauseKind, owner: str) -> Cause:
    funnel, stage = blocked.located.funnel, blocked.stage
    what = (
        f"class {funnel.device_class.name}"
        if stage.name == "class-selector"
        else f"{stage.label} of {blocked.located.where}"
    )
    evidence = [Evidence(owner, "selector term", stage.expression)]
    have = have_instead(around.view, stage)
    if blocked.left:
        best = around.best(blocked)
        summary = (
            f"{what} is true on {blocked.left} of {blocked.tested} devices, but {blocked.located.where} needs "
            f"{needed(funnel)} on one node and no node has more than {best}"
        )
        fix, proof = around.lower_count(blocked, best, devices.TOO_FEW.fix)
        return Cause(devices.TOO_FEW, summary, tuple(evidence), fix, proof)
    every = "the only device" if blocked.tested == 1 else f"all {amount(blocked.tested)}"
    where = f" of {some(blocked.nodes)}" if blocked.nodes and stage.passed else ""
    fails = "false" if not stage.errors else f"false or an error ({stage.errors[0][1]})"
    summary = f"{what} is {fails} on {every}{where}: {stage.expression}"
    if have:
        summary += f" ({have})"
    other = instead(around, blocked)
    if other is not None:
        name, proved = other
        fix = f"The selector asks for devices of another driver than the class: use class {name}."
        return Cause(kind, summary, tuple(evidence), fix, str(proved))
    found = _other_value(around, blocked)
    if found is not None:
        new, proved = found
        return Cause(kind, summary, tuple(evidence), f"Ask for what there is: {new}.", str(proved))
    without = _without_term(around, blocked)
    if without is None:
        return Cause(kind, summary, tuple(evidence), kind.fix)
    fix = f"Ask for what there is ({have}), or drop the term." if have else "Relax or drop the term."
    return Cause(kind, summary, tuple(evidence), fix, f"without the term {str(without).removeprefix('then ')}")


def _other_value(around: Surroundings, blocked: Blocked) -> tuple[str, Proof] | None:
    """A value that devices have, in place of one that the term asks for, with which the claims fit."""
    stage = blocked.stage
    if stage.name != "request-selector":
        return None
    selectors = around.view.cycle.selectors
    index = blocked.spec.selectors.index(stage.program)
    for offer in loosened(selectors, stage.program, stage.term, [item.device for item in blocked.lost]):
        carriers = {id(device) for device in offer.carriers}
        near = around.view.near(item for item in blocked.lost if id(item.device) in carriers)
        proof = around.change(blocked, partial(with_term, selectors, index, offer.old_term, offer.term), near)
        if proof is not None:
            return str(offer), proof
    return None


def _without_term(around: Surroundings, blocked: Blocked) -> Proof | None:
    stage = blocked.stage
    if stage.name != "request-selector":
        return None
    selectors = around.view.cycle.selectors
    index, old = blocked.spec.selectors.index(stage.program), selectors.terms(stage.program)[stage.term].expression
    return around.change(blocked, partial(with_term, selectors, index, old, "true"))


def have_instead(view: View, stage: StageResult) -> str:
    terms = view.cycle.selectors.terms(stage.program)
    if not terms or not stage.failed:
        return ""
    parts: list[str] = []
    for seen in observations(terms[stage.term], [item.device for item in stage.failed])[:2]:
        if len(seen.values) > MAX_TEXTS and seen.values[0][1] == 1:
            parts.append(f"{seen.name}: {len(seen.values):,} different values, such as {seen.values[0][0]}")
            continue
        values = [f"{'absent' if value is None else value} on {count}" for value, count in seen.values[:4]]
        more = len(seen.values) - 4
        parts.append(f"{seen.name}: {', '.join(values)}" + (f", {more} other values" if more > 0 else ""))
    return "; ".join(parts)
