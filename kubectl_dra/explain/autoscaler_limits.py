"""Whether an autoscaler sees on a new node what the scheduler does: which of its limits a pod meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_dra.allocation.budgets import PROOF_STEPS, unlimited
from kubectl_dra.allocation.extended_resources import extended_requests
from kubectl_dra.api.taints import BLOCKING_EFFECTS
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.clouds import ALWAYS, autoscalers, cloud_of
from kubectl_dra.data.messages import CLUSTER_AUTOSCALER, KARPENTER, Speaker
from kubectl_dra.explain.analysis import as_created
from kubectl_dra.explain.phrase import Joined, ObjectName, Phrase, Words, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.question.with_node_flag import Addition
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.node_copy import copies_of

_LABELS: Final = {KARPENTER: "karpenter.sh/", CLUSTER_AUTOSCALER: "cluster-autoscaler.kubernetes.io/"}
"""Prefixes of the node labels and annotations that each autoscaler reads or writes."""


def autoscalers_seen(snapshot: Snapshot) -> list[Speaker]:
    """The autoscalers of which nodes or events have a sign."""
    said = {event.speaker for event in snapshot.events}
    notes = {key for node in snapshot.nodes.values() for key in (*node.labels, *node.metadata.annotations)}
    return [name for name, begins in _LABELS.items() if name in said or any(key.startswith(begins) for key in notes)]


def autoscaler_notes(
    questions: Sequence[Question], added: Sequence[Addition], snapshot: Snapshot, settings: Settings
) -> Iterator[Phrase]:
    """For each autoscaler that is seen, whether it comes to the same result as the scheduler with these new nodes."""
    asking = [question for question in questions if _asks_for_devices(question, snapshot)]
    for who in (autoscalers_seen(snapshot) or [CLUSTER_AUTOSCALER]) if asking and added else ():
        met: dict[str, None] = {}
        for question in asking:
            met.update(dict.fromkeys(_met(question, added, snapshot)))
        release = settings.scheduler.release
        known = [
            limit
            for limit in autoscalers().limits
            if limit.says == who and limit.when in met and limit.affects(release)
        ]
        certain: list[Words] = [limit.why for limit in known if limit.certain]
        other: list[Words] = [limit.why for limit in known if not limit.certain]
        if certain:
            yield say("{who} does not come to the same result: {why}", who=who, why=Joined(tuple(certain)))
            continue
        but = say(". That is not certain: {why}", why=Joined(tuple(other))) if other else ""
        likes = [addition.like for addition in added if not addition.nodes]
        tainted = _taints_taken_over(asking, likes, snapshot, settings) if who == CLUSTER_AUTOSCALER else {}
        fits = {_fits_tainted(asked, name, snapshot, settings) for asked in asking for name in tainted}
        alone = len(asking) == len(likes) == len(added) == 1
        if tainted and not (alone and fits == {True}):
            besides = say(". Besides, {why}", why=Joined(tuple(other))) if other else ""
            node = ObjectName("Node", next(iter(tainted)))
            keys = tuple({key: None for keys in tainted.values() for key in keys})
            text = _OTHER_RESULT if fits == {False} else _MAYBE_OTHER_RESULT
            yield say(text, who=who, node=node, taints=keys, besides=besides)
        elif likes:
            text = (
                "{who} comes to the same result if node {node} is of one of its groups, since it assumes that the "
                "next one is like it, with the same slices{but}"
            )
            yield say(text, who=who, node=ObjectName("Node", likes[0]), but=but)
        else:
            text = (
                "{who} comes to the same result only where a node of the group runs, whose slices it assumes "
                "for the next one; of a group without nodes it usually knows no devices{but}. {zero}"
            )
            yield say(text, who=who, zero=cloud_of(snapshot.nodes.values()).zero, but=but)


def taints_left_out(
    questions: Sequence[Question], added: Sequence[Addition], snapshot: Snapshot, settings: Settings
) -> Iterator[Phrase]:
    """Note that a node that new ones are like is cordoned, or its devices are tainted, as new ones are not."""
    copied = [addition.nodes[0].like if addition.nodes else addition.like for addition in added]
    for name in dict.fromkeys(copied):
        if (like := snapshot.real.nodes.get(name)) is not None and like.spec.unschedulable:
            yield say("{node} is cordoned, which a new node is taken not to be", node=ObjectName("Node", name))
    for node, keys in _taints_taken_over(questions, copied, snapshot, settings).items():
        text = "devices of {node} have taints ({taints:some 2}), which those of a new node are taken not to have"
        yield say(text, node=ObjectName("Node", node), taints=list(keys))


_TAKES_OVER: Final = (
    "if node {node} is of one of its groups, it assumes that the next one has the same slices, with the taints of "
    "their devices ({taints:some 2})"
)
_OTHER_RESULT: Final = (
    f"{{who}} comes to another result: {_TAKES_OVER}, and the scheduler's steps find no place on such a node; a "
    "new node is taken here not to have them{besides}"
)
_MAYBE_OTHER_RESULT: Final = (
    f"{{who}} may come to another result: {_TAKES_OVER}, which a new node is taken here not to have; how many pods fit "
    "with them was not tried{besides}"
)


def _fits_tainted(question: Question, like: str, snapshot: Snapshot, settings: Settings) -> bool | None:
    """Whether a pod gets a new node on which devices have the taints of those of ``like``; None if that is open."""
    cluster = Cluster(snapshot).with_named_nodes()
    copy = next(copies_of(like, settings.scheduler.sees(cluster), tainted=True))
    pod, cluster = as_created(question, cluster.adding_node(copy))
    if pod is None or pod.node_name:
        return None
    outcome = settings.scheduler.attempt(pod, cluster, unlimited(PROOF_STEPS), only=(copy.node.name,))
    if copy.node.name in outcome.taking:
        return True
    return None if outcome.undetermined or outcome.errors else False


def _taints_taken_over(
    questions: Sequence[Question], likes: Sequence[str], snapshot: Snapshot, settings: Settings
) -> dict[str, dict[str, None]]:
    """By node, the keys of its devices' taints that a copy leaves out, and a request for these does not tolerate."""
    own = [slice_ for slice_ in snapshot.slices if slice_.scope.node_name in likes]
    tainted = [
        (slice_.scope.node_name, device)
        for slice_ in own
        for device in slice_.devices
        if any(taint.effect in BLOCKING_EFFECTS for taint in device.taints)
    ]
    out: dict[str, dict[str, None]] = {}
    if not tainted:
        return out
    selectors = settings.scheduler.sees(Cluster(snapshot)).cycle.selectors
    for spec in (spec for question in questions for claim in question.existing_claims for spec in claim.alternatives()):
        known, wanted = snapshot.classes.get(spec.device_class), list(tainted)
        for text in (*(known.selectors if known is not None else ()), *spec.selectors):
            for term in selectors.terms(text or "") if wanted else ():
                verdicts = term.evaluate_devices(selectors.table([device for _, device in wanted]))
                wanted = [item for item, verdict in zip(wanted, verdicts, strict=True) if verdict is True]
        for node, device in wanted:
            for taint in device.taints:
                if taint.effect in BLOCKING_EFFECTS and not any(
                    toleration.tolerates(taint) for toleration in spec.tolerations
                ):
                    out.setdefault(node, {})[taint.key] = None
    return out


