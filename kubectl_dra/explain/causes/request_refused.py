"""The scheduler refuses the claim itself: too large, a feature that is off, or an unknown form."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.trial import Trial

TOO_MANY_DEVICES = CauseKind(code="too-many-devices", family=Family.REQUEST, look=Look.AS_WRITTEN)
FEATURE_OFF = CauseKind(code="feature-disabled", family=Family.REQUEST, look=Look.VERSION)
UNSUPPORTED = CauseKind(code="unsupported-request", family=Family.REQUEST, look=Look.AS_WRITTEN)


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
