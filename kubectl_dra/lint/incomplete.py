"""Documents that are meant to be Kubernetes objects and lack apiVersion or kind."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.api.releases import GROUP, LIFECYCLES
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.locate import excerpt, spanned
from kubectl_dra.lint.rules.files import Unreadable
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import OWN
from kubectl_dra.text import edit_distance

_PARTS: Final = frozenset(("apiVersion", "kind", "metadata", "spec", "status", "data"))
"""What an object has at its top. Other YAML has other fields."""


def incomplete(document: Document) -> LocatedFinding | None:
    """What a document lacks to be an object; None if it is one, or is not meant to be one, as a file of values is not.

    A patch of a kustomization says by its target what it is about.
    """
    raw = document.object
    missing = [field for field in ("apiVersion", "kind") if not (isinstance(raw.get(field), str) and raw[field])]
    if len(missing) != 1 or not _is_meant(raw, missing[0]) or is_patch(document.name):
        return None
    field = missing[0]
    written = next((key for key in raw if _means(key, field)), None)
    shown = next(key for key in (written, field, "kind", "apiVersion", "metadata") if key in raw)
    at = document.key_position((shown,))
    message = f"{field} is not set"
    if field in raw and raw[field] not in (None, ""):
        message = f"{field} is not a text"
    elif written is not None:
        message += f"; '{written}' is a misspelling of it"
    finding = spanned(Unreadable, document.name, message, at, excerpt(document.source, at))
    return replace(finding, advice=_advice(raw, field), field=field, document=document.index)


def bare(document: Document) -> LocatedFinding | None:
    """The same of a document without both, which is meant to be an object where others of its file are."""
    raw = document.object
    shown = next((part for part in ("metadata", "spec") if isinstance(raw.get(part), dict)), None)
    if shown is None or "kind" in raw or "apiVersion" in raw or is_patch(document.name):
        return None
    at = document.key_position((shown,))
    finding = spanned(Unreadable, document.name, "apiVersion and kind are not set", at, excerpt(document.source, at))
    advice = "Write apiVersion: GROUP/VERSION and kind: KIND, or join it with the document that it belongs to."
    return replace(finding, advice=advice, field="kind", document=document.index)


def _is_meant(raw: dict[str, Any], missing: str) -> bool:
    """Whether a mapping that lacks one of the two is meant to be an object."""
    metadata, spec = raw.get("metadata"), raw.get("spec")
    named = isinstance(metadata, dict) and any(isinstance(metadata.get(key), str) for key in ("name", "generateName"))
    if missing == "apiVersion" and OWN.get(str(raw.get("kind"))) == GROUP:
        return isinstance(metadata, dict) or isinstance(spec, dict)
    misspelt = [key for key in raw if _means(key, missing)]
    if not named or not all(key in _PARTS or key in misspelt for key in raw):
        return False
    return missing == "kind" or bool(misspelt) or (raw.get("kind") in OWN and isinstance(spec, dict))


def _means(key: Any, field: str) -> bool:
    """Whether a key is a misspelling of a field."""
    return key not in _PARTS and edit_distance(str(key).lower(), field.lower(), max(1, len(field) // 4)) is not None


def _advice(raw: dict[str, Any], field: str) -> str:
    kind = str(raw.get("kind"))
    if field == "kind":
        return "Write kind: KIND, such as ResourceClaim."
    group = OWN.get(kind)
    if group is None:
        return "Write apiVersion: GROUP/VERSION."
    version = next((life.version for life in LIFECYCLES if life.kind == kind), "v1")
    return f"Write apiVersion: {group}/{version}." if group else f"Write apiVersion: {version}."
