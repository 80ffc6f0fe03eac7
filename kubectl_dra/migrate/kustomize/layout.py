"""Which kustomizations there are, what they read, and which are built from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.source import decode

NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
DEFAULTS: Final = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
"""What a kustomization is that does not say so."""
COMPONENT: Final = "Component"
_LARGEST: Final = 1_000_000
_ROOTS: Final = ("resources", "bases", "components")
_PATCHES: Final = ("patches", "patchesStrategicMerge")
_REMOTE: Final = re.compile(r"\A(https?://|ssh://|git@|git::|github\.com/|[\w.-]+\.[a-z]{2,}/[^/]+/[^/]+(//|\?|\Z))")
_LEFT_OUT: Final = frozenset(("node_modules", "vendor", "__pycache__"))


@dataclass(frozen=True, slots=True)
class Kustomization:
    """A kustomization: its directory and file as absolute paths, and what the file says.

    ``files`` are those that it reads, itself among them, ``roots`` the directories of other kustomizations,
    ``patches`` the strategic merge patches among the files, ``remote`` what it takes from elsewhere.
    """

    directory: str
    path: str
    document: Document
    files: frozenset[str]
    roots: tuple[str, ...]
    patches: frozenset[str]
    remote: tuple[str, ...]

    @property
    def is_component(self) -> bool:
        """Whether it is a part of others that cannot be built by itself."""
        return self.document.object.get("kind") == COMPONENT

    @property
    def renames(self) -> bool:
        """Whether it gives objects other names, so that it has to know who refers to them."""
        return any(self.document.object.get(field) for field in ("namePrefix", "nameSuffix"))


@lru_cache(maxsize=4096)
def kustomization_in(directory: str) -> Kustomization | None:
    """The kustomization of a directory; None where there is none that can be read."""
    for name in NAMES:
        path = f"{directory}/{name}"
        try:
            with Path(path).open("rb") as file:
                documents = parse(decode(file.read(_LARGEST), path))
        except (OSError, InputError):
            continue
        return _read(directory, path, documents[0])
    return None


def _read(directory: str, path: str, document: Document) -> Kustomization:
    raw = document.object
    files, roots, remote = {path}, [], []
    for word in _words(raw):
        # Generators write a file as KEY=FILE.
        for part in {word, word.rpartition("=")[2]}:
            found = os.path.normpath(os.path.join(directory, part))  # noqa: PTH118
            if part and os.path.isfile(found):  # noqa: PTH113
                files.add(found)
    for field in _ROOTS:
        for entry in _list(raw.get(field)):
            found = os.path.normpath(os.path.join(directory, str(entry)))  # noqa: PTH118
            if os.path.isdir(found):  # noqa: PTH112
                roots.append(found)
            elif found not in files and _REMOTE.match(str(entry)):
                remote.append(str(entry))
    patches = {
        os.path.normpath(os.path.join(directory, str(word)))  # noqa: PTH118
        for field in _PATCHES
        for entry in _list(raw.get(field))
        for word in [entry.get("path") if isinstance(entry, dict) else entry]
        if isinstance(word, str) and "\n" not in word
    }
    return Kustomization(
        directory, path, document, frozenset(files), tuple(roots), frozenset(patches & files), tuple(remote)
    )


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for below in value.values():
            yield from _words(below)
    elif isinstance(value, list):
        for below in value:
            yield from _words(below)
    elif isinstance(value, str) and "\n" not in value and len(value) < 1024:
        yield value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def is_patch(name: str) -> bool:
    """Whether a kustomization beside the file, or in a directory above, names it as a strategic merge patch."""
    path = os.path.abspath(name)  # noqa: PTH100
    return any(path in found.patches for found in _above(path))


def _above(path: str) -> Iterator[Kustomization]:
    """The kustomizations in the directories above a file: kustomize reads no file outside of its own directory."""
    directory = os.path.dirname(path)  # noqa: PTH120
    while True:
        found = kustomization_in(directory)
        if found is not None:
            yield found
        above = os.path.dirname(directory)  # noqa: PTH120
        if above == directory or os.path.exists(f"{directory}/.git"):  # noqa: PTH110
            return
        directory = above


def built_from(files: Sequence[str]) -> list[Kustomization]:
    """Every kustomization that reads one of the files (absolute paths), those that others build upon first.

    It is looked for in the repository of the file, or without one below the directory that all files have in common.
    """
    direct = {one.directory: one for path in files for one in _above(path) if path in one.files}
    if not direct:
        return []
    every = dict(direct)
    for top in dict.fromkeys(_top(directory, files) for directory in direct):
        every.update(_below(top))
    affected = set(direct)
    grown = True
    while grown:
        more = {place for place, one in every.items() if place not in affected and affected.intersection(one.roots)}
        affected |= more
        grown = bool(more)
    out: list[Kustomization] = []
    _sorted(sorted(affected), every, affected, set(), out)
    return out


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
    place = directory
    while not os.path.exists(f"{place}/.git"):  # noqa: PTH110
        above = os.path.dirname(place)  # noqa: PTH120
        if above == place:
            # No repository: overlays most often stand beside their base.
            common = os.path.commonpath([os.path.dirname(path) for path in files])  # noqa: PTH120
            return os.path.dirname(common) if common == directory else common  # noqa: PTH120
        place = above
    return place


def _below(top: str) -> dict[str, Kustomization]:
    out: dict[str, Kustomization] = {}
    for directory, folders, names in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_OUT]
        if any(name in names for name in NAMES):
            found = kustomization_in(directory)
            if found is not None:
                out[directory] = found
    return out


def closure(one: Kustomization) -> list[Kustomization]:
    """The kustomization and all that it builds upon, each once."""
    out: list[Kustomization] = []
    waiting = [one]
    while waiting:
        found = waiting.pop()
        if all(found.directory != other.directory for other in out):
            out.append(found)
            waiting += [below for root in found.roots if (below := kustomization_in(root)) is not None]
    return out
