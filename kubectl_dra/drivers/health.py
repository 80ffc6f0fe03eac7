"""Health of a driver on a node: its pod's status, what it publishes, and how the kubelet's calls of it fare."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.api.plugins import NodePlugin, PluginStatus
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.snapshot import Event, Key, Snapshot
from kubectl_dra.cluster.time_read import Moment, moment, parse
from kubectl_dra.data.messages import understood

JUST_UP_SECONDS: Final = 60
"""A container that failed again and again counts as one that crashes until it has run for so long."""
STARTING_SECONDS: Final = 300
"""Seconds that a driver's pod may take to start; some wait for the driver of the hardware."""


class DriverState(StrEnum):
    """State of a driver on a node, worst first; down to NODE_DOWN it is broken."""

    CRASHING = "crashing"
    """A container of it ends again and again."""
    NOT_STARTING = "not-starting"
    """Its pod is there and a container cannot start."""
    NO_POD = "no-pod"
    """It has no pod on a node that should have one."""
    GONE = "gone"
    """Claims hold devices of it on a node, and it neither publishes there nor has a pod there."""
    PART_OFF = "switched-off"
    """Its devices are wanted and the node has them, but the part of the driver that publishes them is off."""
    NOT_REGISTERED = "not-registered"
    """The kubelet of the node does not know it, so no pod with devices of it starts."""
    NOT_ANSWERING = "not-answering"
    """The kubelet of the node calls it and gets no answer."""
    PREPARE_FAILING = "prepare-failing"
    """It runs and answers the kubelet that it cannot prepare the devices of a pod, which does not start."""
    SILENT = "publishes-nothing"
    """It publishes no devices though it should: its pod runs, or claims wait for them."""
    FEWER = "publishes-less"
    """It publishes fewer devices than on nodes that are alike."""
    INCOMPLETE = "pool-incomplete"
    """Slices of its newest generation are missing, so nothing of the pool is given out."""
    NOT_READY = "not-ready"
    """Its pod runs and fails its probe."""
    NODE_DOWN = "node-not-ready"
    """The node does not answer, or is not there any more, so nothing on it serves anybody."""
    ENDING = "ending"
    """Its pod is being deleted."""
    STARTING = "starting"
    """Its pod is a few minutes old."""
    IDLE = "no-devices"
    """It runs and publishes no devices; nothing says that the node has any."""
    LEFT_OUT = "no-pod-wanted"
    """The node has its hardware, and its DaemonSet wants no pod there, perhaps on purpose."""
    UNKNOWN = "unknown"
    """It publishes devices; no pod was recognized as the driver's."""
    HEALTHY = "healthy"

    @property
    def broken(self) -> bool:
        """Whether it needs a repair."""
        return SEVERITY[self] <= SEVERITY[DriverState.NODE_DOWN]

    @property
    def starts_no_pod(self) -> bool:
        """Whether pods with devices of the driver cannot start on the node: no one prepares their claims there."""
        return self in _STARTS_NO_POD

    @property
    def open(self) -> bool:
        """Whether the state of the driver is unknown."""
        return self in (DriverState.UNKNOWN, DriverState.STARTING, DriverState.ENDING)


_STARTS_NO_POD: Final = (
    DriverState.CRASHING,
    DriverState.NOT_STARTING,
    DriverState.NO_POD,
    DriverState.NOT_REGISTERED,
    DriverState.NOT_ANSWERING,
    DriverState.NODE_DOWN,
)
SEVERITY: Final[Mapping[DriverState, int]] = {state: number for number, state in enumerate(DriverState)}


class LastWords(NamedTuple):
    """End of a container's last run: the reason, the exit code, its last message, and when."""

    reason: str
    exit_code: int
    message: str
    at: str


class DriverPod(Struct, frozen=True):
    """The pod of a driver on a node, as far as it concerns this driver.

    ``container`` is the one that serves the driver, or the one that fails; ``init``: it is an init container.
    ``waiting`` is why the container does not run, with the message. ``since`` is when it started, or the pod was
    created. ``api_version`` is the one of resource.k8s.io that this ``version`` writes, if known.
    ``owner`` is the name of its DaemonSet, or of another owner that ``owner_kind`` says.
    """

    namespace: str
    name: str
    owner: str = ""
    owner_kind: str = ""
    container: str = ""
    init: bool = False
    ready: bool = True
    restarts: int = 0
    waiting: tuple[str, str] = ("", "")
    last: LastWords | None = None
    since: str = ""
    image: str = ""
    version: str = ""
    api_version: str = ""
    gates: tuple[tuple[str, bool], ...] = ()
    gates_known: bool = False
    kubelet_root: str = ""
    state: DriverState = DriverState.HEALTHY


