"""Which kustomizations build from a file, and which they depend on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from kubectl_dra.manifests.inputs import SUFFIXES
from kubectl_dra.manifests.kustomization import NAMES, Kustomization, closure, kustomization_in, kustomizations_above

_LEFT_OUT: Final = frozenset(("node_modules", "vendor", "__pycache__"))


def built_from(files: Sequence[str]) -> list[Kustomization]:
    """Every kustomization that reads one of the files (absolute paths), dependencies first.

    Searches the repository of the files or, without one, their common directory.
    """
    direct = {one.directory: one for path in files for one in kustomizations_above(path) if path in one.files}
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


def sources(directory: str) -> list[str] | None:
    """The manifests that a kustomization is built from, as paths from the working directory.

    None where it takes some from elsewhere, or its own file cannot be read.
    """
    one = kustomization_in(os.path.abspath(directory))  # noqa: PTH100
    parts = closure(one) if one is not None else []
    if not parts or any(part.remote for part in parts):
        return None
    every = {path for part in parts for path in part.files if path.lower().endswith(SUFFIXES) or path == part.path}
    return [os.path.relpath(path) for path in sorted(every)]