def _asks_for_devices(question: Question, snapshot: Snapshot) -> bool:
    extended = question.pod is not None and extended_requests(question.pod, snapshot.classes) is not None
    return bool(question.claims) or extended


def _met(question: Question, added: Sequence[Addition], snapshot: Snapshot) -> list[str]:
    """What a pod and its claims have that an autoscaler may see otherwise."""
    pod, claims = question.pod, list(question.existing_claims)
    specs = [spec for claim in claims for spec in claim.alternatives()]
    likes = {addition.like for addition in added}
    slices = [slice_ for slice_ in snapshot.slices if slice_.scope.node_name in likes]
    slices += [slice_ for addition in added for copy in addition.nodes for slice_ in copy.slices]
    devices = [device for slice_ in slices for device in slice_.devices]
    owner = pod.metadata.controller() if pod is not None else None
    met = {
        ALWAYS: True,
        "admin-access": any(spec.admin_access for spec in specs),
        "taints": any(spec.tolerations for spec in specs),
        "distinct": any(constraint.distinct_attribute for claim in claims for constraint in claim.constraints),
        "partitionable": any(device.consumes_counters for device in devices),
        "consumable-capacity": any(device.allow_multiple_allocations for device in devices),
        "not-local": not all(addition.local for addition in added),
        "extended-resource": pod is not None and not question.claims,
        "daemon-set": owner is not None and owner.kind == "DaemonSet",
        "preempts": pod is not None and pod.spec.preemption_policy != "Never",
    }
    return [what for what, holds in met.items() if holds]
