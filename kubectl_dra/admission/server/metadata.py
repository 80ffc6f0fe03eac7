"""Rules for the metadata of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INVALID,
    REQUIRED,
    TOO_LONG,
    Key,
    ServerContext,
    Violation,
    Violations,
    field_text,
    missing,
    size,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    Format,
    check_format,
    generated,
    label_key_problems,
    label_problems,
    label_value_problems,
    lower,
)
from kubectl_dra.api.behaviour import ADMIN_LABEL_OF_KUBERNETES, ADMIN_NEEDS_LABEL, CLAIM_PREFIX_READ, OWNER_NUMBERED
from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath

_ANNOTATIONS_MAX: Final = 256 * 1024
_META: Final = ("metadata",)
_FINALIZERS: Final = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_POINTERS: Final = ("deletionGracePeriodSeconds",)
_OWNER_FIELDS: Final = ("kind", "name", "uid")


def check_metadata(
    meta: Mapping[str, Any] | None,
    name_format: Format,
    namespaced: bool,
    context: ServerContext,
    check_prefix: bool = True,
) -> Violations:
    """``metadata`` of an object to be created. ``name_format`` is the kind's rule for names.

    ``check_prefix``: whether the format of a generateName itself counts, too, not only that of the name generated
    from it.
    """
    meta = meta or {}
    if context.old is not None:
        yield from _check_change(meta, context.old.get("metadata") or {})
        yield from _check_prefix(meta, name_format, context)
        yield from _check_contents(meta, context)
        return
    yield from _check_name(meta, name_format, check_prefix)
    namespace = text(meta, "namespace")
    if namespaced and namespace:
        yield from check_format(namespace, (*_META, "namespace"), "namespace-invalid", label_problems)
    yield from _check_contents(meta, context)


def _check_change(meta: Mapping[str, Any], old: Mapping[str, Any]) -> Violations:
    """What cannot change in the metadata of a stored object of the same name."""
    grace = meta.get("deletionGracePeriodSeconds")
    if grace is not None and grace != old.get("deletionGracePeriodSeconds"):
        yield violation((*_META, "deletionGracePeriodSeconds"), INVALID, "metadata-immutable", "cannot be changed")
    if meta.get("deletionTimestamp") and not old.get("deletionTimestamp"):
        yield violation((*_META, "deletionTimestamp"), INVALID, "metadata-immutable", "cannot be set")
    if old.get("deletionTimestamp"):
        added = [
            finalizer for finalizer in meta.get("finalizers") or () if finalizer not in (old.get("finalizers") or ())
        ]
        if added:
            message = f"{', '.join(map(str, added))} cannot be added while the object is being deleted"
            yield violation((*_META, "finalizers"), FORBIDDEN, "finalizer-invalid", message)


def _check_prefix(meta: Mapping[str, Any], name_format: Format, context: ServerContext) -> Violations:
    """A generateName that a stored object gets: of most kinds, only what cannot be in a URL is refused."""
    prefix, at, kind = text(meta, "generateName"), (*_META, "generateName"), (context.old or {}).get("kind")
    other = "ResourceClaim" if context.release in CLAIM_PREFIX_READ else "DeviceClass"
    if kind in ("ResourceClaimTemplate", other):
        if prefix:
            yield from check_format(prefix, at, "name-invalid", generated(name_format))
    else:
        yield from _check_part_of_url(prefix)


def _check_part_of_url(prefix: str) -> Violations:
    """A generateName of which the server refuses only what cannot be in a URL."""
    if prefix in (".", "..") or "/" in prefix or "%" in prefix:
        yield violation((*_META, "generateName"), INVALID, "name-invalid", f"{prefix!r} cannot be part of a URL")


def _check_contents(meta: Mapping[str, Any], context: ServerContext) -> Violations:
    yield from check_labels(meta.get("labels"), (*_META, "labels"))
    yield from check_annotations(meta.get("annotations"), (*_META, "annotations"))
    yield from _check_owners(meta.get("ownerReferences") or (), context.release)
    yield from _check_finalizers([finalizer or "" for finalizer in meta.get("finalizers") or ()])


def check_generation(meta: Mapping[str, Any] | None) -> Violations:
    """``metadata.generation`` of a kind whose changes the server does not count; for others the server sets it."""
    if ((meta or {}).get("generation") or 0) < 0:
        yield violation((*_META, "generation"), INVALID, "generation-negative", "must not be negative")


def _check_name(meta: Mapping[str, Any], name_format: Format, check_prefix: bool) -> Violations:
    name, prefix = text(meta, "name"), text(meta, "generateName")
    if prefix and check_prefix:
        yield from check_format(prefix, (*_META, "generateName"), "name-invalid", generated(name_format))
    elif prefix:
        yield from _check_part_of_url(prefix)
    if name:
        yield from check_format(name, (*_META, "name"), "name-invalid", name_format)
    elif prefix:
        for problem in name_format(name_of(meta)):
            at = (*_META, "name")
            yield violation(at, INVALID, "name-invalid", f"the generated name {problem}")
    else:
        yield missing((*_META, "name"), "name-missing", "name or generateName must be set")


def name_of(meta: Mapping[str, Any]) -> str:
    """The object's name. From a generateName the server makes one: 58 characters of it and five random ones."""
    name, prefix = text(meta, "name"), text(meta, "generateName")
    return name or (f"{prefix[:58]}abcde" if prefix else "")


