"""What to look at next: more about the first cause, and never what was just shown; and where a fix is made.

Nobody can look at nodes that are only supposed: commands about them are taken out of a finished diagnosis, because a
hundred places in causes and remedies name some, and none of them has to know which nodes are real.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.pods import Owner, Pod, owner_of, replaced_by
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.command import CommandLine, is_name
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import Look, NextStep, slices_step
from kubectl_dra.explain.diagnosis import Diagnosis, Finding
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.resolve import ClaimEntry
from kubectl_dra.explain.question.what_if_flag import WITH_NODE, WhatIfChange
from kubectl_dra.explain.remedies.change import CompletePool, DropConstraint, RequestChange
from kubectl_dra.explain.remedies.node_rules import LessOfNode, RelaxNodeRule
from kubectl_dra.explain.remedies.prove import Change
from kubectl_dra.explain.unread_kind import Unread, if_none

OUR_PAGE: Final = (Look.DEVICES, Look.SELECTORS, Look.ONE_DEVICE)
"""Where what to look at next stands on the full page, or behind it: it asks the same question, with its new nodes."""


def next_step(
    analysis: Analysis, verdict: Verdict, findings: Sequence[Finding], unclear: Sequence[Words] = ()
) -> NextStep | None:
    """The step, or None if none helps. ``unclear``: why the verdict is undetermined."""
    question = analysis.question
    first = findings[0] if findings else None
    if verdict is Verdict.UNDETERMINED and first is None:
        return to_see_more(unclear)
    if first is not None and first.kind.look is Look.EXPLAIN_POD and (rival := _rival(analysis)):
        return NextStep(Look.EXPLAIN_POD, rival, question.namespace)
    if verdict is Verdict.SCHEDULABLE and analysis.settings.supposed:
        return _to_make(analysis, analysis.settings.supposed[0])
    if verdict is Verdict.SCHEDULABLE and question.kind == "pod":
        return _pod(analysis)
    if first is not None:
        return _about(analysis, first)
    waits = question.pod is not None and question.pod.phase in ("", "Pending")
    return _pod(analysis) if verdict is Verdict.ALLOCATED and waits else None


def _about(analysis: Analysis, finding: Finding) -> NextStep | None:
    if finding.next is not None:
        return finding.next
    look, question = finding.kind.look, analysis.question
    if look is Look.CLAIM and finding.claim:
        namespace, _, name = finding.claim.partition("/")
        return NextStep(Look.AS_WRITTEN, name, namespace, "resourceclaim")
    if look in (Look.PODS_ON_NODE, Look.ONE_NODE) and question.pod is not None and question.pod.node_name:
        return NextStep(look, question.pod.node_name)
    if look in (Look.POD, Look.EXPLAIN_POD, Look.CLAIM, Look.PODS_ON_NODE, Look.ONE_NODE):
        return _pod(analysis)
    if look is Look.AS_WRITTEN:
        return _as_written(analysis, finding)
    if look in OUR_PAGE:
        return _devices(analysis, finding)
    if look is Look.SLICES and finding.device is not None:
        return NextStep(look, finding.device.driver, kind="spec.driver")
    return NextStep(look, namespace=question.namespace)


def _devices(analysis: Analysis, finding: Finding) -> NextStep:
    """From the answer to every device; from there to the selectors on one device, or to who has which device."""
    located = next((candidate for candidate in analysis.funnels if candidate.funnel.name == finding.request), None)
    stage = located.funnel.blocking_stage if located is not None else None
    device = finding.device or (stage.failed[0].id if stage is not None and stage.failed else None)
    shown, look = analysis.settings.with_devices, finding.kind.look
    if device is not None and (look is Look.ONE_DEVICE or (look is Look.SELECTORS and shown)):
        return NextStep(Look.ONE_DEVICE, str(device))
    if not shown:
        return NextStep(Look.DEVICES)
    return NextStep(Look.DEVICES_OF_CLASS, _class_of(analysis, finding))


def _class_of(analysis: Analysis, finding: Finding) -> str:
    """The class of the request that a cause concerns; empty if it concerns none."""
    return next(
        (located.funnel.device_class.name for located in analysis.funnels if located.funnel.name == finding.request), ""
    )


# What a fix without a command of its own is made in, or decided by.


def place_of_fix(analysis: Analysis, finding: Finding) -> NextStep | None:
    """What to look at for the fix of a cause; None where no object shows more than the answer."""
    remedy = finding.remedy
    if remedy is not None and remedy.place is not None:
        return remedy.place
    if remedy is not None and remedy.in_claim and (place := _configured(analysis)):
        return place
    if remedy is not None and remedy.offers and (place := place_of(analysis, remedy.offers[0])):
        return place
    if finding.kind.look not in OUR_PAGE or finding.next is not None:
        return _about(analysis, finding)
    if finding.kind.fixed_at is not None:
        return NextStep(finding.kind.fixed_at)
    if finding.kind.held:
        return NextStep(Look.DEVICES_OF_CLASS, _class_of(analysis, finding))
    return _as_written(analysis, finding) or _claim(analysis)


def place_of(analysis: Analysis, change: Change) -> NextStep | None:
    """What a change is made in: a template or claim, what makes the pod, a node, or ResourceSlices."""
    if isinstance(change, RequestChange):
        if change.place.extended:
            return _maker(analysis)
        return _template_or_claim(analysis, analysis.what_if.claims[change.place.claim].key)
    if isinstance(change, DropConstraint):
        return _template_or_claim(analysis, change.key)
    if isinstance(change, LessOfNode):
        return _maker(analysis)
    if isinstance(change, RelaxNodeRule):
        return NextStep(Look.ONE_NODE, change.nodes[0]) if change.of_nodes else _maker(analysis)
    return slices_step(change.whole) if isinstance(change, CompletePool) else None


def _claim(analysis: Analysis) -> NextStep | None:
    """The claim that was asked about."""
    question = analysis.question
    if question.kind != "claim" or not question.exists:
        return None
    return next((_written(analysis, entry) for entry in question.claims if entry.claim is not None), None)


def _configured(analysis: Analysis) -> NextStep | None:
    """The claim, or its template, that has a configuration for a driver; of several without one, the first."""
    entries = [entry for entry in analysis.question.claims if entry.claim is not None and analysis.question.exists]
    entries.sort(key=lambda entry: not (entry.claim is not None and entry.claim.config))
    return _written(analysis, entries[0]) if entries else None


def _maker(analysis: Analysis) -> NextStep | None:
    """What makes the pod, else the pod, as it is written."""
    question = analysis.question
    if question.pod is None or not question.exists:
        return None
    owner = owner_of(question.pod) or Owner("Pod", question.name)
    return NextStep(Look.AS_WRITTEN, owner.name, question.namespace, owner.kind.lower())


def _template_or_claim(analysis: Analysis, key: str) -> NextStep | None:
    """The template of a claim, or the claim; None where only a manifest has it."""
    for claim_entry in analysis.question.claims if analysis.question.exists else ():
        if claim_entry.claim is not None and claim_entry.claim.key == key:
            # Nobody writes the claim for extended resources.
            return _written(analysis, claim_entry) if is_name(claim_entry.claim.metadata.name) else _maker(analysis)
    return None


def _as_written(analysis: Analysis, finding: Finding) -> NextStep | None:
    """What has to be corrected: a class, the template of a claim, or the claim."""
    if finding.device_class:
        return NextStep(Look.AS_WRITTEN, finding.device_class, kind="deviceclass")
    keys = (key for key in (finding.claim, finding.object) if key)
    return next((place for key in keys if (place := _template_or_claim(analysis, key))), None)


def _to_make(analysis: Analysis, change: WhatIfChange) -> NextStep | None:
    """What to look at to make a change real: the claim's holder, the taints, or what requests devices."""
    if change.kind == "end" and len(analysis.settings.ended) > 1:
        return _to_end(analysis.settings.ended)
    if change.kind in ("free", "end"):
        namespace, _, name = change.value.split(",")[0].strip().rpartition("/")
        namespace = namespace or analysis.question.namespace
        look = Look.CLAIM_HOLDER if change.kind == "free" else Look.END_POD
        pod = next((ended_pod for ended_pod in analysis.settings.ended if key_of(ended_pod) == (namespace, name)), None)
        if pod is not None and change.kind == "end" and pod.metadata.deletion_timestamp:
            look = Look.EXPLAIN_POD
        elif pod is not None and change.kind == "end" and (owner := replaced_by(pod)) is not None:
            return NextStep(Look.AS_WRITTEN, owner.name, namespace, owner.kind.lower())
        return NextStep(look, name, namespace)
    if change.kind == WITH_NODE:
        return None
    if change.kind == "untaint":
        return NextStep(Look.TAINTS)
    for claim_entry in analysis.question.claims if analysis.question.exists else ():
        if claim_entry.claim is not None and claim_entry.claim.allocation is None:
            return _written(analysis, claim_entry)
    return None


