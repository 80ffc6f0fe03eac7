"""Why a filter of the scheduler refuses a node, in our words: its typed reasons as statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import asdict

from kubectl_dra.api.nodes import NodeTaint
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.phrase import Joined, Phrase, Statement, Words, say
from kubectl_dra.scheduling.inter_pod_affinity import AffinityNotMet, AntiAffinityBroken, ExistingAntiAffinityBroken
from kubectl_dra.scheduling.node_resources import Insufficient, TooManyPods
from kubectl_dra.scheduling.node_resources_of_devices import (
    InsufficientForDevices,
    PodLimitExceeded,
    PodRequestExceeded,
)
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.pod_topology_spread import HOSTNAME, TooManyInDomain
from kubectl_dra.scheduling.reasons import NotRead, Reason, Rejection
from kubectl_dra.scheduling.simple_filters import CORDON, Cordoned, NodeDoesNotMatch, PortsTaken, UntoleratedTaint
from kubectl_dra.scheduling.volumes import ObjectNotFound

# The node controllers set and remove these; a pod that tolerates them ends up where it cannot run.
_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class NodeCordoned(Statement, frozen=True):
    """Somebody cordoned the node."""

    TEXT = "node is cordoned (spec.unschedulable)"

    @staticmethod
    def ended_on(nodes: Sequence[str]) -> Phrase:
        """What to do, without a full stop."""
        return say("uncordon node {nodes:some} when its maintenance is over", nodes=nodes)


class Untolerated(Statement, frozen=True):
    """The node has a taint that the pod does not tolerate."""

    TEXT = "untolerated node taint {taint}"
    taint: NodeTaint

    @property
    def is_condition(self) -> bool:
        """Whether the taint represents the state of the node, such as not-ready."""
        return self.taint.key.startswith(_CONDITIONS)


class LabelDiffers(Statement, frozen=True):
    """The node lacks the label that the pod's nodeSelector requires."""

    TEXT = "nodeSelector {key}={value} does not match"
    key: str
    value: str


class AffinityDiffers(Statement, frozen=True):
    """The pod's required node affinity does not match."""

    TEXT = "node affinity requires {affinity}"
    affinity: str


class PodLimitReached(Statement, frozen=True):
    """The node runs its maximum number of pods."""

    TEXT = "Too many pods"


def plain(amount: Quantity) -> str:
    """An amount as people write it beside whole ones: 19.9 CPUs, and not 19900m."""
    whole, rest = divmod(amount.nanos, 10**9)
    if amount.format != "DecimalSI" or whole < 1 or not rest:
        return str(amount)
    return f"{whole}.{rest:09}".rstrip("0")


class ResourceShort(Statement, frozen=True):
    """The node has less left of a resource than the pod requests."""

    TEXT = "Insufficient {name}: {numbers}"
    name: str
    needed: Quantity
    left: Quantity
    total: Quantity

    @property
    def numbers(self) -> Phrase:
        """What is needed and what is left."""
        needed, left, total = map(plain, (self.needed, self.left, self.total))
        return say("needs {needed}, {left} of {total} left", needed=needed, left=left, total=total)

    @property
    def passes(self) -> bool:
        """Whether room can be made: pods use some of it, and the node offers it at all."""
        return bool(self.total) and self.left != self.total and "/" not in self.name


class ShortForDevices(Statement, frozen=True):
    """The node has less left of a resource than the pod's containers and devices need together."""

    TEXT = "{left} of {total} {name} left, and the pod needs {needed}: {shares}"
    name: str
    needed: Quantity
    left: Quantity
    total: Quantity
    taken: Quantity
    devices: tuple[DeviceID, ...]

    @property
    def shares(self) -> Phrase:
        """The amounts that the containers and the devices need."""
        own = Quantity(self.needed.nanos - self.taken.nanos, -9, self.needed.format)
        return _shares(own, self.taken, self.devices)

    @property
    def lacking(self) -> float:
        """Missing amount, as a part of what the node has."""
        return (self.needed.nanos - self.left.nanos) / max(1, self.total.nanos)


KINDS: Final = {
    "persistentvolumeclaim": "PersistentVolumeClaim",
    "persistentvolume": "PersistentVolume",
    "storageclass.storage.k8s.io": "StorageClass",
}
"""The written form of kinds that the scheduler names by their resource."""


class Refused(Statement, frozen=True):
    """A filter refuses the node for a reason without a statement of its own."""

    TEXT = "{what}"
    reason: Reason

    @property
    def what(self) -> Words:
        """The reason in our words."""
        reason = self.reason
        values = asdict(reason)
        if isinstance(reason, PortsTaken):
            taken = [say("{port} by {pod}", port=str(port), pod=pod) for port, pod in reason.taken]
            return say("host port taken: {taken:some}", taken=taken)
        if isinstance(reason, AffinityNotMet):
            return say("pod affinity: the node has no label {key}", **values)
        if isinstance(reason, PodRequestExceeded):
            text = "the pod as a whole requests {requested} {resource}, but needs {needed}: {shares}"
            own = reason.needed - reason.of_devices
            amounts = _quantities(reason.resource, needed=reason.needed, requested=reason.requested)
            shares = _shares(
                _quantity(reason.resource, own), _quantity(reason.resource, reason.of_devices), reason.devices
            )
            return say(text, resource=reason.resource, shares=shares, **amounts)
        if isinstance(reason, PodLimitExceeded):
            text = "the pod as a whole is limited to {limit} {resource}, but {who} with {devices:some} may use {needed}"
            who = say("container {name}", name=reason.container) if reason.container else "all containers"
            amounts = _quantities(reason.resource, needed=reason.needed, limit=reason.limit)
            return say(text, resource=reason.resource, who=who, devices=reason.devices, **amounts)
        if isinstance(reason, ObjectNotFound):
            values["kind"] = KINDS.get(reason.resource, reason.resource)
        return say(reason.SAID, **values) if reason.SAID else reason.words


