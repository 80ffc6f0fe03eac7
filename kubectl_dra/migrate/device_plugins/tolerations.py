"""Tolerations that the API server adds to pods with extended resources, but not to pods with claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubectl_dra.migrate.vendors.model import Resource


def missing(spec: Mapping[str, Any], resources: Iterable[Resource]) -> Iterator[Mapping[str, str]]:
    """The tolerations of the resources that the pod lacks and that must now be written out.

    The admission plugin ExtendedResourceToleration considers only requests for extended resources. If a pod
    already tolerates the same key, its author knew the taint of those nodes, and nothing is added.
    """
    found = spec.get("tolerations")
    own = [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []
    added: list[Mapping[str, str]] = []
    for resource in resources:
        for toleration in resource.tolerations:
            if toleration not in added and not any(_covers(item, toleration) for item in own):
                added.append(toleration)
                yield toleration


def _covers(own: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    if own.get("effect") not in (None, "", wanted.get("effect")):
        return False
    if not own.get("key"):
        return own.get("operator") == "Exists"
    return bool(own["key"] == wanted.get("key"))
