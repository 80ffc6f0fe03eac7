"""The parts of a diagnosis: findings, evidence, remedies, and what was not seen.

Everything here is a value. ``report/`` writes the sentences, including the answer.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

from kubectl_dra.api.claims import DeviceResult, ResourceClaim
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.command import CommandLine
from kubectl_dra.data.messages import Speaker
from kubectl_dra.drivers.refused_claims import Refusal
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import CauseKind, NextStep
from kubectl_dra.explain.clock import UnderWay
from kubectl_dra.explain.funnel.shown import Funnel
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.phrase import ObjectName, Words
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, Proof
from kubectl_dra.explain.remedies.prove import Change

FactPart: TypeAlias = Words | ObjectName | DeviceID | PoolID | int
"""What a fact is about, or its value."""


class Relation(Enum):
    """What the field of a fact is: a field of an object or a label, or a verb, as in "claim a holds gpu-0"."""

    HAS = auto()
    DOES = auto()


class Evidence(Struct, frozen=True):
    """One fact: the object it was read from, the field, and the value found there; ``is_cel``: it is an
    expression.

    The parts are typed, and JSON has them as data: existing objects (``ObjectName``), devices, pools, numbers
    and quantities. The name of something that does not exist is a text.
    """

    object: FactPart
    field: Words
    value: FactPart
    is_cel: bool = False
    relation: Relation = Relation.HAS


class Remedy(Struct, frozen=True):
    """What ends a cause in this case: the change in words, its proof if it was tried, and its cost.

    ``cost`` counts devices that somebody else must give up. ``offers`` are the changes named in the text, so
    that they are not offered twice; ``what_if`` is what was proved as values of ``--what-if``.
    ``not_alone``: it takes several changes, which the ways out name. ``steps`` is the change that was proved, as data.
    ``with_others`` are the changes of other requests that were made for the proof. ``repairs``: it mends what is
    broken, so that nobody gives anything up. ``commands`` do what the text says, or show more. ``in_claim``: it is
    made in what the pod has its claim of. ``adds_node``: the change is one more node. ``place`` is what to look at for
    it where that is no object of the cluster. ``no_pod_there``: no pod is made for the node that cannot have it.
    """

    change: Words
    proof: Proof | None = None
    cost: int = 0
    offers: tuple[Change, ...] = ()
    what_if: tuple[WhatIfChange, ...] = ()
    not_alone: bool = False
    steps: tuple[ChangeStep, ...] = ()
    with_others: tuple[Change, ...] = ()
    repairs: bool = False
    commands: tuple[CommandLine, ...] = ()
    in_claim: bool = False
    adds_node: bool = False
    place: NextStep | None = None
    no_pod_there: bool = False

    @property
    def made(self) -> tuple[Change, ...]:
        """The changes that were proved: those of the steps, otherwise the first that is offered."""
        return self.offers[: max(1, len(self.steps))]

    @property
    def price(self) -> Price:
        """What it asks of people."""
        if self.repairs:
            return Price.NOTHING
        return max((change.price for change in self.offers), default=Price.WAIT)


class Finding(Struct, frozen=True):
    """A cause that was found: its kind, one sentence, facts, and its remedy here (else the kind's general
    advice).

    ``place`` describes the request where nobody wrote it under its name. ``object`` is the name of a missing
    object, ``device`` one that shows the cause, ``device_class`` the affected class. ``state`` describes the pod or
    claim if "is allocated" would hide that this does not last or serves nobody. ``next`` is what to look at
    next, if that depends on more than the kind. ``contrary``: the objects say that the pod fits, but the
    scheduler's message, still valid, says otherwise. ``under_way``: it is normal for the moment, and open what comes of
    it. ``normal``: it keeps the pod, and is over soon by itself. ``place_of_fix``: what to look at for a fix without a
    command of its own.
    """

    kind: CauseKind
    summary: Words
    evidence: tuple[Evidence, ...] = ()
    remedy: Remedy | None = None
    claim: str = ""
    request: str = ""
    object: str = ""
    device: DeviceID | None = None
    device_class: str = ""
    next: NextStep | None = None
    contrary: bool = False
    place: Words = ""
    state: Words = ""
    under_way: UnderWay | None = None
    normal: bool = False
    place_of_fix: NextStep | None = None

    @property
    def proof(self) -> Proof | None:
        """The proof of the remedy, if any."""
        return self.remedy.proof if self.remedy else None

    @property
    def trouble(self) -> Words:
        """What is the matter with a pod or claim that is allocated, as a predicate; empty if nothing."""
        return self.state or self.kind.state

    @property
    def cost(self) -> int:
        """What the remedy costs."""
        return self.remedy.cost if self.remedy else 0


class ClaimReport(Struct, frozen=True):
    """One claim of the pod: its origin, its state, and the funnels of its requests.

    ``devices`` are those that it holds. ``by_scheduler``: the scheduler makes it, for extended resources.
    """

    entry: str
    claim: str
    template: str
    state: Words
    devices: tuple[DeviceResult, ...] = ()
    nodes: str = ""
    funnels: tuple[Funnel, ...] = ()
    by_scheduler: bool = False


OUTCOMES = ("allocated", "error", "rejected", "undetermined", "not-eligible")


class NodeGroup(Struct, frozen=True):
    """Nodes with the same outcome (one of ``OUTCOMES``) and reason.

    ``nearness``: larger means nearer to success.
    """

    outcome: str
    reason: Words
    nodes: tuple[str, ...]
    nearness: int = 0


class NodeDevices(Struct, frozen=True):
    """The claims with the devices that they get on a suitable node."""

    node: str
    claims: tuple[ResourceClaim, ...]


class Choice(Struct, frozen=True):
    """Which of the ``feasible`` nodes the scheduler takes: one of ``nodes``, at random if there are several.

    ``enough``: it stops after this many nodes (0: it examines all), so the winner is unknown. ``unknown``:
    unknown kinds, resources or plugins that also affect the choice.
    """

    feasible: int
    nodes: tuple[str, ...]
    enough: int = 0
    unknown: tuple[str, ...] = ()

    @property
    def certain(self) -> bool:
        """Whether one of ``nodes`` certainly wins."""
        return bool(self.nodes) and not self.enough and not self.unknown


class RemedyPlan(Struct, frozen=True):
    """The fewest changes with which the claims fit, and the resulting allocation.

    ``what_if`` are the same changes as values of ``--what-if``; empty if they cannot be written so. ``steps`` are the
    same as data, one for each change. ``place``: what to look at where there is no command for them.
    """

    changes: tuple[Change, ...]
    proof: Proof
    what_if: tuple[WhatIfChange, ...] = ()
    steps: tuple[ChangeStep, ...] = ()
    place: NextStep | None = None

    @property
    def price(self) -> Price:
        """What it asks of people."""
        return max(change.price for change in self.changes)


class SchedulerMessage(Struct, frozen=True):
    """Message about the pod: a condition or an event."""

    speaker: Speaker
    source: str
    reason: str
    message: str
    time: str = ""


class TraceStep(Struct, frozen=True):
    """The value of one sub-expression on one device."""

    offset: int
    text: str
    value: str
    raised: bool
    depth: int


class Trace(Struct, frozen=True):
    """All sub-expressions of one selector on one device."""

    device: DeviceID
    selector_of: str
    expression: str
    result: str
    steps: tuple[TraceStep, ...]


class SecondOpinion(Struct, frozen=True):
    """Number of evaluations that cel-python confirms, contradicts, or cannot make."""

    agree: int
    differ: tuple[str, ...]
    not_comparable: int
    reasons: tuple[tuple[str, int], ...] = ()


class Milestone(Struct, frozen=True):
    """A step of a pod's way: when, at which station, and what happened."""

    time: str
    station: str
    what: Words


