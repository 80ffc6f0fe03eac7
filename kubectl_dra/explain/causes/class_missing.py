"""A request names a DeviceClass that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, nodes_named, say
from kubectl_dra.explain.trial import Trial
from kubectl_dra.names import nearest

CLASS_MISSING = CauseKind(code="class-missing", family=Family.REQUEST, look=Look.CLASSES)


def _missing(trial: Trial) -> Iterator[Finding]:
    if trial.scene.snapshot.missing("DeviceClass"):
        return
    for claim in trial.claims:
        for entry in claim.requests:
            for spec in entry.alternatives():
                if spec.device_class and spec.device_class not in trial.view.cycle.classes:
                    yield _finding(trial, claim, entry.result_name(spec), spec.device_class)


def _finding(trial: Trial, claim: ResourceClaim, name: str, wanted: str) -> Finding:
    known = list(trial.view.cycle.classes)
    near = nearest(wanted, known)
    hint = (
        say("; nearest: {near}", near=near)
        if near
        else say("; classes here: {known:some 6 else none}", known=sorted(known))
    )
    field = say('request "{name}" deviceClassName', name=name)
    evidence: tuple[Evidence, ...] = (Evidence(Subject("claim", named("ResourceClaim", claim)), field, wanted),)
    from kubectl_dra.explain.remedies.vendor_part_off import part_off

    off = part_off(wanted, trial.scene.snapshot.nodes.values(), trial.view.drivers())
    remedy = None
    if near:
        remedy = Remedy(say(_correct(trial, claim), near=near, first=near[0], wanted=wanted))
    elif off is not None:
        evidence = (*off.evidence, *evidence)
        remedy = Remedy(say("{fix} The chart brings the class.", fix=off.fix))
        if off.nodes:
            hint = say(", although nodes {nodes:some} have GPUs", nodes=nodes_named(off.nodes))
    summary = say("DeviceClass {wanted} does not exist{hint}", wanted=wanted, hint=hint)
    return Finding(CLASS_MISSING, summary, evidence, remedy, claim=claim.key, request=name)


def _correct(trial: Trial, claim: ResourceClaim) -> str:
    """Where to write another class: claims and templates cannot be changed."""
    made = any(entry.template and entry.claim is claim for entry in trial.question.claims)
    where = "a new template, and name that in the pod" if made else "a new claim"
    if not trial.question.exists:
        where = "the manifest"
    return f"Write deviceClassName: {{first}} in {where}, or install the driver that brings {{wanted}}."


FINDERS = (Finder(When.SCENE, _missing, 50),)
