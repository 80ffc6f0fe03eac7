"""Known defects of kubelets and schedulers, told by the state that they leave, and errors that end an attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.allocation.features import DEFECTS, KnownDefects
from kubectl_dra.api.behaviour import (
    ALLOCATED_TWICE,
    COUNTERS_LEAK,
    CRASH_ON_ALL,
    HALF_A_CLAIM,
    JOINS_UNPREPARED,
    LATER_ALL_CONTINUES_WITH_FIRST,
    LATER_CLAIMS_UNPREPARED,
    OUT_OF_EXTENDED,
    RULE_FOR_ALL,
    UNPREPARED_IN_USE,
    Defect,
)
from kubectl_dra.api.behaviour import RULES_UNSEEN as DEFECT
from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.meta import OUT_OF
from kubectl_dra.api.pods import Pod, replaced_by
from kubectl_dra.api.releases import parse_release
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint, blocking_taint
from kubectl_dra.cluster.claim_relation import ClaimRelation, consumers_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.drivers.concerns import exclusive
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes import pools_and_limits as pool_name_shared
from kubectl_dra.explain.causes.registry import FailedAttempt, Finder, When, of_error
from kubectl_dra.explain.diagnosis import Evidence, Finding, Relation, Remedy
from kubectl_dra.explain.phrase import (
    Joined,
    ObjectName,
    Phrase,
    Subject,
    Words,
    known_defect,
    named,
    pods_named,
    say,
    subject,
    the_node,
)

_SEVERAL: Final = 2


def kubelet_has(defect: Defect, node: str, snapshot: Snapshot) -> bool | None:
    """Whether the kubelet of a node has a defect; None if its release is not known."""
    known = snapshot.nodes.get(node)
    try:
        release = parse_release(known.status.node_info.kubelet_version if known is not None else "")
    except ValueError:
        return None
    return defect.affects(release.without_patch, release.patch)


def with_defect(finding: Finding, pod: Pod, snapshot: Snapshot) -> Finding:
    """The kubelet's refusal of a pod, with the defect behind it: the resource is served by devices of a claim."""
    resource = pod.status.reason.removeprefix(OUT_OF)
    if resource == pod.status.reason or not _of_devices(resource, pod, snapshot):
        return finding
    if kubelet_has(OUT_OF_EXTENDED, pod.node_name, snapshot) is False:
        return finding
    node = ObjectName("Node", pod.node_name)
    text = (
        "Ask for the devices with a claim instead of {resource}, or upgrade the kubelet of {node}. This is {defect}. "
        "This pod never runs again{next}."
    )
    owner = replaced_by(pod)
    again: Words = ": make a new one"
    if owner is not None:
        again = say("; {owner} makes the next one, which is refused as well", owner=str(owner))
    known = known_defect(OUT_OF_EXTENDED.reference, *OUT_OF_EXTENDED.fixes)
    words = {"next": again, "defect": known, "resource": resource, "node": node}
    why = "a driver serves it, and this kubelet looks for a device plugin{though}"
    though = ", although the scheduler had allocated devices for it" if pod.extended_resource_claim else ""
    fact = Evidence(Subject("resource", resource), "is refused because", say(why, though=though))
    return replace(finding, evidence=(fact, *finding.evidence), remedy=Remedy(say(text, **words)))


def _of_devices(resource: str, pod: Pod, snapshot: Snapshot) -> bool:
    """Whether devices of a driver serve an extended resource of a pod."""
    if resource.startswith(IMPLICIT_PREFIX):
        return True
    return any(device_class.extended_resource_name == resource for device_class in snapshot.classes.values())


