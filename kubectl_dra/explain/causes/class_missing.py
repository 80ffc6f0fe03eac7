"""A DeviceClass that a request names and that does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Subject, named, nodes_named, say
from kubectl_dra.text import nearest

CLASS_MISSING = CauseKind(code="class-missing", family=Family.REQUEST, look=Look.CLASSES)


def _class_missing(analysis: Analysis) -> Iterator[Finding]:
    if analysis.snapshot.missing("DeviceClass"):
        return
    for claim in analysis.claims:
        for request in claim.requests:
            for spec in request.alternatives():
                if spec.device_class and spec.device_class not in analysis.view.cycle.classes:
                    yield _finding(analysis, claim, request.result_name(spec), spec.device_class)


def _finding(analysis: Analysis, claim: ResourceClaim, name: str, wanted: str) -> Finding:
    known = list(analysis.view.cycle.classes)
    near = nearest(wanted, known)
    hint = (
        say("; did you mean {near:or}?", near=near)
        if near
        else say("; classes here: {known:some 6 else none}", known=sorted(known))
    )
    field = say('request "{name}" deviceClassName', name=name)
    evidence: tuple[Evidence, ...] = (Evidence(Subject("claim", named("ResourceClaim", claim)), field, wanted),)
    from kubectl_dra.explain.remedies.candidates import turn_on

    off = turn_on(wanted, analysis.snapshot.nodes.values(), analysis.view.drivers())
    remedy = None
    if near:
        remedy = Remedy(say(_correct(analysis, claim), near=near, first=near[0], wanted=wanted))
    elif off is not None:
        evidence = (*off.evidence, *evidence)
        remedy = Remedy(say("{fix} The chart brings the class.", fix=off.fix))
        if off.nodes:
            hint = say(", although nodes {nodes:some} have GPUs", nodes=nodes_named(off.nodes))
    summary = say("DeviceClass {wanted} does not exist{hint}", wanted=wanted, hint=hint)
    return Finding(CLASS_MISSING, summary, evidence, remedy, claim=claim.key, request=name)


def _correct(analysis: Analysis, claim: ResourceClaim) -> str:
    """Where to write another class: claims and templates cannot be changed."""
    from_template = any(claim_entry.template and claim_entry.claim is claim for claim_entry in analysis.question.claims)
    where = "a new template, and name that template in the pod" if from_template else "a new claim"
    if not analysis.question.exists:
        where = "the manifest"
    return f"Write deviceClassName: {{first}} in {where}, or install the driver that brings {{wanted}}."


FINDERS = (Finder(When.SCENE, _class_missing, 50),)
