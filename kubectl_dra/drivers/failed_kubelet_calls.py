"""Drivers that fail the kubelet of a node, as its last event about a pod that waits there says."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.snapshot import Event, Key, Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.data.messages import understood
from kubectl_dra.drivers.health import SEVERITY, STARTING_SECONDS, DriverState, FailingCall, seconds_since

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
