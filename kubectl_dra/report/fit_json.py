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
from kubectl_dra.fit.result import EndRule, FitAnswer, More, NodesNeeded, OneMoreNode, WorkloadFit
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.explain_words import answer as explained
from kubectl_dra.report.fit_stop_words import code, fix_commands, own_fix, stop
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
from kubectl_dra.report.json_shapes import (
    SCHEMA_VERSION,
    device_json,
    given_json,
    key_json,
    not_starting_json,
    object_json,
    owner_json,
    refusal_json,
)
from kubectl_dra.report.new_nodes_words import needed, supposing
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import commands_json, notes_json, unread_json


def to_json(answer: FitAnswer, invocation: Invocation) -> dict[str, Any]:
    """A FitReport, whose commands ask the cluster of the invocation."""
    where = invocation.where
    # No number means anything where it depends on what is not known.
    counted = answer.needed if answer.needed is not None and not (is_open(answer) or answer.needed.domains) else None
    creating = commands_json(*map(creating_namespace, answer.missing_namespaces), where=where)
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "FitReport",
        "assumed": {
            "kubernetesVersion": answer.release,
            "source": answer.release_source,
            "featureGates": list(answer.gates),
        },
        "missingNamespaces": list(answer.missing_namespaces),
        **({"commands": creating} if creating else {}),
        "items": [_workload(workload, invocation) for workload in answer.workloads],
        **({"givenNodes": _given(answer.given)} if answer.given else {}),
        **({"newNodes": _needed(counted)} if counted is not None else {}),
        **({"newNodesRefuse": written(answer.unhelpful)} if answer.unhelpful else {}),
        "otherPodsWaiting": answer.waiting,
        **notes_json([note for note in (*answer.notes, *answer.views, answer.other_nodes) if note], where),
    }


def _given(given: Mapping[str, int]) -> dict[str, Any]:
    nodes = [{"withNode": typed, "number": number} for typed, number in given.items()]
    return {"additions": nodes, "text": supposing(given)}


def _needed(nodes_needed: NodesNeeded) -> dict[str, Any]:
    fewer = (
        {}
        if nodes_needed.fewer is None
        else {"fewer": {"number": nodes_needed.fewer[0], "podCount": nodes_needed.fewer[1]}}
    )
    return {
        "withNode": nodes_needed.nodes,
        "number": nodes_needed.number,
        "enough": nodes_needed.enough,
        "podCount": nodes_needed.placed,
        **fewer,
        **_others_first(nodes_needed),
        "mostTried": nodes_needed.most,
        "text": needed(nodes_needed),
    }


def _others_first(nodes_needed: NodesNeeded) -> dict[str, Any]:
    if not nodes_needed.others:
        return {}
    pods = [*map(key_json, nodes_needed.others)]
    return {"othersFirst": {"pods": pods, "enough": nodes_needed.after is not None, "number": nodes_needed.after}}


