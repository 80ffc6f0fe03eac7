"""Argo CD and Flux objects that give a directory of the repository a prefix or patches, as the kustomizations that
they are built by.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import SUFFIXES
from kubectl_dra.manifests.kustomization import DEFAULTS, Kustomization, kustomization, kustomization_in, upward
from kubectl_dra.manifests.objects import ManifestObject, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.migrate.kustomize.repair import objects_in, read

_GROUPS: Final = (b"argoproj.io", b"kustomize.toolkit.fluxcd.io")
_LARGEST: Final = 1_000_000
_PLACEHOLDER: Final = re.compile(r"\{\{.*?\}\}|\$\{.*?\}")


class _Deployment(NamedTuple):
    """A directory of a repository, and the fields of the kustomization that is laid over it."""

    path: str
    fields: Mapping[str, Any]


def deployed(paths: Iterable[str]) -> Iterator[Kustomization]:
    """The kustomizations of the objects of Argo CD and Flux in files (absolute paths) that change more than a build of
    their directory does.

    A path is taken for one of the repository that the file is in or, without one, of a directory above the file.
    """
    for path in paths:
        source = read(path) if _names_deployer(path) else None
        number = 0
        for item in objects_in(source) if source is not None else ():
            for deployment in _deployments(item.object):
                for directory in _directories(path, deployment.path) if deployment.fields else ():
                    number += 1
                    yield _kustomization(path, item, directory, deployment.fields, number)


def _names_deployer(path: str) -> bool:
    """Whether a file speaks of Argo CD or Flux; most do not, and are not parsed."""
    try:
        with File(path).open("rb") as file:
            text = file.read(_LARGEST)
    except OSError:
        return False
    return any(group in text for group in _GROUPS)


def _deployments(raw: Mapping[str, Any]) -> Iterator[_Deployment]:
    group, kind = key_of(raw)
    if (group, kind) == ("kustomize.toolkit.fluxcd.io", "Kustomization"):
        # https://fluxcd.io/flux/components/kustomize/kustomizations/
        spec = raw.get("spec") or {}
        yield _Deployment(str(spec.get("path") or "."), _fields(spec, spec.get("targetNamespace")))
    elif group == "argoproj.io" and kind in ("Application", "ApplicationSet"):
        # https://argo-cd.readthedocs.io/en/stable/user-guide/kustomize/
        spec = value_at(raw, ("spec",) if kind == "Application" else ("spec", "template", "spec")) or {}
        for source in (spec.get("source"), *(spec.get("sources") or ())):
            options = value_at(source, ("kustomize",))
            if isinstance(options, Mapping):
                yield _Deployment(str(source.get("path") or "."), _fields(options, options.get("namespace")))


def _fields(options: Mapping[str, Any], namespace: Any) -> dict[str, Any]:
    """The fields of a kustomization that may reach claims: names, patches and components."""
    merge, operations = (options.get(field) for field in ("patchesStrategicMerge", "patchesJson6902"))
    patches = [
        *(options.get("patches") or ()),
        *({"patch": entry if isinstance(entry, str) else json.dumps(entry)} for entry in merge or ()),
        *({**entry, "patch": _text(entry.get("patch"))} for entry in operations or ()),
    ]
    fields = {
        "namePrefix": _filled(options.get("namePrefix")),
        "nameSuffix": _filled(options.get("nameSuffix")),
        "patches": patches,
        "components": options.get("components"),
    }
    given = {field: value for field, value in fields.items() if value}
    return {**given, "namespace": _filled(namespace)} if given and namespace else given


def _text(patch: Any) -> str:
    return patch if isinstance(patch, str) else json.dumps(patch)


def _filled(text: Any) -> str:
    """A name in which a placeholder stands for something."""
    return _PLACEHOLDER.sub("x", str(text or ""))


def _directories(path: str, word: str) -> Sequence[str]:
    """The local directories that an object in a file may mean by a path."""
    above = upward(os.path.dirname(path))  # noqa: PTH120
    pattern = "*".join(escape(part) for part in _PLACEHOLDER.split(word.lstrip("/")))
    for folder in above[-1:] if os.path.exists(f"{above[-1]}/.git") else above:  # noqa: PTH110
        found = [
            place
            for match in sorted(glob(os.path.join(escape(folder), pattern)))  # noqa: PTH118, PTH207
            if os.path.isdir(place := os.path.realpath(match))  # noqa: PTH112
        ]
        if found:
            return found
    return ()


def _kustomization(
    path: str, item: ManifestObject, directory: str, fields: Mapping[str, Any], number: int
) -> Kustomization:
    """The kustomization that an object builds: one over that of its directory, or of all manifests there."""
    if kustomization_in(directory) is None:
        place = directory
        resources = sorted(
            os.path.relpath(os.path.join(folder, name), directory)  # noqa: PTH118
            for folder, _, names in os.walk(directory)
            for name in names
            if name.lower().endswith(SUFFIXES) and not os.path.islink(os.path.join(folder, name))  # noqa: PTH114, PTH118
        )
    else:
        place = f"{os.path.dirname(path)}/.{os.path.basename(path)}-{number}"  # noqa: PTH119, PTH120
        resources = [os.path.relpath(directory, place)]
    fields = {**fields, "resources": resources}
    if "components" in fields:
        fields["components"] = [
            os.path.relpath(os.path.join(directory, str(word)), place)  # noqa: PTH118
            for word in fields["components"]
        ]
    source = Source(path, json.dumps({**DEFAULTS, **fields}))
    where = os.path.relpath(path)
    deployer = f"{title(item.object)} in {path if where.startswith('..') else where}"
    return kustomization(place, f"{place}/kustomization.yaml", parse(source)[0], deployer)
