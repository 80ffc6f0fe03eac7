"""Causes from errors that end the whole attempt, in the scheduler's words and ours."""

from __future__ import annotations

import re

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.cel import CelError
from kubectl_dra.explain.causes import devices, pools, request
from kubectl_dra.explain.model import Cause, CauseKind, Evidence
from kubectl_dra.explain.view import View
from kubectl_dra.explain.whatif import WhatIf

_KINDS: dict[str, CauseKind] = {
    "cel-runtime": request.SELECTOR_ERROR,
    "cel-compile": request.SELECTOR_COMPILE,
    "too-many-devices": request.TOO_MANY_DEVICES,
    "feature-disabled": request.FEATURE_OFF,
    "class-missing": request.CLASS_MISSING,
    "all-pool": pools.ALL_BLOCKED,
    "constraint-all": devices.CONSTRAINT,
    "slice-node-selector": pools.BAD_NODE_SELECTOR,
    "device-node-selector": pools.BAD_NODE_SELECTOR,
    "node-selector-terms": pools.BAD_NODE_SELECTOR,
}


_UNDECLARED = re.compile(r"undeclared reference to '(\w+)'")
_READ = r"""device\.(?:attributes|capacity)\[(?:"[^"]*"|'[^']*'|device\.driver)\]\.%s\b"""


def cause_of(error: AllocationError, node: str, view: View, whatif: WhatIf) -> Cause:
    """The cause that stands for a fatal allocation error met on a node; ``whatif`` proves a guard."""
    kind = _KINDS.get(error.check, request.UNSUPPORTED)
    if error.check in ("cel-runtime", "cel-compile"):
        return _selector(error, kind, node, view, whatif)
    evidence = [Evidence(error.subject, "scheduler", error.message)]
    pool = error.detail.get("pool")
    summary = error.message
    if isinstance(pool, Pool):
        problem = (
            f"incomplete (generation {pool.generation} has {pool.found} of {pool.expected} slices)"
            if pool.incomplete
            else f"invalid ({pool.invalid})"
        )
        summary = (
            f'request "{error.detail.get("request")}" asks for all devices, and pool {pool.id} on node {node} '
            f"is {problem}"
        )
        evidence.append(Evidence(f"pool {pool.id}", "slices", problem))
    fix = kind.fix
    if gate := error.detail.get("gate"):
        fix = f"Turn the feature gate {gate} on in kube-apiserver and kube-scheduler, or do without the field."
    return Cause(kind, summary, tuple(evidence), fix, request=str(error.detail.get("request") or ""))


def _selector(error: AllocationError, kind: CauseKind, node: str, view: View, whatif: WhatIf) -> Cause:
    detail = error.detail
    expression = str(detail.get("expression") or "")
    index = detail.get("selector")
    device = detail.get("device")
    problem = detail.get("error")
    text = str(problem)
    # Equal devices of several nodes may be one object.
    seen = (*view.on_node(node), *view.published)
    published = next((item for item in seen if item.device is device), None)
    name = str(published.id) if published else ""
    evidence = [Evidence(error.subject, f"selectors[{index}].cel.expression", expression)]
    if error.check == "cel-compile":
        message = text.splitlines()[0] if text else ""
        unknown = _UNDECLARED.search(message)
        return Cause(
            kind,
            f"selector {_ordinal(index)} of {error.subject} does not compile: {message}",
            tuple(evidence),
            f'Write "{unknown[1]}" with quotes if the text is meant; there is no such name.' if unknown else kind.fix,
        )
    fix, proved = kind.fix, ""
    if text.startswith("attribute "):
        kind = request.UNCONVERTIBLE
        fix = kind.fix
    elif text.startswith("no such key: "):
        key = text.removeprefix("no such key: ").split(".")[0].split(" ")[0]
        fix = (
            f"Guard it: has(….{key}) && …, or ….?{key}.orValue(…); or narrow so that only devices with {key} are read."
        )
        read = re.search(_READ % re.escape(key), expression)
        if read is not None and read[0].endswith(key):
            guard = f"has({read[0]}) && "
            fix = f"Guard it: put {guard.strip()} before the term, or read it as {_optional(read[0], key)}."
            found = whatif.with_selector(expression, f"{guard}({expression})")
            proved = str(found) if found else ""
    evidence.append(Evidence(f"device {name} on node {node}", "CEL run-time error", text))
    if published is not None and node in view.node_by_name and not published.on(view.node_by_name[node]):
        text_of_scope = f"{published.device.scope}; selectors run before a device's own node is looked at"
        evidence.append(Evidence(f"device {name}", "is for", text_of_scope))
    if share := _share(view, expression):
        evidence.append(Evidence("devices", "on which it fails", share))
    if isinstance(problem, CelError) and (offset := getattr(problem, "offset", None)) is not None:
        evidence.append(Evidence("expression", f"offset {offset}", excerpt(expression, offset)))
    return Cause(
        kind,
        f"selector {_ordinal(index)} of {error.subject} fails on device {name} of node {node}: {text}",
        tuple(evidence),
        fix,
        proved,
    )


def _share(view: View, expression: str) -> str:
    """On how many devices of the same drivers the selector fails."""
    failing = [
        item for item in view.published if isinstance(view.cycle.selectors.verdict(expression, item.device), CelError)
    ]
    drivers = {item.id.driver for item in failing}
    tested = sum(1 for item in view.published if item.id.driver in drivers)
    return f"{len(failing)} of {tested} of {', '.join(sorted(drivers))}" if failing else ""


def _optional(read: str, key: str) -> str:
    """``….?key.orValue(…)`` for an attribute access."""
    return f"{read.removesuffix(key).rstrip('.')}.?{key}.orValue(…)"


def excerpt(expression: str, offset: int, width: int = 60) -> str:
    """The part of an expression around an offset, marked with a caret-like arrow before it."""
    start = max(0, offset - width // 2)
    end = min(len(expression), offset + width // 2)
    before = ("…" if start else "") + expression[start:offset]
    after = expression[offset:end] + ("…" if end < len(expression) else "")
    return " ".join(f"{before}▸{after}".split())


def _ordinal(index: object) -> str:
    return str(int(index) + 1) if isinstance(index, int) else "?"
