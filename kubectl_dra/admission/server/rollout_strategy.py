"""How a workload replaces its pods: what the API server takes (``pkg/apis/apps/validation``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.model import FORBIDDEN, INVALID, Violations, missing, struct, text, violation
from kubectl_dra.admission.server.names import check_choice, unsupported
from kubectl_dra.api.schema import FieldPath

_RULE: Final = "workload-strategy"
_PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)
_ROLLING: Final = "RollingUpdate"


def check_strategy(spec: Mapping[str, Any], kind: str) -> Violations:
    """The strategy in the spec of a workload to be created; defaults are those of the API."""
    name = "strategy" if kind == "Deployment" else "updateStrategy"
    at: FieldPath = ("spec", name)
    strategy = struct(spec, name)
    checks = {"Deployment": _of_deployment, "DaemonSet": _of_daemon_set, "StatefulSet": _of_stateful_set}
    if kind in checks:
        yield from checks[kind](strategy, text(strategy, "type") or _ROLLING, at)


def _of_deployment(strategy: Mapping[str, Any], way: str, at: FieldPath) -> Violations:
    if way == "Recreate":
        if strategy.get("rollingUpdate") is not None:
            yield violation((*at, "rollingUpdate"), FORBIDDEN, _RULE, "cannot be set for type Recreate")
        return
    yield from check_choice(way, (*at, "type"), _RULE, ("Recreate", _ROLLING))
    rolling, where = struct(strategy, "rollingUpdate"), (*at, "rollingUpdate")
    yield from _check_amount(rolling, "maxUnavailable", where, most=100)
    yield from _check_amount(rolling, "maxSurge", where)
    if _is_zero(rolling, "maxUnavailable", "25%") and _is_zero(rolling, "maxSurge", "25%"):
        yield violation((*where, "maxUnavailable"), INVALID, _RULE, "must not be 0 where maxSurge is 0")


def _of_daemon_set(strategy: Mapping[str, Any], way: str, at: FieldPath) -> Violations:
    if way not in (_ROLLING, "OnDelete"):
        yield unsupported(way, (*at, "type"), _RULE, (_ROLLING, "OnDelete"))
    if way != _ROLLING:
        return
    rolling, where = struct(strategy, "rollingUpdate"), (*at, "rollingUpdate")
    yield from _check_amount(rolling, "maxUnavailable", where, most=100)
    yield from _check_amount(rolling, "maxSurge", where, most=100)
    waits, adds = not _is_zero(rolling, "maxUnavailable", 1), not _is_zero(rolling, "maxSurge", 0)
    if waits and adds:
        message = "must be 0 unless maxUnavailable is 0, which is 1 by default"
        yield violation((*where, "maxSurge"), INVALID, _RULE, message)
    elif not waits and not adds:
        yield missing((*where, "maxUnavailable"), _RULE, "must not be 0 where maxSurge is 0")


def _of_stateful_set(strategy: Mapping[str, Any], way: str, at: FieldPath) -> Violations:
    if way not in (_ROLLING, "OnDelete"):
        yield unsupported(way, (*at, "type"), _RULE, (_ROLLING, "OnDelete"))
    elif way == "OnDelete" and strategy.get("rollingUpdate") is not None:
        yield violation((*at, "rollingUpdate"), INVALID, _RULE, f"is only for type {_ROLLING}")
    partition = struct(strategy, "rollingUpdate").get("partition")
    if way == _ROLLING and partition is not None and partition < 0:
        message = f"must not be negative, as {partition} is"
        yield violation((*at, "rollingUpdate", "partition"), INVALID, _RULE, message)


def _check_amount(rolling: Mapping[str, Any], name: str, at: FieldPath, most: int | None = None) -> Violations:
    """A number of pods or a percentage, of at most ``most`` percent."""
    value = rolling.get(name)
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield violation((*at, name), INVALID, _RULE, f"{value!r} is no number and no percentage such as 25%")
    elif isinstance(value, str) and most is not None and len(value.lstrip("0")) > 3 and value.lstrip("0") != f"{most}%":
        yield violation((*at, name), INVALID, _RULE, f"must not be more than {most}%")
    elif isinstance(value, int) and value < 0:
        yield violation((*at, name), INVALID, _RULE, f"must not be negative, as {value} is")


def _is_zero(rolling: Mapping[str, Any], name: str, default: int | str) -> bool:
    """Whether an amount is none at all; what cannot be read is an error of its own."""
    value = rolling.get(name)
    value = default if value is None else value
    return not value.rstrip("%").strip("0") and value.endswith("%") if isinstance(value, str) else value == 0
