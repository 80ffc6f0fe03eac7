"""Causes from errors that end the whole attempt, in the scheduler's words and ours."""

from __future__ import annotations

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.explain.causes import devices, pools, request
from kubectl_dra.explain.diagnosis import Cause, CauseKind, Evidence
from kubectl_dra.explain.of_error import compile_error, runtime_error
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.scene.view import View

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


def cause_of(error: AllocationError, node: str, view: View, whatif: WhatIf) -> Cause:
    """The cause that stands for a fatal allocation error met on a node; ``whatif`` proves a guard."""
    kind = _KINDS.get(error.check, request.UNSUPPORTED)
    if error.check == "cel-compile":
        return compile_error(error)
    if error.check == "cel-runtime":
        return runtime_error(error, node, view, whatif)
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
