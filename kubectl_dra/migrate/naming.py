"""Names for added objects: short, valid, the same on every run, and unused."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.limits import MAX_LABEL, MAX_SUBDOMAIN
from kubectl_dra.manifests.changes import Path, value_at
from kubectl_dra.migrate.vendors.model import Resource

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_DEVICES: Final = frozenset(("gpu", "npu", "tpu"))
# Steps of a path that say nothing about which of several templates it is.
_GENERAL: Final = frozenset(("spec", "template", "leaderWorkerTemplate", "replicatedJobs", "workerGroupSpecs", "tasks"))
_NAMED_BY: Final = ("name", "groupName")


def short(resource: Resource, device_class: str = "") -> str:
    """One word for a device: the first label of its class, such as gpu for gpu.nvidia.com and for x-gpu."""
    label = as_label((device_class or resource.device_class).partition(".")[0]) or "device"
    last = label.rpartition("-")[2]
    return last if last in _DEVICES else label


def as_label(text: str) -> str:
    """A text as a DNS label: lower-case letters, digits and dashes; a long one ends in a checksum. May be empty."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return shortened(label, MAX_LABEL)


def shortened(name: str, limit: int) -> str:
    """The name itself or, if too long, its beginning and a checksum of the whole."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-.')}-{zlib.crc32(name.encode()):08x}"


def free(name: str, taken: Container[str], limit: int = MAX_LABEL) -> str:
    """The name, with the first number from 2 that makes it free if it is taken."""
    name = shortened(name, limit)
    number, found = 2, name
    while found in taken:
        found = f"{shortened(name, limit - len(str(number)) - 1)}-{number}"
        number += 1
    return found


def free_object(kind: str, namespace: str, name: str, *taken: Container[tuple[str, str, str]]) -> str:
    """A free name for an object of a kind in a namespace; ``taken`` holds kind, namespace and name."""
    return free(name, _Names(kind, namespace, taken), MAX_LABEL)


class _Names:
    """The taken names of a kind in a namespace."""

    def __init__(self, kind: str, namespace: str, taken: Sequence[Container[tuple[str, str, str]]]) -> None:
        self._kind, self._namespace, self._taken = kind, namespace, taken

    def __contains__(self, name: object) -> bool:
        return any((self._kind, self._namespace, name) in taken for taken in self._taken)


def workload_name(raw: Mapping[str, Any]) -> str | None:
    """The prefix for names of new objects; None if the object's own name is missing or invalid."""
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-.")
    if not isinstance(name, str) or len(name) > MAX_SUBDOMAIN or _SUBDOMAIN.fullmatch(name) is None:
        return None
    return name


def roles(raw: Mapping[str, Any], paths: Sequence[Path]) -> tuple[str, ...]:
    """A distinguishing word for each pod spec of an object; empty if there is only one."""
    if len(paths) < 2:
        return ("",) * len(paths)
    shared = set.intersection(*(set(path) for path in paths))
    return tuple(_role(raw, path, shared) for path in paths)


def _role(raw: Mapping[str, Any], path: Path, shared: Collection[str | int]) -> str:
    words: list[str] = []
    for length, step in enumerate(path, 1):
        if isinstance(step, int):
            item = value_at(raw, path[:length])
            found = next((item[key] for key in _NAMED_BY if key in item), step) if isinstance(item, Mapping) else step
            words.append(str(found))
        elif step not in shared and step not in _GENERAL:
            words.append(step.removesuffix("Template").removesuffix("GroupSpec").removesuffix("Spec"))
    return as_label("-".join(words))
