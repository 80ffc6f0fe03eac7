"""Admin access, which a namespace's label must allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import FORBIDDEN, Path, Violations, field_text, violation
from kubectl_dra.api.behaviour import ADMIN_LABEL_OF_KUBERNETES, ADMIN_NEEDS_LABEL
from kubectl_dra.api.releases import Release


def admin_label(release: Release) -> str | None:
    """The namespace label that must be "true"; None for a release that requires none."""
    if release in ADMIN_LABEL_OF_KUBERNETES:
        return "resource.kubernetes.io/admin-access"
    return "resource.k8s.io/admin-access" if release in ADMIN_NEEDS_LABEL else None


def check_admin_access(spec: Mapping[str, Any], context: ServerContext, prefix: Path = ()) -> Violations:
    """The first request with admin access, unless the namespace's labels allow it; they may be unknown.

    ``prefix`` leads to the claim's spec in a template; the server leaves it out of its text.
    """
    label = admin_label(context.release)
    if label is None or (context.labels is not None and context.labels.get(label) == "true"):
        return
    requests = (spec.get("devices") or {}).get("requests") or ()
    for index, request in enumerate(requests):
        if ((request or {}).get("exactly") or {}).get("adminAccess"):
            inside: Path = ("spec", "devices", "requests", index)
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
            at: Path = ("status", "allocation", "devices", "results", index, "adminAccess")
            message = f"admin access needs the label {label}: true on the namespace"
            yield violation(at, FORBIDDEN, "admin-access-namespace", message)
            return


def _admin_results(allocation: Mapping[str, Any] | None) -> list[bool]:
    devices = (allocation or {}).get("devices") or {}
    return [(result or {}).get("adminAccess") is True for result in devices.get("results") or ()]
