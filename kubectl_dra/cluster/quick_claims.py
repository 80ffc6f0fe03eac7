"""Raw ResourceClaims to typed ones, as ``quick`` reads slices: what nearly all have is looked at here."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.api.claims import Allocation, Consumer, DeviceResult, ResourceClaim, spec_fields
from kubectl_dra.api.conversion import reshaped
from kubectl_dra.api.decoding import Mismatch, mismatch, struct_mismatch
from kubectl_dra.api.meta import EMPTY, ObjectMeta
from kubectl_dra.api.nodes import NodeSelector
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.plain import all_text, dumped, plain_meta, plain_node_selector

_RESULT: Final = frozenset(("request", "driver", "pool", "device"))
_SHARE: Final = _RESULT | {"shareID", "consumedCapacity"}
_STATUS: Final = frozenset(("allocation", "reservedFor"))
_ALLOCATION: Final = frozenset(("devices", "nodeSelector", "allocationTimestamp"))
_SAME: Final = ("v1", "v1beta2")
"""Versions with the same shapes."""

_KEPT: Final = 20_000
"""How many different things of one kind are remembered, to find equal ones."""


class ClaimReader:
    """Reads raw ResourceClaims; equal specs, amounts and ``texts`` are shared."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._specs: dict[tuple[str, bytes], dict[str, Any]] = {}
        self._quantities: dict[str, Quantity] = {}

    def claim(self, raw: dict[str, Any], version: str) -> ResourceClaim | Mismatch:
        """A claim of any version, or its first value of a wrong type."""
        found = self._quick_claim(raw, version) if version in _SAME else None
        if found is not None:
            return found
        wrong = mismatch(raw, "ResourceClaim", version)
        return ResourceClaim.from_json(reshaped(raw)) if wrong is None else wrong

    def _quick_claim(self, raw: dict[str, Any], version: str) -> ResourceClaim | None:
        """A claim without anything rare in its status; None if the slow check has to look."""
        status = raw.get("status", EMPTY)
        if not plain_meta(raw.get("metadata")) or type(raw.get("spec")) is not dict or not isinstance(status, dict):
            return None
        if status.keys() - _STATUS:
            return None
        allocation = None
        if status.get("allocation") is not None:
            allocation = self._quick_allocation(status["allocation"])
            if allocation is None:
                return None
        fields = self._shared_spec(raw["spec"], version)
        consumers = status.get("reservedFor", ())
        if fields is None or not all_text(consumers):
            return None
        return ResourceClaim(
            metadata=ObjectMeta.from_json(raw["metadata"]),
            allocation=allocation,
            reserved_for=tuple(Consumer.from_json(entry) for entry in consumers),
            **fields,
        )

    def _quick_allocation(self, raw: Any) -> Allocation | None:
        if type(raw) is not dict or raw.keys() - _ALLOCATION:
            return None
        devices, selector, time = raw.get("devices"), raw.get("nodeSelector"), raw.get("allocationTimestamp", "")
        if type(devices) is not dict or type(devices.get("results")) is not list or type(time) is not str:
            return None
        if len(devices) > 1 and struct_mismatch({**devices, "results": []}, "DeviceAllocationResult") is not None:
            return None
        if not plain_node_selector(selector) and struct_mismatch(selector, "NodeSelector") is not None:
            return None
        results = [self._result(result) for result in devices["results"]]
        if None in results:
            return None
        pinned = None if selector is None else NodeSelector.from_json(selector)
        return Allocation(tuple(results), pinned, time)  # type: ignore[arg-type]

    def _result(self, raw: Any) -> DeviceResult | None:
        if type(raw) is not dict:
            return None
        amounts = raw.get("consumedCapacity")
        consumed = None if amounts is None else self._consumed(amounts)
        fields = _RESULT if consumed is None else _SHARE
        if raw.keys() != fields or not all(type(raw[name]) is str for name in fields if name != "consumedCapacity"):
            return (
                DeviceResult.from_json(raw) if struct_mismatch(raw, "DeviceRequestAllocationResult") is None else None
            )
        texts = self._texts
        driver, pool, device, request = raw["driver"], raw["pool"], raw["device"], raw["request"]
        identity = DeviceID(
            texts.setdefault(driver, driver), texts.setdefault(pool, pool), texts.setdefault(device, device)
        )
        return DeviceResult(
            texts.setdefault(request, request),
            identity,
            share_id=raw.get("shareID", ""),
            consumed_capacity=EMPTY if consumed is None else consumed,
        )

    def _consumed(self, amounts: Any) -> dict[str, Quantity] | None:
        """Amounts by their names; None if the slow check has to look."""
        if type(amounts) is not dict:
            return None
        out: dict[str, Quantity] = {}
        for name, text in amounts.items():
            if type(text) is not str:
                return None
            known = self._quantities.get(text)
            if known is None:
                try:
                    known = Quantity.parse(text)
                except QuantityError:
                    return None
                if len(self._quantities) < _KEPT:
                    self._quantities[text] = known
            out[name] = known
        return out

    def _shared_spec(self, spec: dict[str, Any], version: str) -> dict[str, Any] | None:
        key = (version, dumped(spec))
        known = self._specs.get(key)
        if known is None:
            if struct_mismatch(spec, "ResourceClaimSpec", version) is not None:
                return None
            known = spec_fields(spec)
            if key[1] and len(self._specs) < _KEPT:
                self._specs[key] = known
        return known
