"""The API server's answer to replacing a stored object of resource.k8s.io, or its status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.admission.server.claim_status import check_claim_status, without_deallocated
from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import INVALID, Path, ServerVerdict, Violation, violation
from kubectl_dra.admission.server.rule_status import check_rule_status
from kubectl_dra.admission.server.verdict import as_written, broken_parts, check_of, deprecation, is_known
from kubectl_dra.api.behaviour import DISABLED_DROPPED_FIRST, RULE_UPDATES_NAME_VERSION
from kubectl_dra.api.conversion import reshaped
from kubectl_dra.api.defaults import defaulted, gates_in_use, without_disabled
from kubectl_dra.api.fields import KINDS
from kubectl_dra.api.releases import GROUP, UNTOLD, Release, default_features

_STATUS: Final = {"DeviceTaintRule": check_rule_status, "ResourceClaim": check_claim_status}


def check_update(
    raw: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    status: bool = False,
    release: Release = UNTOLD,
    features: Iterable[str] | None = None,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    duplicate_fields: Iterable[Path] = (),
) -> ServerVerdict | None:
    """The answer to replacing a stored object ``old`` by one with its kind and name; None for other kinds.

    With ``status`` it is that to replacing its status alone, as schedulers and drivers do. Only kinds of
    resource.k8s.io that ``api.fields`` describes are known. The rest is as in ``verdict.check``.
    """
    group, _, version = str(raw.get("apiVersion")).rpartition("/")
    kind = raw.get("kind")
    if group != GROUP or kind not in KINDS or not is_known(raw) or (status and kind not in _STATUS):
        return None
    broken = broken_parts(raw, release, duplicate_fields)
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
    found = tuple(as_written(one, kind, version, context) for one in check(new, context))
    return ServerVerdict(not found, 422 if found else 200, found, deprecation(raw))


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
    # What is wrong with the rest is no matter of the status.
    return () if verdict is None else tuple(found for found in verdict.violations if found.path[:1] == ("status",))


def _context(
    raw: Mapping[str, Any],
    old: Mapping[str, Any],
    release: Release,
    features: Iterable[str] | None,
    namespaces: Mapping[str, Mapping[str, str]],
) -> ServerContext:
    from kubectl_dra.cel.environment import Environment

    gates = default_features(release) if features is None else frozenset(features)
    namespace = (raw.get("metadata") or {}).get("namespace") or "default"
    environment = Environment.for_release(release, gates)
    return ServerContext(release, gates, environment, namespaces.get(namespace), reshaped(defaulted(old)))


def _needs_version(kind: str, version: str, release: Release) -> bool:
    """Whether an update must name the version of the object that it replaces."""
    return kind == "DeviceTaintRule" and version == "v1" and release in RULE_UPDATES_NAME_VERSION


def _uid(raw: Mapping[str, Any]) -> str:
    return (raw.get("metadata") or {}).get("uid") or ""
