"""Which ways of sharing let all pods run: each is written, linted, and its pods are placed; and the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.capacity import NOTHING, ZERO
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.command import CommandEffect, CommandLine, deleting, kubectl
from kubectl_dra.drivers.health import failed_call
from kubectl_dra.drivers.refused_claims import GateLacking
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.causes.claim_creation import ADMIN_LABEL, allowing_admin
from kubectl_dra.explain.causes.node_filters import ELSEWHERE, ELSEWHERE_UNUSED
from kubectl_dra.explain.diagnosis import Finding
from kubectl_dra.explain.node_reasons import Untolerated
from kubectl_dra.explain.phrase import named, say
from kubectl_dra.explain.remedies.node_rules import RelaxNodeRule
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.existing_pods import pods_of
from kubectl_dra.fit.pod_factory import without
from kubectl_dra.fit.result import FitOptions, WorkloadFit
from kubectl_dra.fit.rollout import limits_of
from kubectl_dra.fit.sharing import IN_ONE_POD, SharingNeed, SharingWay, SharingWriter, WrittenWay
from kubectl_dra.fit.workload import WorkloadPods, workloads_of
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.manifests.workloads import key_of

MOST_STEPS: Final = 20
"""So many numbers of old pods are tried; a rollout of more steps is not promised."""
_SCALED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


class Replaced(Enum):
    """Way in which running pods are replaced by new ones."""

    BY_ROLLOUT = "by-rollout"
    """The controller does it."""
    ROLLOUT_HANGS = "rollout-hangs"
    """The controller waits for new pods before it ends old ones, and these hold what the new ones need."""
    BY_HAND = "by-hand"
    """They stay as they are until somebody ends them."""


def replaced(workload: WorkloadPods, running: int, beside: Callable[[int], int]) -> Replaced:
    """Way in which so many running pods are replaced. ``beside(n)``: new pods that get a node beside ``n`` old ones."""
    limits = limits_of(workload, workload.replicas)
    if limits is None or limits.first:
        return Replaced.BY_HAND
    fewest, old = workload.replicas * workload.size - limits.unavailable, running
    for _ in range(MOST_STEPS):
        if old <= 0:
            return Replaced.BY_ROLLOUT
        # Old pods end as long as enough pods are available without them.
        left = fewest - beside(old)
        if left >= old:
            return Replaced.ROLLOUT_HANGS
        old = left
    return Replaced.ROLLOUT_HANGS


def ending(workload: WorkloadPods) -> tuple[CommandLine, ...]:
    """The command that ends the pods that run, so that the manifest can be applied; none for kinds of others."""
    space = workload.namespace
    if workload.raw and workload.kind in _SCALED:
        more, ends = ("--replicas=0",), CommandEffect.DESTROYS
        kind = workload.kind.lower()
        return (kubectl("scale", kind=kind, name=workload.name, namespace=space, more=more, effect=ends),)
    if key_of(workload.raw) == ("batch", "Job"):
        return (deleting("job", workload.name, space),)
    if not workload.raw:
        return tuple(deleting("pod", role.pod.metadata.name, space) for role in workload.roles)
    return ()


Applied = Callable[[Snapshot], Snapshot]
"""The cluster after its API server applied a manifest."""
_NEEDED: Final = ("DRA608", "DRA803")
"""Rules about what a way needs and says: a driver's gate, a namespace's label."""
_SHARED: Final = "DRA404"
"""The rule about a claim that all pods of a workload share."""
_ON_PURPOSE: Final = f"# kubectl-dra: ignore[{_SHARED}] these pods share one claim on purpose"
_FOLLOWING: Final = "DRA609"
"""The rule about the CPUs that a container requests beside its claim: they follow from the claim's amount."""
MOST_TRIED: Final = 8
"""Manifests of a way that are tried."""


class MatchingDevices(NamedTuple):
    """All devices of the cluster, and those that a class admits, each with its node if it has one; what is left of each
    capacity of the latter that several claims may have; and the classes that admit a device.
    """

    published: list[Device]
    located: list[tuple[Device, Node | None]]
    left: Mapping[str, Sequence[Quantity]]
    classes_of: Callable[[Device], Sequence[str]]