class Diagnosis(Struct, frozen=True):
    """The answer to one question, everything that supports it, and what was assumed or not seen.

    ``fitting`` are the nodes where all claims fit, ``held`` the devices that the claims have, ``unclear`` why
    the verdict is undetermined. ``message`` is what the scheduler would write into the pod's condition; empty
    if nothing. ``choice`` is the winning node. ``supposed`` are hypothetical changes under which the answer
    holds. ``way`` is what has happened to the pod so far, ``elsewhere`` where a placed one would fit as well.
    ``not_starting`` are the nodes that fit, or where it is, on which pods with these devices do not start; ``refused``
    is what drivers refuse of what its claims get on nodes that fit. ``asked_node``: only this node was asked about.
    ``on_new_nodes``: why nodes that are only supposed do not help, and ``on_old_nodes`` why the others do not.
    ``provided`` is what a yes supposes of them; ``fits_already`` are the nodes that are there, where it fits without.
    ``made_by``: kind and name of the workload in a manifest of whose pods it is one.
    """

    kind: str
    namespace: str
    name: str
    verdict: Verdict
    node: str = ""
    fitting: tuple[str, ...] = ()
    held: tuple[DeviceID, ...] = ()
    unclear: tuple[Words, ...] = ()
    findings: tuple[Finding, ...] = ()
    claims: tuple[ClaimReport, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()
    placements: tuple[NodeDevices, ...] = ()
    choice: Choice | None = None
    scheduler: tuple[SchedulerMessage, ...] = ()
    message: str = ""
    notes: tuple[Words, ...] = ()
    release: str = ""
    release_source: str = ""
    next: NextStep | None = None
    traces: tuple[Trace, ...] = ()
    second_opinion: SecondOpinion | None = None
    gates: tuple[str, ...] = ()
    ways: tuple[RemedyPlan, ...] = ()
    supposed: tuple[WhatIfChange, ...] = ()
    way: tuple[Milestone, ...] = ()
    elsewhere: Words = ""
    not_starting: tuple[NotStarting, ...] = ()
    refused: tuple[Refusal, ...] = ()
    asked_node: str = ""
    on_new_nodes: Words = ""
    on_old_nodes: Words = ""
    provided: Words = ""
    fits_already: tuple[str, ...] = ()
    made_by: str = ""

    @property
    def of_template(self) -> bool:
        """Whether it is about a claim as a template makes it."""
        return self.kind == "claim" and bool(self.claims and self.claims[0].template)

    @property
    def troubled(self) -> bool:
        """Whether there are devices that serve nobody, or not for long: the pod does not run as it should or is being
        deleted, or the claim is unused.
        """
        first = self.findings[0] if self.findings and self.verdict is Verdict.ALLOCATED else None
        if first is None or first.under_way is not None:
            return False
        return bool(first.state or (self.kind == "pod" and first.kind.state))

    @property
    def exit_code(self) -> int:
        """That of the verdict; 1 also if what is allocated does not serve its purpose (``troubled``)."""
        return 1 if self.troubled else self.verdict.exit_code

    @property
    def ended(self) -> bool:
        """Whether the pod has ended or is evicted, and so will never get devices."""
        return bool(self.findings) and self.findings[0].kind.ends_pod
