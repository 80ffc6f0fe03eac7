"""Which kustomizations build from a file, and which they depend on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape, glob
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import SUFFIXES
from kubectl_dra.manifests.kustomization import (
    DEFAULTS,
    NAMES,
    Kustomization,
    closure,
    kustomization,
    kustomization_in,
    kustomizations_above,
    upward,
)
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, objects, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.migrate.inline_patches import InlinePatch
from kubectl_dra.migrate.kustomize.build_differences import is_of, objects_in, read, without_affixes

_LEFT_OUT: Final = frozenset(("node_modules", "vendor", "__pycache__"))


class Layout(NamedTuple):
    """Every kustomization that reads some files, dependencies first; ``unseen`` are directories outside of any
    repository, around which others may be.
    """

    kustomizations: list[Kustomization]
    unseen: tuple[str, ...]


def built_from(changed: Sequence[str], run: Iterable[str]) -> Layout:
    """The kustomizations that read the changed files, among those of the run and of the repositories of the files.

    Paths are absolute and have no links. Without a repository, the common directory of the changed files is searched.
    Objects of Argo CD and Flux in the files of the run and of the repository count as kustomizations.
    """
    run = tuple(run)
    here = [kustomization_in(os.path.dirname(path)) for path in run if path.endswith(NAMES)]  # noqa: PTH120
    every = {part.directory: part for overlay in here if overlay is not None for part in closure(overlay)}
    above = [overlay for path in changed for overlay in kustomizations_above(path) if path in overlay.files]
    every |= {overlay.directory: overlay for overlay in above}
    manifests, unseen = dict.fromkeys(run), list[str]()
    for top in dict.fromkeys(_top(overlay.directory, changed) for overlay in above):
        in_repository = os.path.exists(f"{top}/.git")  # noqa: PTH110
        unseen += [] if in_repository else [top]
        for folder, names in _folders(top):
            if any(name in names for name in NAMES) and (overlay := kustomization_in(folder)) is not None:
                every[folder] = overlay
            if in_repository:
                manifests |= dict.fromkeys(f"{folder}/{name}" for name in names if name.lower().endswith(SUFFIXES))
    for overlay in deployed(manifests):
        every.setdefault(overlay.directory, overlay)
    affected = {place for place, overlay in every.items() if overlay.files.intersection(changed)}
    grown = True
    while grown:
        more = {
            place for place, overlay in every.items() if place not in affected and affected.intersection(overlay.roots)
        }
        affected |= more
        grown = bool(more)
    out: list[Kustomization] = []
    _sorted(sorted(affected), every, affected, set(), out)
    return Layout(out, tuple(unseen))


def _sorted(
    places: Sequence[str],
    every: dict[str, Kustomization],
    affected: set[str],
    seen: set[str],
    out: list[Kustomization],
) -> None:
    for place in places:
        if place in affected and place not in seen:
            seen.add(place)
            _sorted(every[place].roots, every, affected, seen, out)
            out.append(every[place])


def _top(directory: str, files: Sequence[str]) -> str:
    top = upward(directory)[-1]
    if os.path.exists(f"{top}/.git"):  # noqa: PTH110
        return top
    # No repository: overlays most often stand beside their base.
    common = os.path.commonpath([os.path.dirname(path) for path in files])  # noqa: PTH120
    return os.path.dirname(common) if common == directory else common  # noqa: PTH120


def _folders(top: str) -> Iterator[tuple[str, list[str]]]:
    for directory, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_OUT]
        yield directory, names


def sources(directory: str) -> list[str] | None:
    """The manifests that a kustomization is built from, as paths from the working directory.

    None where it takes some from elsewhere, or its own file cannot be read.
    """
    overlay = kustomization_in(os.path.realpath(directory))
    parts = closure(overlay) if overlay is not None else []
    if not parts or any(part.remote for part in parts):
        return None
    every = {path for part in parts for path in part.files if path.lower().endswith(SUFFIXES) or path == part.path}
    return [os.path.relpath(path) for path in sorted(every)]


# Which objects of a build a patch in a kustomization is for.


def is_for(patch: InlinePatch, key: ObjectKey, overlay: Kustomization) -> bool:
    """Whether a patch may be for an object that ``overlay`` builds, perhaps under a longer name."""
    if not patch.target:
        try:
            return any(is_of(manifest.object, key) for manifest in objects(parse(Source("<patch>", patch.text))))
        except InputError:
            return False
    kind, name = patch.target.get("kind"), patch.target.get("name")
    return _matches(kind, key[0]) and (not name or any(_matches(name, known) for known in _names(key, overlay)))


def _matches(pattern: object, text: str) -> bool:
    """Whether kustomize takes a pattern of a target to mean a text: all of it, and anything where there is none.

    It is Go's syntax of regular expressions (api/types/selector.go of kustomize).
    """
    if not pattern:
        return True
    # Few kustomizations have a pattern that is more than a word.
    if pattern == text:
        return True
    from kubectl_dra.cel.library.regex import PatternError, compile_pattern

    try:
        return compile_pattern(f"^(?:{pattern})$").search(text) is not None
    except PatternError:
        return False


def _names(key: ObjectKey, overlay: Kustomization) -> Iterator[str]:
    """The names that an object may have where the patches of a kustomization are applied.

    Kustomize compares the name in the file, and the one that other kustomizations have made of it by then
    (Select in api/resmap/reswrangler.go); its own prefix and suffix come last.
    """
    yield key[2]
    yield without_affixes(overlay, key[2])
    for part in closure(overlay):
        for path in sorted(part.files):
            source = read(path)
            for manifest in objects_in(source) if source is not None else ():
                if is_of(manifest.object, key):
                    yield str(manifest.object["metadata"]["name"])


# Argo CD and Flux objects that give a directory of the repository a prefix or patches, as the kustomizations that
# they are built by.


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
        *({"patch": _patch_text(patch)} for patch in merge or ()),
        *({**patch, "patch": _patch_text(patch.get("patch"))} for patch in operations or ()),
    ]
    fields = {
        "namePrefix": _filled(options.get("namePrefix")),
        "nameSuffix": _filled(options.get("nameSuffix")),
        "patches": patches,
        "components": options.get("components"),
    }
    given = {field: value for field, value in fields.items() if value}
    return {**given, "namespace": _filled(namespace)} if given and namespace else given


def _patch_text(patch: Any) -> str:
    return patch if isinstance(patch, str) else json.dumps(patch)


def _filled(text: Any) -> str:
    """A name in which a placeholder stands for something."""
    return _PLACEHOLDER.sub("x", str(text or ""))


def _directories(path: str, word: str) -> Sequence[str]:
    """The local directories that an object in a file may mean by a path."""
    above = upward(os.path.dirname(path))  # noqa: PTH120
    pattern = "*".join(escape(part) for part in _PLACEHOLDER.split(word.lstrip("/")))
    for folder in above[-1:] if os.path.exists(f"{above[-1]}/.git") else above:  # noqa: PTH110
        directories = [
            place
            for match in sorted(glob(os.path.join(escape(folder), pattern)))  # noqa: PTH118, PTH207
            if os.path.isdir(place := os.path.realpath(match))  # noqa: PTH112
        ]
        if directories:
            return directories
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
