"""One object of saved files, as it stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.copies import Place
from kubectl_dra.cluster.files import add_files
from kubectl_dra.manifests.objects import object_key


class _OneObject(SnapshotBuilder):
    """Keeps the one object that is looked for, and no other."""

    def __init__(self, kind: str, name: str, namespace: str) -> None:
        # Where workloads are wanted every item is given to ``add`` as it is written.
        super().__init__(namespace, workloads=True)
        self._wanted = ((kind, namespace, name), (kind, "", name))
        self.found: dict[str, Any] | None = None

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Keep it if it is the one."""
        if object_key(raw) in self._wanted:
            self.found = raw


def saved_object(paths: Sequence[str], kind: str, name: str, namespace: str) -> dict[str, Any] | None:
    """The object of this name; None if the files have none. Raises InputError for files that cannot be read."""
    builder = _OneObject(kind, name, namespace)
    add_files(builder, paths)
    return builder.found