class DaemonState(Struct, frozen=True):
    """The DaemonSet that makes a driver's pods: how many nodes should have one and have one, and what fails.

    It may be a ReplicaSet, by ``kind``; of that no more is known than its name and what fails. ``labels`` are
    those of its node selector that no node has, where it wants no node at all.
    """

    namespace: str
    name: str
    desired: int | None
    current: int
    failure: str = ""
    failure_at: str = ""
    labels: tuple[str, ...] = ()
    update: str = ""
    surge: bool = False
    kind: str = "DaemonSet"


class LeftOut(NamedTuple):
    """Why a DaemonSet wants no pod on a node: labels of its node selector that the node lacks, or a taint of the node
    that its pods do not tolerate. Neither: its node affinity does not match.
    """

    labels: tuple[str, ...] = ()
    taint: str = ""


class PoolCount(NamedTuple):
    """Number of slices of a pool's newest generation that exist, and number that it should have."""

    pool: str
    generation: int
    found: int
    expected: int


class FailingCall(NamedTuple):
    """Failing calls of a driver by the kubelet, the namespace and name of a waiting pod, and since when.

    ``times`` is how often the call for this pod failed, ``said`` what the driver answered, if it did. ``others`` is
    how many more pods wait.
    """

    state: DriverState
    namespace: str
    pod: str
    since: str
    times: int = 1
    said: str = ""
    others: int = 0


class NodeDriver(Struct, frozen=True):
    """A driver on a node; ``node`` is empty for a driver that runs nowhere.

    ``usual`` is how many devices it publishes on each of the ``likes``, the nodes that are alike; 0 without any.
    ``created`` is when its newest slice there was made. ``labelled``: labels say that the likes are alike; without
    it they are all nodes that no label tells apart. ``in_use`` is how many devices claims hold that it does not
    publish, where it takes those in use out of its slices, or is gone. ``node_gone``: there is no such Node any more;
    ``down_since``: since when it is not ready.
    ``pods_read``: it has no pod but the one that was found. ``incomplete`` is the first pool of which slices are
    missing, with how many there are and how many it should have. ``failing``: the kubelet does not reach it, or it
    cannot prepare what a pod has. ``wanted_by`` are the classes that select its devices, for which ``claims`` wait,
    where it publishes nothing anywhere; ``waiting_pod`` is the first that uses one. ``hardware`` are the nodes that
    have its hardware then, and ``other_part`` is the part of it that runs where this one is off.
    ``left_out`` is why its DaemonSet wants no pod on a node that has its hardware, or on which its slices are left.
    ``tainted`` is how many of its devices taints keep from new claims, ``taints`` what these are, each with the time
    at which the first device got it.
    """

    driver: str
    node: str
    state: DriverState
    devices: int = 0
    slices: int = 0
    pools: tuple[str, ...] = ()
    generation: int = 0
    missing_slices: int = 0
    created: str = ""
    pod: DriverPod | None = None
    daemon: DaemonState | None = None
    usual: int = 0
    likes: tuple[str, ...] = ()
    labelled: bool = False
    in_use: int = 0
    node_gone: bool = False
    pods_read: bool = True
    incomplete: PoolCount | None = None
    failing: FailingCall | None = None
    wanted_by: tuple[str, ...] = ()
    claims: int = 0
    waiting_pod: tuple[str, str] | None = None
    hardware: tuple[str, ...] = ()
    other_part: str = ""
    left_out: LeftOut | None = None
    tainted: int = 0
    taints: tuple[DeviceTaint, ...] = ()
    down_since: str = ""

    @property
    def ails(self) -> bool:
        """Whether those who want its devices have to act: it is broken, or runs nowhere."""
        return self.state.broken or bool(self.wanted_by)

    @property
    def since(self) -> str:
        """Since when it is so, as far as objects say: empty if they do not."""
        if self.down_since:
            return self.down_since
        if self.failing is not None:
            return self.failing.since
        if self.pod is None:
            return self.daemon.failure_at if self.daemon is not None else self.created
        if self.state in (DriverState.CRASHING, DriverState.NOT_STARTING) and self.pod.last is not None:
            return self.pod.last.at or self.pod.since
        return self.pod.since


