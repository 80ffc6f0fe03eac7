"""A ProvisioningRequest decides whether the capacity for the pod comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import kubectl
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.causes.more_nodes import NO_SCALE_UP, NODE_COMING
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Phrase, Subject, named, say, subject
from kubectl_dra.neighbours.provisioning import (
    PROVISIONING,
    ProvisioningState,
    RequestStage,
    consumed,
    request_of,
    state_of,
)

_RESOURCE: Final = "provisioningrequests.autoscaling.x-k8s.io"
_TEXTS: Final[Mapping[RequestStage, str]] = {
    RequestStage.FAILED: "ProvisioningRequest {name} has failed{since}, and is not tried again: {said}",
    RequestStage.REVOKED: "the capacity of ProvisioningRequest {name} was taken back{since}: {said}",
    RequestStage.EXPIRED: "the booking of ProvisioningRequest {name} has expired{since}: nothing is kept for it now",
    RequestStage.PROVISIONED: "the capacity of ProvisioningRequest {name} is there{since}",
    RequestStage.ACCEPTED: "an autoscaler has accepted ProvisioningRequest {name}{since}, and it waits: {said}",
    RequestStage.NEW: "no autoscaler has accepted ProvisioningRequest {name} yet",
}
_FIXES: Final[Mapping[RequestStage, str]] = {
    RequestStage.FAILED: "Repair what it says, then create another request and name that one in the pod.",
    RequestStage.REVOKED: "Create another request and name that one in the pod.",
    RequestStage.EXPIRED: "Free what the pod needs, or create another request and the pod within its ten minutes.",
    RequestStage.ACCEPTED: "Wait; it fails by itself if the capacity does not come.",
    RequestStage.NEW: "See whether cluster-autoscaler runs with --enable-provisioning-requests, and knows its class.",
}


def of_request(state: ProvisioningState) -> Phrase:
    """How a request stands, in words."""
    since = say(" since {since}", since=state.since) if state.since else ""
    return say(_TEXTS[state.stage], name=state.name, since=since, said=state.said)


def seen_of_request(pod: Pod, snapshot: Snapshot) -> Iterator[Evidence]:
    """What the pod's request says of itself."""
    request = request_of(pod, snapshot)
    if request is not None:
        state = state_of(request)
        about = Subject("ProvisioningRequest", named(PROVISIONING, request))
        value = say("{since}: {said}", since=state.since, said=state.said) if state.stage.value else say("none holds")
        yield Evidence(about, state.stage.value or "conditions", value)


def _consumes(analysis: Analysis) -> Iterator[Finding]:
    """The pod names a request: cluster-autoscaler makes no other node for it."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or pod.node_name or not (name := consumed(pod)):
        return
    space, request = pod.metadata.namespace, request_of(pod, snapshot)
    seen = (Evidence(subject("Pod", pod), "consumes ProvisioningRequest", name), *seen_of_request(pod, snapshot))
    if request is None:
        if snapshot.missing(PROVISIONING, space) is None:
            text = "ProvisioningRequest {name} does not exist; cluster-autoscaler makes no node for pods that name one"
            fix = "Create the request, or take the annotation off the pods."
            yield Finding(NO_SCALE_UP, say(text, name=name), seen, Remedy(fix))
        return
    state = state_of(request)
    if state.stage is RequestStage.PROVISIONED:
        return
    comes = state.stage in (RequestStage.ACCEPTED, RequestStage.NEW)
    show = kubectl("get", kind=_RESOURCE, name=name, namespace=space, more=("-o", "yaml"))
    text = "{state}; cluster-autoscaler makes no other node for a pod that names a request"
    yield Finding(
        NODE_COMING if comes else NO_SCALE_UP,
        say(text, state=of_request(state)),
        seen,
        Remedy(_FIXES[state.stage], commands=(show,)),
        normal=state.stage is RequestStage.ACCEPTED,
    )


FINDERS = (Finder(When.FAILS_TOO, _consumes, 19),)
