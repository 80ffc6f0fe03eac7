"""What is shown as evidence of why Kueue holds a Workload back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_dra.api.kueue import ClusterQueue, KueueCheckState, KueueWorkload
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.explain.diagnosis import Evidence
from kubectl_dra.explain.phrase import Joined, Subject, by_name, named, say, subject
from kubectl_dra.neighbours.kueue import CLUSTER_QUEUE, WORKLOAD
from kubectl_dra.neighbours.kueue_controller import TakenShape, claim_gate, configuration, controller, settings_of
from kubectl_dra.neighbours.kueue_quota import COHORT, FlavorQuota, MappedClass, short

MAX_QUOTAS: Final = 3


def conditions(workload: KueueWorkload, message: str) -> Iterator[Evidence]:
    """What the conditions say besides ``message``, which the answer has already."""
    about = Subject("Workload", named(WORKLOAD, workload))
    for kind in ("QuotaReserved", "Requeued", "Evicted"):
        condition = workload.condition(kind)
        if condition is not None:
            more = say(": {message}", message=condition.message) if condition.message != message else ""
            value = say("{status} ({reason}){more}", status=condition.status, reason=condition.reason, more=more)
            yield Evidence(about, kind, value)
    if not workload.spec.active:
        yield Evidence(about, "spec.active", "false")


def shapes_taken(shapes: Sequence[TakenShape]) -> Iterator[Evidence]:
    """What Kueue makes of the claims."""
    for shape in shapes:
        taken = say("refused: {said}", said=shape.refuses) if shape.refuses else say("counted {how}", how=shape.counts)
        yield Evidence(f"{shape.kind} {shape.name}", shape.place, taken)


def quotas_of(quotas: Sequence[FlavorQuota], queue: ClusterQueue | None, said: str) -> Iterator[Evidence]:
    """What the ClusterQueue has of the resources that are short or that Kueue speaks of, else of all."""
    if queue is None:
        return
    about = Subject("ClusterQueue", queue.metadata.name)
    spoken = [quota for quota in quotas if quota.resource in said.split()]
    for quota in (list(short(quotas)) or spoken or list(quotas))[:MAX_QUOTAS]:
        field = say("{quota.resource} of flavor {quota.flavor}", quota=quota)
        texts = ["{quota.held} of {quota.nominal} held"]
        if quota.lent:
            texts = ["{quota.held} of {quota.nominal} held, {quota.lent} borrowed"]
        if queue.cohort and quota.free is not None:
            texts.append("{quota.free} left with cohort {cohort}")
        elif queue.cohort:
            texts.append("what cohort {cohort} has left was not read")
        if quota.wanted is not None:
            texts.append("the Workload asks for {quota.wanted}")
        if quota.never:
            texts.append("more than the {quota.most} that there can be")
        elif quota.missing:
            texts.append("{quota.missing} missing")
        parts = [say(text, quota=quota, cohort=queue.cohort) for text in texts]
        yield Evidence(about, field, Joined(tuple(parts), ", ") if len(parts) > 1 else parts[0])
    if not queue.spec.resource_groups:
        yield Evidence(about, "spec.resourceGroups", "none")


def unread(workload: KueueWorkload, queue: ClusterQueue | None, snapshot: Snapshot) -> Iterator[Evidence]:
    """What would say which quota is short, and may not be read."""
    kinds = [CLUSTER_QUEUE, *([COHORT] if queue is not None and queue.cohort else ())]
    if has_claims(workload):
        kinds.append("ConfigMap")
    for gap in snapshot.unread(kinds):
        if gap.reason != ABSENT:
            yield Evidence(f"{gap.kind.partition('.')[0]}s", "read", say("no ({reason})", reason=gap.reason))


def has_claims(workload: KueueWorkload) -> bool:
    return any(pods.template.spec.resource_claims for pods in workload.spec.pod_sets)


def of_kueue(snapshot: Snapshot) -> Iterator[Evidence]:
    """Which Kueue it is and whether it counts claims, as far as known; or that its configuration is not there."""
    running, gate = controller(snapshot), claim_gate(snapshot)
    if running is not None and running.release:
        yield Evidence(subject("Pod", running.pod), "release of Kueue", running.release)
    if gate is not None and gate.settings is not None:
        value = say("{gate}={on}", gate=gate.name, on=str(gate.on).lower())
        space, name = gate.settings
        yield Evidence(by_name("ConfigMap", name, space), "featureGates", value)
    if configuration(snapshot) is None and not snapshot.unread(("ConfigMap",)):
        space, name = settings_of(running)
        yield Evidence("Kueue's configuration", "read", say("no (there is no ConfigMap {key})", key=f"{space}/{name}"))


def classes_mapped(
    classes: Sequence[MappedClass], queue: ClusterQueue | None, snapshot: Snapshot
) -> Iterator[Evidence]:
    """As which resource Kueue counts the devices, where it does not, or the ClusterQueue has no quota for it."""
    known = configuration(snapshot)
    if known is None:
        return
    (space, name), _ = known
    about = by_name("ConfigMap", name, space)
    for mapped in classes:
        value = say("none names it")
        if mapped.resource:
            value = say("counted as {resource}", resource=mapped.resource)
        if mapped.covered is False and queue is not None:
            text = "counted as {resource}, which ClusterQueue {queue} does not cover"
            value = say(text, resource=mapped.resource, queue=queue.metadata.name)
        yield Evidence(about, say("deviceClassMappings of DeviceClass {name}", name=mapped.name), value)


def open_checks(workload: KueueWorkload) -> list[KueueCheckState]:
    return [check for check in workload.status.admission_checks if check.state != "Ready"]


def checks_open(workload: KueueWorkload) -> Iterator[Evidence]:
    about = Subject("Workload", named(WORKLOAD, workload))
    for check in open_checks(workload):
        field = say("admission check {name}", name=check.name)
        yield Evidence(about, field, say("{state}: {said}", state=check.state, said=check.message))
