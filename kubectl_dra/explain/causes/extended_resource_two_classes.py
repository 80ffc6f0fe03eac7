"""Another class of the same extended resource would serve the pod, but is not used."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import CLAIM_NAME
from kubectl_dra.api.claims import Request, ResourceClaim
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.trial import Trial

TWO_CLASSES = CauseKind(code="extended-resource-two-classes", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)


def _two_classes(trial: Trial) -> Iterator[Finding]:
    extended = trial.scene.extended
    for resource, winner in extended.classes.items() if extended else ():
        for other in sorted(trial.view.cycle.classes.values(), key=lambda entry: entry.name):
            if other.extended_resource_name != resource or other is winner:
                continue
            claims = [_of_class(claim, winner.name, other.name) for claim in trial.claims]
            proof = trial.world.asking(claims).proof()
            if proof is None:
                continue
            names = {"winner": winner.name, "other": other.name, "resource": resource}
            text = (
                "DeviceClasses {winner} and {other} both offer {resource}; {winner} serves it, but has too few "
                "devices, and {other} is not asked"
            )
            yield Finding(
                TWO_CLASSES,
                say(text, **names),
                tuple(
                    Evidence(
                        Subject("DeviceClass", ObjectName("DeviceClass", entry.name)),
                        "metadata.creationTimestamp",
                        entry.metadata.creation_timestamp or "not set",
                    )
                    for entry in (winner, other)
                ),
                Remedy(say("Remove extendedResourceName {resource} from DeviceClass {winner}.", **names), proof),
            )
            return


def _of_class(claim: ResourceClaim, old: str, new: str) -> ResourceClaim:
    """The claim for extended resources with one class replaced; other claims unchanged."""
    if claim.metadata.name != CLAIM_NAME:
        return claim
    return replace(claim, requests=tuple(_request_of(entry, old, new) for entry in claim.requests))


def _request_of(entry: Request, old: str, new: str) -> Request:
    spec = entry.exactly
    if spec is None or spec.device_class != old:
        return entry
    return replace(entry, exactly=replace(spec, device_class=new))


FINDERS = (Finder(When.REQUESTS, _two_classes),)