def pod_health(pod: Pod, plugin: NodePlugin, container: str, at: Moment) -> DriverPod:
    """Health of a driver's pod, by the container that serves the driver; by all containers if it is not known."""
    meta = pod.metadata
    owner = meta.controller()
    state, status, init = _worst(pod, plugin, container, at)
    shown = status.name if status is not None else container or plugin.spec.containers[0].name
    ended = (status.last_state.terminated or status.state.terminated) if status is not None else None
    waiting = status.state.waiting if status is not None else None
    running = status.state.running if status is not None else None
    return DriverPod(
        namespace=meta.namespace,
        name=meta.name,
        owner=owner.name if owner is not None else "",
        owner_kind=owner.kind if owner is not None else "",
        container=shown,
        init=init,
        ready=status.ready if status is not None else state is DriverState.HEALTHY,
        restarts=status.restart_count if status is not None else 0,
        waiting=(waiting.reason, waiting.message) if waiting is not None else ("", ""),
        last=LastWords(ended.reason, ended.exit_code, ended.message, ended.finished_at) if ended is not None else None,
        since=(running.started_at if running is not None else "") or meta.creation_timestamp,
        state=state,
    )


def _worst(pod: Pod, plugin: NodePlugin, container: str, at: Moment) -> tuple[DriverState, PluginStatus | None, bool]:
    """The state of a pod, the container that shows it, and whether that is an init container."""
    own = [plugin_status for plugin_status in plugin.statuses if not container or plugin_status.name == container]
    first = own[0] if own else None
    if pod.metadata.deletion_timestamp:
        return DriverState.ENDING, first, False
    if pod.finished:
        return DriverState.NOT_STARTING, first, False
    for status in plugin.init_statuses:
        state = _container(status, at)
        if status.state.running is not None:
            # An init container that goes on beside the others keeps nobody.
            if not any(plugin_status.state.running for plugin_status in plugin.statuses):
                young = seconds_since(status.state.running.started_at, at) < STARTING_SECONDS
                return (DriverState.STARTING if young else DriverState.NOT_STARTING), status, True
        elif state is not DriverState.HEALTHY:
            return state, status, True
    states = [(_container(status, at), status) for status in own]
    bad = [entry for entry in states if entry[0] is not DriverState.HEALTHY]
    if bad:
        state, status = min(bad, key=lambda entry: SEVERITY[entry[0]])
        waits = state is DriverState.STARTING
        if waits and seconds_since(pod.metadata.creation_timestamp, at) >= STARTING_SECONDS:
            state = DriverState.NOT_STARTING
        return state, status, False
    if not own and pod.phase == "Pending":
        young = seconds_since(pod.metadata.creation_timestamp, at) < STARTING_SECONDS
        return (DriverState.STARTING if young else DriverState.NOT_STARTING), None, False
    return DriverState.HEALTHY, first, False


def _container(status: PluginStatus, at: Moment) -> DriverState:
    state = status.state
    if state.waiting is not None:
        if state.waiting.reason == "CrashLoopBackOff":
            return DriverState.CRASHING
        usual = state.waiting.reason in ("", "ContainerCreating", "PodInitializing")
        return DriverState.STARTING if usual else DriverState.NOT_STARTING
    if state.terminated is not None and (state.terminated.exit_code or state.terminated.reason == "Error"):
        return DriverState.CRASHING
    if state.running is not None and not status.ready:
        if status.restart_count > _MANY:
            return DriverState.CRASHING
        young = seconds_since(state.running.started_at, at) < STARTING_SECONDS
        return DriverState.STARTING if young else DriverState.NOT_READY
    last = status.last_state.terminated
    if state.running is not None and last is not None and last.exit_code and status.restart_count >= _AGAIN:
        # Without a probe it is ready as soon as it is up.
        young = seconds_since(state.running.started_at, at) < JUST_UP_SECONDS
        return DriverState.CRASHING if young else DriverState.HEALTHY
    return DriverState.HEALTHY


_AGAIN: Final = 2
"""Restarts after which an error is no single one."""
_MANY: Final = 3
"""Restarts after which a container that is up and not ready counts as one that crashes: it is between two ends."""


def seconds_since(time: str, at: Moment) -> float:
    """Seconds since a time of the API; 0 where it is not known."""
    began = parse(time)
    return (at.at - began).total_seconds() if began is not None else 0


def usual_count(counts: Sequence[int]) -> int:
    """What most of these publish; of several, the largest."""
    return max(set(counts), key=lambda count: (counts.count(count), count), default=0)


# Drivers that fail the kubelet of a node, as its last event about a pod that waits there says.

