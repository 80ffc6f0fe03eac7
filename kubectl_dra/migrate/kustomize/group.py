"""Kustomizations that share changed files, which are changed together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.kustomize.obstacles import BuildObstacle
from kubectl_dra.migrate.result import Remark


class Group(Struct):
    """Kustomizations that share changed files, dependencies first.

    ``texts`` are the new texts of the changed files by absolute path, ``said`` what to report about them.
    """

    kustomizations: list[Kustomization]
    texts: dict[str, Source]
    said: dict[str, list[Remark]] = field(default_factory=dict)
    problem: BuildObstacle | None = None
    at: Kustomization | None = None


def groups_of(found: Sequence[Kustomization], texts: Mapping[str, Source]) -> list[Group]:
    """The kustomizations, grouped by the changed files that they share."""
    out: list[Group] = []
    for one in found:
        mine = {path: texts[path] for part in closure(one) for path in part.files if path in texts}
        joined = [group for group in out if group.texts.keys() & mine.keys()]
        kept = [group for group in out if group not in joined]
        members = [*(each for group in joined for each in group.kustomizations), one]
        merged = {path: text for group in joined for path, text in group.texts.items()}
        out = [*kept, Group(members, {**merged, **mine})]
    return out
