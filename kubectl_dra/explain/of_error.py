"""Causes in selectors that do not compile, or that fail on a device: an error ends the attempt for all nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.api.slices import Device
from kubectl_dra.cel import CelError
from kubectl_dra.cel.columns import Column
from kubectl_dra.explain.causes import request
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.explain.funnel.observed_values import value_of
from kubectl_dra.explain.remedies.prove import Proof, WhatIf
from kubectl_dra.explain.scene.view import View
from kubectl_dra.names import nearest
from kubectl_dra.wording import join, some

_UNDECLARED = re.compile(r"undeclared reference to '(\w+)'")
_COMPILER = re.compile(r"^compilation failed: ERROR: <input>:(\d+):(\d+): (.*?)(?: \(in container ''\))?$")
_READ = r"""device\.(?:attributes|capacity)\[(?:"[^"]*"|'[^']*'|device\.driver)\]\.%s\b"""
_NO_KEY = "no such key: "
_OVERLOAD = "no such overload"
_NOT_BOOL = "CEL result of type "
_COST = "cost limit exceeded"
MAX_NAMES = 8


def compile_error(error: AllocationError) -> Cause:
    """The cause of a selector that does not compile."""
    kind = request.SELECTOR_COMPILE
    text = str(error.detail.get("error"))
    message = text.splitlines()[0] if text else ""
    if found := _COMPILER.match(message):
        line = f"line {found[1]}, " if found[1] != "1" else ""
        message = f"{found[3]} ({line}column {found[2]})"
    unknown = _UNDECLARED.search(message)
    return Cause(
        kind,
        f"selector {_number(error)} of {error.subject} does not compile: {message}",
        (_expression(error),),
        f'Write "{unknown[1]}" with quotes if the text is meant; there is no such name.' if unknown else kind.fix,
    )


def runtime_error(error: AllocationError, node: str, view: View, whatif: WhatIf) -> Cause:
    """The cause of a selector that fails on a device met on a node; ``whatif`` proves what is offered."""
    kind = request.SELECTOR_ERROR
    expression = str(error.detail.get("expression") or "")
    device, problem = error.detail.get("device"), error.detail.get("error")
    text = str(problem)
    # Equal devices of several nodes may be one object.
    published = next((item for item in (*view.on_node(node), *view.published) if item.device is device), None)
    name = str(published.id) if published else ""
    evidence = [_expression(error), Evidence(f"device {name} on node {node}", "CEL run-time error", text)]
    if published is not None and node in view.node_by_name and not published.on(view.node_by_name[node]):
        scope = f"{published.device.scope}; selectors run before a device's own node is looked at"
        evidence.append(Evidence(f"device {name}", "is for", scope))
    if share := _share(view, expression):
        evidence.append(Evidence("devices", "on which it fails", share))
    if isinstance(problem, CelError) and (offset := getattr(problem, "offset", None)) is not None:
        evidence.append(Evidence("expression", f"offset {offset}", excerpt(expression, offset)))
    summary = f"selector {_number(error)} of {error.subject} fails on device {name} of node {node}: {text}"
    if text.startswith("attribute ") and isinstance(device, Device):
        kind = request.UNCONVERTIBLE
        attribute, _, why = text.removeprefix("attribute ").partition(": ")
        value = next((str(value) for value in (device.attributes.get(attribute) or {}).values()), "")
        summary = f'device {name} of node {node} publishes {attribute} "{value}", which no selector can read: {why}'
        return Cause(kind, summary, tuple(evidence), kind.fix)
    if text.startswith(_NO_KEY):
        key = text.removeprefix(_NO_KEY).split(".")[0].split(" ")[0]
        missing = _missing(view, expression, key)
        if missing is not None:
            fix, proof = _other_name(missing, expression, key, whatif)
            evidence.append(Evidence(missing.where, f"that have {key}", "none"))
            evidence.append(Evidence(missing.where, "have", some(missing.names, MAX_NAMES) or "nothing to read"))
            return Cause(
                kind, f"{summary}, as on all {missing.where}", tuple(evidence), fix, str(proof) if proof else ""
            )
        fix, proof = _guard(expression, key, whatif)
        return Cause(kind, summary, tuple(evidence), fix, str(proof) if proof else "")
    if text.startswith(_OVERLOAD) and isinstance(device, Device):
        evidence.extend(_types(view, expression, device, name))
        return Cause(kind, summary, tuple(evidence), "Compare each value with one of its own type.")
    return Cause(kind, summary, tuple(evidence), _fix_of(text))


def _fix_of(text: str) -> str:
    if text.startswith(_NOT_BOOL):
        return "End the expression in a comparison: its result has to be true or false."
    if _COST in text:
        return "Make the expression cheaper: fewer or shorter lists and texts to go through."
    return "Correct the expression where it fails; --trace shows the value of each part on that device."


class _Missing(NamedTuple):
    """A name that no device has where the expression looks: which devices those are, and what they have."""

    where: str
    names: Sequence[str]


def _missing(view: View, expression: str, key: str) -> _Missing | None:
    """What there is instead of a key that no device has; None where some have it, or the place is not known."""
    columns = {column for term in view.cycle.selectors.terms(expression) for column in term.columns or ()}
    reading = [column for column in columns if column.id == key]
    devices = [item.device for item in view.kinds]
    if not reading or any(value_of(device, column) is not None for device in devices for column in reading):
        return None
    column = reading[0]
    own = [device for device in devices if column.domain in (None, device.driver)]
    if not own:
        return None
    names = sorted({name for device in own for name in _names(device, column)})
    drivers = sorted({device.driver for device in own})
    return _Missing(f"devices of {some(drivers)}", names)


def _names(device: Device, column: Column) -> Iterator[str]:
    """The names that a device has where the column is looked for."""
    domain = device.driver if column.domain is None else column.domain
    for name in device.capacity if column.kind == "capacity" else device.attributes:
        of, slash, identifier = name.partition("/")
        if not slash or of == domain:
            yield identifier if slash else name


def _other_name(missing: _Missing, expression: str, key: str, whatif: WhatIf) -> tuple[str, Proof | None]:
    """The name that may be meant, proved where the claims fit with it."""
    near = nearest(key, missing.names)
    read = re.search(_READ % re.escape(key), expression)
    if read is not None and read[0].endswith(key):
        for name in near:
            proof = whatif.with_selector(expression, expression.replace(read[0], read[0].removesuffix(key) + name))
            if proof is not None:
                return f"Write {name} in place of {key}: no device has {key}.", proof
    if near:
        return f"No device has {key}; write {join(near)} if that is meant, or guard it with has(…).", None
    return f"No device has {key}: read what they have, or upgrade the driver if it should publish {key}.", None


def _guard(expression: str, key: str, whatif: WhatIf) -> tuple[str, Proof | None]:
    """A test for a key that some devices have, proved where the claims fit with it."""
    read = re.search(_READ % re.escape(key), expression)
    if read is None or not read[0].endswith(key):
        narrow = f"or narrow so that only devices with {key} are read"
        return f"Guard it: has(….{key}) && …, or ….?{key}.orValue(…); {narrow}.", None
    guard = f"has({read[0]}) && "
    optional = f"{read[0].removesuffix(key).rstrip('.')}.?{key}.orValue(…)"
    fix = f"Guard it: put {guard.strip()} before the term, or read it as {optional}."
    return fix, whatif.with_selector(expression, f"{guard}({expression})")


def _types(view: View, expression: str, device: Device, name: str) -> Iterator[Evidence]:
    """The types of what the expression reads of a device."""
    columns = {column for term in view.cycle.selectors.terms(expression) for column in term.columns or ()}
    for column in sorted(columns, key=str):
        if column.id and (value := value_of(device, column)) is not None:
            kind = "quantity" if column.kind == "capacity" else _type(device, column)
            yield Evidence(f"device {name}", column.id, f"{value}, of type {kind}")


def _type(device: Device, column: Column) -> str:
    domain = device.driver if column.domain is None else column.domain
    raw = device.attributes.get(f"{domain}/{column.id}") or device.attributes.get(column.id or "") or {}
    return next(iter(raw), "unknown")


def _share(view: View, expression: str) -> str:
    """On how many devices of the same drivers the selector fails."""
    failing = [
        item for item in view.published if isinstance(view.cycle.selectors.verdict(expression, item.device), CelError)
    ]
    drivers = {item.id.driver for item in failing}
    tested = sum(1 for item in view.published if item.id.driver in drivers)
    return f"{len(failing)} of {tested} of {', '.join(sorted(drivers))}" if failing else ""


def excerpt(expression: str, offset: int, width: int = 60) -> str:
    """The part of an expression around an offset, marked with a caret-like arrow before it."""
    start = max(0, offset - width // 2)
    end = min(len(expression), offset + width // 2)
    before = ("…" if start else "") + expression[start:offset]
    after = expression[offset:end] + ("…" if end < len(expression) else "")
    return " ".join(f"{before}▸{after}".split())


def _expression(error: AllocationError) -> Evidence:
    text = str(error.detail.get("expression") or "")
    return Evidence(error.subject, f"selectors[{error.detail.get('selector')}].cel.expression", text)


def _number(error: AllocationError) -> str:
    index = error.detail.get("selector")
    return str(index + 1) if isinstance(index, int) else "?"
