"""Claim fields that articles show but no API ever had, and their equivalents today."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.data.drivers import catalogue

_SELECTOR: Final = re.compile(r"([A-Za-z0-9.-]+)/([A-Za-z_]\w*)\s*=\s*(\S+)\Z")
_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")
_MOST: Final = 700


def device_requests(value: Any) -> str:
    """The ``devices`` that correspond to ``spec.deviceRequests``; empty if its shape is unreadable."""
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        return ""
    requests = [_request(entry, index) for index, entry in enumerate(value)]
    text = _flow({"requests": requests})
    return f"Write devices: {text}" if len(text) <= _MOST else ""


def _request(entry: Mapping[str, Any], index: int) -> dict[str, Any]:
    name = _name(entry.get("name"), f"request-{index}")
    alternatives = entry.get("alternatives")
    if isinstance(alternatives, list) and alternatives:
        several = [one for one in alternatives if isinstance(one, Mapping)]
        # The order says what priority says; of equal ones the first stays first.
        several.sort(key=lambda one: -_number(one.get("priority")))
        return {"name": name, "firstAvailable": list(_alternatives(several, entry))}
    return {"name": name, "exactly": _asked(entry, {})}


def _alternatives(several: list[Mapping[str, Any]], entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    taken: set[str] = set()
    for index, one in enumerate(several):
        found = _SELECTOR.match(str(one.get("selector", "")))
        name = _name(one.get("name") or (found and found[3]), f"choice-{index}")
        name = name if name not in taken else f"{name}-{index}"
        taken.add(name)
        yield {"name": name, **_asked(one, entry)}


def _asked(one: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Class, count and selector of one alternative; missing ones come from the enclosing level."""
    merged = {**above, **one}
    found = _SELECTOR.match(str(merged.get("selector", "")))
    given = merged.get("deviceClassName")
    out: dict[str, Any] = {"deviceClassName": given if isinstance(given, str) else found[1] if found else "CLASS"}
    if merged.get("allocationMode") == "All":
        out["allocationMode"] = "All"
    elif _number(merged.get("count")) > 1:
        out["count"] = merged["count"]
    if found is not None:
        out["selectors"] = [{"cel": {"expression": _expression(*found.groups())}}]
    return out


def _expression(domain: str, name: str, value: str) -> str:
    """The comparison of an attribute, with the name and operator that suit its driver."""
    driver = catalogue().driver(domain)
    if driver is not None:
        kind, _, other = driver.instead.get(name, "").partition(" ")
        name = other if kind == "attribute" and other.isidentifier() else name
    attribute = None if driver is None else driver.attributes.get(name)
    read = f'device.attributes["{domain}"].{name}'
    if attribute is not None and attribute.names == "products":
        return f"{read}.contains({json.dumps(value)})"
    return f"{read} == {json.dumps(value)}"


def _name(value: Any, otherwise: str) -> str:
    text = _NOT_NAME.sub("-", str(value or "").lower()).strip("-")
    return text or otherwise


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(below) for below in value) + "]"
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z][\w./-]*", value):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
