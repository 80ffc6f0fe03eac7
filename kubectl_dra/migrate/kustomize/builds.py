"""Builds kustomizations in a copy of their files, some of which have other texts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import build
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.source import decode


def can_build() -> bool:
    """Whether kubectl or kustomize is on the PATH."""
    return shutil.which("kubectl") is not None or shutil.which("kustomize") is not None


class Workshop:
    """A copy of the files of kustomizations below ``folder``; the caller removes it.

    What the kustomizations take from elsewhere is left out of the copy: a build fetches nothing.
    """

    def __init__(self, folder: str, kustomizations: Iterable[Kustomization]) -> None:
        self._folder = folder
        self._remote: dict[str, tuple[str, ...]] = {}
        for one in kustomizations:
            for part in closure(one):
                if part.remote:
                    self._remote[part.path] = part.remote
                for link, target in part.links:
                    copy = self._copy(link)
                    if not os.path.lexists(copy):
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        copy.symlink_to(self._copy(target))
                if part.deployer:
                    self._copy(part.directory).mkdir(parents=True, exist_ok=True)
                    self._copy(part.path).write_text(part.document.source.text)
                for path in part.files - ({part.path} if part.deployer else set()):
                    copy = self._copy(path)
                    if not copy.exists():
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        copy.write_bytes(self._local(path, Path(path).read_bytes()))

    def _copy(self, path: str) -> Path:
        return Path(self._folder + path)

    def put(self, files: Mapping[str, bytes]) -> None:
        """Give files (absolute paths) other contents."""
        for path, data in files.items():
            copy = self._copy(path)
            if copy.parent.is_dir():
                copy.write_bytes(self._local(path, data))

    def _local(self, path: str, data: bytes) -> bytes:
        """The text of a file without what it takes from elsewhere."""
        remote = self._remote.get(path, ())
        if not remote:
            return data
        raw = dict(parse(decode(data, path))[0].object)
        for field in ("resources", "bases"):
            if isinstance(raw.get(field), list):
                raw[field] = [entry for entry in raw[field] if entry not in remote]
        return json.dumps(raw).encode()

    def all_built(self, kustomizations: Sequence[Kustomization]) -> Iterator[tuple[Kustomization, bytes | str]]:
        """Like ``built``, for several in parallel: most of the time is spent waiting for the program."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            yield from zip(kustomizations, pool.map(self.built, kustomizations), strict=True)

    def built(self, one: Kustomization) -> bytes | str:
        """What the kustomization builds, or why it fails."""
        try:
            return build(str(self._copy(one.directory)))
        except FileError as error:
            return error.problem.replace(self._folder, "")
