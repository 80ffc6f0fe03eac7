"""What ``fit`` answers, as values. ``report/`` writes the sentences."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from msgspec import Struct

from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.diagnosis import Diagnosis, RemedyPlan
from kubectl_dra.explain.not_starting import NotStarting
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.node_around import AskedLabel
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.fit.existing_pods import JobProgress, Surplus
from kubectl_dra.fit.place import PlacedPod
from kubectl_dra.fit.pod_factory import Denied
from kubectl_dra.fit.starting import Starting
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.scheduling.gang_scheduling import PriorityDiffers


class FitOptions(Struct, frozen=True):
    """Options of fit. ``replicas``: how many to place, None for as many as written; ``most``: as many as fit.

    ``changes``: what makes room is looked for. ``only_counts``: it is not, and that the first pod of each role can be
    judged is known. ``others_first``: the other pods that wait for devices are placed before; ``others_apart``: what
    comes of it then is asked separately, and no part of the answer; ``others_asked``: it is a part of it in any case.
    """

    replicas: int | None = None
    most: bool = False
    only_counts: bool = False
    changes: bool = True
    others_first: bool = False
    others_apart: bool = False
    others_asked: bool = False


class FirstUnplaced(Struct, frozen=True):
    """The first pod that does not fit: its diagnosis in the cluster with the pods before it.

    ``denied``: the API server would not create it, or its claims. ``minimum``: its group needs so many pods with a
    node at once, and only ``placed`` have one; 0 where it is in none. ``domain``: the node label that the pods of its
    group must have in common, where that alone keeps it from a node. ``differs``: a pod of the group has another
    priority than the group, so that none of them is tried. ``others``: how many more do not fit.
    ``fitting_with_fix``: how many replicas fit where the fix is made in the template of all; None where that was not
    tried, with ``placed_with_fix`` pods. ``way`` is what is made there, if that is not the fix of the cause.
    ``others_if_first``: applied before the other workloads all of this one fits, and so many of how many pods of the
    others; None where not more fit then. ``if_first`` is what comes of all where only more of this one fit then.
    """

    pod: str
    diagnosis: Diagnosis
    denied: Denied | None = None
    minimum: int = 0
    placed: int = 0
    domain: str = ""
    differs: PriorityDiffers | None = None
    others: int = 0
    fitting_with_fix: int | None = None
    placed_with_fix: int = 0
    others_if_first: tuple[int, int] | None = None
    if_first: Words = ""
    way: RemedyPlan | None = None


class OneMoreNode(Struct, frozen=True):
    """A node like one that exists, without its pods but those of DaemonSets. ``alike``: how many such nodes exist."""

    like: str
    alike: int


class EndRule(Struct, frozen=True):
    """A DeviceTaintRule that is deleted, which makes its devices available again."""

    rule: str


ClusterChange = OneMoreNode | Free | EndPods | EndRule


class ChangeSort(Enum):
    """A sort of change that was tried."""

    RULES = auto()
    CLAIMS = auto()
    PODS = auto()
    NODES = auto()


class More(Struct, frozen=True):
    """A change of the cluster, and how many more pods (and whole replicas) have a node then: placed with it.

    ``not_starting`` are nodes of these pods on which they do not start. ``rivals`` are other pods that wait, each as
    ``namespace/name``: they get a node with it as well, and if they do first, not so many of these pods have one.
    """

    change: ClusterChange
    pods: int
    replicas: int
    not_starting: tuple[NotStarting, ...] = ()
    rivals: tuple[str, ...] = ()


class FormerPods(Struct, frozen=True):
    """Pods of a former template that a rollout replaces. ``left`` of them run on where it stops.

    ``unavailable``: the smallest maxUnavailable with which all replicas fit, because ``first`` of them end then before
    a new one has a node; None where that does not help or is not so.
    """

    pods: int
    left: int = 0
    unavailable: int | None = None
    first: int = 0


class NodeWithout(Struct, frozen=True):
    """A node whose pod of a DaemonSet does not fit, and the code of the first cause; empty where none was found."""

    node: str
    cause: str = ""


class WorkloadFit(Struct, frozen=True):
    """What comes of one workload.

    ``replicas`` are asked for; ``fitting`` of them have all of their pods running or placed. ``running`` pods have
    their node already. ``fewest`` and ``greatest`` are the numbers of pods that other choices led to, which
    ``depends`` names. ``as_many``: as many replicas as fit were asked for; ``at_least``: more may fit than were tried.
    ``more`` are changes with which more fit; ``tried`` how many of each sort were tried. ``begin`` says which of the
    placed pods do not start. ``replaced`` are pods of a former template; of others that run ``former`` are of one, and
    stay.
    ``refused``: the API server refuses a change of what exists. ``provided`` is what it supposes of new nodes.
    ``surplus`` are the pods that end because there are more than replicas, ``progress`` is how far a Job is.
    ``without`` are nodes whose pod of a DaemonSet does not fit; ``no_node`` is why it makes none anywhere.
    """

    workload: WorkloadPods
    verdict: Verdict
    replicas: int
    fitting: int
    pods: int
    running: int
    placed_pods: tuple[PlacedPod, ...]
    stop: FirstUnplaced | None = None
    unclear: tuple[Words, ...] = ()
    more: tuple[More, ...] = ()
    tried: Mapping[ChangeSort, int] = MappingProxyType({})
    fewest: int = 0
    greatest: int = 0
    depends: Words = ""
    settled: bool = True
    as_many: bool = False
    at_least: bool = False
    begin: Starting = Starting()
    replaced: FormerPods | None = None
    former: int = 0
    refused: bool = False
    provided: Words = ""
    surplus: Surplus = Surplus()
    progress: JobProgress | None = None
    without: tuple[NodeWithout, ...] = ()
    no_node: Words = ""

    @property
    def exists(self) -> bool:
        """Whether the cluster has the workload, as far as its answer tells."""
        return bool(self.running or self.replaced or self.refused or self.progress)

    @property
    def may_fit(self) -> bool:
        """Whether it is undetermined only because all may have room or not, by choices that are open."""
        return self.verdict is Verdict.UNDETERMINED and self.fewest < self.greatest == self.pods

    @property
    def placed(self) -> int:
        """Number of pods with a node: those that run, and those that were placed."""
        return self.running + len(self.placed_pods)

    @property
    def starting(self) -> int:
        """Number of pods that run, or start as far as anything tells."""
        return self.placed - self.begin.lost

    @property
    def all_placed(self) -> bool:
        """Whether all pods have a node where they can start, though the scheduler may take another one for some."""
        return self.verdict is Verdict.SCHEDULABLE or (self.verdict is Verdict.UNDETERMINED and not self.unclear)


class NodesNeeded(Struct, frozen=True):
    """New nodes that a workload needs: the smallest ``number`` with which as many of the pods start as can.

    ``nodes`` says which, as typed. With ``number`` of them ``placed`` of ``pods`` have a node where they start.
    ``fewer`` is the next smaller number that was tried, and how many do with it; ``most`` the greatest number that was
    tried. ``idle``: with some number, pods have a node where they do not start. ``others`` are pods that wait already,
    each as ``namespace/name``; ``after`` is the number where they are placed first; None where none that was tried
    is enough. ``provided`` is what is supposed of each node. ``ended``: more nodes would help, but were not tried.
    ``domains`` are labels of which nobody knows the value and on which the number depends.
    """

    nodes: str
    number: int
    placed: int
    pods: int
    fewer: tuple[int, int] | None
    most: int
    idle: bool = False
    others: tuple[str, ...] = ()
    after: int | None = None
    provided: Words = ""
    ended: bool = False
    domains: tuple[AskedLabel, ...] = ()

    @property
    def enough(self) -> bool:
        """Whether all pods have a node."""
        return self.placed == self.pods


class FitAnswer(Struct, frozen=True):
    """The answer: each workload, what was assumed, and how many pods of others wait already for devices; ``first`` are
    those of them, each as ``namespace/name``, that get a node where they are placed first.

    ``views`` are what autoscalers make of new nodes.
    ``given``: the new nodes, as typed, with which all this is, each with its number where that was not looked for.
    ``needed``: how many new nodes it takes, where that was asked; ``unhelpful``: why none of them takes a pod.
    ``other_nodes``: why the pods may get other nodes.
    ``missing_namespaces`` do not exist, so that no pod of their workloads is created; the workloads suppose them.
    """

    workloads: tuple[WorkloadFit, ...]
    release: str
    release_source: str
    gates: tuple[str, ...]
    waiting: int = 0
    first: tuple[str, ...] = ()
    notes: tuple[Words, ...] = ()
    views: tuple[Words, ...] = ()
    given: Mapping[str, int] = MappingProxyType({})
    needed: NodesNeeded | None = None
    unhelpful: Words = ""
    other_nodes: Words = ""
    missing_namespaces: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The largest of the workloads, as the cluster is."""
        return max((self._verdict(workload).exit_code for workload in self.workloads), default=0)

    @property
    def first_diagnosis(self) -> Diagnosis | None:
        """The diagnosis of the first pod that does not fit; None where all do."""
        return next((workload.stop.diagnosis for workload in self.workloads if workload.stop is not None), None)

    def _verdict(self, workload: WorkloadFit) -> Verdict:
        missing = workload.workload.namespace in self.missing_namespaces
        return Verdict.UNSCHEDULABLE if missing else workload.verdict