_UNREGISTERED: Final = re.compile(r"not registered|registered DRA plugins|no registered DRA|DRA driver \S+ not found")
_NO_ANSWER: Final = re.compile(r"connection error|connection refused|transport: Error while dialing|code = Unavailable")
"""The kubelet knows the driver's socket, but no process listens there."""
_NOT_ALLOWED: Final = re.compile(r"is not allowed to use ResourceClaim")
_ANSWERED: Final = re.compile(
    r"NodePrepareResources(?: failed for ResourceClaim [^:\s]{1,253})?: (?P<said>.+)", re.DOTALL
)
"""The driver was called, and did not prepare the claim's devices."""
_CLAIM: Final = re.compile(r"ResourceClaim (?:[\w.-]{1,253}/)?(?P<name>[\w.-]{1,253})")
"""The claim that a message of the kubelet names; the driver that it called is not named."""
_NAMED: Final = re.compile(r"DRA driver (?P<driver>[\w.-]{1,253}) is not registered")


def failed_call(pod: Pod, snapshot: Snapshot) -> Event | None:
    """The kubelet's last event that a pod's devices were not prepared; None where there is none, or it is over."""
    events = snapshot.events_of(pod, FAILED_PREPARE)
    # A pod that has its sandbox has its devices prepared.
    if not events or pod.condition("PodReadyToStartContainers").status == "True":
        return None
    return None if _NOT_ALLOWED.search(events[-1].message) else events[-1]


def how_unreached(message: str) -> DriverState | None:
    """Whether a message of the kubelet says that it does not know a driver, or that the driver does not answer."""
    if _NO_ANSWER.search(message):
        return DriverState.NOT_ANSWERING
    return DriverState.NOT_REGISTERED if _UNREGISTERED.search(message) else None


def drivers_meant(message: str, claims: Sequence[ResourceClaim]) -> tuple[str, ...]:
    """The drivers that a message of the kubelet can be about: the one it names, else those of the claim it names.

    If the claim has devices of several drivers, one of which is known to say this, it is that one.
    """
    match = _NAMED.search(message)
    if match is not None:
        return (match["driver"],)
    named = {match["name"].rstrip(".") for match in _CLAIM.finditer(message)}
    own = [claim for claim in claims if claim.metadata.name in named] or claims
    drivers = {device.driver for claim in own for device in claim.devices}
    known = understood(message, drivers)
    said = drivers & set(known.entry.says) if known is not None else set()
    return tuple(sorted(said or drivers))


def failing_calls(snapshot: Snapshot) -> Mapping[tuple[str, str], FailingCall]:
    """By driver and node: how the kubelet's calls of it fail; of several pods, for the first by name."""
    found: dict[tuple[str, str], FailingCall] = {}
    names = {(event.namespace, event.name) for event in snapshot.events if event.reason == FAILED_PREPARE}
    claims: dict[Key, list[ResourceClaim]] = defaultdict(list)
    for claim in snapshot.claims.values() if names else ():
        for consumer in claim.reserved_for if claim.devices else ():
            claims[claim.metadata.namespace, consumer.name].append(claim)
    for key in sorted(names):
        pod = snapshot.pods.get(key)
        if pod is None or not pod.node_name or pod.phase not in ("", "Pending"):
            continue
        event = failed_call(pod, snapshot)
        if event is None:
            continue
        answered = _ANSWERED.search(event.message)
        state = how_unreached(event.message) or (DriverState.PREPARE_FAILING if answered is not None else None)
        if state is None:
            continue
        drivers = drivers_meant(event.message, [claim for claim in claims[key] if relation_of(claim, pod).listed])
        if len(drivers) != 1 or (state is DriverState.PREPARE_FAILING and _passes(event, drivers[0], snapshot)):
            continue
        on = drivers[0], pod.node_name
        if (known := found.get(on)) is not None and SEVERITY[known.state] <= SEVERITY[state]:
            found[on] = known._replace(others=known.others + 1)
            continue
        said = answered["said"] if answered is not None and state is DriverState.PREPARE_FAILING else ""
        others = known.others + 1 if known is not None else 0
        found[on] = FailingCall(state, *key, event.first or event.last, event.count, said, others)
    return found


def _passes(event: Event, driver: str, snapshot: Snapshot) -> bool:
    """Whether a driver says what it says while all is well, and has not said it for long."""
    known = understood(event.message, (driver,))
    lasting = seconds_since(event.first or event.last, moment(snapshot))
    return known is not None and known.entry.normal and lasting < STARTING_SECONDS