def check_labels(
    labels: Mapping[str, Any] | None, at: FieldPath, field: FieldPath | None = None, rule: str = "labels-invalid"
) -> Violations:
    """Labels: keys and values. ``field`` is what the server reports, if not ``at``."""
    reported = at if field is None else field
    for key, value in (labels or {}).items():
        for problem in label_key_problems(key):
            yield _reported(reported, at, rule, key, f"key {key!r} {problem}")
        for problem in label_value_problems(value or ""):
            yield _reported(reported, at, rule, key, f"value {value!r} {problem}")


def check_annotations(
    annotations: Mapping[str, Any] | None,
    at: FieldPath,
    field: FieldPath | None = None,
    rule: str = "annotations-invalid",
) -> Violations:
    """Annotations: keys, in any case, and the total size."""
    reported = at if field is None else field
    total = 0
    for key, value in (annotations or {}).items():
        total += size(key) + size(value or "")
        for problem in label_key_problems(lower(key)):
            yield _reported(reported, at, rule, key, f"key {key!r} {problem}")
    if total > _ANNOTATIONS_MAX:
        message = f"keys and values have {total} bytes together, at most {_ANNOTATIONS_MAX} are allowed"
        yield _reported(reported, at, rule, None, message, TOO_LONG)


def _reported(
    reported: FieldPath, at: FieldPath, rule: str, key: str | None, message: str, reason: str = INVALID
) -> Violation:
    path = at if key is None else (*at, Key(key))
    return Violation(path, field_text(reported), reason, message, rule)


def check_template_metadata(meta: Mapping[str, Any] | None, at: FieldPath) -> Violations:
    """The metadata of claims to be made from a template: only labels and annotations."""
    meta = meta or {}
    yield from check_annotations(meta.get("annotations"), (*at, "annotations"), rule="template-labels-invalid")
    yield from check_labels(meta.get("labels"), (*at, "labels"), rule="template-labels-invalid")
    for name, value in meta.items():
        # Lists, maps and pointers count as set even when they are empty.
        is_set = value is not None and (bool(value) or isinstance(value, list | dict) or name in _POINTERS)
        if is_set and name not in ("labels", "annotations"):
            message = "cannot be set on claims made from a template: only labels and annotations can"
            field = field_text((*at, "uID" if name == "uid" else name))
            yield violation((*at, name), FORBIDDEN, "template-metadata-forbidden", message, field=field)


