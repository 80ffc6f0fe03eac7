"""The API server's answer to creating an object: what it checks, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.decoding import decoding_errors, duplicates
from kubectl_dra.admission.server.model import (
    INTERNAL_ERROR,
    INVALID,
    ServerContext,
    ServerVerdict,
    Violation,
    Violations,
    in_v1beta1,
    is_declared,
    violation,
)
from kubectl_dra.admission.server.status import check_claim_status, check_rule_status, without_deallocated
from kubectl_dra.api.behaviour import DISABLED_DROPPED_FIRST, RULE_UPDATES_NAME_VERSION
from kubectl_dra.api.conversion import VERSIONS, defaulted, gates_in_use, reshaped, without_disabled
from kubectl_dra.api.dra_fields import KINDS
from kubectl_dra.api.releases import GROUP, REMOVED_VERSIONS, UNTOLD, Release, default_features, lifecycle, versions_of
from kubectl_dra.api.schema import FieldPath

_Check = Callable[[Mapping[str, Any], ServerContext], Violations]
_CHECKS: Final = {
    "DeviceClass": ("classes", "check_class"),
    "DeviceTaintRule": ("classes", "check_taint_rule"),
    "ResourceClaim": ("claims", "check_claim"),
    "ResourceClaimTemplate": ("claims", "check_template"),
    "ResourceSlice": ("slices", "check_slice"),
    "ResourcePoolStatusRequest": ("slices", "check_pool_request"),
    "Pod": ("pods", "check_pod"),
    "ResourceQuota": ("resources", "check_quota"),
    "Deployment": ("workloads", "check_replicated"),
    "ReplicaSet": ("workloads", "check_replicated"),
    "StatefulSet": ("workloads", "check_replicated"),
    "DaemonSet": ("workloads", "check_replicated"),
    "Job": ("workloads", "check_job"),
    "CronJob": ("workloads", "check_cron_job"),
}
"""By kind, the module beside this one and the function in it. Most files need one or two of these modules."""
_OTHERS: Final = {
    "ResourcePoolStatusRequest": (GROUP, "v1alpha3"),
    **dict.fromkeys(("Pod", "ResourceQuota"), ("", "v1")),
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"), ("apps", "v1")),
    **dict.fromkeys(("Job", "CronJob"), ("batch", "v1")),
}
"""Group and version of the kinds that ``KINDS`` does not have."""


@cache
def check_of(kind: str) -> _Check:
    """The rules for a known kind; imports their module."""
    module, name = _CHECKS[kind]
    check: _Check = getattr(import_module(f"kubectl_dra.admission.server.{module}"), name)
    return check


def is_known(raw: Any) -> bool:
    """Whether ``check`` knows the rules for an object's apiVersion and kind."""
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str) or not isinstance(raw.get("apiVersion"), str):
        return False
    group, version = _group_version(raw)
    kind = raw["kind"]
    if group == GROUP and kind in KINDS:
        return version in VERSIONS and lifecycle(version, kind) is not None
    return _OTHERS.get(kind) == (group, version)


def served_instead(raw: Mapping[str, Any], release: Release) -> tuple[str, str]:
    """Of a built-in kind in a version that the release, or every one, does not have any more: the version that it has,
    and since when the other one is gone, empty if there never was such a version. Empty texts for everything else.
    """
    group, version = _group_version(raw)
    if group == GROUP:
        life, kind = lifecycle(version, str(raw.get("kind"))), str(raw.get("kind"))
        newest = next(iter(versions_of(kind, release)), "")
        gone = life is not None and life.was_removed(release) and bool(newest)
        return (f"{GROUP}/{newest}", f"1.{life.removed}") if life is not None and gone else ("", "")
    known_group, known = _OTHERS.get(str(raw.get("kind")), ("", ""))
    if not known or group != known_group or version == known:
        return "", ""
    return f"{group}/{known}" if group else known, REMOVED_VERSIONS.get((group, version), "")


