"""What becomes of the files of kustomizations, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as File
from typing import Final

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.objects import title
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.inline_patches import GONE
from kubectl_dra.migrate.kustomize.group import Group
from kubectl_dra.migrate.kustomize.obstacles import BuildObstacle, shown
from kubectl_dra.migrate.kustomize.repair import Repaired
from kubectl_dra.migrate.result import MigratedFile, Remark

PATCHED: Final = "MIG110"
NAMES: Final = "MIG139"
BROUGHT: Final = "MIG127"
TEXT: Final = "MIG123"
"""A text is not changed: said of patches before a build shows what of them has to go."""


def remarks(made: Repaired, name: str) -> list[Remark]:
    if made.objects:
        message = "the count of devices is in the claim now, which the overlay patches with all of its requests"
        return [
            Remark("object", PATCHED, name, 1, 1, title(raw), "", message, new=title(raw), document=document, root=root)
            for root, document, raw in made.objects
        ]
    if made.does == "counts":
        message = "the devices that a patch here asked for or chose are in a patch of the claim now"
        return [Remark("change", PATCHED, name, 1, 1, "Kustomization", "patches", message)]
    if made.does == "claims":
        message = "the overlay asks for devices that its base does not ask for: it has claims of its own"
        return [Remark("change", BROUGHT, name, 1, 1, "", "", message)]
    if made.does == "labels":
        message = "labels of the patch choose devices; the claim says that now"
        return [Remark("change", GONE, name, 1, 1, "", "", message)]
    if made.does == "namespaces":
        message = "replacements that give the workload its namespace give it to its claims, too"
        return [Remark("change", NAMES, name, 1, 1, "Kustomization", "replacements", message)]
    message = "kustomize gives claims other names here; this says where workloads refer to them"
    return [Remark("change", NAMES, name, 1, 1, "Kustomization", "configurations", message)]


def put(group: Group, files: dict[str, MigratedFile], names: Mapping[str, str]) -> None:
    for path, text in group.texts.items():
        old = files.get(path)
        name = names.get(path, text.name)
        source = old.text.source if old is not None and old.text is not None else original(path, name)
        more = group.said.get(path, ())
        kept = old.items if old is not None else ()
        if any(item.code == BROUGHT for item in more):
            kept = tuple(item for item in kept if item.code != GONE)
        if any(item.code == GONE for item in more):
            kept = tuple(item for item in kept if item.code != TEXT)
        items = (*kept, *more)
        files[path] = MigratedFile(name, Rewritten(name, source.text, text.text, source), items)


def original(path: str, name: str) -> Source:
    try:
        return decode(File(path).read_bytes(), name)
    except (OSError, InputError):
        return Source(name, "")


def put_back(group: Group, files: dict[str, MigratedFile], names: Mapping[str, str]) -> None:
    """Leave all files of a group unchanged."""
    assert group.at is not None and group.problem is not None
    place = names.get(group.at.path, shown(group.at.path))
    for path in group.texts:
        old = files.get(path)
        if old is not None and old.text is not None:
            files[path] = without_changes(old, place, group.problem)


def without_changes(file: MigratedFile, place: str, obstacle: BuildObstacle) -> MigratedFile:
    """A file as it was, with the reason for that."""
    assert file.text is not None
    kept = [item for item in file.items if item.sort in ("refusal", "offer")]
    first = next((item for item in file.items if item.sort == "change"), None)
    if first is not None:
        kept.append(_left(first, place, obstacle))
    source = file.text.source
    return MigratedFile(file.name, Rewritten(file.name, source.text, source.text, source), tuple(kept))


def _left(item: Remark, place: str, obstacle: BuildObstacle) -> Remark:
    """The change that is not made, with the reason. ``place`` is the kustomization that is built from it, if any."""
    itself = place in ("", item.file)
    message = f"left as it is: {obstacle.problem if itself else f'{place} is built from it, and {obstacle.problem}'}"
    if obstacle.offered:
        return item._replace(sort="offer", message=message, safety="unsafe")
    return item._replace(sort="refusal", code=refusals.BUILD, message=message, way_out=obstacle.way_out, safety="safe")
