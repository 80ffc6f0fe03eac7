"""The expression of a derived attribute does not compile, or has no value on a device."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.trial import Trial

DERIVED = CauseKind(
    code="derived-attribute-fails",
    title="The expression of a derived attribute fails",
    why="A constraint can compare an attribute that the request derives with an expression. If that fails on a device "
    "which the scheduler considers, the attempt ends for the whole pod, on all nodes.",
    fix="Give the expression a value on every device that the selectors of the request admit: guard what some devices "
    "lack with has(…) or .?name.orValue(…).",
    seen_as="SchedulerError: evaluate derived attribute … on device … failed: no such key: …",
    normal="Never: one such device keeps the pod off all nodes.",
    confirm=(
        confirm.ERROR,
        confirm.Check("The expressions, as `derivedAttributes` of the requests.", confirm.REQUESTS),
        confirm.Check("The attributes that the named device has.", confirm.SLICES_OF_DRIVER),
    ),
    family=Family.REQUEST,
    look=Look.AS_WRITTEN,
)


def _runtime(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    detail = error.detail
    words = {name: str(detail.get(name)) for name in ("attribute", "expression", "device", "error")}
    yield Finding(
        DERIVED,
        say("the derived attribute {attribute} has no value on device {device}: {error}", **words),
        (
            Evidence(Subject("device", detail.get("device")), "CEL run-time error", words["error"]),
            Evidence("derived attribute", words["attribute"], words["expression"]),
        ),
        Remedy(
            say(
                "Guard what the device lacks with has(…) or .?name.orValue(…), or select only devices that have it.",
            )
        ),
    )


def _compile(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    detail = error.detail
    words = {name: str(detail.get(name)) for name in ("attribute", "expression", "error")}
    yield Finding(
        DERIVED,
        say("the expression of the derived attribute {attribute} does not compile: {error}", **words),
        (Evidence("derived attribute", words["attribute"], words["expression"]),),
        Remedy(say("Correct the expression; lint shows where it is wrong.")),
    )


FINDERS = (
    Finder(When.ERROR, _runtime, of="derived-runtime"),
    Finder(When.ERROR, _compile, of="derived-compile"),
)