def check(
    raw: Mapping[str, Any],
    *,
    release: Release = UNTOLD,
    features: Iterable[str] | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    duplicate_fields: Iterable[FieldPath] = (),
) -> ServerVerdict | None:
    """The answer to creating an object with strict field validation; None for kinds unknown to ``is_known``.

    ``features`` are the enabled gates, None for the release's defaults. ``namespaces`` are the labels of
    known namespaces; violations that depend on others are in ``unsure``. An object without a namespace is
    assumed to go into "default". ``duplicate_fields`` are fields that occur twice in the manifest's text.

    Not checked: whether the release serves the version at all, quotas, permissions, admission plugins except for what
    they refuse in every cluster, and whether the object already exists.
    """
    if not is_known(raw):
        return None
    group, version = _group_version(raw)
    broken = broken_parts(raw, release, duplicate_fields)
    if broken:
        return ServerVerdict(False, 400, broken, deprecation(raw))
    violations, unsure, warnings = _validation(raw, group, version, release, features, namespaces or {})
    warnings = (*deprecation(raw), *warnings)
    if not violations:
        return ServerVerdict(True, 201, (), warnings, unsure)
    crashed = any(
        violation.rule == "policy-range-step-zero" and violation.reason == INTERNAL_ERROR for violation in violations
    )
    code = 500 if crashed else _admission_code(raw, violations) or 422
    return ServerVerdict(False, code, violations, warnings, unsure)


def _admission_code(raw: Mapping[str, Any], violations: tuple[Violation, ...]) -> int:
    if raw["kind"] != "Pod":
        return 0
    from kubectl_dra.admission.server.pods import admission_code

    return admission_code(raw.get("spec") or {}, violations)


def _group_version(raw: Mapping[str, Any]) -> tuple[str, str]:
    group, _, version = raw["apiVersion"].rpartition("/")
    return group, version


def broken_parts(
    raw: Mapping[str, Any], release: Release, duplicate_fields: Iterable[FieldPath]
) -> tuple[Violation, ...]:
    """What a server of the release cannot decode."""
    return (*duplicates(duplicate_fields), *decoding_errors(raw, *_group_version(raw), release))


def _validation(
    raw: Mapping[str, Any],
    group: str,
    version: str,
    release: Release,
    features: Iterable[str] | None,
    namespaces: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[Violation, ...], tuple[Violation, ...], tuple[str, ...]]:
    """Violations, those that depend on an unknown namespace, and warnings."""
    context, kind = _context(raw, None, release, features, namespaces), raw["kind"]
    if group != GROUP or kind not in KINDS:
        return tuple(check_of(kind)(raw, context)), (), ()
    v1 = without_disabled(reshaped(defaulted(raw)), context.features, release)
    violations = [as_written(violation, kind, version, context) for violation in check_of(kind)(v1, context)]
    warnings = _warnings(v1, kind)
    unsure: list[Violation] = []
    if context.labels is None:
        unsure = [violation for violation in violations if violation.rule == "admin-access-namespace"]
        violations = [violation for violation in violations if violation.rule != "admin-access-namespace"]
    return tuple(violations), tuple(unsure), warnings


