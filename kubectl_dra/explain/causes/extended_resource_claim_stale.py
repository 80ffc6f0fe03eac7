"""An unfinished attempt left the claim that the scheduler made for extended resources."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.extended_resources import MADE_FOR_EXTENDED
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.trial import Trial

STALE_CLAIM = CauseKind(code="extended-resource-claim-stale", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)


def _left_over(trial: Trial) -> Iterator[Finding]:
    pod = trial.question.pod
    if pod is None or pod.node_name or pod.finished or not pod.metadata.uid:
        return
    for claim in trial.scene.snapshot.claims.values():
        owner = claim.metadata.controller()
        made = claim.metadata.annotations.get(MADE_FOR_EXTENDED) == "true"
        if not made or owner is None or owner.uid != pod.metadata.uid:
            continue
        own = Subject("ResourceClaim", named("ResourceClaim", claim))
        text = (
            "claim {claim}, which the scheduler made for the pod's extended resources, is left from an earlier attempt"
        )
        command = "{fix} kubectl delete resourceclaim -n {namespace} {name}"
        yield Finding(
            STALE_CLAIM,
            say(text, claim=claim.key),
            (
                Evidence(own, say("annotation {name}", name=MADE_FOR_EXTENDED), "true"),
                Evidence(own, "status.allocation", "set" if claim.allocation is not None else "not set"),
                Evidence(Subject("Pod", named("Pod", pod)), "spec.nodeName", "not set"),
            ),
            Remedy(
                say(
                    command,
                    fix=STALE_CLAIM.fix,
                    namespace=claim.metadata.namespace,
                    name=claim.metadata.name,
                )
            ),
            claim=claim.key,
        )


FINDERS = (Finder(When.FITS, _left_over, 50),)
