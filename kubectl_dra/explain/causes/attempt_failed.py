"""An error ended the attempt for all nodes; the finders of errors identify the cause."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_dra.explain.causes.registry import Finder, When, of_error
from kubectl_dra.explain.diagnosis import Evidence, Finding
from kubectl_dra.explain.phrase import ObjectName, Subject
from kubectl_dra.explain.trial import Trial


def _error(trial: Trial) -> Iterator[Finding]:
    failed = next((attempt for attempt in trial.attempts.values() if attempt.error is not None), None)
    if failed is None or failed.error is None:
        return
    found = of_error(trial, failed.error, failed.node)
    if trial.fitting:
        text = "would fit, but an error on one node ends the attempt for all"
        fact = Evidence(Subject("node", ObjectName("Node", trial.fitting[0])), "allocation", text)
        found = replace(found, evidence=(*found.evidence, fact))
    yield found


FINDERS = (Finder(When.FAILS, _error, 10),)
