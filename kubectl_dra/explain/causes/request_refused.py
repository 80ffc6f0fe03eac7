"""The scheduler refuses the claim itself: too large, a feature that is off, or an unknown form."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.trial import Trial

TOO_MANY_DEVICES = CauseKind(
    code="too-many-devices",
    title="The claim asks for more than 32 devices",
    why="An allocation holds at most 32 devices; the scheduler refuses larger claims on every node.",
    fix="Split the request into several claims.",
    seen_as="SchedulerError: number of requested devices … exceeds the claim limit of 32",
    normal="Never: one claim holds at most 32 devices.",
    confirm=(
        confirm.Check("The counts, added up, are above 32. `All` counts what the node has.", confirm.REQUESTS),
        confirm.ERROR,
    ),
    family=Family.REQUEST,
    look=Look.AS_WRITTEN,
)
FEATURE_OFF = CauseKind(
    code="feature-disabled",
    title="The claim uses a feature that is off",
    why="The scheduler refuses a claim that needs a disabled feature gate.",
    fix="Turn the feature gate on, or remove the field.",
    seen_as="SchedulerError: … but the … feature is disabled",
    normal="On clusters that turn the feature off, or are too old for it.",
    confirm=(confirm.ERROR, confirm.GATE),
    family=Family.REQUEST,
    look=Look.VERSION,
)
UNSUPPORTED = CauseKind(
    code="unsupported-request",
    title="The request has a form that this scheduler does not know",
    why="An allocation mode, request or constraint of a newer API version is an error for an older scheduler.",
    fix="Use only fields of the cluster's release.",
    seen_as="SchedulerError: unsupported count mode, unknown request type, empty constraint",
    normal="While the API server is newer than the scheduler, during an upgrade.",
    confirm=(confirm.ERROR, confirm.Check("The field that the scheduler does not know.", confirm.CLAIM)),
    family=Family.REQUEST,
    look=Look.AS_WRITTEN,
)


def plain(kind: CauseKind, error: AllocationError) -> Finding:
    """A cause that the scheduler's own text explains."""
    request, claim = error.detail.get("request"), error.detail.get("claim")
    return Finding(
        kind,
        error.message,
        (Evidence(error.subject, "scheduler", error.message),),
        request=str(request or ""),
        object=str(claim or ""),
    )


def _too_many(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    yield plain(TOO_MANY_DEVICES, error)


def _feature_off(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    found = plain(FEATURE_OFF, error)
    text = "Turn the feature gate {gate} on in kube-apiserver and kube-scheduler, or do without the field."
    yield Finding(found.kind, found.summary, found.evidence, Remedy(say(text, gate=error.detail.get("gate"))))


def _unsupported(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    yield plain(UNSUPPORTED, error)


FINDERS = (
    Finder(When.ERROR, _too_many, of="too-many-devices"),
    Finder(When.ERROR, _feature_off, of="feature-disabled"),
    Finder(When.ERROR, _unsupported, rank=99),
)
