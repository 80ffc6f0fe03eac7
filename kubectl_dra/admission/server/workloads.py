"""The built-in kinds that make pods from a template: selector, template, restart policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.metadata import check_labels, check_metadata, name_of
from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    ServerContext,
    Violations,
    missing,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_choice,
    check_format,
    label_problems,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.admission.server.pods import check_template
from kubectl_dra.admission.server.selectors import RULE, check_label_selector, is_empty, matches
from kubectl_dra.api.labels import JOB_NAME_LABELS, JOB_UID_LABELS
from kubectl_dra.api.schema import FieldPath

_SPEC: Final[FieldPath] = ("spec",)
_TEMPLATE: Final[FieldPath] = ("spec", "template")
_CRON_JOB_NAME_MAX: Final = 52
_PROGRESS_DEADLINE: Final = 600
"""Seconds, by default."""
_NEGATIVE: Final = {
    "Deployment": ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
    "ReplicaSet": ("replicas", "minReadySeconds"),
    "StatefulSet": ("replicas", "minReadySeconds"),
    "DaemonSet": ("minReadySeconds", "revisionHistoryLimit"),
    "Job": (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ),
    "CronJob": ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
}


def check_replicated(workload: Mapping[str, Any], context: ServerContext) -> Violations:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet to be created."""
    kind = workload["kind"]
    names = label_problems if kind == "StatefulSet" else subdomain_problems
    yield from check_metadata(workload.get("metadata"), names, namespaced=True, context=context)
    spec = struct(workload, "spec")
    yield from _check_negative(spec, _SPEC, kind)
    selector, template = spec.get("selector"), struct(spec, "template")
    if kind == "Deployment":
        yield from _check_deadline(spec)
    yield from check_strategy(spec, kind)
    if kind == "StatefulSet" and text(spec, "serviceName"):
        yield from check_format(text(spec, "serviceName"), (*_SPEC, "serviceName"), "service-name", label_problems)
    at = (*_SPEC, "selector")
    syntax = tuple(check_label_selector(selector, at))
    yield from syntax
    if selector is None and kind != "DaemonSet":
        yield missing(at, RULE)
    elif selector is not None and is_empty(selector):
        yield violation(at, INVALID, RULE, f"must not be empty in a {kind}")
    if syntax:
        # The server does not look into the template then.
        if kind != "DaemonSet":
            yield violation(at, INVALID, RULE, "is not a valid label selector")
            if kind != "StatefulSet":
                return
    else:
        yield from _check_match(selector, _labels(template), _TEMPLATE)
    if not (syntax and kind == "StatefulSet"):
        yield from check_template(template, _TEMPLATE, context)
    yield from _check_always(struct(template, "spec"), kind)


def _check_deadline(spec: Mapping[str, Any]) -> Violations:
    deadline = spec.get("progressDeadlineSeconds")
    deadline = _PROGRESS_DEADLINE if deadline is None else deadline
    ready = spec.get("minReadySeconds") or 0
    if deadline <= ready:
        message = f"{deadline} must be more than minReadySeconds, {ready}"
        yield violation((*_SPEC, "progressDeadlineSeconds"), INVALID, "workload-number", message)


