"""The command that helps next: it shows more of what the first cause is about, and is never the one just run."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import ABSENT, FORBIDDEN
from kubectl_dra.explain.blocked import Located
from kubectl_dra.explain.causes import claim, devices, extended, node, pod, pools, request
from kubectl_dra.explain.diagnosis import Cause, Verdict
from kubectl_dra.explain.question.resolve import PodClaimState
from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.scene.prepare import Case
from kubectl_dra.explain.unscheduled import consumers

_SELECTORS = (request.SELECTOR_ERROR, request.SELECTOR_MATCHES_NOTHING, request.CLASS_MATCHES_NOTHING)
_WRITTEN = (request.SELECTOR_COMPILE, request.TOO_MANY_DEVICES, request.UNSUPPORTED, request.TOO_MANY_TOGETHER)
_NODES = "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"
_CLASSES = "kubectl get deviceclasses -o custom-columns=NAME:.metadata.name,RESOURCE:.spec.extendedResourceName"
_SNAPSHOT = " --snapshot "
_LISTING = "kubectl dra devices"
_TAINTS = "kubectl dra taint --list"
_PLURALS = {
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}


def next_command(case: Case, verdict: Verdict, causes: Sequence[Cause], funnels: Sequence[Located]) -> str:
    """The command, asking the same cluster; empty where none helps."""
    command, where = _command(case, verdict, causes, funnels), case.settings.where
    if (
        not command
        or command.startswith("kubectl dra explain")
        or (where.startswith(_SNAPSHOT) and not command.startswith((_LISTING, _TAINTS)))
    ):
        return command
    return command + where


def _command(case: Case, verdict: Verdict, causes: Sequence[Cause], funnels: Sequence[Located]) -> str:
    asked = case.question
    if verdict is Verdict.UNDETERMINED and not causes:
        return _to_see_more(case)
    if causes and causes[0].kind is claim.IN_FLIGHT and (others := _rivals(case)):
        return f"kubectl dra explain pod/{others[0].metadata.name} -n {asked.namespace}{case.settings.where}"
    if verdict is Verdict.ALLOCATABLE and case.settings.supposed:
        return _to_make(case, case.settings.supposed[0])
    if verdict is Verdict.ALLOCATABLE and asked.kind == "pod":
        return _describe(case)
    if causes:
        return _about(case, causes[0], funnels)
    waits = asked.pod is not None and asked.pod.phase in ("", "Pending")
    return _describe(case) if verdict is Verdict.ALLOCATED and waits else ""


def _about(case: Case, cause: Cause, funnels: Sequence[Located]) -> str:
    kind, asked = cause.kind, case.question
    if kind is node.EVICTED:
        return f"{_LISTING} --tainted -o wide"
    if kind is pod.QUOTA:
        return f"kubectl describe resourcequota -n {asked.namespace}"
    if kind in (claim.BINDING_PENDING, claim.BINDING_FAILED) and cause.claim:
        namespace, _, name = cause.claim.partition("/")
        return f"kubectl get resourceclaim -n {namespace} {name} -o yaml"
    if kind in node.KINDS and asked.pod is not None and asked.pod.node_name:
        return f"kubectl get pods -A --field-selector spec.nodeName={asked.pod.node_name}"
    if kind in pod.KINDS or kind in claim.KINDS or kind in node.KINDS:
        return _describe(case)
    if kind is request.CLASS_MISSING:
        return "kubectl get deviceclasses"
    if kind in extended.KINDS:
        return "kubectl get pods -A -o wide" if kind is extended.PLUGIN_EXHAUSTED else _CLASSES
    if kind in (pools.NOT_FOR_NODE, devices.NO_NODE):
        return _NODES
    if kind in pools.KINDS or kind is request.UNCONVERTIBLE:
        return "kubectl get resourceslices"
    if kind is request.FEATURE_OFF:
        return "kubectl dra version"
    if kind in _WRITTEN:
        return _as_written(case, cause)
    return _devices(case, cause, funnels) if case.settings.invocation else ""


def _devices(case: Case, cause: Cause, funnels: Sequence[Located]) -> str:
    """From the answer to every device; from there to the selectors on one device, or to who has which device."""
    command = case.settings.invocation
    located = next((entry for entry in funnels if entry.funnel.name == cause.request), None)
    traced = _traced(cause, located) if cause.kind in _SELECTORS else ""
    if traced and (case.settings.with_devices or cause.kind is request.SELECTOR_ERROR):
        return f"{command} --trace {traced}"
    if not case.settings.with_devices:
        return f"{command} --devices"
    wanted = f" --class {located.funnel.device_class.name}" if located is not None else ""
    return f"{_LISTING}{wanted} -o wide"


def _traced(cause: Cause, located: Located | None) -> str:
    """The device that the evidence names, else the first that the request loses at its selectors."""
    named = next((entry.object.split(" ")[1] for entry in cause.evidence if entry.object.startswith("device ")), "")
    stage = located.funnel.blocking_stage() if located is not None else None
    return named or (str(stage.failed[0].id) if stage is not None and stage.failed else "")


def _as_written(case: Case, cause: Cause) -> str:
    """How to see what has to be corrected: a class, the template of a claim, or the claim."""
    subject = cause.evidence[0].object if cause.evidence else ""
    if subject.startswith("class "):
        return f"kubectl get deviceclass {subject.removeprefix('class ')} -o yaml"
    if not case.question.exists:
        return ""
    for state in case.question.claims:
        if state.claim is not None and state.claim.key in (cause.claim, subject.removeprefix("claim ")):
            return _written(case, state)
    return ""


def _to_make(case: Case, change: Supposition) -> str:
    """What has to be looked at to make a change real: who holds the claim, the taints, or what asks for devices."""
    if change.kind == "free":
        namespace, _, name = change.value.rpartition("/")
        return f"kubectl dra explain claim/{name} -n {namespace or 'default'}{case.settings.where}"
    if change.kind == "untaint":
        return _TAINTS
    for state in case.question.claims if case.question.exists else ():
        if state.claim is not None and state.claim.allocation is None:
            return _written(case, state)
    return ""


def _written(case: Case, state: PodClaimState) -> str:
    """The command that shows the template of a claim, or the claim."""
    assert state.claim is not None
    kind = "resourceclaimtemplate" if state.template else "resourceclaim"
    return f"kubectl get {kind} -n {case.question.namespace} {state.template or state.claim.metadata.name} -o yaml"


def _rivals(case: Case) -> list[Pod]:
    """Other pods of the namespace that use the claims which are to be allocated."""
    name = case.question.name
    return [
        other for entry in case.unallocated for other in consumers(entry, case.snapshot) if other.metadata.name != name
    ]


def _describe(case: Case) -> str:
    asked = case.question
    return f"kubectl describe pod -n {asked.namespace} {asked.name}" if asked.exists and asked.kind == "pod" else ""


def _to_see_more(case: Case) -> str:
    """How to get at what was not seen: a whole snapshot, or the permission that lacks."""
    reasons = {missing.reason: missing.kind for missing in case.snapshot.gaps if missing.kind in _PLURALS}
    if FORBIDDEN in reasons:
        return f"kubectl auth can-i list {_PLURALS[reasons[FORBIDDEN]]}.resource.k8s.io"
    return "kubectl dra snapshot -o cluster.yaml" if ABSENT in reasons else ""
