"""Files that kustomize lays over others: what they hold is a part of an object, which is whole only when built."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import is_file
from kubectl_dra.manifests.source import decode

_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_LARGEST: Final = 1_000_000
_LEVELS: Final = 4
"""How far above a file the kustomization may be that names it: kustomize reads no file above its own directory."""


def is_patch(name: str) -> bool:
    """Whether a kustomization beside the file, or in a directory above, names it as a strategic merge patch.

    That is an entry of ``patches`` with its ``path``, or one of ``patchesStrategicMerge``.
    """
    if not is_file(name):
        return False
    path = os.path.abspath(name)  # noqa: PTH100
    directory = path
    for _ in range(_LEVELS):
        above = os.path.dirname(directory)  # noqa: PTH120
        if above == directory:
            return False
        directory = above
        if path in _patches(directory):
            return True
    return False


@lru_cache(maxsize=1024)
def _patches(directory: str) -> frozenset[str]:
    """The patches that the kustomization of a directory names; none where there is none that can be read."""
    for name in _NAMES:
        path = Path(directory, name)
        try:
            with path.open("rb") as file:
                documents = parse(decode(file.read(_LARGEST), str(path)))
        except (OSError, InputError):
            continue
        named = (word for document in documents for word in _named(document.object))
        return frozenset(os.path.normpath(f"{directory}/{word}") for word in named)
    return frozenset()


def _named(kustomization: Any) -> Iterator[str]:
    if not isinstance(kustomization, Mapping):
        return
    for field in ("patches", "patchesStrategicMerge"):
        entries = kustomization.get(field)
        for entry in entries if isinstance(entries, list) else ():
            word = entry.get("path") if isinstance(entry, Mapping) else entry
            # A patch may also stand in the kustomization itself, as text of several lines.
            if isinstance(word, str) and "\n" not in word:
                yield word
