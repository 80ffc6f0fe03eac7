"""Nothing serves an extended resource of the pod: neither a device plugin nor an eligible class."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.extended_resources import amount_of, class_by_resource, eligible_name, resources_of
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.trial import Trial

UNBACKED = CauseKind(code="extended-resource-unknown", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)
GATE_OFF = CauseKind(code="extended-resource-gate-off", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES)
NOT_ELIGIBLE = CauseKind(
    code="extended-resource-name-not-eligible", family=Family.EXTENDED, look=Look.RESOURCES_OF_CLASSES
)


def _unserved(trial: Trial) -> Iterator[Finding]:
    """Extended resources of the pod that no node's device plugin offers and no class serves."""
    pod, scene = trial.question.pod, trial.scene
    nodes = scene.snapshot.nodes.values()
    if pod is None or pod.node_name or pod.finished or not any(node.allocatable for node in nodes):
        return
    if scene.snapshot.missing("DeviceClass"):
        return
    classes = trial.view.cycle.classes
    backed = class_by_resource(classes)
    for resource in resources_of(pod):
        if any(amount_of(node.allocatable.get(resource)) for node in nodes):
            continue
        device_class = backed.get(resource)
        field = say("status.allocatable {resource}", resource=resource)
        nowhere = Evidence(say("{count:node}", count=len(nodes)), field, "none")
        if device_class is None:
            names = sorted((entry.name, entry.extended_resource_name or "not set") for entry in classes.values())
            listed = [
                say("{name} ({resource})", name=ObjectName("DeviceClass", name), resource=own) for name, own in names
            ]
            have = say("{listed:some else no DeviceClass}", listed=listed)
            yield Finding(
                UNBACKED,
                say("no node offers {resource} by a device plugin, and no DeviceClass names it", resource=resource),
                (nowhere, Evidence("DeviceClasses", "spec.extendedResourceName", have)),
            )
        elif not trial.view.cycle.features.extended_resources:
            yield Finding(
                GATE_OFF,
                say(
                    "DeviceClass {name} offers {resource}, but the feature gate DRAExtendedResource is off (Kubernetes "
                    "{release})",
                    name=device_class.name,
                    resource=resource,
                    release=str(scene.settings.release),
                ),
                (
                    nowhere,
                    Evidence(
                        Subject("Kubernetes", str(scene.settings.release)), "feature gate DRAExtendedResource", "off"
                    ),
                ),
                Remedy(
                    say(
                        "Ask with a claim of class {name} instead of {resource}; kubectl dra migrate rewrites "
                        "manifests so. Or turn the gate on in every component: it is on by default from 1.36.",
                        name=device_class.name,
                        resource=resource,
                    )
                ),
            )


def _not_eligible(trial: Trial) -> Iterator[Finding]:
    """Resources that no node offers, and a class only under a name that devices cannot serve."""
    pod = trial.question.pod
    if pod is None or pod.node_name or pod.finished:
        return
    asked = {name for container in pod.containers for name, value in container.requests.items() if amount_of(value)}
    for device_class in sorted(trial.view.cycle.classes.values(), key=lambda entry: entry.name):
        resource = device_class.extended_resource_name
        if resource not in asked or eligible_name(resource):
            continue
        if any(amount_of(node.allocatable.get(resource)) for node in trial.scene.snapshot.nodes.values()):
            continue
        text = "DeviceClass {name} offers {resource}, but devices cannot serve a resource of that name"
        yield Finding(
            NOT_ELIGIBLE,
            say(text, name=device_class.name, resource=resource),
            (
                Evidence(
                    Subject("DeviceClass", ObjectName("DeviceClass", device_class.name)),
                    "spec.extendedResourceName",
                    resource,
                ),
            ),
        )


FINDERS = (Finder(When.SCENE, _unserved, 10), Finder(When.SCENE, _not_eligible, 30))