def _to_end(pods: Sequence[Pod]) -> NextStep | None:
    """How to end all of these pods, but those that end already; None where no single command does."""
    left = [pod for pod in pods if not pod.metadata.deletion_timestamp]
    if not left:
        return NextStep(Look.EXPLAIN_POD, pods[0].metadata.name, pods[0].metadata.namespace)
    space = left[0].metadata.namespace
    for pod in left:
        # One that is deleted comes back.
        if (owner := replaced_by(pod)) is not None:
            return NextStep(Look.AS_WRITTEN, owner.name, pod.metadata.namespace, owner.kind.lower())
    if any(pod.metadata.namespace != space for pod in left):
        return None
    first, *others = (pod.metadata.name for pod in left)
    return NextStep(Look.END_POD, first, space, others=tuple(others))


def _written(analysis: Analysis, claim_entry: ClaimEntry) -> NextStep | None:
    """The template of a claim, or the claim; None where only a manifest has it."""
    assert claim_entry.claim is not None
    kind = "ResourceClaimTemplate" if claim_entry.template else "ResourceClaim"
    name, namespace = claim_entry.template or claim_entry.claim.metadata.name, analysis.question.namespace
    if (kind, namespace, name) in analysis.snapshot.created:
        return None
    return NextStep(Look.AS_WRITTEN, name, namespace, kind.lower())