def _check_owners(owners: Any, release: Release) -> Violations:
    at = (*_META, "ownerReferences")
    controllers = 0
    decoded = [{name: value for name, value in (owner or {}).items() if value not in (None, "")} for owner in owners]
    for index, owner in enumerate(decoded):
        # The server drops an entry that repeats another.
        if owner in decoded[:index]:
            continue
        group_version = text(owner, "apiVersion")
        for name in ("apiVersion", *_OWNER_FIELDS):
            if not text(owner, name):
                yield _owner(at, index, name, "must not be empty", release, REQUIRED)
        if group_version and (group_version.endswith("/") or group_version.count("/") > 1):
            yield _owner(at, index, "apiVersion", "must name a version", release, INVALID)
        if group_version in ("v1", "/v1") and text(owner, "kind") == "Event":
            yield violation(at, INVALID, "owner-invalid", "an Event cannot be an owner", below=(index,))
        controllers += owner.get("controller") is True
    if controllers > 1:
        yield violation(at, INVALID, "owner-invalid", "only one owner can be the controller")


def _owner(at: FieldPath, index: int, name: str, message: str, release: Release, reason: str) -> Violation:
    """A wrong owner. Up to 1.36 the server leaves out which one it is, and calls what is missing invalid."""
    if release in OWNER_NUMBERED:
        return violation((*at, index, name), reason, "owner-invalid", message)
    return violation((*at, index, name), INVALID, "owner-invalid", message, field=f"metadata.ownerReferences.{name}")


def _check_finalizers(finalizers: list[str]) -> Violations:
    at = (*_META, "finalizers")
    for index, finalizer in enumerate(finalizers):
        for problem in label_key_problems(finalizer):
            yield violation(at, INVALID, "finalizer-invalid", f"{finalizer!r} {problem}", below=(index,))
        if "/" not in finalizer and finalizer not in _FINALIZERS:
            message = f"{finalizer!r} must have a domain, as in 'example.com/name'"
            yield violation((*at, index), INVALID, "finalizer-invalid", message)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield violation(at, INVALID, "finalizer-invalid", "orphan and foregroundDeletion exclude each other")


# Admin access, which a namespace's label must allow.


def admin_label(release: Release) -> str | None:
    """The namespace label that must be "true"; None for a release that requires none."""
    if release in ADMIN_LABEL_OF_KUBERNETES:
        return "resource.kubernetes.io/admin-access"
    return "resource.k8s.io/admin-access" if release in ADMIN_NEEDS_LABEL else None


def check_admin_access(spec: Mapping[str, Any], context: ServerContext, prefix: FieldPath = ()) -> Violations:
    """The first request with admin access, unless the namespace's labels allow it; they may be unknown.

    ``prefix`` leads to the claim's spec in a template; the server leaves it out of its text.
    """
    label = admin_label(context.release)
    if label is None or (context.labels is not None and context.labels.get(label) == "true"):
        return
    requests = (spec.get("devices") or {}).get("requests") or ()
    for index, request in enumerate(requests):
        if ((request or {}).get("exactly") or {}).get("adminAccess"):
            inside: FieldPath = ("spec", "devices", "requests", index)
            yield violation(
                (*prefix, *inside, "exactly", "adminAccess"),
                FORBIDDEN,
                "admin-access-namespace",
                f"admin access needs the label {label}: true on the namespace",
                field=field_text((*inside, "adminAccess")),
            )
            return


def check_admin_allocation(
    allocation: Mapping[str, Any] | None, old: Mapping[str, Any] | None, context: ServerContext
) -> Violations:
    """The first allocated device with admin access, unless one had it before or the namespace's labels allow it."""
    label = admin_label(context.release)
    granted = any(_admin_results(old))
    if label is None or granted or context.labels is None or context.labels.get(label) == "true":
        return
    for index, given in enumerate(_admin_results(allocation)):
        if given:
            at: FieldPath = ("status", "allocation", "devices", "results", index, "adminAccess")
            message = f"admin access needs the label {label}: true on the namespace"
            yield violation(at, FORBIDDEN, "admin-access-namespace", message)
            return


def _admin_results(allocation: Mapping[str, Any] | None) -> list[bool]:
    devices = (allocation or {}).get("devices") or {}
    return [(result or {}).get("adminAccess") is True for result in devices.get("results") or ()]
