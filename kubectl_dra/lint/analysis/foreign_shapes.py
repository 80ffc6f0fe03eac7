"""Objects that are written in the shape of another version than the one that they name."""

from __future__ import annotations

from kubectl_dra.api.releases import GROUP, default_version, versions_of
from kubectl_dra.lint.context import Context, once
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Set


@once
def real_version(context: Context) -> str:
    """The version that the release serves and in which each field can be decoded, unlike in the one that is named;
    empty if there is none.
    """
    from kubectl_dra.admission.server.decoding import decoding_errors

    item, release = context.item, context.release
    if not item.is_dra or item.is_patch:
        return ""
    better = default_version(item.kind, release) or next(iter(versions_of(item.kind, release)), "")
    if not better or better == item.version:
        return ""
    try:
        wrong_in = [any(decoding_errors(item.raw, GROUP, version, release)) for version in (item.version, better)]
    except KeyError:
        # No schema says what such an object has.
        return ""
    return better if wrong_in == [True, False] else ""


def version_fix(version: str) -> Fix:
    """Only apiVersion is wrong."""
    api_version = f"{GROUP}/{version}"
    title = f"Write apiVersion: {api_version}: the fields are in the shape of {version}, and only apiVersion is wrong"
    return Fix(title, (Set(("apiVersion",), api_version),), "unsafe")
