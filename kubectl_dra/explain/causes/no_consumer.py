"""A claim fits, but no pod refers to it."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.cluster.relation import waiting_for
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import say
from kubectl_dra.explain.trial import Trial

NOBODY_CONSUMES = CauseKind(code="no-consumer", family=Family.POD, look=Look.POD)


def _nobody(trial: Trial) -> Iterator[Finding]:
    asked, snapshot = trial.question, trial.scene.snapshot
    if asked.pod is not None or not asked.exists or snapshot.missing("Pod") is not None:
        return
    claim = trial.claims[0]
    if waiting_for(claim, snapshot):
        return
    names = {"namespace": claim.metadata.namespace, "name": claim.metadata.name}
    yield Finding(
        NOBODY_CONSUMES,
        say("no pod in namespace {namespace} uses claim {name}", **names),
        (Evidence(say("Pods in {namespace}", **names), "spec.resourceClaims", say("none names {name}", **names)),),
        claim=claim.key,
    )


FINDERS = (Finder(When.FITS, _nobody, 10),)
