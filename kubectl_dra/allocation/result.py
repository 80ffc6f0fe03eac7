"""What the scheduler writes in ``status.allocation``: devices, configurations and node selector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.search_context import PickedDevice
from kubectl_dra.api.claims import Allocation, DeviceResult, ResourceClaim
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.nodes import Node, NodeSelector, NodeSelectorTerm


class AllocationResult(Allocation, frozen=True, gc=False):
    """An allocation as the scheduler writes it, with its configurations. Share ids are random and appear as ``*``."""

    config: tuple[dict[str, Any], ...] = ()


def build_result(
    claim: ResourceClaim, placed: Sequence[PickedDevice], node: Node, features: Features, defects: KnownDefects
) -> AllocationResult:
    """The allocation of one claim.

    Raises:
        AllocationError: a device's node selector has more than one term.
    """
    return AllocationResult(
        results=tuple(_result(placement, features) for placement in placed),
        config=tuple(_config(claim, placed, defects)),
        node_selector=_node_selector(claim, placed, node),
    )


def _result(placement: PickedDevice, features: Features) -> DeviceResult:
    spec, candidate = placement.alternative.spec, placement.candidate
    device, bound = candidate.device, features.binding_conditions
    return DeviceResult(
        request=placement.alternative.result_name,
        device=candidate.id,
        admin_access=bool(spec.admin_access),
        share_id="" if placement.consumed is None else "*",
        consumed_capacity=placement.consumed or {},
        tolerations=spec.tolerations if features.tolerations_in_result else (),
        binding_conditions=(device.binding_conditions or ()) if bound else (),
        binding_failure_conditions=(device.binding_failure_conditions or ()) if bound else (),
        skip_node_operations=candidate.slice.skip_node_operations if features.experimental else (),
    )


def _config(claim: ResourceClaim, placed: Sequence[PickedDevice], defects: KnownDefects) -> list[dict[str, Any]]:
    chosen: dict[int, tuple[str, str, Any]] = {}
    for placement in placed:
        alternative = placement.alternative
        chosen.setdefault(
            alternative.request, (alternative.parent.name, alternative.result_name, alternative.device_class)
        )
    # A request in mode All or ExactCount always places at least one device, so every request is in here.
    entries: list[dict[str, Any]] = []
    by_class: dict[str, list[dict[str, Any]]] = {}
    for _, result_name, device_class in chosen.values():
        known = by_class.get(device_class.name)
        if known is not None:
            for part in known:
                part["requests"].append(result_name)
            continue
        by_class[device_class.name] = [
            {"source": "FromClass", "requests": [result_name], **config} for config in device_class.config
        ]
        entries.extend(by_class[device_class.name])
    for config in claim.config:
        requests = config.get("requests") or []
        body = {key: value for key, value in config.items() if key != "requests"}
        if not requests:
            entries.append({"source": "FromClaim", **body})
            continue
        for name, result_name, _ in chosen.values():
            if name in requests or result_name in requests:
                entries.append({"source": "FromClaim", "requests": list(requests), **body})
                if not defects.claim_config_repeated:
                    break
    if not defects.claim_config_repeated:
        _clear_covering(entries, [(name, result_name) for name, result_name, _ in chosen.values()])
    return entries


def _clear_covering(entries: list[dict[str, Any]], chosen: Sequence[tuple[str, str]]) -> None:
    """Drop ``requests`` from entries that name every request of the claim (1.37)."""
    for config in entries:
        requests = config.get("requests", ())
        if requests and all(name in requests or result_name in requests for name, result_name in chosen):
            del config["requests"]


def _node_selector(claim: ResourceClaim, placed: Sequence[PickedDevice], node: Node) -> NodeSelector | None:
    expressions: list[Requirement] = []
    fields: list[Requirement] = []
    for placement in placed:
        candidate = placement.candidate
        scope = candidate.device.scope if candidate.slice.per_device_node_selection else candidate.slice.scope
        if scope.node_name or candidate.device.binds_to_node:
            return NodeSelector((NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (node.name,)),)),))
        if scope.node_selector is None:
            continue
        terms = scope.node_selector.terms
        if len(terms) != 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms",
                check=AllocationCheck.NODE_SELECTOR_TERMS,
                subject=candidate.slice.name,
            )
        _merge(terms[0], expressions, fields)
    if not expressions and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _merge(term: NodeSelectorTerm, expressions: list[Requirement], fields: list[Requirement]) -> None:
    for source, into in ((term.expressions, expressions), (term.fields, fields)):
        for requirement in source:
            key = (requirement.key, requirement.operator, {*requirement.values})
            if key not in [(known.key, known.operator, {*known.values}) for known in into]:
                into.append(requirement)
