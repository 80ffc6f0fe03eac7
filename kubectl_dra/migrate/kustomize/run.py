"""Runs migrate on files that kustomizations use: each build must change as intended, or nothing is written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any, Final

from kubectl_dra.manifests.changes import EditRefused, items_at
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.inputs import SUFFIXES, Input
from kubectl_dra.manifests.kustomization import NAMES, Kustomization, closure, kustomization_in
from kubectl_dra.manifests.objects import ObjectKey, object_key, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.engine import MigrationJob, migrate, misread
from kubectl_dra.migrate.inline_patches import GONE, inline_patches, without_empty_lists
from kubectl_dra.migrate.kustomize import outcome
from kubectl_dra.migrate.kustomize.build_differences import (
    BuildDifference,
    DevicePatch,
    Repaired,
    device_patches,
    differences,
    objects_of,
    patch_files,
    without_unused,
)
from kubectl_dra.migrate.kustomize.existing_patches import fitted, without_json_patches
from kubectl_dra.migrate.kustomize.layout import Layout, built_from, is_for
from kubectl_dra.migrate.kustomize.outcome import BuildObstacle, Group, Stopped, Workshop, can_build, groups_of
from kubectl_dra.migrate.kustomize.overlay_claims import (
    lacks_claims,
)
from kubectl_dra.migrate.kustomize.overlay_repairs import OutOfRun, recorded, repaired
from kubectl_dra.migrate.model import MigratedFile, MigrationReport, Remark
from kubectl_dra.migrate.new_objects import claims_file
from kubectl_dra.migrate.reading import named_in, pointed

_ROUNDS: Final = 8
_PASSES: Final = 4
_ASKED: Final = frozenset(("limits", "requests", "resources", "resourceClaims"))


def migrate_built(inputs: Sequence[Input], job: MigrationJob) -> MigrationReport:
    """Like ``engine.migrate``, ensuring that builds of changed files differ only by the migration.

    If a build would differ otherwise, all files of the group stay unchanged, with the reason.

    Raises:
        InputError: as ``engine.migrate``.
    """
    report = migrate(inputs, job)
    names = {os.path.realpath(file.name): file.name for file in inputs if file.data is None}
    files = {os.path.realpath(file.name): file for file in report.files}
    files |= without_json_patches(files, names, job)
    changed = {
        path: file.text
        for file in files.values()
        if file.changed and file.text is not None and (path := os.path.realpath(file.name)) in names
    }
    layout = built_from(sorted(changed), names) if changed else Layout([], ())
    groups = groups_of(
        layout.kustomizations,
        {path: text.source.with_text(text.after, text.file) for path, text in changed.items()},
    )
    notes = list(report.notes)
    notes += [
        f"{outcome.shown(top)} is in no git repository, so only what was named is checked: name overlays that use "
        "it from elsewhere, too"
        for top in layout.unseen
    ]
    built = {path for group in groups for path in group.texts}
    unbuilt = {path: file for path, file in files.items() if path not in built and _patches(file)}
    outside = list(_outside(names, job))
    if not groups and not unbuilt and not outside:
        return report
    for item in outside:
        file = files.get(os.path.realpath(item.file), MigratedFile(item.file, None))
        files[os.path.realpath(item.file)] = file._replace(items=(*file.items, item))
    files |= {path: outcome.without_changes(file, "", outcome.UNSEEN) for path, file in unbuilt.items()}
    unchanged: set[str] = set()
    for group in groups:
        stopped = _verify(group, names, job, report.left, notes) if can_build() else _unverified(group, notes)
        if stopped is None:
            outcome.put(group, files, names)
        else:
            outcome.put_back(group, files, names, stopped)
            unchanged |= {names[path] for path in group.texts if path in names}
    results = tuple(sorted(files.values(), key=lambda file: _order(file.name, names)))
    if unchanged.intersection(item.file for item, _ in report.set_aside):
        # What stays as it is has no claims.
        aside = [(item, raw) for item, raw in report.set_aside if item.file not in unchanged]
        report = report._replace(claims=claims_file(job.claims_file, aside, results) if aside else None)
    return report._replace(
        files=results,
        notes=tuple(dict.fromkeys(notes)),
        defects=(*report.defects, *(defect for defect in misread(results) if defect not in report.defects)),
    )


def _outside(names: Mapping[str, str], job: MigrationJob) -> Iterator[Remark]:
    """The kustomizations of a run that are built from files outside it that need migration."""
    read: dict[str, list[str]] = {}
    for path in names:
        overlay = kustomization_in(os.path.dirname(path)) if path.endswith(NAMES) else None  # noqa: PTH120
        if overlay is not None and overlay.path == path:
            files = {file for part in closure(overlay) for file in part.files if file.lower().endswith(SUFFIXES)}
            read[path] = sorted(file for file in files if file not in names)
    inputs = [Input(path, False) for path in sorted({file for files in read.values() for file in files})]
    # Where nothing is of them, that can be read, there is nothing to say.
    report = migrate([Input("<none>", False, b"{}"), *inputs], job._replace(claims_file="")) if inputs else None
    asking = {item.file: item for item in (report.items() if report is not None else ()) if item.sort != "note"}
    for path, others in read.items():
        item = next((asking[other] for other in others if other in asking), None)
        if item is not None:
            yield outcome.of_outside(names[path], item)


def _order(name: str, names: Mapping[str, str]) -> tuple[int, str]:
    listed = list(names.values())
    return (listed.index(name), name) if name in listed else (len(listed), name)


def _unverified(group: Group, notes: list[str]) -> Stopped | None:
    """The obstacle where nothing can be built and patches change, else a note."""
    for overlay in group.kustomizations:
        if _touched(overlay, group.texts):
            return overlay, outcome.UNKNOWN
    names = ", ".join(outcome.name_of(overlay) for overlay in group.kustomizations)
    notes.append(f"{names}: not built before and after, because neither kubectl nor kustomize is available")
    return None


def _verify(
    group: Group,
    names: Mapping[str, str],
    job: MigrationJob,
    undone: Collection[tuple[str, ObjectKey]],
    notes: list[str],
) -> Stopped | None:
    """Build all of a group before and after, and make what overlays need. Returns the obstacle if that fails."""
    buildable = [overlay for overlay in group.kustomizations if not overlay.is_component]
    used = {part.path for overlay in buildable for part in closure(overlay)}
    for overlay in group.kustomizations:
        if overlay.path not in used and _touched(overlay, group.texts):
            return overlay, outcome.UNUSED
    for overlay in buildable:
        remote = _in_the_way(overlay, group.texts)
        if remote:
            return overlay, outcome.remote(remote)
        notes += [
            f"{outcome.shown(part.path)}: {word} is not fetched; it was left out of the builds, and nothing of it "
            "is migrated"
            for part in closure(overlay)
            for word in part.remote
        ]
    with TemporaryDirectory(prefix="kubectl-dra-") as folder:
        shop = Workshop(os.path.realpath(folder), group.kustomizations)
        before: dict[str, str] = {}
        for overlay, built in shop.all_built(buildable):
            if isinstance(built, str):
                remote = next((word for part in closure(overlay) for word in part.remote), "")
                return overlay, outcome.remote(remote) if remote else outcome.unbuilt(built)
            before[overlay.directory] = built.decode("utf-8", "replace")
        shop.put({path: text.encode(text.text) for path, text in group.texts.items()})
        waiting = list(buildable)
        seen: dict[str, Mapping[str, str]] = {}
        for _ in range(_PASSES):
            for overlay in waiting:
                obstacle = _settled(group, overlay, shop, before[overlay.directory], names, job, undone)
                if obstacle is not None:
                    return overlay, obstacle
                seen[overlay.directory] = _texts_of(overlay, group)
            # What one overlay needs may stand in a component of others.
            waiting = [overlay for overlay in buildable if _texts_of(overlay, group) != seen[overlay.directory]]
            if not waiting:
                _without_empty_lists(group)
                return None
        return waiting[0], outcome.UNSETTLED


def _without_empty_lists(group: Group) -> None:
    """Remove the lists of patches that are empty now. What is built does not change by that."""
    for overlay in group.kustomizations:
        source = group.texts.get(overlay.path)
        if source is None:
            continue
        document = parse(source)[0]
        changes = [
            change for change in without_empty_lists(document.object) if overlay.document.object[str(change.path[0])]
        ]
        text = with_changes((document,), {document.index: changes})
        group.texts[overlay.path] = source.with_text(text)


def _texts_of(overlay: Kustomization, group: Group) -> Mapping[str, str]:
    """The changed files beside a kustomization and all that it reads."""
    places = {part.directory for part in closure(overlay)}
    beside = {path for part in closure(overlay) for path in part.files}
    return {
        path: source.text
        for path, source in group.texts.items()
        if path in beside or os.path.dirname(path) in places  # noqa: PTH120
    }


def _touched(overlay: Kustomization, texts: Mapping[str, Source]) -> bool:
    """Whether patches of a kustomization are among the changed files; in its own file only patches change."""
    return bool({overlay.path, *overlay.patches, *(path for _, path in patch_files(overlay))} & texts.keys())


def _patches(file: MigratedFile) -> bool:
    """Whether a request was taken out of a patch."""
    return any(item.code == GONE and item.sort == "change" for item in file.items)


def _in_the_way(overlay: Kustomization, texts: Mapping[str, Source]) -> str:
    """What a kustomization takes from elsewhere that the change may have to do with; empty if nothing is.

    Objects from elsewhere stay as they were, so that a build without them shows all that the change does, unless a
    changed file may be a patch of them. Components and bases of components may change anything.
    """
    parts = closure(overlay)
    if any(_touched(part, texts) for part in parts):
        return next((word for part in parts for word in part.remote), "")
    return next(
        (
            word
            for part in parts
            for word in part.remote
            if word in items_at(part.document.object, "components")
            or (part.is_component and not word.endswith(SUFFIXES))
        ),
        "",
    )


def _settled(
    group: Group,
    overlay: Kustomization,
    shop: Workshop,
    before: str,
    names: Mapping[str, str],
    job: MigrationJob,
    undone: Collection[tuple[str, ObjectKey]],
) -> BuildObstacle | None:
    """Make what an overlay needs until its build is as wanted; returns the obstacle if that fails."""
    mine = {names.get(path, path) for part in closure(overlay) for path in part.files}
    wanted, offers, refused_there = _migrated(before, job, {key for file, key in undone if file in mine})
    titles = {object_key(raw): title(raw) for raw in objects_of(before)}
    first: BuildDifference | None = None
    for number in range(_ROUNDS):
        built = shop.built(overlay)
        if isinstance(built, str):
            obstacle = _by_patch(overlay, None, group, names, job)
            fits = (
                [repair for repair in fitted(overlay, wanted, group.texts) if repair.path in names]
                if not obstacle
                else []
            )
            if not fits or number + 1 == _ROUNDS:
                obstacle = obstacle or _by_replacement(overlay, built, job)
                return obstacle or _kindless(overlay, wanted, before) or outcome.broken(built)
            recorded(group, overlay, fits, names)
            shop.put({repair.path: group.texts[repair.path].encode(repair.text) for repair in fits})
            continue
        after = objects_of(built.decode("utf-8", "replace"))
        unequal = list(differences(objects_of(before), wanted, after))
        if not unequal:
            unused = list(without_unused(overlay, wanted, after, group.texts)) if overlay.path in names else []
            if not unused:
                return None
            recorded(group, overlay, unused, names)
            shop.put({repair.path: group.texts[repair.path].encode(repair.text) for repair in unused})
            continue
        first = first or unequal[0]
        offered = next(
            (offers[name] for difference in unequal if (name := titles.get(difference.object, "")) in offers), None
        )
        if offered is not None:
            return outcome.unsafe(offered)
        builds = (objects_of(before), wanted, after)
        repairs, why = list[Repaired](), None
        try:
            # What is refused, or what a patch still asks for, is for people to decide.
            clear = not any(titles.get(difference.object) in refused_there for difference in unequal)
            clear = clear and not any(
                patch.stays for difference in unequal for patch in _asking(overlay, difference, group, job)
            )
            repairs = repaired(group, overlay, unequal, builds, names, clear=clear) if number + 1 < _ROUNDS else []
        except EditRefused as refused:
            why = BuildObstacle(str(refused))
        except OutOfRun as missing:
            why = outcome.out_of_run(missing.args[0], overlay.path)
        if not repairs:
            there = next(
                (
                    refused_there[name]
                    for difference in unequal
                    if (name := titles.get(difference.object, "")) in refused_there
                ),
                None,
            )
            lacking = next((difference for difference in unequal if lacks_claims(difference)), None)
            if lacking is not None and there is None:
                return outcome.lacking(lacking, overlay.path in names)
            if why is not None:
                return why
            obstacle = _by_patch(overlay, unequal[0], group, names, job)
            if obstacle is None and there is not None:
                obstacle = outcome.refused_there(there)
            if obstacle is None and first.claim is not None and first.found is not None:
                obstacle = _kindless(overlay, wanted, before)
            obstacle = obstacle or outcome.of_difference(first, after)
            return outcome.of_deployer(obstacle.problem) if overlay.deployer else obstacle
        shop.put({repair.path: group.texts[repair.path].encode(repair.text) for repair in repairs})
    return None


def _by_replacement(overlay: Kustomization, error: str, job: MigrationJob) -> BuildObstacle | None:
    """The obstacle of a replacement that writes an amount of devices that no longer exists."""
    for part in closure(overlay):
        for number, replacement in enumerate(items_at(part.document.object, "replacements")):
            for index, target in enumerate(items_at(replacement, "targets")):
                for place, field in enumerate(items_at(target, "fieldPaths")):
                    path = ("replacements", number, "targets", index, "fieldPaths", place)
                    if names := named_in(str(field), job.settings.catalogue):
                        return outcome.replacing(error, part, path, names[0])
    return None


def _kindless(overlay: Kustomization, wanted: Sequence[Mapping[str, Any]], before: str) -> BuildObstacle | None:
    """The obstacle that a patch is which is for objects of any kind, so that new claims are among them."""
    old = {object_key(raw) for raw in objects_of(before)}
    claims = [key for raw in wanted if (key := object_key(raw)) not in old]
    for part in closure(overlay):
        patches = [*inline_patches(part.document.object), *(patch for patch, _ in patch_files(part))]
        for patch in patches:
            claim = next((key for key in claims if is_for(patch, key, overlay)), None)
            if patch.target and not patch.target.get("kind") and claim is not None:
                return outcome.kindless(part, patch, claim)
    return None


def _by_patch(
    overlay: Kustomization,
    difference: BuildDifference | None,
    group: Group,
    names: Mapping[str, str],
    job: MigrationJob,
) -> BuildObstacle | None:
    """The obstacle that a patch is which stays; ``difference`` is what it may have made, None for no build at all."""
    if difference is not None and not _ASKED.intersection(difference.path):
        return None
    stays = next((patch for patch in _asking(overlay, difference, group, job) if patch.stays), None)
    if stays is not None and stays.file == overlay.path and overlay.deployer:
        return outcome.of_deployer(f"its patch names {stays.resource}")
    return None if stays is None else outcome.asking(stays, in_run=stays.file in names)


def _asking(
    overlay: Kustomization, difference: BuildDifference | None, group: Group, job: MigrationJob
) -> list[DevicePatch]:
    """The patches that ask, or asked, for devices: those for the object of ``difference``, or without it those that
    fail where the request is gone, as JSON patches do.
    """
    catalogue = job.settings.catalogue
    patches = device_patches(overlay, group.texts, catalogue)
    if difference is None:
        return [patch for patch in patches if pointed(patch.patch.text, catalogue)]
    return [patch for patch in patches if is_for(patch.patch, difference.object, overlay)]


def _migrated(
    before: str, job: MigrationJob, undone: Collection[ObjectKey]
) -> tuple[list[Mapping[str, Any]], dict[str, Remark], dict[str, Remark]]:
    """What migrate makes of a build, which the build of the migrated files has to be, and the unsafe changes that
    it does not make, and the refusals, by the titles of the objects.

    Objects that comments of their files say to leave (``undone``) stay; in the build they may have longer names.
    """
    if not objects_of(before):
        return [], {}, {}
    report = migrate([Input("<build>", True, before.encode())], job._replace(claims_file=""))
    objects = objects_of(next((file.text.after for file in report.files if file.text is not None), before))
    # The lowest code last: it is the change that the others of an object go with.
    offered = sorted(report.items("offer"), key=lambda item: item.code, reverse=True)
    offers = {item.object: item for item in offered if not item.new}
    refused = {item.object: item for item in report.items("refusal")}
    if not undone:
        return objects, offers, refused
    old = {object_key(raw): raw for raw in objects_of(before)}
    stay = {key for key in old if any(key[0] == kind and name in key[2] for kind, _, name in undone)}
    return [old[key] if (key := object_key(raw)) in stay else raw for raw in objects], offers, refused
