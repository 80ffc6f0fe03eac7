"""One kustomization as described by its file: what it reads, which of that are patches, and what is remote."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import items_at, leaves
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.inputs import is_file
from kubectl_dra.manifests.source import decode

NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
DEFAULTS: Final = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
"""The apiVersion and kind of a kustomization that states none."""
COMPONENT: Final = "Component"
_LARGEST: Final = 1_000_000
_ROOTS: Final = ("resources", "bases", "components")
_PATCHES: Final = ("patches", "patchesStrategicMerge")
_REMOTE: Final = re.compile(r"\A(https?://|ssh://|git@|git::|github\.com/|[\w.-]+\.[a-z]{2,}/[^/]+/[^/]+(//|\?|\Z))")


class Kustomization(Struct, frozen=True, eq=False):
    """A kustomization: its directory and file as absolute paths, and the file's content.

    ``files`` are those that it reads, including itself; ``roots`` are the directories of other
    kustomizations; ``patches`` are the strategic merge patches among the files; ``remote`` is what it takes
    from elsewhere; ``links`` are the symbolic links on the way to files and roots, whose paths have none.

    ``deployer`` is the object of Argo CD or Flux, with its place, that the kustomization stands for; empty for one of
    a file.
    """

    directory: str
    path: str
    document: Document
    files: frozenset[str]
    roots: tuple[str, ...]
    patches: frozenset[str]
    remote: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    deployer: str = ""

    @property
    def is_component(self) -> bool:
        """Whether it is a component, which cannot be built by itself."""
        return self.document.object.get("kind") == COMPONENT

    def path_of(self, word: str) -> str:
        """The absolute path of a file or directory that the kustomization names."""
        return _path_in(self.directory, word)


def _path_in(directory: str, word: str) -> str:
    return os.path.realpath(_as_written(directory, word))


def _as_written(directory: str, word: str) -> str:
    return os.path.normpath(os.path.join(directory, word))  # noqa: PTH118


def _links(path: str) -> Iterator[tuple[str, str]]:
    """The symbolic links on the way to a path, and what each stands for."""
    while os.path.realpath(path) != path:
        link = next(part for part in reversed((Path(path), *Path(path).parents)) if part.is_symlink())
        target = os.path.realpath(link)
        yield str(link), target
        path = str(Path(target) / Path(path).relative_to(link))


@lru_cache(maxsize=4096)
def kustomization_in(directory: str) -> Kustomization | None:
    """The kustomization of a directory; None if there is no readable one."""
    for name in NAMES:
        path = f"{directory}/{name}"
        try:
            with Path(path).open("rb") as file:
                documents = parse(decode(file.read(_LARGEST), path))
        except (OSError, InputError):
            continue
        return kustomization(directory, path, documents[0])
    return None


def kustomization(directory: str, path: str, document: Document, deployer: str = "") -> Kustomization:
    """The kustomization that a document says; ``path`` is that of its file."""
    raw = document.object
    files, roots, remote = {path}, [], []
    links: dict[str, str] = {}
    words = [word for _, word in leaves(raw) if isinstance(word, str) and "\n" not in word and len(word) < 1024]
    for word in words:
        # Generators write a file as KEY=FILE.
        for part in {word, word.rpartition("=")[2]}:
            target = _path_in(directory, part)
            if part and os.path.isfile(target):  # noqa: PTH113
                files.add(target)
                links.update(_links(_as_written(directory, part)))
    for field in _ROOTS:
        for resource in items_at(raw, field):
            target = _path_in(directory, str(resource))
            if os.path.isdir(target):  # noqa: PTH112
                roots.append(target)
                links.update(_links(_as_written(directory, str(resource))))
            elif target not in files and _REMOTE.match(str(resource)):
                remote.append(str(resource))
    patches = {
        _path_in(directory, word)
        for field in _PATCHES
        for resource in items_at(raw, field)
        for word in [resource.get("path") if isinstance(resource, dict) else resource]
        if isinstance(word, str) and "\n" not in word
    }
    return Kustomization(
        directory,
        path,
        document,
        frozenset(files),
        tuple(roots),
        frozenset(patches & files),
        tuple(remote),
        tuple(links.items()),
        deployer,
    )


def is_patch(name: str) -> bool:
    """Whether a kustomization beside or above the file names it as a strategic merge patch.

    A patch is a part of an object, which is complete only when built.
    """
    if not is_file(name):
        return False
    path = os.path.realpath(name)
    return any(path in kustomization.patches for kustomization in kustomizations_above(path))


def kustomizations_above(path: str) -> Iterator[Kustomization]:
    """The kustomizations in the directories above a file. Kustomize reads no files outside its own directory."""
    for directory in upward(os.path.dirname(path)):  # noqa: PTH120
        kustomization = kustomization_in(directory)
        if kustomization is not None:
            yield kustomization


@lru_cache(maxsize=4096)
def upward(directory: str) -> tuple[str, ...]:
    """The directory and those above it, up to the root of its repository."""
    out = [directory]
    while (above := os.path.dirname(out[-1])) != out[-1] and not os.path.exists(f"{out[-1]}/.git"):  # noqa: PTH110, PTH120
        out.append(above)
    return tuple(out)


def with_components(kustomization: Kustomization) -> list[Kustomization]:
    """The kustomization and the components that it includes, whose patches are laid over its objects as its own are."""
    out: list[Kustomization] = []
    waiting = [kustomization]
    while waiting:
        overlay = waiting.pop(0)
        if all(overlay.directory != other.directory for other in out):
            out.append(overlay)
            below = [kustomization_in(root) for root in overlay.roots]
            waiting += [component for component in below if component is not None and component.is_component]
    return out


def closure(kustomization: Kustomization) -> list[Kustomization]:
    """The kustomization and all its dependencies, each once."""
    out: list[Kustomization] = []
    waiting = [kustomization]
    while waiting:
        overlay = waiting.pop()
        if all(overlay.directory != other.directory for other in out):
            out.append(overlay)
            waiting += [below for root in overlay.roots if (below := kustomization_in(root)) is not None]
    return out
