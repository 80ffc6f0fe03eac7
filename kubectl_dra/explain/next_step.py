"""What to look at next: more about the first cause, and never what was just shown."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.cluster.relation import waiting_for
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.explain.diagnosis import Finding, Look, NextStep, Verdict
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.resolve import ClaimEntry
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.trial import Trial
from kubectl_dra.explain.unread import Unread


def next_step(
    trial: Trial, verdict: Verdict, findings: Sequence[Finding], unclear: Sequence[Words] = ()
) -> NextStep | None:
    """The step, or None if none helps. ``unclear``: why the verdict is undetermined."""
    asked = trial.question
    first = findings[0] if findings else None
    if verdict is Verdict.UNDETERMINED and first is None:
        return _to_see_more(unclear)
    if first is not None and first.kind.look is Look.POD_OF_SAME_CLAIM and (rival := _rival(trial)):
        return NextStep(Look.POD_OF_SAME_CLAIM, rival, asked.namespace)
    if verdict is Verdict.ALLOCATABLE and trial.scene.settings.supposed:
        return _to_make(trial, trial.scene.settings.supposed[0])
    if verdict is Verdict.ALLOCATABLE and asked.kind == "pod":
        return _pod(trial)
    if first is not None:
        return _about(trial, first)
    waits = asked.pod is not None and asked.pod.phase in ("", "Pending")
    return _pod(trial) if verdict is Verdict.ALLOCATED and waits else None


def _about(trial: Trial, finding: Finding) -> NextStep | None:
    if finding.next is not None:
        return finding.next
    look, asked = finding.kind.look, trial.question
    if look is Look.CLAIM and finding.claim:
        namespace, _, name = finding.claim.partition("/")
        return NextStep(Look.AS_WRITTEN, name, namespace, "resourceclaim")
    if look is Look.PODS_ON_NODE and asked.pod is not None and asked.pod.node_name:
        return NextStep(look, asked.pod.node_name)
    if look in (Look.POD, Look.POD_OF_SAME_CLAIM, Look.CLAIM, Look.PODS_ON_NODE):
        return _pod(trial)
    if look is Look.AS_WRITTEN:
        return _as_written(trial, finding)
    if look in (Look.DEVICES, Look.SELECTORS, Look.ONE_DEVICE):
        return _devices(trial, finding)
    return NextStep(look, namespace=asked.namespace)


def _devices(trial: Trial, finding: Finding) -> NextStep:
    """From the answer to every device; from there to the selectors on one device, or to who has which device."""
    located = next((entry for entry in trial.funnels if entry.funnel.name == finding.request), None)
    stage = located.funnel.blocking_stage() if located is not None else None
    device = finding.device or (stage.failed[0].id if stage is not None and stage.failed else None)
    shown, look = trial.scene.settings.with_devices, finding.kind.look
    if device is not None and (look is Look.ONE_DEVICE or (look is Look.SELECTORS and shown)):
        return NextStep(Look.ONE_DEVICE, str(device))
    if not shown:
        return NextStep(Look.DEVICES)
    return NextStep(Look.DEVICES_OF_CLASS, located.funnel.device_class.name if located is not None else "")


def _as_written(trial: Trial, finding: Finding) -> NextStep | None:
    """What has to be corrected: a class, the template of a claim, or the claim."""
    if finding.device_class:
        return NextStep(Look.AS_WRITTEN, finding.device_class, kind="deviceclass")
    for entry in trial.question.claims if trial.question.exists else ():
        if entry.claim is not None and entry.claim.key in (finding.claim, finding.object):
            return _written(trial, entry)
    return None


def _to_make(trial: Trial, change: Supposition) -> NextStep | None:
    """What to look at to make a change real: the claim's holder, the taints, or what requests devices."""
    if change.kind == "free":
        namespace, _, name = change.value.split(",")[0].strip().rpartition("/")
        return NextStep(Look.CLAIM_HOLDER, name, namespace or trial.question.namespace)
    if change.kind == "end":
        return NextStep(Look.ALL_PODS)
    if change.kind == "untaint":
        return NextStep(Look.TAINTS)
    for entry in trial.question.claims if trial.question.exists else ():
        if entry.claim is not None and entry.claim.allocation is None:
            return _written(trial, entry)
    return None


def _written(trial: Trial, entry: ClaimEntry) -> NextStep:
    """The template of a claim, or the claim."""
    assert entry.claim is not None
    kind = "resourceclaimtemplate" if entry.template else "resourceclaim"
    return NextStep(Look.AS_WRITTEN, entry.template or entry.claim.metadata.name, trial.question.namespace, kind)


def _rival(trial: Trial) -> str:
    """Another pod of the namespace that uses a claim to be allocated."""
    name = trial.question.name
    pods = (pod for claim in trial.claims for pod in waiting_for(claim, trial.scene.snapshot))
    return next((pod.metadata.name for pod in pods if pod.metadata.name != name), "")


def _pod(trial: Trial) -> NextStep | None:
    asked = trial.question
    return NextStep(Look.POD, asked.name, asked.namespace) if asked.exists and asked.kind == "pod" else None


def _to_see_more(unclear: Sequence[Words]) -> NextStep | None:
    """How to see what was not seen: a complete snapshot, or the missing permission."""
    gaps = [one.gap for one in unclear if isinstance(one, Unread)]
    permission = next((gap.permission for gap in gaps if gap.permission is not None), None)
    if permission is not None:
        return NextStep(Look.PERMISSION, kind=".".join(filter(None, (permission.resource, permission.group))))
    return NextStep(Look.SNAPSHOT) if any(gap.reason == ABSENT for gap in gaps) else None
