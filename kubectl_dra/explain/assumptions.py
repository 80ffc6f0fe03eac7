"""What was assumed, left out of account or not seen, as far as it can matter for a question: notes of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_dra.allocation.extended_resources import ExtendedRequests, limit_of
from kubectl_dra.api.behaviour import RULE_FOR_ALL, RULES_UNSEEN, SORTED_POOLS
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import title
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.slices import PoolID
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import ABSENT, NOT_SERVED, RefusedChange, Snapshot, stand_in
from kubectl_dra.explain.analysis import Analysis, Outlook
from kubectl_dra.explain.devices.device_state import unpublished
from kubectl_dra.explain.phrase import Phrase, Statement, Words, nodes_named, say
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread_kind import NotSeen
from kubectl_dra.neighbours.pointers import kinds_pointed_to
from kubectl_dra.scheduling.kinds_to_read import kinds_needed, selecting_kinds
from kubectl_dra.scheduling.reasons import PluginName

MAX_POOLS = 3
# Most clusters or questions do without the other kinds.
_NEEDED = frozenset(("ResourceSlice", "DeviceClass", "ResourceClaim", "Pod", "Node"))


class OneOfItsPods(Statement, frozen=True):
    """The answer is about one of the pods that a workload is going to make."""

    TEXT = "this is one of the pods that {workload} makes; the command fit looks at all of them"
    workload: str


class MakesNoPod(Statement, frozen=True):
    """The answer is about a pod that a workload is not going to make for now."""

    TEXT = "{workload} {why}; this is about a pod as it would make it"
    workload: str
    why: Words


class OnEachNode(Statement, frozen=True):
    """The answer is about one of the pods of a DaemonSet; those on nodes that refuse it wait there."""

    TEXT = "{workload} makes such a pod for each node that it may run on{pending}"
    workload: str
    pending: Words


class AskedByItself(Statement, frozen=True):
    """The answer leaves out of account what other workloads of the manifest take."""

    TEXT = "this pod is looked at by itself; the command fit places it beside the other workloads of the manifest"


class AfterOthers(Statement, frozen=True):
    """The answer supposes that others of the manifest have their devices."""

    TEXT = "this pod is looked at after the others of the manifest that come first have their nodes"


class ClaimAfterOthers(AfterOthers, frozen=True):
    """The same of a claim that no pod of the manifest uses."""

    TEXT = "this claim is looked at once others of the manifest have their devices"


class BesideOthers(Statement, frozen=True):
    """The answer supposes that all others of the manifest that fit have their nodes."""

    TEXT = "this pod is looked at with the others of the manifest on their nodes"


class AfterRollout(Statement, frozen=True):
    """The answer supposes that the rollout has ended what it replaces."""

    TEXT = "this pod is looked at as the rollout makes it, once the pods of the former template have ended"


def notes_of(analysis: Analysis) -> Iterator[Words]:
    """All notes about an analysis."""
    snapshot, settings = analysis.snapshot, analysis.settings
    question = analysis.question
    if snapshot.refused:
        from kubectl_dra.explain.question.new_pod import refused_changes

        own = set(refused_changes(question, snapshot))
        yield from refused_notes(change for change in snapshot.refused if change not in own)
    if snapshot.written:
        from kubectl_dra.explain.question.new_pod import versions_off_by_default

        for what, served in versions_off_by_default(question, snapshot, settings):
            text = (
                "the API server refuses {what}, unless it is told to serve that version (--runtime-config): by default "
                "{release} serves {served}"
            )
            yield say(text, what=what, release=settings.scheduler.release, served=f"{GROUP}/{served}")
    yield from _gaps(analysis)
    yield from rules_notes(snapshot, settings)
    if not snapshot.nodes and snapshot.missing("Node") is not None:
        yield say("no Nodes were read: their names are taken from ResourceSlices, labels and taints are unknown")
    if settings.proved_gates:
        text = "{gates}: off by default in {release}, but stored objects show that it is on"
        yield say(text, gates=sorted(settings.proved_gates), release=settings.scheduler.release)
    chooses = bool(analysis.claims)
    if chooses and settings.scheduler.release not in SORTED_POOLS:
        yield say(
            "schedulers of {release} try pools in random order: which of several suitable devices a pod gets is not "
            "determined",
            release=settings.scheduler.release,
        )
    elif chooses and analysis.view.cycle.features.stable:
        # A scheduler with neither of these feature gates uses the allocator variant that does not sort pools.
        yield say(
            "without DRADeviceBindingConditions and DRAConsumableCapacity the scheduler tries pools in random order: "
            "which of several suitable devices a pod gets is not determined"
        )
    yield from _older_slices(analysis)
    yield from _about_pod(analysis)
    if analysis.extended is not None:
        yield from extended_notes(analysis.extended)


def refused_notes(changes: Iterable[RefusedChange]) -> Iterator[Phrase]:
    """What of a manifest the API server does not take, so that it is left out of account."""
    for change in changes:
        yield say(
            "{kind} {name} exists, and nobody can change its {fields}: it stays as it is, whatever the manifest says",
            kind=change.kind,
            name=f"{change.namespace}/{change.name}" if change.namespace else change.name,
            fields=change.fields,
        )


def _gaps(analysis: Analysis) -> Iterator[Words]:
    gaps = [
        missing
        for missing in analysis.snapshot.gaps
        if missing.reason not in (ABSENT, NOT_SERVED) or missing.kind in _NEEDED
    ]
    further = {missing.kind for missing in gaps} & SCHEDULING_KINDS.keys()
    without_effect = further - _affecting(analysis) if further else frozenset()
    yield from (NotSeen(missing) for missing in gaps if missing.kind not in without_effect)
    yield from analysis.snapshot.notes


def _affecting(analysis: Analysis) -> frozenset[str]:
    """The kinds, of those that are read only if a pod needs them, that this question needs."""
    question, outcome = analysis.question, analysis.pod_outcome
    if question.pod is None:
        return frozenset(question.unread)
    lowest = min((pod.priority for pod in analysis.snapshot.pods.values() if pod.node_name), default=None)
    selecting = selecting_kinds(question.pod, outcome.state.profile) if outcome is not None else ()
    layers = kinds_pointed_to(question.pod, analysis.snapshot)
    return frozenset((*question.unread, *kinds_needed(question.pod, lowest), *selecting, *layers))


def rules_notes(snapshot: Snapshot, settings: Settings) -> Iterator[Phrase]:
    """Notes on the DeviceTaintRules that the answer takes into account or leaves out."""
    if not snapshot.taint_rules:
        return
    unseen = RULES_UNSEEN.affects(settings.scheduler.release, settings.scheduler.patch)
    minor = settings.scheduler.release.minor
    seeing_none = "" if unseen is False else RULES_UNSEEN.patches(minor)
    if unseen:
        yield say(
            "{count} DeviceTaintRules exist: the scheduler of {releases} does not see them (and may crash), so they "
            "are left out here",
            count=len(snapshot.taint_rules),
            releases=seeing_none,
        )
        return
    without = [rule.metadata.name for rule in snapshot.taint_rules if rule.selector is None]
    if without and RULE_FOR_ALL.affects(settings.scheduler.release, settings.scheduler.patch) is not False:
        yield say(
            "{count:DeviceTaintRule} {rules:some} {count:has|have} no deviceSelector: that selects nothing, but "
            "schedulers before {fixes:some} take it for every device ({reference})",
            count=len(without),
            rules=without,
            fixes=RULE_FOR_ALL.fixes,
            reference=RULE_FOR_ALL.reference,
        )
    if settings.taken_gates:
        yield say(
            "DeviceTaintRules exist, so their {count:feature gate|feature gates} ({gates}) {count:is|are} assumed to "
            "be on",
            count=len(settings.taken_gates),
            gates=sorted(settings.taken_gates),
        )
    if unseen is None:
        yield say(
            "DeviceTaintRules are applied as {fixed} and later do; {releases} ignore them, and their scheduler may "
            "crash: if the cluster runs one of these, add --kubernetes-version {last}",
            fixed=RULES_UNSEEN.fixed_in(minor),
            releases=seeing_none,
            last=seeing_none.rpartition(" ")[2],
        )


def _older_slices(analysis: Analysis) -> Iterator[Phrase]:
    slices = analysis.view.cycle.index.slices
    newest = analysis.view.newest
    old: dict[PoolID, int] = {}
    for entry in slices:
        # A node goes by the newest generation that it sees itself.
        if entry.generation < newest[entry.pool] and entry.name not in analysis.view.slice_nodes:
            old[entry.pool] = old.get(entry.pool, 0) + len(entry.devices)
    for pool, devices in sorted(old.items())[:MAX_POOLS]:
        yield say(
            "{count:device} in older slices of pool {pool} {count:is|are} ignored: generation {newest} is its newest",
            count=devices,
            pool=pool,
            newest=newest[pool],
        )


def _about_pod(analysis: Analysis) -> Iterator[Words]:
    question, pod, snapshot = analysis.question, analysis.pod, analysis.snapshot
    if pod is None:
        claim, template = analysis.question.claims[0].claim, analysis.question.claims[0].template
        pending = claim if claim is not None and claim.allocation is None else None
        if snapshot.pods and pending is not None and not template and not waiting_for(pending, snapshot):
            yield NO_CONSUMER
        return
    stands_for = stand_in(pod)
    if stands_for is not None and stands_for.kind == "DaemonSet":
        yield OnEachNode(stands_for.workload, _pending_on(analysis))
    elif stands_for is not None:
        why = _makes_none(stands_for.workload, snapshot)
        yield MakesNoPod(stands_for.workload, why) if why else OneOfItsPods(stands_for.workload)
    if not question.exists and analysis.outlook is Outlook.FITS:
        from kubectl_dra.explain.causes.unused_devices import unused_claims

        unused = list(unused_claims(question, pod))
        if unused and not any(map(_serves_pods, analysis.claims)):
            text = (
                "no container uses claim {count:entry|entries} {unused:some} (resources.claims): devices are "
                "allocated, and no container gets them"
            )
            yield say(text, count=len(unused), unused=unused)
    if not analysis.scheduler.schedules(pod):
        text = "the pod asks for scheduler {name}; results are those of the default one"
        yield say(text, name=pod.scheduler_name)
    if pod.phase == "Running" and not pod.metadata.deletion_timestamp:
        for one in unpublished(snapshot, analysis.allocated):
            yield one.words


def _makes_none(workload: str, snapshot: Snapshot) -> str:
    """Why a workload of the manifest makes no pod for now; empty if it does."""
    from kubectl_dra.manifests.pod_counts import counts_of, is_suspended

    raw = next((raw for raw in snapshot.workloads if title(raw) == workload), None)
    if raw is None:
        return ""
    if is_suspended(raw):
        return "is suspended, and makes no pod until it is resumed"
    counts = counts_of(raw)
    return "" if counts.replicas and any(counts.each) else f"is to have no {counts.unit}, and makes no pod"


_CHOSEN_BY_CONTROLLER = frozenset((PluginName.NODE_NAME, PluginName.NODE_AFFINITY, PluginName.TAINT_TOLERATION))
"""Filters by which the controller of a DaemonSet chooses the nodes for which it makes a pod."""


def _pending_on(analysis: Analysis) -> Words:
    """On which nodes a pod of a DaemonSet is made and not taken."""
    outcome = analysis.pod_outcome
    if outcome is None or analysis.outlook is not Outlook.FITS:
        return ""
    taking = {*analysis.takers}
    made = (
        name
        for name in outcome.asked
        if (refusal := outcome.filtered.get(name)) is None or refusal.plugin not in _CHOSEN_BY_CONTROLLER
    )
    pending = [name for name in made if name not in taking]
    text = "; {nodes:some} {count:refuses|refuse} it, so that the pod for {count:it stays|each stays} pending"
    return say(text, nodes=nodes_named(pending), count=len(pending)) if pending else ""


def _serves_pods(claim: ResourceClaim) -> bool:
    """Whether a known driver gives a claim's devices to the whole pod, as network drivers do."""
    from kubectl_dra.data.drivers import catalogue

    known = (catalogue().of_class(spec.device_class) for spec in claim.alternatives())
    return any(each is not None and each.pod_level for each in known)


NO_CONSUMER = say("no pod uses this claim: devices are allocated only when a pod that names it is scheduled")


class RequestOfContainer(Statement, frozen=True):
    """What a name stands for that only the scheduler gives."""

    TEXT = 'request "{request}" is that of container {container}'
    request: str
    container: str


def extended_notes(extended: ExtendedRequests) -> Iterator[Words]:
    """Which request of the scheduler's own claim stands for which container and resource."""
    for resource in sorted(extended.amounts):
        yield say(
            "extended resource {resource} is served by DeviceClass {name} on nodes without a device plugin for it",
            resource=resource,
            name=extended.classes[resource].name,
        )
    claim = extended.claim(extended.amounts)
    for entry in claim.requests if claim else ():
        container, _ = limit_of(extended.pod, entry.name)
        yield RequestOfContainer(entry.name, container)