def _workload(workload: WorkloadFit, invocation: Invocation) -> dict[str, Any]:
    out: dict[str, Any] = {
        **counts_json(workload),
        "moreMayFit": workload.at_least,
        "undetermined": [written(why) for why in workload.unclear] or _open(workload),
        "unread": unread_json(workload.unclear),
        "byNode": [
            {"node": node.node, "podCount": node.pods, "deviceNames": [*map(node.called, node.claims)]}
            for node in places(workload)
        ],
        "placements": [_placed_pod(placed_pod) for placed_pod in workload.placed_pods],
        "evicted": [key_json(pod.key) for pod in evicted(workload.placed_pods)],
    }
    if workload.former:
        out["formerPods"] = workload.former
    if workload.replaced is not None:
        replaced = workload.replaced
        out["rollout"] = {"replacedPods": replaced.pods, "leftPods": replaced.left}
        if replaced.unavailable is not None:
            out["rollout"]["maxUnavailable"] = replaced.unavailable
    if workload.without:
        out["nodesWithoutPod"] = [{"node": node.node, "cause": node.cause} for node in workload.without]
    begin = workload.begin
    if begin.nodes:
        on = Counter(placed_pod.node for placed_pod in workload.placed_pods if any(devices_of(placed_pod.claims)))
        out["notStarting"] = [{**not_starting_json(node), "podCount": on[node.node]} for node in begin.nodes]
    if begin.maybe:
        out["mayNotStart"] = [not_starting_json(node) for node in begin.maybe]
    if begin.refused:
        out["refusedClaims"] = [*map(refusal_json, begin.refused)]
    if workload.stop is not None:
        out["stop"] = {
            "pod": key_json(workload.stop.pod),
            "cause": code(workload),
            "reason": stop(workload),
            "answer": stop(workload) if workload.stop.differs is not None else explained(workload.stop.diagnosis),
            "denied": workload.stop.denied.name.lower() if workload.stop.denied is not None else "",
            "groupMinimum": workload.stop.minimum,
            "groupTopology": workload.stop.domain,
            "others": workload.stop.others,
        }
        if workload.stop.if_first:
            out["stop"]["inOtherOrder"] = written(workload.stop.if_first)
        if text := own_fix(workload):
            commands = commands_json(*fix_commands(workload, invocation), where=invocation.where)
            fitting = workload.stop.fitting_with_fix if workload.stop.others_if_first is None else workload.replicas
            out["stop"]["fix"] = {
                "text": text,
                **({"fitting": fitting} if fitting is not None else {}),
                **({"commands": commands} if commands else {}),
            }
        if workload.stop.diagnosis.message:
            out["stop"]["schedulerMessage"] = workload.stop.diagnosis.message
    if look := commands_json(broken_node(workload, invocation), where=invocation.where):
        (out["next"],) = look
    out["changes"] = [_more(more, invocation) for more in workload.more]
    out["changesTried"] = sum(workload.tried.values())
    return out


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
    out: dict[str, Any] = {
        "pod": object_json(namespace, name),
        "replica": placed_pod.new.ordinal.replica,
        "node": placed_pod.node,
        "choice": placed_pod.chosen.value,
        "devices": given_json(placed_pod.claims),
    }
    if placed_pod.evicted:
        out["evicts"] = [key_json(pod.key) for pod in placed_pod.evicted]
    return out


def _more(more: More, invocation: Invocation) -> dict[str, Any]:
    what = more.change
    if isinstance(what, OneMoreNode):
        said: dict[str, Any] = {"kind": "add-node", "like": what.like, "alike": what.alike}
    elif isinstance(what, EndRule):
        said = {"kind": "delete-taint-rule", "rule": what.rule}
    elif isinstance(what, Free):
        said = {"kind": "release-claims", "holders": [_holder(holder) for holder in what.holders]}
    else:
        said = {"kind": "end-pods", "pods": [*map(_pod, what.ended)]}
    if commands := commands_json(*making_it(what), where=invocation.where):
        said["commands"] = commands
    if tried := commands_json(with_node(what, invocation), where=invocation.where):
        (said["tryWith"],) = tried
    idle = {"notStarting": [*map(not_starting_json, more.not_starting)]} if more.not_starting else {}
    rivals = {"rivals": [*map(key_json, more.rivals)]} if more.rivals else {}
    return {**said, "text": change(what), "morePods": more.pods, "moreReplicas": more.replicas, **idle, **rivals}


def _holder(holder: ClaimHolder) -> dict[str, Any]:
    return {
        "claim": key_json(holder.claim.key),
        "state": holder.standing.name.lower(),
        "devices": list(map(device_json, holder.claim.devices)),
        "pods": [_pod(pod) for pod in holder.pods],
    }


def _pod(pod: Pod) -> dict[str, Any]:
    owner = owner_of(pod)
    out: dict[str, Any] = {"namespace": pod.metadata.namespace, "name": pod.metadata.name, "priority": pod.priority}
    if owner is not None:
        out["owner"] = owner_json(owner.kind, owner.name)
    return out