def _warnings(v1: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    if kind != "ResourceSlice":
        return ()
    from kubectl_dra.admission.server.slices import slice_warnings

    return slice_warnings(v1)


def as_written(violation: Violation, kind: str, version: str, context: ServerContext) -> Violation:
    """A violation of an object in v1's shape, as the server reports it about the manifest."""
    old_shape = version == "v1beta1" and context.is_declarative() and is_declared(violation)
    field = in_v1beta1(violation.field) if old_shape else violation.field
    return replace(violation, path=_written(violation.path, kind, version), field=field)


def _written(path: FieldPath, kind: str, version: str) -> FieldPath:
    """The path in the manifest of a path in v1's shape."""
    if version not in ("v1beta1", "v1alpha3"):
        return path
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        start = path.index("requests") + 2 if "requests" in path else len(path)
        is_flat = path[start - 3 : start - 1] == ("devices", "requests") and path[start : start + 1] == ("exactly",)
        return (*path[:start], *path[start + 1 :]) if is_flat else path
    if kind == "ResourceSlice" and path[:2] == ("spec", "devices") and len(path) > 3 and path[3] != "name":
        return (*path[:3], "basic", *path[3:])
    return path


def deprecation(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The warning about the version of the API, where it is deprecated."""
    (group, version), kind = _group_version(raw), raw["kind"]
    life = lifecycle(version, kind) if group == GROUP else None
    # A server of a release warns from the release of the deprecation on. The recorded ones, built without a version,
    # warn always, and so do we; lint itself goes by the release.
    if life is None or life.deprecated is None:
        return ()
    until = f", unavailable in v1.{life.removed}+" if life.removed is not None else ""
    return (f"{group}/{version} {kind} is deprecated in v1.{life.deprecated}+{until}",)


# The API server's answer to replacing a stored object of resource.k8s.io, or its status.

_STATUS: Final = {"DeviceTaintRule": check_rule_status, "ResourceClaim": check_claim_status}


def check_update(
    raw: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    status: bool = False,
    release: Release = UNTOLD,
    features: Iterable[str] | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> ServerVerdict | None:
    """The answer to replacing a stored object ``old`` by one with its kind and name; None for other kinds.

    With ``status`` it is that to replacing its status alone, as schedulers and drivers do. Only kinds of
    resource.k8s.io that ``api.dra_fields`` describes are known. The rest is as in ``verdict.check``.
    """
    group, _, version = str(raw.get("apiVersion")).rpartition("/")
    kind = raw.get("kind")
    if group != GROUP or kind not in KINDS or not is_known(raw) or (status and kind not in _STATUS):
        return None
    broken = broken_parts(raw, release, ())
    if broken:
        return ServerVerdict(False, 400, broken, deprecation(raw))
    if _uid(raw) not in ("", _uid(old)):
        return ServerVerdict(False, 409, (), deprecation(raw))
    if _needs_version(kind, version, release) and not (raw.get("metadata") or {}).get("resourceVersion"):
        # The server looks at nothing else then.
        at = ("metadata", "resourceVersion")
        needed = violation(at, INVALID, "resource-version-missing", "must be that of the stored object")
        return ServerVerdict(False, 422, (needed,), deprecation(raw))
    context = _context(raw, old, release, features, namespaces or {})
    assert context.old is not None
    gates = context.features | gates_in_use(context.old)
    new = reshaped(defaulted(raw))
    part = "status" if status else "spec"
    if status and kind == "ResourceClaim" and release in DISABLED_DROPPED_FIRST:
        new = without_deallocated(without_disabled(new, gates, release, part), context.old)
    elif status and kind == "ResourceClaim":
        new = without_disabled(without_deallocated(new, context.old), gates, release, part)
    else:
        new = without_disabled(new, gates, release, part)
    check = _STATUS[kind] if status else check_of(kind)
    violations = tuple(as_written(violation, kind, version, context) for violation in check(new, context))
    return ServerVerdict(not violations, 422 if violations else 200, violations, deprecation(raw))


def check_written_status(
    raw: Mapping[str, Any],
    old: Mapping[str, Any] | None = None,
    *,
    release: Release = UNTOLD,
    features: Iterable[str] | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Violation, ...]:
    """What the server would refuse in an object's status, if it were written to the stored object's status.

    Without a stored object ``old`` that is the same object without a status, not being deleted. Creating an object
    ignores its status. ``raw`` must be one that the server decodes; for kinds without a judged status it is empty.
    """
    if raw.get("kind") not in _STATUS or not raw.get("status"):
        return ()
    metadata = raw.get("metadata") or {}
    stored = old
    if stored is None:
        lasting = {name: value for name, value in metadata.items() if name != "deletionTimestamp"}
        stored = {**{name: value for name, value in raw.items() if name != "status"}, "metadata": lasting}
    written = {**raw, "metadata": {**metadata, "resourceVersion": metadata.get("resourceVersion") or "1"}}
    verdict = check_update(written, stored, status=True, release=release, features=features, namespaces=namespaces)
    # Violations outside the status do not concern it.
    return (
        ()
        if verdict is None
        else tuple(violation for violation in verdict.violations if violation.path[:1] == ("status",))
    )


def _context(
    raw: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    release: Release,
    features: Iterable[str] | None,
    namespaces: Mapping[str, Mapping[str, str]],
) -> ServerContext:
    """The server that gets an object, perhaps in place of a stored one."""
    from kubectl_dra.cel.environment import Environment

    gates = default_features(release) if features is None else frozenset(features)
    namespace = (raw.get("metadata") or {}).get("namespace") or "default"
    environment = Environment.for_release(release, gates)
    stored = None if old is None else reshaped(defaulted(old))
    return ServerContext(release, gates, environment, namespaces.get(namespace), stored)


def _needs_version(kind: str, version: str, release: Release) -> bool:
    """Whether an update must name the version of the object that it replaces."""
    return kind == "DeviceTaintRule" and version == "v1" and release in RULE_UPDATES_NAME_VERSION


def _uid(raw: Mapping[str, Any]) -> str:
    return (raw.get("metadata") or {}).get("uid") or ""