class KeptApart(Statement, frozen=True):
    """A rule about other pods refuses the node. ``value`` is empty where the domain is the node alone, so that the
    statement is the same of all such nodes.
    """

    TEXT = "{what}"
    reason: type[Reason]
    key: str
    value: str

    @property
    def what(self) -> Words:
        """The rule and the domain."""
        place = say("in {key}={value}", key=self.key, value=self.value) if self.value else "there"
        return say(_APART[self.reason], place=place)


_APART: Final[Mapping[type[Reason], str]] = {
    AffinityNotMet: "pod affinity: no pod that it wants is {place}",
    AntiAffinityBroken: "pod anti-affinity: a pod that it excludes is {place}",
    ExistingAntiAffinityBroken: "a pod {place} excludes this one (its anti-affinity)",
}


class TooManyThere(Statement, frozen=True):
    """The node has too many pods for a rule that spreads them over nodes."""

    TEXT = "topology spread: {here:matching pod} there, {least} on the emptiest node, maxSkew {max_skew}"
    here: int
    least: int
    max_skew: int


def of_spread(statement: object) -> bool:
    """Whether it is a rule that spreads pods which refuses the node."""
    by_domain = isinstance(statement, Refused) and isinstance(statement.reason, TooManyInDomain)
    return by_domain or isinstance(statement, TooManyThere)


class KindUnread(Statement, frozen=True):
    """A fact that decides about the node was not read."""

    TEXT = "unknown, no {kind} was read"
    kind: str


def reason_of(rejection: Rejection) -> Words:
    """The statement about a node that a filter refuses."""
    said = [statement for reason in rejection.reasons for statement in _statements(reason)]
    return said[0] if len(said) == 1 else Joined(tuple(said), ", and ")


def _statements(reason: Reason) -> list[Words]:
    if isinstance(reason, NotRead):
        return [KindUnread(reason.kind)]
    if isinstance(reason, Cordoned):
        return [NodeCordoned()]
    if isinstance(reason, UntoleratedTaint):
        return [Untolerated(reason.taint)]
    if isinstance(reason, NodeDoesNotMatch):
        # The first entry that does not hold stands for all of them.
        for key, value in reason.selector[:1]:
            return [LabelDiffers(key, value)]
        return [AffinityDiffers(str(reason.affinity))]
    if isinstance(reason, TooManyPods):
        return [PodLimitReached()]
    if isinstance(reason, InsufficientForDevices):
        amounts = (reason.requested, reason.free, reason.capacity, reason.of_devices)
        needed, left, total, taken = (_quantity(reason.resource, value) for value in amounts)
        return [ShortForDevices(reason.resource, needed, left, total, taken, reason.devices)]
    if isinstance(reason, Insufficient):
        name = reason.resource
        numbers = (_quantity(name, value) for value in (reason.requested, reason.free, reason.capacity))
        return [ResourceShort(name, *numbers)]
    if (
        isinstance(reason, AffinityNotMet | AntiAffinityBroken | ExistingAntiAffinityBroken)
        and reason.value is not None
    ):
        return [KeptApart(type(reason), reason.key, reason.value if reason.key != HOSTNAME else "")]
    if isinstance(reason, TooManyInDomain) and reason.key == HOSTNAME:
        return [TooManyThere(reason.here, reason.least, reason.max_skew)]
    return [Refused(reason)]


def _shares(own: Quantity, taken: Quantity, devices: tuple[DeviceID, ...]) -> Phrase:
    """What containers and devices need."""
    text = "{own} for its containers, {taken} for {devices:some}" if own else "all of it for {devices:some}"
    return say(text, own=own, taken=taken, devices=devices)


def _quantities(resource: str, **amounts: int) -> dict[str, Quantity]:
    return {name: _quantity(resource, amount) for name, amount in amounts.items()}


def _quantity(resource: str, amount: int) -> Quantity:
    if resource == "cpu":
        return Quantity(amount, -3)
    binary = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return Quantity.of(amount, "BinarySI" if binary else "DecimalSI")


def unread_kinds(outcome: Outcome) -> frozenset[str]:
    """Kinds that affect a node and were not read. What refuses a node of which only the name is known may not."""
    reasons = [reason for rejection in outcome.filtered.values() for reason in rejection.reasons]
    found = frozenset(reason.kind for reason in reasons if isinstance(reason, NotRead))
    return found | {"Node"} if reasons and outcome.state.snapshot.is_gap("Node") else found


def one_step_away(outcome: Outcome, name: str) -> bool:
    """Whether exactly one thing keeps the pod off a node, devices aside; a cordon with its own taint counts as one."""
    if outcome.others.rejection is not None or name not in outcome.filtered:
        return False
    found = outcome.others.every(outcome.state.nodes[name])
    if len(found) == 2 and isinstance(found[0].reasons[0], Cordoned):
        taint = found[1].reasons[0]
        return isinstance(taint, UntoleratedTaint) and taint.taint.key == CORDON.key
    return len(found) == 1