def kubelet_notes(analysis: Analysis) -> Iterator[Phrase]:
    """Note that a pod which shares its claim may lose the devices, because another pod of it is just ending."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return
    defects = [
        defect for defect in (UNPREPARED_IN_USE, JOINS_UNPREPARED) if kubelet_has(defect, pod.node_name, snapshot)
    ]
    for claim in analysis.allocated if defects else ():
        for use in consumers_of(claim, snapshot.pods).entries:
            other = use.pod
            if use.relation is ClaimRelation.ENDING and other is not None and other.node_name == pod.node_name:
                text = (
                    "pod {other} of the same claim is ending on {node}, and kubelets before {fix} may take the devices "
                    "from this pod with it ({references:some}): create the pod again if its devices are dead"
                )
                words = {"references": [defect.reference for defect in defects], "fix": defects[0].fixes[-1]}
                yield say(text, other=other.key, node=ObjectName("Node", pod.node_name), **words)
                return


def left_unprepared(finding: Finding, pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Finding:
    """Finding that the kubelet did not prepare a claim of a container, with the defect that may be behind it.

    It shows where another pod of the node uses one of the pod's claims already.
    """
    defect = LATER_CLAIMS_UNPREPARED
    if len(claims) < _SEVERAL or kubelet_has(defect, pod.node_name, snapshot) is False:
        return finding
    for claim in claims:
        for use in consumers_of(claim, snapshot.pods).entries:
            other = use.pod
            if use.relation is not ClaimRelation.RUNNING or other is None or other.key == pod.key:
                continue
            if other.node_name != pod.node_name:
                continue
            words = {"claim": claim.key, "other": other.key, "node": ObjectName("Node", pod.node_name)}
            means = (
                "pod {other} uses claim {claim} already, and then the kubelet leaves the pod's other claims unprepared"
            )
            text = (
                "Upgrade the kubelet of {node}: it is {defect}. Until then "
                "put all that the pod needs into one claim, or start it before pod {other}."
            )
            change = say(text, defect=known_defect(defect.reference, *defect.fixes), **words)
            fact = Evidence(Subject("the kubelet of", words["node"]), "means", say(means, **words))
            return replace(finding, evidence=(fact, *finding.evidence), remedy=Remedy(change))
    return finding


def devices_halved(analysis: Analysis) -> Iterator[Phrase]:
    """Note that the scheduler of the cluster's release serves, or may, no request as large as one of the question's."""
    release, patch = analysis.snapshot.release, analysis.snapshot.server_patch
    if release is None or HALF_A_CLAIM.affects(release, patch) is False:
        return
    who = say("the scheduler of {release}", release=release)
    if patch is None:
        who = say("an early scheduler of {release}, as this may be,", release=release)
    for claim in analysis.claims:
        before = 0
        for request in claim.requests:
            largest = max((spec.count for spec in request.alternatives()), default=0)
            # It counts those of the request that it has taken twice.
            if before + 2 * largest - 1 > MAX_RESULTS >= before + largest:
                text = (
                    "request {request} of claim {claim} asks for {count} devices, and {who} serves none for more than "
                    "{most} ({reference}, fixed in {fixes:some}): upgrade, or make several claims"
                )
                words = {"request": request.name, "claim": claim.key, "count": largest, "most": MAX_RESULTS // 2}
                known = {"reference": HALF_A_CLAIM.reference, "fixes": HALF_A_CLAIM.fixes, "who": who}
                yield say(text, **words, **known)
                return
            before += largest


# An error or a defect of the scheduler ends the attempt for all nodes.


def _error(analysis: Analysis) -> Iterator[Finding]:
    failed = next((attempt for attempt in analysis.attempts.values() if attempt.error is not None), None)
    if failed is None or failed.error is None:
        return
    finding = of_error(FailedAttempt(analysis, failed.error, failed.node))
    if analysis.fitting:
        text = "would fit, but an error on one node ends the attempt for all"
        fact = Evidence(the_node(analysis.fitting[0]), "allocation", text)
        finding = replace(finding, evidence=(*finding.evidence, fact))
    yield finding


# A known defect of the release's allocator decides.

KNOWN_DEFECT = CauseKind(code="allocator-defect", family=Family.DEVICES, fixed_at=Look.VERSION)
_UPGRADES: Final[Mapping[str, str]] = {
    "counters_leak": f"Upgrade the scheduler to {COUNTERS_LEAK.fixed_in(36)} or later.",
    "later_all_continues_with_first": f"Upgrade the scheduler to 1.{LATER_ALL_CONTINUES_WITH_FIRST.gone} or later.",
}
"""What the proof proves: the same attempt without the defect. Ways round it are on the page of the cause."""


def upgrade_fix(defects: Sequence[str]) -> str:
    """The upgrade that ends defects of the allocator, by their names in ``KnownDefects``."""
    return _UPGRADES.get(defects[0], KNOWN_DEFECT.fix) if len(defects) == 1 else KNOWN_DEFECT.fix


def _defect(analysis: Analysis) -> Iterator[Finding]:
    what_if, defects = analysis.what_if, analysis.view.cycle.defects
    proof = analysis.without_defects.proof()
    if proof is None:
        return
    named = pool_name_shared.finding(analysis.view, what_if)
    if named is not None:
        yield named
        return
    without = {name: what_if.looking(defects=defects.without(name)) for name in KnownDefects.__struct_fields__}
    alone = [name for name, changed in without.items() if changed.proof() is not None]
    reasons: Words = Joined(tuple(DEFECTS[name].what for name in alone)) if alone else "several defects together"
    text = "the devices would suffice, but a known defect of this release's scheduler refuses them: {told}"
    fix = upgrade_fix(alone)
    fact = Evidence("kube-scheduler", "defect", reasons)
    yield Finding(KNOWN_DEFECT, say(text, told=reasons), (fact,), Remedy(fix, proof))


# A request for all devices crashes the scheduler of this release, because it meets a device with shared counters.

PANIC = CauseKind(code="scheduler-crashes", family=Family.RELEASE, fixed_at=Look.VERSION)


def _crash(analysis: Analysis) -> Iterator[Finding]:
    scheduler = analysis.scheduler
    if not scheduler.has(CRASH_ON_ALL) or not analysis.view.cycle.features.partitionable_devices:
        return
    for located in analysis.funnels:
        funnel = located.funnel
        device = next((item for item in funnel.usable if item.device.consumes_counters), None)
        if funnel.spec.allocation_mode != ALL or device is None:
            continue
        release = say("{release}.{patch}", release=scheduler.release, patch=scheduler.patch)
        text = (
            "{where} asks for all devices, and the scheduler of {release} crashes when one of them uses shared "
            "counters, as {device} does"
        )
        counter_set = device.device.consumes_counters[0].counter_set
        field = say("{where} allocationMode", where=located.where)
        facts = (
            Evidence("kube-scheduler", "release", release),
            Evidence(Subject("claim", named("ResourceClaim", located.claim)), field, ALL),
            Evidence(Subject("device", device.id), "consumesCounters", counter_set),
        )
        summary = say(text, where=located.where, release=release, device=device.id)
        yield Finding(PANIC, summary, facts, claim=located.claim.key, request=funnel.name)
        return


# The scheduler of this release crashes when it watches DeviceTaintRules.

RULES_UNSEEN = CauseKind(code="taint-rules-crash", family=Family.RELEASE, fixed_at=Look.VERSION)


def _unseen(analysis: Analysis) -> Iterator[Finding]:
    scheduler, rules = analysis.scheduler, analysis.snapshot.taint_rules
    if analysis.question.waiting_pod is None or not rules:
        return
    if "DRADeviceTaintRules" not in scheduler.gates or not scheduler.has(DEFECT):
        return
    names = say("{rules:some}", rules=[named("DeviceTaintRule", rule) for rule in rules])
    release = say("{release}.{patch}", release=scheduler.release, patch=scheduler.patch)
    text = "the scheduler of {release} does not understand DeviceTaintRules ({names}) and may crash while one exists"
    facts = (
        Evidence("kube-scheduler", "release", release),
        Evidence(say("DeviceTaintRules {names}", names=names), "count", len(rules)),
    )
    yield Finding(RULES_UNSEEN, say(text, release=release, names=names), facts)


# Its scheduler takes a rule that selects nothing for one of every device.

RULE_OF_ALL = CauseKind(code="taint-rule-without-selector", family=Family.RELEASE, fixed_at=Look.VERSION)


def _of_every_device(analysis: Analysis) -> Iterator[Finding]:
    scheduler, question = analysis.scheduler, analysis.question
    if not analysis.view.cycle.features.taint_rules or (question.pod is not None and question.pod.node_name):
        return
    if not RULE_FOR_ALL.affects(scheduler.release, scheduler.patch):
        return
    for rule in analysis.snapshot.taint_rules:
        if rule.selector is not None:
            continue
        for claim, request in _kept_out(analysis, rule.taint):
            name = ObjectName("DeviceTaintRule", rule.metadata.name)
            words = {"rule": name, "request": request, "claim": claim.key}
            known = known_defect(RULE_FOR_ALL.reference, *RULE_FOR_ALL.fixes)
            text = "DeviceTaintRule {rule} has no deviceSelector, and this scheduler taints every device with it"
            change = (
                "Delete DeviceTaintRule {rule}, or name driver, pool and device in its deviceSelector; or upgrade the "
                "scheduler: it is {defect}."
            )
            facts = (
                Evidence(Subject("DeviceTaintRule", name), "spec.deviceSelector", "not set"),
                Evidence(say('request "{request}" of claim {claim}', **words), "does not tolerate", str(rule.taint)),
            )
            commands = (deleting("devicetaintrule", rule.metadata.name),)
            remedy = Remedy(say(change, defect=known, **words), commands=commands)
            yield Finding(RULE_OF_ALL, say(text, **words), facts, remedy, claim=claim.key, request=request)
            return


def _kept_out(analysis: Analysis, taint: DeviceTaint) -> Iterator[tuple[ResourceClaim, str]]:
    """The requests that no device serves which has the taint."""
    for claim in analysis.claims:
        for request in claim.requests:
            if all(blocking_taint((taint,), spec.tolerations) is not None for spec in request.alternatives()):
                yield claim, request.name


TWICE = CauseKind(
    code="device-allocated-twice",
    family=Family.RELEASE,
    look=Look.VERSION,
    state="has a device that another claim has as well",
)


def _twice(analysis: Analysis) -> Iterator[Finding]:
    own = {device: claim for claim in analysis.allocated for device in exclusive(claim)}
    if not own:
        return
    snapshot = analysis.snapshot
    for other in snapshot.claims.values():
        device = next((device_id for device_id in exclusive(other) if device_id in own), None)
        if device is None or other.metadata.key == own[device].metadata.key:
            continue
        mine = own[device]
        younger = max((mine, other), key=_allocated_at)
        text = "device {device} is allocated to claim {one} and to claim {other}"
        summary = say(text, device=device, one=mine.key, other=other.key)
        facts = tuple(_holders(device, (mine, other), analysis))
        yield Finding(TWICE, summary, facts, Remedy(_change(younger, analysis)), claim=mine.key, device=device)
        return


def _allocated_at(claim: ResourceClaim) -> tuple[str, str]:
    allocation = claim.allocation
    return (allocation.timestamp if allocation is not None else "", claim.metadata.creation_timestamp)


def _holders(device: DeviceID, claims: tuple[ResourceClaim, ...], analysis: Analysis) -> Iterator[Evidence]:
    for claim in claims:
        pods = consumers_of(claim, analysis.snapshot.pods).pods
        who = pods_named(pod.key for pod in pods)
        value = say("{device}, for {pods:some 2 else nobody}", device=device, pods=who)
        yield Evidence(subject("ResourceClaim", claim), "has", value, relation=Relation.DOES)


def _change(younger: ResourceClaim, analysis: Analysis) -> Words:
    pods = consumers_of(younger, analysis.snapshot.pods).pods
    names = tuple(ObjectName("Pod", pod.metadata.name, pod.metadata.namespace) for pod in pods)
    text = (
        "Make claim {claim}, which got it later, and {pods:some 2 else its pods} again, so that they get another one. "
        "It is a defect of schedulers before {fixed:some 3} ({reference}): upgrade kube-scheduler."
    )
    fixed, reference = ALLOCATED_TWICE.fixes, ALLOCATED_TWICE.reference
    return say(text, claim=younger.key, pods=names, fixed=fixed, reference=reference)


FINDERS = (
    Finder(When.FAILS, _error, 10),
    Finder(When.TOGETHER, _defect, 20),
    Finder(When.CRASH, _crash),
    Finder(When.SCENE, _unseen, 40),
    Finder(When.SCENE, _of_every_device, 45),
    Finder(When.PLACED, _twice, -10),
)
