"""Waits until no claim holds a device, and reports the progress of each pod and what blocks it since when."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import EMPTY, EVICTION_REASON
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.claim_relation import same_uid
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.command import CommandLine, deleting
from kubectl_dra.errors import ClusterError
from kubectl_dra.explain.causes.on_node import containers_ended, drivers_of
from kubectl_dra.taint import times
from kubectl_dra.taint.steady_watches import Watcher

REMIND_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 10.0
"""Seconds between two checks that the devices are still published."""

RUNNING: Final = "running"
EVICTING: Final = "evicting"
TERMINATING: Final = "terminating"
ENDED: Final = "ended"
GONE: Final = "gone"


class Holder(Struct, frozen=True):
    """A claim that holds one of the devices; ``uid`` distinguishes it from a later one of the same name."""

    device: DeviceID
    namespace: str
    name: str
    uid: str


class PodState(Struct, frozen=True):
    """A pod's progress toward its end. ``since`` is a time of the API, ``why`` what delays it."""

    state: str
    since: str = ""
    why: str = ""


class Blocker(Struct, frozen=True):
    """What still holds a device: the claim, the pod (empty if no pod is the cause), why, and what would end it."""

    device: DeviceID
    claim: str
    pod: str
    why: str
    since: str = ""
    command: CommandLine | None = None

    def __str__(self) -> str:
        pod = f", pod {self.pod}" if self.pod else ""
        since = f" (since {self.since})" if self.since else ""
        return f"{self.device}: held by claim {self.claim}{pod}: {self.why}{since}"


class RuleGone(Exception):
    """Somebody else deleted a rule that we are waiting for."""