def matching_devices(name: str, snapshot: Snapshot, settings: Settings) -> MatchingDevices:
    """The devices of the cluster, and those that a class admits."""
    exact = snapshot.exact()
    cycle = settings.scheduler.cycle(exact)
    device_class = exact.classes.get(name)
    devices = [device for slice_ in exact.slices for device in slice_.devices]

    def classes_of(device: Device) -> list[str]:
        return [
            known.name
            for known in exact.classes.values()
            if cycle.selectors.accepted(filter(None, known.selectors), [device])
        ]

    if device_class is None:
        return MatchingDevices(devices, [], {}, classes_of)
    # Slices of equal content have the same devices.
    matching = {id(device) for device in cycle.selectors.accepted(filter(None, device_class.selectors), devices)}
    placed = [
        (published, slice_) for slice_ in exact.slices for published in slice_.devices if id(published) in matching
    ]
    located = [(device, snapshot.nodes.get(slice_.scope.node_name)) for device, slice_ in placed]
    left: dict[str, list[Quantity]] = {}
    for device, slice_ in placed if cycle.features.consumable_capacity else ():
        used = cycle.state.consumed.get(DeviceID(*slice_.pool, device.name), NOTHING)
        for name, capacity in device.capacity.items() if device.allow_multiple_allocations else ():
            value = Quantity.parse(str(capacity.get("value") or "0"))
            left.setdefault(name, []).append(value - used.get(name, ZERO))
    return MatchingDevices(devices, located, left, classes_of)


def tried(
    writer: SharingWriter,
    ways: Sequence[SharingWay],
    part: str,
    snapshot: Snapshot,
    namespace: str,
    settings: Settings,
    applied: Applied,
    progress: Progress,
) -> list[TriedWay]:
    """Each way as the first of its manifests with which all pods run, else the one with most."""
    out: list[TriedWay] = []
    for way in ways:
        best: TriedWay | None = None
        # Another amount than the one asked for is worth trying where there is not room for all.
        pods = out[0].fit.pods if out and out[0].fit is not None and not out[0].works else 0
        for number, written in enumerate(writer.write(way, part, pods)):
            if number == MOST_TRIED:
                break
            tried_way = _tried(written, snapshot, namespace, settings, applied, progress)
            if best is None or tried_way.placed > best.placed:
                best = tried_way
            if best.works:
                break
        assert best is not None
        out.append(best)
    return out


