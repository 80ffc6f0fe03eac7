"""``taint`` and ``untaint`` as JSON or YAML, in the shape of ``schemas/taint.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_dra.manifests.yaml_output import yaml_text
from kubectl_dra.report.devices_json import holder_json
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import device_json, gap_json, key_json, object_json, owner_json, taint_json
from kubectl_dra.report.taint_text import not_seen
from kubectl_dra.taint.blast_radius import ClaimHit, ClassLeft, PodHit, Radius
from kubectl_dra.taint.device_taint_rules import REFUSED
from kubectl_dra.taint.listing import TaintLine
from kubectl_dra.taint.result import RuleDone, Staying, Tainted, Untainted


def tainted_json(result: Tainted) -> dict[str, Any]:
    """A Taint: the rules, the blast radius, and the result of waiting."""
    out: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Taint",
        "dryRun": result.dry_run,
        "rulesServed": result.served,
        "rules": [_done(done) for done in result.done],
        "blastRadius": _radius(result.radius),
        "warnings": [*result.warnings, *result.held_parts],
    }
    if result.free is not None:
        out["wait"] = {
            "reached": result.free,
            "blockers": [
                filled(
                    **device_json(blocker.device),
                    claim=key_json(blocker.claim),
                    pod=key_json(blocker.pod) if blocker.pod else None,
                    why=blocker.why,
                    since=blocker.since,
                )
                for blocker in result.blockers
            ],
        }
    return out


def rules_yaml(result: Tainted) -> str:
    """The rules as kubectl prints objects, one document each; of a dry run only what ``kubectl apply`` takes."""
    rules = [_clean(done.rule) for done in result.done if done.outcome != REFUSED]
    if result.dry_run != "none":
        rules = [_as_written(rule) for rule in rules]
    return "---\n".join(yaml_text(rule, width=110) for rule in rules)


def _as_written(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule without what the server adds."""
    metadata = {key: value for key, value in rule["metadata"].items() if key in ("name", "labels", "annotations")}
    return {"apiVersion": rule["apiVersion"], "kind": rule["kind"], "metadata": metadata, "spec": rule["spec"]}


def untainted_json(result: Untainted) -> dict[str, Any]:
    """An Untaint: the removed rules, the remaining taints, and the result of waiting."""
    out: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Untaint",
        "dryRun": result.dry_run,
        "removed": [
            filled(**device_json(e.device), rule=e.name, taint=taint_json(e.taint), outcome=e.outcome, why=e.why)
            for e in result.removed
        ],
        "staying": [
            {**device_json(s.device), "taint": taint_json(s.taint), "setBy": s.owner, "removedBy": _ended_by(s)}
            for s in result.staying
        ],
        "warnings": list(result.warnings),
    }
    if result.allocatable is not None:
        devices = [
            {**device_json(row.id), "state": row.state.value, "heldBy": [holder_json(claim) for claim in row.holders]}
            for row in result.devices
        ]
        out["wait"] = {"reached": result.allocatable, "left": list(result.left), "devices": devices}
    return out


def list_json(lines: Sequence[TaintLine], notes: Sequence[str]) -> dict[str, Any]:
    """A TaintList: every taint of the cluster."""
    items = [*map(_line, lines)]
    return {"schemaVersion": SCHEMA_VERSION, "kind": "TaintList", "items": items, "notes": [*notes]}


def _kind(word: str) -> str:
    """The kind of an object from the word that a question has for it."""
    return {"pod": "Pod", "claim": "ResourceClaim"}.get(word, word)


def _done(done: RuleDone) -> dict[str, Any]:
    target = done.target
    out = filled(
        **device_json(target.id),
        where=target.where,
        hardwareID=target.hardware,
        published=target.published,
        rule=done.desired.name,
        outcome=done.outcome,
        why=done.why,
        deviceTaintRule=_clean(done.rule),
    )
    if done.server is not None:
        answer = filled(
            publishedDevices=done.server.published,
            allocatedDevices=done.server.allocated,
            podCount=done.server.pods,
            predictedPods=done.predicted,
        )
        out["ruleStatus"] = {**answer, "message": done.server.message}
    return out


def _clean(rule: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in rule["metadata"].items() if key != "managedFields"}
    return {**rule, "metadata": metadata}


def _radius(radius: Radius) -> dict[str, Any]:
    return {
        "podsDeleted": None if radius.open else radius.deleted(),
        "claims": [_claim(hit) for hit in radius.claims],
        "wouldNotFit": [
            {**object_json(lost.namespace, lost.name, _kind(lost.kind)), "allDevices": lost.all_mode}
            for lost in radius.lost
        ],
        "replacements": [
            {
                **object_json(replacement.namespace, replacement.name, "Pod"),
                **filled(ownedBy=replacement.owner),
                "made": replacement.made,
                "hasPlace": replacement.fits,
            }
            for replacement in radius.replacements
        ],
        "allRequests": [
            {
                **device_json(request.device),
                "claim": object_json(request.namespace, request.name, _kind(request.kind)),
                "request": request.request,
            }
            for request in radius.all_requests
        ],
        "byClass": [
            {
                "name": left.name,
                "deviceCount": left.devices,
                "freeCount": left.free,
                "freeAfter": left.free_after,
                **filled(capacity=_capacity(left)),
            }
            for left in radius.classes
        ],
        "notes": [*map(not_seen, radius.gaps), *radius.notes],
        "unread": [{**gap_json(gap), "decides": gap == radius.unread} for gap in radius.gaps],
    }


def _capacity(left: ClassLeft) -> dict[str, dict[str, str]]:
    return {
        room.name: {"value": str(room.total), "remaining": str(room.now), "remainingAfter": str(room.after)}
        for room in left.capacities
    }


def _claim(hit: ClaimHit) -> dict[str, Any]:
    return {
        **key_json(hit.claim.key),
        **device_json(hit.device),
        "adminAccess": hit.admin_access,
        "pods": [_pod(pod) for pod in hit.pods],
        "otherConsumers": [str(other) for other in hit.others],
    }


def _pod(pod: PodHit) -> dict[str, Any]:
    return {
        **filled(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            ownedBy=pod.owner,
            created=pod.created,
            phase=pod.phase,
            node=pod.node,
            fate=pod.fate,
            at=pod.at,
            why=pod.why,
            drained=pod.drained or None,
        ),
        **filled(priority=pod.priority),
        "tolerates": pod.tolerates,
    }


def _line(line: TaintLine) -> dict[str, Any]:
    owner = owner_json("ResourceSlice" if line.owner == "driver" else "DeviceTaintRule", line.name)
    return {
        **filled(
            taint=taint_json(line.taint),
            owner=owner,
            selects=line.selects,
            where=line.where,
            reason=line.reason,
            ticket=line.ticket,
            since=line.since,
            expires=line.expires,
            nextEffect=line.next_effect,
            nextAt=line.next_at,
        ),
        "ours": line.ours,
        "expired": line.expired,
        "devices": [device_json(id) for id in line.devices],
        "pods": [key_json(pod) for pod in line.pods],
        "warnings": list(line.warnings),
    }


def _ended_by(staying: Staying) -> str:
    command = staying.command
    if command is None or command.misnamed:
        return staying.ended_by
    return f"{staying.ended_by} ({command})"
