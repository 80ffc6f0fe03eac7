"""Puts what overlays of a migrated base need into the texts of its group, by the first way that can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as File
from typing import Any

from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.kustomization import Kustomization, kustomization_in
from kubectl_dra.migrate.kustomize import outcome
from kubectl_dra.migrate.kustomize.existing_patches import followed_namespaces, labels_taken_out
from kubectl_dra.migrate.kustomize.outcome import Group
from kubectl_dra.migrate.kustomize.overlay_files import (
    claim_patches,
    counted_here,
    counted_inline,
    overlay_claims,
)
from kubectl_dra.migrate.kustomize.pod_patches import pod_patches
from kubectl_dra.migrate.kustomize.repair import BuildDifference, Repaired, followed_names


class OutOfRun(Exception):
    """A file outside the run would have to be changed; the argument is its path."""


def repaired(
    group: Group,
    overlay: Kustomization,
    differences: Sequence[BuildDifference],
    builds: tuple[Sequence[Mapping[str, Any]], ...],
    names: Mapping[str, str],
    *,
    clear: bool,
) -> list[Repaired]:
    """Put a repair for an overlay into the texts of the group, and report it.

    ``clear``: that pods should differ so is certain, whatever the patches of the overlay do.

    Raises:
        EditRefused: a file cannot be changed for certain.
        OutOfRun: a file that would have to be changed is not of the run.
    """
    before, wanted, after = builds
    if overlay.deployer:
        # Its base can say where names are; the rest is for people to change.
        base = next((part for root in overlay.roots if (part := kustomization_in(root)) is not None), None)
        followed = followed_names(overlay, base, differences, after, group.texts) if base and base.path in names else ()
        return recorded(group, overlay, list(followed), names)
    ways: tuple[Callable[[], Iterable[Repaired]], ...] = (
        lambda: (each for each in labels_taken_out(overlay, differences, group.texts) if each.path in names),
        lambda: followed_names(overlay, overlay, differences, after, group.texts),
        lambda: followed_namespaces(overlay, differences, after, group.texts),
        lambda: overlay_claims(overlay, differences, before, wanted, after, group.texts),
        lambda: counted_inline(overlay, differences, group.texts, group.kustomizations),
        lambda: claim_patches(overlay, differences, group.texts),
    )
    if clear:
        ways += (
            lambda: counted_here(overlay, differences, group.texts),
            lambda: pod_patches(overlay, differences, wanted, after, group.texts),
        )
    return recorded(group, overlay, _first_of(ways, group, names), names)


def _first_of(
    ways: Sequence[Callable[[], Iterable[Repaired]]], group: Group, names: Mapping[str, str]
) -> list[Repaired]:
    """What the first of some ways makes that can do something; later ones need to know less of what is there.

    Raises:
        EditRefused, OutOfRun: none can; why the first of them failed.
    """
    failed: EditRefused | OutOfRun | None = None
    for way in ways:
        try:
            repairs = [
                each for each in way() if each.path not in group.texts or each.text != group.texts[each.path].text
            ]
            for each in repairs:
                if each.path not in names and each.path not in group.texts and File(each.path).exists():
                    raise OutOfRun(each.path)
        except (EditRefused, OutOfRun) as failure:
            failed = failed or failure
            continue
        if repairs:
            return repairs
    if failed is not None:
        raise failed
    return []


def recorded(group: Group, overlay: Kustomization, repairs: list[Repaired], names: Mapping[str, str]) -> list[Repaired]:
    """The repairs, put into the texts of the group and reported."""
    for each in repairs:
        source = group.texts.get(each.path)
        if source is None:
            source = (
                overlay.document.source
                if each.path == overlay.path
                else outcome.original(each.path, outcome.shown(each.path))
            )
        name = names.get(each.path, source.name)
        group.texts[each.path] = source.with_text(each.text, name)
        said = group.said.setdefault(each.path, [])
        # What another overlay needs of the same file is said once.
        said += [item for item in outcome.remarks(each, name) if item not in said]
    return repairs