class Drain:
    """Watches devices until they are free. Only relevant claims and pods are read, and only after a change.

    A watch alone never proves that the devices are free: all claims are listed once more at the end.

    ``rules`` maps the devices to the taint that evicts pods, by rule. Claims with admin access hold nothing
    and are not waited for. ``pods`` (namespace, name, UID) are known users of the devices; their end is
    reported however fast it is. ``parts`` are devices that may be the same hardware.

    When ``wait`` has returned, ``watchers`` are the claims with admin access to the devices, and
    ``held_parts`` says who holds parts. ``blockers`` is what last blocked the devices.
    """

    def __init__(
        self,
        cluster: ApiServer,
        watcher: Watcher,
        rules: Mapping[DeviceID, DeviceTaint],
        pods: Iterable[tuple[str, str, str]] = (),
        parts: Iterable[DeviceID] = (),
    ) -> None:
        self._cluster = cluster
        self._watcher = watcher
        self._rules = dict(rules)
        self.patience = watcher.patience
        self._said: dict[tuple[str, str, str], str] = dict.fromkeys(pods, "")
        self._published = set(rules)
        self._parts = frozenset(parts)
        self.unpublished: set[DeviceID] = set()
        self.watchers: tuple[str, ...] = ()
        self.held_parts: tuple[str, ...] = ()
        self.blockers: tuple[Blocker, ...] = ()

    def taints(self, rules: Mapping[DeviceID, DeviceTaint]) -> None:
        """Record that the taints have changed (NoExecute after NoSchedule)."""
        self._rules.update(rules)

    def wait(self) -> tuple[Blocker, ...]:
        """Return when no claim holds the devices (empty), or at the deadline (what does).

        Raises:
            RuleGone: somebody deleted one of the rules.
            ClusterError: the cluster can no longer be reached (see ``Patience.ask``).
        """
        clock = self.patience.clock
        self._watcher.follow("ResourceSlice", query=slices_of(self._rules), whole=True)
        self._watcher.follow("DeviceTaintRule")
        holders = self.holders()
        reminded = looked = clock()
        while True:
            self._follow(holders)
            blockers, remaining = self._round(holders)
            if not remaining:
                holders = self.holders()
                if not holders:
                    self.blockers = ()
                    self._round(())
                    self._check_published()
                    return ()
                blockers, remaining = self._round(holders)
            holders, self.blockers = remaining, blockers
            if self.patience.expired():
                return blockers
            self._check_rules()
            if clock() - looked >= LOOK_SECONDS:
                looked = clock()
                self._check_published()
            if clock() - reminded >= REMIND_SECONDS:
                reminded = clock()
                for blocker in blockers:
                    self.patience.say(f"still waiting: {blocker}")
            self._watcher.pause(LOOK_SECONDS)

    def holders(self) -> tuple[Holder, ...]:
        """Every claim that currently holds one of the devices, from a list of all claims."""
        claims = [*map(_claim, self.patience.ask(lambda: self._cluster.objects("ResourceClaim")))]
        self.watchers = tuple(_looks(claim, self._rules) for claim in claims if _used(claim, self._rules, admin=True))
        self.held_parts = tuple(
            f"{id} is held by claim {claim.key}"
            for claim in claims
            for id in _used(claim, self._parts, admin=False)
            if id not in self._rules
        )
        return tuple(holder for claim in claims for holder in _held(claim, self._rules))

    def _round(self, holders: Sequence[Holder]) -> tuple[tuple[Blocker, ...], tuple[Holder, ...]]:
        """Examine claims and pods once. Returns what blocks, and the claims that still hold devices."""
        blockers: list[Blocker] = []
        remaining: list[Holder] = []
        pods: dict[tuple[str, str, str], PodState] = {}
        for holder in holders:
            raw = self._watcher.get("ResourceClaim", holder.name, holder.namespace)
            claim = _claim(raw) if raw is not None else None
            if claim is not None and holder in _held(claim, self._rules):
                remaining.append(holder)
                blockers.extend(self._blockers(holder, claim, pods))
        for key in [key for key in self._said if key not in pods and self._said[key] != GONE]:
            # Its claim is free, or does not list it any more: the pod itself may be gone or not.
            pods[key] = self._pod(*key)
        for key, state in pods.items():
            self._tell(key, state)
        return tuple(blockers), tuple(remaining)

    def _blockers(
        self, holder: Holder, claim: ResourceClaim, pods: dict[tuple[str, str, str], PodState]
    ) -> list[Blocker]:
        key = claim.key
        if not claim.reserved_for:
            if claim.metadata.deletion_timestamp:
                why = f"the claim is being deleted; finalizers: {', '.join(claim.metadata.finalizers) or 'none'}"
                return [Blocker(holder.device, key, "", why, claim.metadata.deleted_at)]
            why = "unused: nothing frees its devices by itself"
            end = deleting("resourceclaim", holder.name, holder.namespace)
            return [Blocker(holder.device, key, "", why, command=end)]
        out: list[Blocker] = []
        for consumer in claim.reserved_for:
            if consumer.resource != "pods":
                ending: CommandLine | None = None
                why = f"used by {consumer.resource} {consumer.name}, which is not a pod: nothing ends it by itself"
                if consumer.resource == "podgroups":
                    why = f"reserved for PodGroup {consumer.name}: released when that is deleted, not when its pods end"
                    ending = deleting("podgroup", consumer.name, holder.namespace)
                out.append(Blocker(holder.device, key, "", why, command=ending))
                continue
            at = (claim.metadata.namespace, consumer.name, consumer.uid)
            if at not in pods:
                pods[at] = self._pod(*at, drivers_of((claim,)))
            if pods[at].state == RUNNING:
                pods[at] = PodState(RUNNING, why=self._why_running(holder.device, claim))
            out.append(Blocker(holder.device, key, f"{at[0]}/{at[1]}", pods[at].why, pods[at].since))
        return out

    def _why_running(self, device: DeviceID, claim: ResourceClaim) -> str:
        taint = self._rules[device]
        if taint.effect != "NoExecute":
            return f"running; {taint.effect} does not end it"
        for result in claim.results:
            tolerations = [t for t in result.tolerations if t.effect == "NoExecute" and t.tolerates(taint)]
            if result.device == device and tolerations:
                limits = [t.seconds for t in tolerations if t.seconds is not None]
                if len(limits) == len(tolerations):
                    return f"running; it tolerates the taint for {min(limits)} s"
                return "running; it tolerates the taint, so nothing ends it"
        return "running; not evicted yet"

    def _pod(self, namespace: str, name: str, uid: str, drivers: Sequence[str] = ()) -> PodState:
        raw = self._watcher.get("Pod", name, namespace)
        if raw is None:
            return PodState(GONE, why="the pod is gone; kube-controller-manager has not released its claim yet")
        pod = Pod.from_json(raw)
        if not same_uid(uid, pod.metadata.uid):
            return PodState(GONE, why="the pod is gone (another has its name); its claim is not released yet")
        if pod.finished:
            return PodState(ENDED, why=f"the pod has ended ({pod.phase}); its claim is not released yet")
        if pod.metadata.deletion_timestamp:
            return PodState(TERMINATING, pod.metadata.deleted_at, _terminating(raw, pod, drivers))
        condition = pod.condition("DisruptionTarget")
        if condition.status == "True" and condition.reason == EVICTION_REASON:
            return PodState(EVICTING, condition.last_transition_time, "chosen for eviction, not deleted yet")
        return PodState(RUNNING)

    def _tell(self, key: tuple[str, str, str], state: PodState) -> None:
        """Report one line when a pod's state or its reason changes."""
        said = state.state
        if state.why and state.state in (RUNNING, TERMINATING):
            said = state.why if state.state == RUNNING else f"{state.state}: {state.why}"
        if self._said.get(key) != said:
            self._said[key] = said
            self.patience.say(f"pod {key[0]}/{key[1]}: {said}")

    def _check_rules(self) -> None:
        for device, taint in self._rules.items():
            if taint.rule and self._watcher.get("DeviceTaintRule", taint.rule) is None:
                raise RuleGone(f"DeviceTaintRule {taint.rule} of device {device} was deleted by somebody else")

    def _check_published(self) -> None:
        if not self._watcher.changed("ResourceSlice"):
            return
        seen = {id for raw in self.patience.ask(self._slices) for id in _published(raw)}
        for device in sorted(self._published - seen - self.unpublished):
            self.unpublished.add(device)
            self.patience.say(f"device {device} is no longer published; waiting for the claims that hold it")

    def _follow(self, holders: Iterable[Holder]) -> None:
        """Watch claims and pods in the claims' namespace, or in all if there are several."""
        spaces = {holder.namespace for holder in holders} | {space for space, _, _ in self._said}
        for kind in ("ResourceClaim", "Pod") if spaces else ():
            self._watcher.follow(kind, min(spaces) if len(spaces) == 1 else "")

    def _slices(self) -> list[dict[str, Any]]:
        path = self._cluster.path("ResourceSlice")
        return self._cluster.client.list_items(path, slices_of(self._rules)) if path else []


