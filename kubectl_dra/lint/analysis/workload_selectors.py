"""Fixes for the selector of a workload and the labels of its pods, which must match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Change, Set, fields_at, value_at
from kubectl_dra.text import join

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation

_WITH_SELECTOR: Final = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_SELECTOR: Final[FieldPath] = ("spec", "selector")
_TEMPLATE: Final[FieldPath] = ("spec", "template")
_METADATA: Final[FieldPath] = (*_TEMPLATE, "metadata")
_LABELS: Final[FieldPath] = (*_METADATA, "labels")


def selector_fix(raw: Mapping[str, Any], violation: Violation) -> Fix | None:
    """What makes the selector and the labels match; None for another violation, or where it is not plain."""
    if raw.get("kind") not in _WITH_SELECTOR:
        return None
    missing = not value_at(raw, _SELECTOR)
    if missing and violation.rule == "workload-labels":
        label = _shown(_proposed(raw) or {"app": "NAME"})
        text = (
            "They do once spec.selector is there."
            if _labels(raw)
            else f"Add the label that the selector gets: {label}."
        )
        return Fix(text)
    if missing and violation.path == _SELECTOR:
        return _selector(raw)
    return _labels_wanted(raw) if violation.rule == "workload-labels" else None


def _selector(raw: Mapping[str, Any]) -> Fix | None:
    """The selector for the labels of the template, or for one that it gets."""
    if labels := _labels(raw):
        change = Set(_SELECTOR, {"matchLabels": dict(labels)})
        return Fix(f"Write selector.matchLabels with the labels of the template: {_shown(labels)}", (change,), "unsafe")
    if not (labels := _proposed(raw)) or not isinstance(value_at(raw, _TEMPLATE), dict):
        return None
    changes = (Set(_SELECTOR, {"matchLabels": dict(labels)}), _set_labels(raw, labels))
    return Fix(f"Write selector.matchLabels and the labels of the template: {_shown(labels)}", changes, "unsafe")


def _proposed(raw: Mapping[str, Any]) -> Mapping[str, str]:
    """A label for pods of a workload without labels; empty if its name can be none."""
    name = value_at(raw, ("metadata", "name"))
    return {"app": name} if isinstance(name, str) and 0 < len(name) <= MAX_LABEL else {}


def _labels_wanted(raw: Mapping[str, Any]) -> Fix | None:
    """The labels that the selector asks for, beside those that the template has."""
    wanted, labels = fields_at(raw, *_SELECTOR, "matchLabels"), _labels(raw)
    lacking = {str(key): value for key, value in wanted.items() if labels.get(key) != value}
    if not lacking or value_at(raw, (*_SELECTOR, "matchExpressions")):
        return None
    return Fix(
        f"Give the template the labels of the selector: {_shown(lacking)}",
        (_set_labels(raw, {**labels, **lacking}),),
        "unsafe",
    )


def _labels(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return fields_at(raw, *_LABELS)


def _set_labels(raw: Mapping[str, Any], labels: Mapping[str, Any]) -> Change:
    """The labels written at the innermost field that is there."""
    if isinstance(value_at(raw, _METADATA), dict):
        return Set(_LABELS, dict(labels))
    return Set(_METADATA, {"labels": dict(labels)})


def _shown(labels: Mapping[str, Any]) -> str:
    return join(f"{key}: {value}" for key, value in labels.items())
