"""The objects of a manifest: one that no API server takes is an error, as what it would make is missing."""

from __future__ import annotations

from typing import Any

from kubectl_dra.api.meta import title
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.groups import may_make_pods, unknown_object


class ManifestBuilder(SnapshotBuilder):
    """A builder of what a manifest brings."""

    def add(self, raw: dict[str, Any], place: Place) -> None:
        """Add an object, or note that it may make pods which are left out.

        Raises:
            InputError: as any builder, and for a kind that Kubernetes does not have in this group.
        """
        if (unknown := unknown_object(raw)) is not None:
            what, meant = unknown
            hint = f"; did you mean {meant}?" if meant else ""
            raise InputError(f"{place}: {what} is not an object of Kubernetes{hint}")
        if may_make_pods(raw):
            self.note(f"{place}: {title(raw)} has containers, and its kind is not known: its pods are left out")
        super().add(raw, place)