def _tried(
    written: WrittenWay,
    snapshot: Snapshot,
    namespace: str,
    settings: Settings,
    applied: Applied,
    progress: Progress,
) -> TriedWay:
    if written.impossible:
        return TriedWay(written)
    written = replace(written, needs=tuple(_as_seen(need, snapshot) for need in written.needs))
    written, findings = _linted(written, snapshot, settings)
    manifest = read_snapshot(["-"], namespace=namespace, stdin=written.text.encode(), workloads=True)
    cluster, needs = _with_its_templates(applied(manifest), manifest)
    workload = next(pods for pods in workloads_of(manifest) if any(role.pod.claims for role in pods.roles))
    if written.way is SharingWay.ADMIN:
        written = replace(written, needs=tuple(_of_namespace(workload.namespace, cluster, written.needs)))
    own = pods_of(workload, cluster)
    running = sorted((pod for pod in own if pod.node_name), key=lambda pod: pod.key)

    def beside(old: int, options: FitOptions) -> WorkloadFit:
        """What comes of the new pods while so many of those that run keep their devices."""
        ended = without([pod for pod in own if pod not in running[:old]], cluster)
        return fit([workload], ended, settings, options, progress).workloads[0]

    def new_pods(old: int) -> int:
        replicas = workload.replicas + -(-old // max(1, workload.size))
        return len(beside(old, FitOptions(replicas, changes=False)).placed_pods)

    if written.way is SharingWay.EACH:
        # What runs stays as it is.
        found = fit([workload], cluster, settings, FitOptions(changes=False), progress).workloads[0]
        spread = _spread(found, cluster)
        return TriedWay(replace(written, needs=(*written.needs, *needs)), found, findings, spread=spread)
    # Pods that run already are made anew: their claims are others.
    found = beside(0, FitOptions(changes=False))
    written = replace(written, needs=tuple(_as_judged(need, found) for need in written.needs))
    how = replaced(workload, len(running), new_pods) if running and found.placed_pods else Replaced.BY_ROLLOUT
    after = how is not Replaced.BY_ROLLOUT
    needs = (*needs, _end_first(workload, len(running), how)) if after else needs
    return TriedWay(replace(written, needs=(*written.needs, *needs)), found, findings, after)


def _of_namespace(name: str, cluster: Snapshot, needs: Sequence[SharingNeed]) -> Iterator[SharingNeed]:
    """What access for monitoring needs, with the command for the namespace; nothing where that allows it."""
    namespace = cluster.namespaces.get(name)
    if namespace is None or namespace.labels.get(ADMIN_LABEL) != "true":
        for need in needs:
            yield replace(need, commands=(allowing_admin(name),))


def _spread(found: WorkloadFit, cluster: Snapshot) -> Spread:
    """On which devices the placed pods are, and which of these other claims have."""
    own = {claim.key: claim for placed_pod in found.placed_pods for claim in placed_pod.claims}
    held = [device for claim in own.values() for device in _held(claim)]
    others = {device for claim in cluster.claims.values() if claim.key not in own for device in _held(claim)}
    return Spread(len(set(held)), len(held), len(others.intersection(held)))


def _held(claim: ResourceClaim) -> set[DeviceID]:
    """The devices of a claim, but for those that it only watches."""
    return {result.device for result in claim.results if not result.admin_access}


def _as_seen(need: SharingNeed, snapshot: Snapshot) -> SharingNeed:
    """A need; of a driver's gate with a pod that waits because it is off, if there is one."""
    for event in snapshot.events if need.driver else ():
        if event.reason != FAILED_PREPARE or not re.search(rf"\b{need.name}\b", event.message):
            continue
        pod = snapshot.pods.get((event.namespace, event.name))
        drivers = {device.driver for claim in claims_of(pod, snapshot) for device in claim.devices} if pod else set()
        if pod is not None and need.driver in drivers and failed_call(pod, snapshot) is not None:
            return replace(need, refused=named("Pod", pod))
    return need


def _as_judged(need: SharingNeed, found: WorkloadFit) -> SharingNeed:
    """A need; of a driver's gate with the nodes that pods get and where it is off."""
    refusals = (lack for lack in found.begin.refused if isinstance(lack, GateLacking))
    nodes = dict.fromkeys(lack.node for lack in refusals if (lack.driver, lack.gate.name) == (need.driver, need.name))
    return replace(need, off_on=tuple(nodes))


def _with_its_templates(cluster: Snapshot, manifest: Snapshot) -> tuple[Snapshot, tuple[SharingNeed, ...]]:
    """The cluster with the manifest's templates, and what that needs where others have these names already."""
    own = manifest.templates
    refused = [change for change in cluster.refused if change.kind == "ResourceClaimTemplate" and change[1:3] in own]
    text = (
        "another name, or that {name} is deleted first: ResourceClaimTemplate {name} exists already, and the server "
        "refuses another spec for it"
    )
    needs = tuple(SharingNeed("another name for the template", say(text, name=change.name)) for change in refused)
    templates = {**cluster.templates, **{change[1:3]: own[change[1:3]] for change in refused}}
    left = tuple(change for change in cluster.refused if change not in refused)
    return replace(cluster, templates=templates, refused=left), needs


def _end_first(workload: WorkloadPods, running: int, how: Replaced) -> SharingNeed:
    """The need to end the running pods before the manifest is applied."""
    why = "nothing replaces them by itself"
    if how is Replaced.ROLLOUT_HANGS:
        why = "the rollout would wait for new pods while the old ones hold what these need"
        why += " (or set the Deployment's strategy.type to Recreate)" if workload.kind == "Deployment" else ""
    text = "that {count:pod} of {workload} that {count:runs|run} {count:ends|end} before the manifest is applied: {why}"
    how_to = say(text, count=running, workload=workload.title, why=why)
    return SharingNeed("old pods ended first", how_to, ending(workload))


def _linted(written: WrittenWay, snapshot: Snapshot, settings: Settings) -> tuple[WrittenWay, tuple[str, ...]]:
    """The way so that our own rules find as little as can be, and what they say of it: errors, and warnings."""
    from kubectl_dra.lint.check_file import Job
    from kubectl_dra.lint.config import Selection
    from kubectl_dra.lint.context import AssumedCluster
    from kubectl_dra.lint.engine import lint
    from kubectl_dra.lint.fixes import fix_text
    from kubectl_dra.manifests.inputs import STDIN_NAME, Input
    from kubectl_dra.manifests.source import Source

    target = AssumedCluster(settings.scheduler.release.without_patch, settings.scheduler.gates, snapshot)

    def check(name: str, data: bytes) -> Sequence[LocatedFinding]:
        return lint([Input(name, True, data)], Job(target, Selection()), processes=1).findings

    text = written.text
    findings = check(STDIN_NAME, text.encode())
    if written.way is SharingWay.CAPACITY:
        following = [finding for finding in findings if finding.code == _FOLLOWING]
        text = fix_text(Source(STDIN_NAME, text), following, ("safe", "unsafe"), check).text.after
    elif written.way in IN_ONE_POD and not text.lstrip().startswith("{"):
        meant = {finding.line for finding in findings if finding.code == _SHARED}
        lines = text.splitlines(keepends=True)
        for number in sorted(meant, reverse=True):
            line = lines[number - 1]
            lines.insert(number - 1, f"{line[: len(line) - len(line.lstrip())]}{_ON_PURPOSE}\n")
        text = "".join(lines)
    findings = check(STDIN_NAME, text.encode()) if text != written.text else findings
    told = (
        finding
        for finding in findings
        if finding.severity in ("error", "warning") and finding.code not in (*_NEEDED, _SHARED)
    )
    said = tuple(dict.fromkeys(f"{finding.code}: {finding.message}" for finding in told))
    return replace(written, text=text), said


# The answer about sharing: the ways that were tried, and what they tell together.


class Spread(NamedTuple):
    """On how many ``devices`` the pods of a way are. ``claims`` is how many have them for these pods, ``others`` how
    many of the devices serve claims of others, too.
    """

    devices: int = 0
    claims: int = 0
    others: int = 0

    @property
    def shared(self) -> bool:
        """Whether any of the devices serves several claims."""
        return self.claims > self.devices or self.others > 0


class TriedWay(Struct, frozen=True):
    """A way, how many pods of how many get a node with it, and what linting says. No ``fit``: it was not tried.

    ``after``: they do so only once the pods of the workload that run have ended. ``spread``: on which devices they are.
    """

    written: WrittenWay
    fit: WorkloadFit | None = None
    findings: tuple[str, ...] = ()
    after: bool = False
    spread: Spread = Spread()

    @property
    def works(self) -> bool:
        """Whether all pods get a node and start, and nothing in the cluster shows that the driver refuses them."""
        return self.fit is not None and self.fit.verdict is Verdict.SCHEDULABLE and not self.refused

    @property
    def refused(self) -> tuple[SharingNeed, ...]:
        """The gates of the driver that are off here."""
        return tuple(need for need in self.written.needs if need.refused is not None or need.off_on)

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates of the driver without which it refuses the pods that get a node."""
        return tuple(need.name for need in self.written.needs if need.driver)

    @property
    def why(self) -> tuple[Finding, ...]:
        """What keeps the first pod that gets no node."""
        return self.fit.stop.diagnosis.findings if self.fit is not None and self.fit.stop is not None else ()

    @property
    def placed(self) -> int:
        """Number of pods that get a node where they start, or have it."""
        return self.fit.starting if self.fit is not None else 0


class Tolerating(NamedTuple):
    """What comes of the pods if they tolerate these taints of nodes."""

    taints: tuple[str, ...]
    answer: ShareAnswer


class Divided(NamedTuple):
    """Into how many shared ``claims`` pods have to be divided, because the node of one takes only ``most`` of them.

    ``enough``: there are devices on so many nodes.
    """

    claims: int
    most: int
    enough: bool


class ShareAnswer(Struct, frozen=True):
    """The ways for pods of a class, or for so many ``containers`` of one pod.

    ``missing_namespaces`` do not exist, so that no pod is created; the ways suppose them. ``devices``: so many are of
    the class. ``tolerating``: taints of nodes keep the pods from running, and this is what comes of pods that
    tolerate them. ``given``: the manifest as it was read, where somebody wrote one.
    """

    ways: tuple[TriedWay, ...]
    device_class: str
    containers: int = 0
    missing_namespaces: tuple[str, ...] = ()
    devices: int = 0
    tolerating: Tolerating | None = None
    given: str = ""

    @property
    def taint(self) -> str:
        """The taint of nodes that keeps the first pod off them, where to tolerate it is the fix; else empty."""
        for finding in (finding for way in self.working for finding in way.why[:1]):
            for offer in finding.remedy.offers if finding.remedy is not None else ():
                reason = offer.reason if isinstance(offer, RelaxNodeRule) else None
                if isinstance(reason, Untolerated) and not reason.is_condition:
                    return str(reason.taint)
        return ""

    @property
    def pods(self) -> int:
        """Number of pods that share."""
        return next((way.fit.pods for way in self.ways if way.fit is not None), 0)

    @property
    def working(self) -> tuple[TriedWay, ...]:
        """The ways in which pods can work: who only watches what others hold does none, unless that was asked for."""
        return tuple(way for way in self.ways if way.written.way is not SharingWay.ADMIN or not self.ways[1:])

    @property
    def works(self) -> frozenset[SharingWay]:
        """The ways with which all pods run."""
        return frozenset(way.written.way for way in self.ways if way.works)

    @property
    def divided(self) -> Divided | None:
        """What more shared claims than one would do; None where it is not the node of the claim that is full."""
        full = [way for way in self.ways if way.written.way in IN_ONE_POD and way.why and way.why[0].kind in _FULL]
        if self.works or self.containers or not any(way.placed for way in full):
            return None
        most = max(way.placed for way in full)
        claims = -(-self.pods // most)
        alone = (way.fit for way in self.ways if way.written.way is SharingWay.EACH and way.fit is not None)
        nodes = {pod.node for way_fit in alone for pod in way_fit.placed_pods}
        return Divided(claims, most, claims <= len(nodes))


_FULL: Final = (ELSEWHERE, ELSEWHERE_UNUSED)
"""The causes of a pod that does not fit where its claim is."""
