"""What fits, for JSON or YAML, in the shape of ``schemas/fit.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.claims import devices_of
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.command import creating_namespace
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.holders import ClaimHolder
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.fit.place import PlacedPod, evicted
from kubectl_dra.fit.result import EndRule, FirstUnplaced, FitAnswer, More, NodesNeeded, OneMoreNode, WorkloadFit
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.explain_words import answer as explained
from kubectl_dra.report.fit_stop_words import code, fix_commands, needed, own_fix, stop, supposing
from kubectl_dra.report.fit_words import (
    broken_node,
    change,
    headline,
    is_open,
    making_it,
    maybe,
    places,
    with_node,
)
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import (
    assumed_json,
    device_json,
    given_json,
    key_json,
    not_starting_json,
    object_json,
    owner_json,
    refusal_json,
)
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import command_json, commands_json, notes_json, unread_json


def to_json(answer: FitAnswer, invocation: Invocation) -> dict[str, Any]:
    """A FitReport, whose commands ask the cluster of the invocation."""
    where = invocation.where
    # No number means anything where it depends on what is not known.
    counted = answer.needed if answer.needed is not None and not (is_open(answer) or answer.needed.domains) else None
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "FitReport",
        "assumed": assumed_json(answer.release, answer.release_source, answer.gates),
        "missingNamespaces": list(answer.missing_namespaces),
        **filled(commands=commands_json(*map(creating_namespace, answer.missing_namespaces), where=where)),
        "items": [_workload(workload, invocation) for workload in answer.workloads],
        **filled(
            givenNodes=_given(answer.given) if answer.given else None,
            newNodes=_needed(counted) if counted is not None else None,
            newNodesRefuse=written(answer.unhelpful),
        ),
        "otherPodsWaiting": answer.waiting,
        **notes_json([note for note in (*answer.notes, *answer.views, answer.other_nodes) if note], where),
    }


def _given(given: Mapping[str, int]) -> dict[str, Any]:
    nodes = [{"withNode": typed, "number": number} for typed, number in given.items()]
    return {"additions": nodes, "text": supposing(given)}


def _needed(nodes_needed: NodesNeeded) -> dict[str, Any]:
    fewer, others = nodes_needed.fewer, [*map(key_json, nodes_needed.others)]
    first = {"pods": others, "enough": nodes_needed.after is not None, "number": nodes_needed.after}
    return {
        "withNode": nodes_needed.nodes,
        "number": nodes_needed.number,
        "enough": nodes_needed.enough,
        "podCount": nodes_needed.placed,
        **filled(
            fewer={"number": fewer[0], "podCount": fewer[1]} if fewer is not None else None,
            othersFirst=first if others else None,
        ),
        "mostTried": nodes_needed.most,
        "text": needed(nodes_needed),
    }


def _workload(workload: WorkloadFit, invocation: Invocation) -> dict[str, Any]:
    begin, replaced = workload.begin, workload.replaced
    on = Counter(placed_pod.node for placed_pod in workload.placed_pods if any(devices_of(placed_pod.claims)))
    rollout = {"replacedPods": replaced.pods, "leftPods": replaced.left} if replaced is not None else {}
    rollout |= filled(maxUnavailable=replaced.unavailable) if replaced is not None else {}
    return {
        **counts_json(workload),
        "moreMayFit": workload.at_least,
        "undetermined": [written(why) for why in workload.unclear] or _open(workload),
        "unread": unread_json(workload.unclear),
        "byNode": [
            {"node": node.node, "podCount": node.pods, "deviceNames": [*map(node.called, node.claims)]}
            for node in places(workload)
        ],
        "placements": [*map(_placed_pod, workload.placed_pods)],
        "evicted": [key_json(pod.key) for pod in evicted(workload.placed_pods)],
        **filled(
            formerPods=workload.former or None,
            rollout=rollout,
            nodesWithoutPod=[{"node": node.node, "cause": node.cause} for node in workload.without],
            notStarting=[{**not_starting_json(node), "podCount": on[node.node]} for node in begin.nodes],
            mayNotStart=[*map(not_starting_json, begin.maybe)],
            refusedClaims=[*map(refusal_json, begin.refused)],
            stop=_stop(workload, workload.stop, invocation) if workload.stop is not None else None,
            next=command_json(broken_node(workload, invocation), where=invocation.where),
        ),
        "changes": [_more(more, invocation) for more in workload.more],
        "changesTried": sum(workload.tried.values()),
    }


def _stop(workload: WorkloadFit, first: FirstUnplaced, invocation: Invocation) -> dict[str, Any]:
    """The first pod that does not fit, and what ends that."""
    fix, fitting = own_fix(workload), first.fitting_with_fix if first.others_if_first is None else workload.replicas
    commands = commands_json(*fix_commands(workload, invocation), where=invocation.where)
    return {
        "pod": key_json(first.pod),
        "cause": code(workload),
        "reason": stop(workload),
        "answer": stop(workload) if first.differs is not None else explained(first.diagnosis),
        "denied": first.denied.name.lower() if first.denied is not None else "",
        "groupMinimum": first.minimum,
        "groupTopology": first.domain,
        "others": first.others,
        **filled(
            inOtherOrder=written(first.if_first),
            fix=filled(text=fix, fitting=fitting, commands=commands) if fix else None,
            schedulerMessage=first.diagnosis.message,
        ),
    }


def _open(workload: WorkloadFit) -> list[str]:
    why = maybe(workload) or written(workload.provided)
    return [why] if workload.verdict is Verdict.UNDETERMINED else []


def counts_json(fitted: WorkloadFit) -> dict[str, Any]:
    """Number of replicas and pods of a workload that fit."""
    workload = fitted.workload
    return {
        "workload": {"kind": workload.kind, "namespace": workload.namespace, "name": workload.name},
        "verdict": fitted.verdict.value,
        "answer": headline(fitted),
        "replicaCounts": {
            "unit": workload.unit,
            "wanted": None if fitted.as_many else fitted.replicas,
            "fit": fitted.fitting,
            "podsInEach": workload.size,
        },
        "podCounts": {
            "wanted": None if fitted.as_many else fitted.pods,
            "fit": fitted.placed,
            "running": fitted.running,
            "starting": fitted.starting,
            "fewest": fitted.fewest,
            "most": fitted.greatest,
        },
        "dependsOnChance": not fitted.settled,
    }


def _placed_pod(placed_pod: PlacedPod) -> dict[str, Any]:
    namespace, name = placed_pod.new.pod.metadata.namespace, placed_pod.new.pod.metadata.name
    return {
        "pod": object_json(namespace, name),
        "replica": placed_pod.new.ordinal.replica,
        "node": placed_pod.node,
        "choice": placed_pod.chosen.value,
        "devices": given_json(placed_pod.claims),
        **filled(evicts=[key_json(pod.key) for pod in placed_pod.evicted]),
    }


def _more(more: More, invocation: Invocation) -> dict[str, Any]:
    what = more.change
    if isinstance(what, OneMoreNode):
        said: dict[str, Any] = {"kind": "add-node", "like": what.like, "alike": what.alike}
    elif isinstance(what, EndRule):
        said = {"kind": "delete-taint-rule", "rule": what.rule}
    elif isinstance(what, Free):
        said = {"kind": "release-claims", "holders": [*map(_holder, what.holders)]}
    else:
        said = {"kind": "end-pods", "pods": [*map(_pod, what.ended)]}
    commands = commands_json(*making_it(what), where=invocation.where)
    said |= filled(commands=commands, tryWith=command_json(with_node(what, invocation), where=invocation.where))
    idle, rivals = [*map(not_starting_json, more.not_starting)], [*map(key_json, more.rivals)]
    said |= {"text": change(what), "morePods": more.pods, "moreReplicas": more.replicas}
    return said | filled(notStarting=idle, rivals=rivals)


def _holder(holder: ClaimHolder) -> dict[str, Any]:
    return {
        "claim": key_json(holder.claim.key),
        "state": holder.standing.name.lower(),
        "devices": [*map(device_json, holder.claim.devices)],
        "pods": [*map(_pod, holder.pods)],
    }


def _pod(pod: Pod) -> dict[str, Any]:
    owner = owner_of(pod)
    said = {**object_json(pod.metadata.namespace, pod.metadata.name), "priority": pod.priority}
    return {**said, **filled(owner=owner_json(owner.kind, owner.name) if owner is not None else None)}
