"""A rendering of a chart, and a copy of the chart that is rendered with other texts of its files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_dra.api.releases import Release
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.charts import rendered
from kubectl_dra.manifests.documents import Document, each_document
from kubectl_dra.manifests.objects import objects
from kubectl_dra.manifests.source import Source

Texts = Mapping[str, str]
"""New texts of files by their paths, of which some may be new files."""

_RENDERS = 150
"""Largest number of renderings of a chart: a tenth of a second each."""


class Rendering(NamedTuple):
    """What helm renders of a chart with some files of values over its own, and with single ones (``--set``).

    ``without`` are templates that helm cannot render.
    """

    chart: str
    files: tuple[str, ...]
    sets: tuple[str, ...]
    text: str
    without: tuple[str, ...] = ()


class TooOften(FileError):
    """The chart was rendered as often as it may be."""


class ChartWorkshop:
    """A copy of a chart below ``folder``, which the caller removes.

    Raises:
        OSError: it cannot be copied.
    """

    def __init__(self, chart: str, release: Release, folder: str) -> None:
        self._chart = Path(chart)
        self._release = release
        self._copy = Path(folder) / "chart"
        self._left = _RENDERS
        shutil.copytree(chart, self._copy)

    def objects(self, rendering: Rendering, texts: Texts) -> list[Mapping[str, Any]]:
        """The objects of a rendering with these texts.

        Raises:
            FileError: helm does not render it.
        """
        self._left -= 1
        if self._left < 0:
            raise TooOften("it was rendered too often", rendering.chart)
        before = {path: path.read_bytes() if path.exists() else None for path in map(self._place, texts)}
        try:
            for name, text in texts.items():
                self._place(name).write_text(text, encoding="utf-8", newline="")
            for name in rendering.without:
                self._place(name).unlink(missing_ok=True)
            files = [str(self._place(name)) for name in rendering.files]
            return objects_of(
                rendered(str(self._copy), self._release, files, rendering.sets).decode("utf-8", "replace")
            )
        finally:
            for path, data in before.items():
                if data is None:
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(data)

    def _place(self, name: str) -> Path:
        """Where the copy of a file is; of one that is not the chart's, beside it."""
        path = Path(name)
        if path.is_relative_to(self._chart):
            return self._copy / path.relative_to(self._chart)
        copy = self._copy.parent / f"{abs(hash(name))}.yaml"
        if not copy.exists():
            shutil.copyfile(path, copy)
        return copy


def objects_of(text: str) -> list[Mapping[str, Any]]:
    """The objects of a rendering, without documents that are none. Claims are as the newest API writes them."""
    documents = [document for document in each_document(Source("<chart>", text)) if isinstance(document, Document)]
    found = (document for document in documents if document.object.get("apiVersion") and document.object.get("kind"))
    return [_settled(manifest.object) for manifest in objects(found)]


def _settled(raw: dict[str, Any]) -> dict[str, Any]:
    """A claim with its requests as v1 has them, and without defaults; any other object as it is."""
    devices = fields_at(raw, "spec", "spec", "devices") or fields_at(raw, "spec", "devices")
    requests = devices.get("requests")
    if raw["kind"] not in ("ResourceClaim", "ResourceClaimTemplate") or not isinstance(requests, list):
        return raw
    settled = {**devices, "requests": [_request(request) for request in requests]}
    claim = {"devices": settled}
    return {**raw, "spec": {"spec": claim} if "spec" in raw["spec"] else claim}


def _request(request: Any) -> Any:
    if not isinstance(request, dict) or "firstAvailable" in request:
        return request
    exactly = request.get("exactly") or {key: value for key, value in request.items() if key != "name"}
    defaults = {"count": 1, "allocationMode": "ExactCount"}
    exactly = {key: value for key, value in exactly.items() if defaults.get(key) != value}
    return {"name": request.get("name"), "exactly": exactly}


def chain(rendering: Rendering) -> Sequence[str]:
    """The files of values of a rendering, of which later ones count more."""
    own = f"{rendering.chart.rstrip('/')}/values.yaml"
    return ([own] if Path(own).is_file() else []) + list(rendering.files)