def slices_of(devices: Iterable[DeviceID]) -> dict[str, str]:
    """The query for the slices with the devices, and some others; empty if one selector cannot express it."""
    drivers = {device.driver for device in devices}
    return {"fieldSelector": f"spec.driver={drivers.pop()}"} if len(drivers) == 1 else {}


def _held(claim: ResourceClaim, devices: Container[DeviceID]) -> list[Holder]:
    """The devices that a claim holds, entirely or as shares, each once."""
    names = (*key_of(claim), claim.metadata.uid)
    return [Holder(device, *names) for device in _used(claim, devices, admin=False)]


def _used(claim: ResourceClaim, devices: Container[DeviceID], *, admin: bool) -> dict[DeviceID, None]:
    """Which of the devices a claim holds or, with ``admin``, uses with admin access; each once."""
    used = (result.device for result in claim.results if result.admin_access is admin)
    return dict.fromkeys(device for device in used if device in devices)


def _claim(raw: Mapping[str, Any]) -> ResourceClaim:
    """A claim as it is served. Raises ClusterError: whether it holds a device cannot be read of it."""
    try:
        return ResourceClaim.from_json(raw)
    except ValueError as error:
        meta = raw.get("metadata") or EMPTY
        name = f"{meta.get('namespace')}/{meta.get('name')}"
        raise ClusterError(f"the API server sent a ResourceClaim {name} that cannot be read: {error}") from None


def _looks(claim: ResourceClaim, devices: Container[DeviceID]) -> str:
    """A claim with admin access, and the pods that use it."""
    seen = ", ".join(map(str, _used(claim, devices, admin=True)))
    users = f" (used by {', '.join(consumer.name for consumer in claim.reserved_for)})" if claim.reserved_for else ""
    return f"claim {claim.key}{users} looks at {seen} with admin access, which is not waited for"


def _published(raw: Mapping[str, Any]) -> list[DeviceID]:
    spec = raw.get("spec") or EMPTY
    driver, pool = spec.get("driver") or "", (spec.get("pool") or EMPTY).get("name") or ""
    return [DeviceID(driver, pool, device.get("name") or "") for device in spec.get("devices") or ()]


def _terminating(raw: Mapping[str, Any], pod: Pod, drivers: Sequence[str]) -> str:
    """Why a pod that is being deleted still exists. ``drivers`` have to give its devices back."""
    ended = containers_ended(pod)
    if ended and drivers and not pod.metadata.finalizers:
        waits = f"waits for driver {' and '.join(drivers)} to give its devices back"
        return f"its containers ended at {ended}, and the kubelet of node {pod.node_name} {waits}"
    grace = (raw.get("metadata") or EMPTY).get("deletionGracePeriodSeconds")
    parts: list[str] = []
    if isinstance(grace, int):
        # deletionTimestamp is the time by which the grace period is over.
        end = times.parse(pod.metadata.deletion_timestamp)
        over = end is not None and times.now() > end
        parts.append(f"grace period of {grace} s" + (" is over" if over else ""))
        if over and not pod.metadata.finalizers:
            parts.append(f"kubelet of node {pod.node_name or '?'} has not confirmed its end")
    if pod.metadata.finalizers:
        parts.append(f"finalizers: {', '.join(pod.metadata.finalizers)}")
    return ", ".join(parts) or "being deleted"