def _rival(analysis: Analysis) -> str:
    """Another pod of the namespace that uses a claim to be allocated."""
    name = analysis.question.name
    pods = (pod for claim in analysis.claims for pod in waiting_for(claim, analysis.snapshot))
    return next((pod.metadata.name for pod in pods if pod.metadata.name != name), "")


def _pod(analysis: Analysis) -> NextStep | None:
    question = analysis.question
    return NextStep(Look.POD, question.name, question.namespace) if question.exists and question.kind == "pod" else None


def to_see_more(unclear: Sequence[Words]) -> NextStep | None:
    """Next step for what was not read: the answer if there is none, a complete snapshot, or the missing permission."""
    if if_none(unclear):
        return NextStep(Look.COMPLETE)
    gaps = [reason.gap for reason in unclear if isinstance(reason, Unread)]
    permission = next((gap.permission for gap in gaps if gap.permission is not None), None)
    if permission is not None:
        return NextStep(Look.PERMISSION, kind=".".join(filter(None, (permission.resource, permission.group))))
    return NextStep(Look.SNAPSHOT) if any(gap.reason == ABSENT for gap in gaps) else None


def without_commands_for(nodes: Set[str], diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis without the commands that are about these nodes."""

    def real(step: NextStep | None) -> NextStep | None:
        if step is None or step.look in OUR_PAGE or nodes.isdisjoint((step.name, step.kind)):
            return step
        return None

    def about(command: CommandLine) -> bool:
        words = () if f"--{WITH_NODE}" in command.argv else command.argv
        return any(not nodes.isdisjoint(re.split("[/=,]", word)) for word in words)

    def of_finding(finding: Finding) -> Finding:
        remedy = finding.remedy
        if remedy is not None:
            commands = tuple(command for command in remedy.commands if not about(command))
            remedy = replace(remedy, commands=commands, place=real(remedy.place))
        return replace(finding, remedy=remedy, next=real(finding.next), place_of_fix=real(finding.place_of_fix))

    findings = tuple(map(of_finding, diagnosis.findings))
    ways = tuple(replace(way, place=real(way.place)) for way in diagnosis.ways)
    return replace(diagnosis, next=real(diagnosis.next), findings=findings, ways=ways)
