"""Fixes for what pods, workloads and quotas have that claims have not: labels, amounts, keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Change, Delete, Rename, Set, fields_at, value_at
from kubectl_dra.text import join, whole_number

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
        return Fix.guess(f"Write selector.matchLabels with the labels of the template: {_shown(labels)}", change)
    if not (labels := _proposed(raw)) or not isinstance(value_at(raw, _TEMPLATE), dict):
        return None
    changes = (Set(_SELECTOR, {"matchLabels": dict(labels)}), _set_labels(raw, labels))
    return Fix.guess(f"Write selector.matchLabels and the labels of the template: {_shown(labels)}", *changes)


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
    return Fix.guess(
        f"Give the template the labels of the selector: {_shown(lacking)}", _set_labels(raw, {**labels, **lacking})
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


# Keys of quotas that mean something of dynamic resource allocation, and are written otherwise.

_COUNTED: Final = ("resourceclaims", "resourceclaimtemplates")
_BY_REQUESTS: Final = "quotas count extended resources by requests"


class KeyProblem(Struct, frozen=True):
    """Why a key counts nothing, and the key that is meant; empty if that is not known."""

    why: str
    meant: str = ""


def key_problem(key: str) -> KeyProblem | None:
    """Why a quota key counts nothing; None for a key that counts or does not concern DRA."""
    devices = ".deviceclass.resource.k8s.io/devices"
    if key.endswith(devices):
        return None
    prefix, slash, name = key.partition("/")
    plural = prefix.removesuffix(".resource.k8s.io")
    if not slash and (name := key.removeprefix("requests.").removeprefix("limits.")) in catalogue().classes:
        return KeyProblem(f"the devices of a class are counted by CLASS{devices}", f"{name}{devices}")
    if not slash and plural in _COUNTED:
        return KeyProblem("objects are counted by count/", f"count/{plural}.resource.k8s.io")
    if prefix == "count":
        for plural in _COUNTED:
            if name == plural or (name.startswith(f"{plural}.") and name != f"{plural}.resource.k8s.io"):
                return KeyProblem(f"{plural} are in the group resource.k8s.io", f"count/{plural}.resource.k8s.io")
        if name in ("deviceclasses.resource.k8s.io", "resourceslices.resource.k8s.io"):
            return KeyProblem("a quota applies to a namespace, and these objects have none")
        return None
    if prefix == "limits.deviceclass.resource.kubernetes.io":
        return KeyProblem(_BY_REQUESTS, f"requests.deviceclass.resource.kubernetes.io/{name}")
    if prefix == "deviceclass.resource.kubernetes.io":
        return KeyProblem("the key of an extended resource begins with requests.", f"requests.{key}")
    if prefix.startswith("limits.") and "." in prefix.removeprefix("limits.") and "kubernetes.io" not in prefix:
        return KeyProblem(_BY_REQUESTS, f"requests.{key.removeprefix('limits.')}")
    if prefix.endswith(("resource.k8s.io", "resource.kubernetes.io")) and not prefix.startswith("requests."):
        owner = prefix.removesuffix(".resource.k8s.io").removesuffix(".resource.kubernetes.io")
        owner = owner.removesuffix(".deviceclass").removesuffix(".deviceclasses")
        if owner and owner != prefix and owner not in ("deviceclass", *_COUNTED):
            return KeyProblem(f"the devices of a class are counted by CLASS{devices}", f"{owner}{devices}")
        return KeyProblem("it is not a key of dynamic resource allocation")
    return None


def key_fix(quota: Any, path: FieldPath) -> Fix | None:
    """To write the key that is meant by the one at a path; None if that is not known."""
    problem = key_problem(str(path[-1]))
    if problem is None or not problem.meant:
        return None
    changes = (Rename(path, problem.meant),) if problem.meant not in fields_at(quota, *path[:-1]) else ()
    return Fix.guess(f"Write {problem.meant}", *changes)


# Amounts and claims of containers that are written otherwise than the API server reads them.

_BYTES: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGTPE])(i?)B?", re.IGNORECASE)
_MILLI: Final = re.compile(r"([0-9]+) ?m(?:illi)?(?:cores?|v?cpus?)?", re.IGNORECASE)
_CORES: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?v?(?:cores?|cpus?)", re.IGNORECASE)


def resource_fix(raw: Any, path: FieldPath, value: Any) -> Fix | None:
    """What to write for an amount with a unit that is none, or for claims; None for any other value."""
    of_cpu = path[-1:] == ("cpu",)
    if of_cpu and isinstance(value, str) and (written := _MILLI.fullmatch(value)) and not _is_quantity(value):
        return Fix.sure(f"Write {written[1]}m", Set(path, f"{written[1]}m"))
    if isinstance(value, str) and (written := _BYTES.fullmatch(value)) and not _is_quantity(value):
        amount, prefix = written[1], written[2].upper()
        # Of 40GB nobody knows whether 40 GiB are meant; 40GiB says so.
        if not written[3]:
            return Fix(f"Write {amount}{'k' if prefix == 'K' else prefix} or {amount}{prefix}i.")
        return Fix.sure(f"Write {amount}{prefix}i", Set(path, f"{amount}{prefix}i"))
    if of_cpu and isinstance(value, str) and (cores := _CORES.fullmatch(value)):
        whole = whole_number(cores[1])
        return Fix.sure(f"Write {cores[1]}", Set(path, cores[1] if whole is None else whole))
    if path[-3:-1] == ("resources", "claims") and isinstance(value, str):
        return Fix.sure(f"Write {{name: {value}}}", Set(path, {"name": value}))
    if path[-1:] == ("claims",) and path[-3:-2] == ("resources",) and isinstance(value, list):
        beside = (*path[:-2], "claims")
        free = value_at(raw, beside) is None
        changes: tuple[Change, ...] = (Set(beside, value), Delete(path)) if free else ()
        return Fix(f"Put claims beside {path[-2]}, into resources itself", changes, "safe" if free else "none")
    return None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True
