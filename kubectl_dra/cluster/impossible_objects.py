"""Objects that no API server would have stored, in files edited by hand: answers about them may mean nothing.

These are the mistakes with which an object still reads like another, valid one. What has a wrong type is an error when
it is read; `lint` knows all rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceTaint

_OPERATORS: Final = ("", "Exists", "Equal")
_EFFECTS: Final = ("", "None", "NoSchedule", "NoExecute")


def in_claim(raw: Mapping[str, Any], kind: str) -> str:
    """The first such mistake in a ResourceClaim or ResourceClaimTemplate as it is written; empty if there is none."""
    try:
        spec = (raw.get("spec") or {}).get("spec") if kind == "ResourceClaimTemplate" else raw.get("spec")
        return next(_in_requests(((spec or {}).get("devices") or {}).get("requests") or ()), "")
    except (AttributeError, TypeError):
        # A wrong type, of which the reader tells.
        return ""


def _in_requests(requests: Any) -> Iterator[str]:
    for at, request in enumerate(requests):
        path = f"requests[{at}]"
        exact, alternatives = request.get("exactly"), request.get("firstAvailable")
        if exact and alternatives:
            yield f"{path} has exactly and firstAvailable"
        yield from _in_request(exact or {}, f"{path}.exactly")
        for number, alternative in enumerate(alternatives or ()):
            yield from _in_request(alternative, f"{path}.firstAvailable[{number}]")


def _in_request(request: Mapping[str, Any], path: str) -> Iterator[str]:
    mode, count = request.get("allocationMode") or "ExactCount", request.get("count")
    if isinstance(count, int) and (count < 0 or (count and mode == "All")):
        yield f"{path}.count is {count}"
    for at, toleration in enumerate(request.get("tolerations") or ()):
        if (operator := toleration.get("operator") or "") not in _OPERATORS:
            yield f"{path}.tolerations[{at}].operator is {operator}"
        if (effect := toleration.get("effect") or "") not in _EFFECTS:
            yield f"{path}.tolerations[{at}].effect is {effect}"


def in_slice(slice_: ResourceSlice) -> str:
    """The first such mistake in a ResourceSlice; empty if there is none."""
    names: set[str] = set()
    individual = slice_.individual is not None
    for at, device in enumerate(slice_.devices):
        if not individual and (not device.name or device.name in names):
            return f"devices[{at}] has {'the name of another' if device.name else 'no name'}"
        names.add(device.name)
        if wrong := next(filter(None, map(_in_taint, device.taints)), ""):
            return f"devices[{at}] has a taint whose effect is {wrong}"
    return ""


def _in_taint(taint: DeviceTaint) -> str:
    return "" if taint.effect in _EFFECTS[1:] else taint.effect or "not written"