def _check_always(pod: Mapping[str, Any], kind: str) -> Violations:
    where = (*_TEMPLATE, "spec", "restartPolicy")
    yield from check_choice(text(pod, "restartPolicy"), where, "restart-policy", ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        at = (*_TEMPLATE, "spec", "activeDeadlineSeconds")
        yield violation(at, FORBIDDEN, "workload-deadline", f"cannot be set in a {kind}")


def check_job(job: Mapping[str, Any], context: ServerContext) -> Violations:
    """A Job to be created, with the labels that the server adds to its template."""
    meta = job.get("metadata") or {}
    yield from check_metadata(meta, subdomain_problems, namespaced=True, context=context)
    spec = struct(job, "spec")
    selector, template = spec.get("selector"), struct(spec, "template")
    extra: dict[str, str] = {}
    if not spec.get("manualSelector"):
        # The controller's uid is made by the server: any text stands for it.
        extra = dict.fromkeys(JOB_NAME_LABELS, name_of(meta)) | dict.fromkeys(JOB_UID_LABELS, "uid")
        yield from _check_generated(selector, _labels(template), extra)
        wanted = (selector or {}).get("matchLabels") or {}
        selector = {**(selector or {}), "matchLabels": {JOB_UID_LABELS[1]: "uid", **wanted}}
    yield from _check_job_spec(spec, _SPEC, extra, context)
    if not meta.get("labels") and (template.get("metadata") or {}).get("labels") is not None:
        # The server gives a job without labels those of its template, with a name also those that it adds.
        own = {**(extra if text(meta, "name") else {}), **_labels(template)}
        violations = check_labels(own, (*_TEMPLATE, "metadata", "labels"), ("metadata", "labels"))
        yield from _of_name(violations, extra)
    if selector is None:
        yield missing((*_SPEC, "selector"), RULE)
    syntax = tuple(check_label_selector(selector, (*_SPEC, "selector")))
    yield from syntax
    if not syntax:
        yield from _check_match(selector, {**extra, **_labels(template)}, _TEMPLATE)


def check_cron_job(cron_job: Mapping[str, Any], context: ServerContext) -> Violations:
    """A CronJob to be created. In its schedule, only the number of fields is checked."""
    meta = cron_job.get("metadata") or {}
    yield from check_metadata(meta, subdomain_problems, namespaced=True, context=context)
    spec = struct(cron_job, "spec")
    yield from _check_schedule(text(spec, "schedule"), (*_SPEC, "schedule"))
    yield from _check_negative(spec, _SPEC, "CronJob")
    policies = ("Allow", "Forbid", "Replace")
    yield from check_choice(text(spec, "concurrencyPolicy"), (*_SPEC, "concurrencyPolicy"), "cron-policy", policies)
    job = struct(struct(spec, "jobTemplate"), "spec")
    at = (*_SPEC, "jobTemplate", "spec")
    yield from _check_job_spec(job, at, {}, context)
    if job.get("selector") is not None:
        yield violation((*at, "selector"), INVALID, RULE, "is made by the server in a CronJob")
    if job.get("manualSelector"):
        yield violation((*at, "manualSelector"), NOT_SUPPORTED, RULE, "cannot be true in a CronJob")
    name = text(meta, "name")
    if len(name.encode("utf-8", "surrogatepass")) > _CRON_JOB_NAME_MAX:
        message = f"must not have more than {_CRON_JOB_NAME_MAX} characters, for the names of the jobs"
        yield violation(("metadata", "name"), INVALID, "name-invalid", message)


def _check_schedule(schedule: str, at: FieldPath) -> Violations:
    if not schedule:
        yield missing(at, "cron-schedule")
    elif "TZ" in schedule:
        yield violation(at, INVALID, "cron-schedule", "must not name a time zone; timeZone is for that")
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        yield violation(at, INVALID, "cron-schedule", f"{schedule!r} must have five fields")


def _check_job_spec(
    spec: Mapping[str, Any], at: FieldPath, extra_labels: Mapping[str, str], context: ServerContext
) -> Violations:
    yield from _check_negative(spec, at, "Job")
    template = struct(spec, "template")
    yield from _of_name(check_template(template, (*at, "template"), context, extra_labels), extra_labels)
    where = (*at, "template", "spec", "restartPolicy")
    policy = text(struct(template, "spec"), "restartPolicy") or "Always"
    if policy == "Always":
        yield missing(where, "restart-policy", "must be OnFailure or Never in a Job")
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(policy, where, "restart-policy", ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield violation(where, INVALID, "restart-policy", "must be Never with a podFailurePolicy")


def _of_name(violations: Violations, extra: Mapping[str, str]) -> Violations:
    """Violations, with those of labels that the server derives from a job's name moved to the name."""
    for invalid in violations:
        if len(invalid.path) > 1 and invalid.path[-2:] in {("labels", name) for name in extra}:
            message = f"becomes a label of its pods: {invalid.message}"
            yield replace(invalid, path=("metadata", "name"), message=message)
        else:
            yield invalid


def _check_generated(
    selector: Mapping[str, Any] | None, labels: Mapping[str, Any], extra: Mapping[str, str]
) -> Violations:
    """Labels and selector that a user wrote although the server generates them."""
    for name, value in extra.items():
        if name in labels and labels[name] != value:
            at: FieldPath = (*_TEMPLATE, "metadata", "labels")
            yield violation(at, INVALID, "job-labels", f"{name!r} is set by the server", below=(name,))
    if selector is not None and not tuple(check_label_selector(selector, _SPEC)) and not matches(selector, extra):
        message = "is made by the server unless manualSelector is true"
        yield violation((*_SPEC, "selector"), INVALID, RULE, message)


def _check_match(selector: Mapping[str, Any] | None, labels: Mapping[str, Any], at: FieldPath) -> Violations:
    if not matches(selector, labels):
        message = "do not match the selector"
        yield violation((*at, "metadata", "labels"), INVALID, "workload-labels", message)


def _labels(template: Mapping[str, Any]) -> Mapping[str, Any]:
    return (template.get("metadata") or {}).get("labels") or {}


def _check_negative(spec: Mapping[str, Any], at: FieldPath, kind: str) -> Violations:
    for name in _NEGATIVE[kind]:
        value = spec.get(name)
        if value is not None and value < 0:
            yield violation((*at, name), INVALID, "workload-number", f"must not be negative, as {value} is")


# How a workload replaces its pods (``pkg/apis/apps/validation``).

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
