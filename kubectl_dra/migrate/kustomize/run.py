"""Runs migrate on files that kustomizations use: each build must change as intended, or nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import Struct, field

from kubectl_dra.api.fields import path_text
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.objects import ObjectKey, object_key, title
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.engine import MigrationJob, migrate, misread
from kubectl_dra.migrate.kustomize.brought import brought_claims, is_brought
from kubectl_dra.migrate.kustomize.builds import Workshop, can_build
from kubectl_dra.migrate.kustomize.difference import BuildDifference, differences, objects_of
from kubectl_dra.migrate.kustomize.layout import built_from
from kubectl_dra.migrate.kustomize.repair import Repaired, claim_patches, followed_names
from kubectl_dra.migrate.result import MigratedFile, MigrationReport, Remark

PATCHED: Final = "MIG110"
NAMES: Final = "MIG139"
BROUGHT: Final = "MIG127"
_TAKEN_OUT: Final = "MIG109"
_ROUNDS: Final = 4
_SHOWN: Final = 120

Run = Callable[[Sequence[Input], MigrationJob], MigrationReport]


class _Group(Struct):
    """Kustomizations that share changed files, dependencies first.

    ``texts`` are the new texts of the changed files by absolute path, ``said`` what to report about them.
    """

    kustomizations: list[Kustomization]
    texts: dict[str, Source]
    said: dict[str, list[Remark]] = field(default_factory=dict)
    problem: str = ""
    at: Kustomization | None = None


def migrate_built(inputs: Sequence[Input], job: MigrationJob) -> MigrationReport:
    """Like ``engine.migrate``, ensuring that builds of changed files differ only by the migration.

    If a build would differ otherwise, all files of the group stay unchanged, with the reason.

    Raises:
        InputError: as ``engine.migrate``.
    """
    report = migrate(inputs, job)
    names = {_absolute(found.name): found.name for found in inputs if found.data is None}
    changed = {
        path: file.text
        for file in report.files
        if file.changed and file.text is not None and (path := _absolute(file.name)) in names
    }
    found = built_from(sorted(changed)) if changed else []
    if not found:
        return report
    groups = _groups(
        found,
        {path: Source(text.file, text.after, text.source.encoding, text.source.bom) for path, text in changed.items()},
    )
    notes = list(report.notes)
    files = {_absolute(file.name): file for file in report.files}
    for group in groups:
        if not can_build():
            _unverified(group, notes)
        else:
            _verify(group, names, job, report.left)
        if group.problem:
            _put_back(group, files, names)
        else:
            _put(group, files, names)
    results = tuple(sorted(files.values(), key=lambda file: _order(file.name, names)))
    return report._replace(files=results, notes=tuple(notes), defects=(*report.defects, *_new_defects(results, report)))


def _new_defects(results: Sequence[MigratedFile], report: MigrationReport) -> list[str]:
    return [defect for defect in misread(results) if defect not in report.defects]


def _order(name: str, names: Mapping[str, str]) -> tuple[int, str]:
    listed = list(names.values())
    return (listed.index(name), name) if name in listed else (len(listed), name)


def _absolute(name: str) -> str:
    return os.path.abspath(name)  # noqa: PTH100


def _groups(found: Sequence[Kustomization], texts: Mapping[str, Source]) -> list[_Group]:
    """The kustomizations, grouped by the changed files that they share."""
    out: list[_Group] = []
    for one in found:
        mine = {path: texts[path] for part in closure(one) for path in part.files if path in texts}
        joined = [group for group in out if group.texts.keys() & mine.keys()]
        kept = [group for group in out if group not in joined]
        members = [*(each for group in joined for each in group.kustomizations), one]
        merged = {path: text for group in joined for path, text in group.texts.items()}
        out = [*kept, _Group(members, {**merged, **mine})]
    return out


def _unverified(group: _Group, notes: list[str]) -> None:
    for one in group.kustomizations:
        if one.patches & group.texts.keys():
            group.at, group.problem = (
                one,
                "kubectl is not available to build it, so what its patches do is unknown",
            )
            return
    names = ", ".join(_shown(one.path) for one in group.kustomizations)
    notes.append(f"{names}: not built before and after, because neither kubectl nor kustomize is available")


def _verify(group: _Group, names: Mapping[str, str], job: MigrationJob, left: Collection[ObjectKey]) -> None:
    """Build all of a group before and after. Make what overlays need, or report the obstacle."""
    buildable = [one for one in group.kustomizations if not one.is_component]
    for one in buildable:
        remote = [word for part in closure(one) for word in part.remote]
        if remote:
            group.at, group.problem = one, f"it takes {remote[0]} from elsewhere, which is not fetched"
            return
    with TemporaryDirectory(prefix="kubectl-dra-") as folder:
        shop = Workshop(os.path.realpath(folder), group.kustomizations)
        before: dict[str, str] = {}
        for one, built in shop.all_built(buildable):
            if isinstance(built, str):
                group.at, group.problem = one, f"it cannot be built as it is: {built}"
                return
            before[one.directory] = built.decode("utf-8", "replace")
        shop.put({path: text.encode(text.text) for path, text in group.texts.items()})
        for one in buildable:
            group.problem = _settled(group, one, shop, before[one.directory], names, job, left)
            if group.problem:
                group.at = one
                return


def _settled(
    group: _Group,
    one: Kustomization,
    shop: Workshop,
    before: str,
    names: Mapping[str, str],
    job: MigrationJob,
    left: Collection[ObjectKey],
) -> str:
    """Make what an overlay needs until its build is as wanted; returns the obstacle if that fails."""
    wanted = _migrated(before, job, left)
    for number in range(_ROUNDS):
        built = shop.built(one)
        if isinstance(built, str):
            return f"it could no longer be built: {built}"
        after = objects_of(built.decode("utf-8", "replace"))
        found = list(differences(objects_of(before), wanted, after))
        if not found:
            return ""
        builds = (objects_of(before), wanted, after)
        repaired = _repaired(group, one, found, builds, names) if number + 1 < _ROUNDS else []
        if not repaired:
            return _said(next((each for each in found if is_brought(each)), found[0]))
        shop.put({each.path: group.texts[each.path].encode(each.text) for each in repaired})
    return ""


def _migrated(before: str, job: MigrationJob, left: Collection[ObjectKey]) -> list[Mapping[str, Any]]:
    """What migrate makes of a build, which the build of the migrated files has to be.

    Objects that comments of their files say to leave (``left``) stay; in the build they may have longer names.
    """
    report = migrate([Input("<build>", True, before.encode())], job._replace(claims_file=""))
    made = objects_of(next((file.text.after for file in report.files if file.text is not None), before))
    if not left:
        return made
    old = {object_key(raw): raw for raw in objects_of(before)}
    stay = {key for key in old if any(key[0] == kind and name in key[2] for kind, _, name in left)}
    return [old[key] if (key := object_key(raw)) in stay else raw for raw in made]


def _repaired(
    group: _Group,
    one: Kustomization,
    found: Sequence[BuildDifference],
    builds: tuple[Sequence[Mapping[str, Any]], ...],
    names: Mapping[str, str],
) -> list[Repaired]:
    """Put a repair for an overlay into the texts of the group, and report it."""
    before, wanted, after = builds
    try:
        made = list(followed_names(one, found, after, group.texts))
        made = made or list(brought_claims(one, found, before, wanted, group.texts))
    except EditRefused:
        return []
    if made and (one.path not in names or any(_is_there(each.path, names) for each in made)):
        return []
    made = made or [each for each in claim_patches(one, found, group.texts) if each.text != group.texts[each.path].text]
    for each in made:
        source = group.texts.get(each.path)
        if source is None:
            source = one.document.source if each.path == one.path else Source(_shown(each.path), "")
        name = names.get(each.path, source.name)
        group.texts[each.path] = Source(name, each.text, source.encoding, source.bom)
        group.said.setdefault(each.path, []).extend(_remarks(each, name))
    return made


def _is_there(path: str, names: Mapping[str, str]) -> bool:
    """Whether a file that is to be made exists, and is not one of the run."""
    return path not in names and File(path).exists()


def _remarks(made: Repaired, name: str) -> list[Remark]:
    if made.objects:
        message = "the count of devices is in the claim now, which the overlay patches with all of its requests"
        return [
            Remark("object", PATCHED, name, 1, 1, title(raw), "", message, new=title(raw), document=document, root=root)
            for root, document, raw in made.objects
        ]
    if made.claims_of_overlay:
        message = "the overlay asks for devices that its base does not ask for: it has claims of its own"
        return [Remark("change", BROUGHT, name, 1, 1, "", "", message)]
    message = "kustomize gives claims other names here; this says where workloads refer to them"
    return [Remark("change", NAMES, name, 1, 1, "Kustomization", "configurations", message)]


def _put(group: _Group, files: dict[str, MigratedFile], names: Mapping[str, str]) -> None:
    for path, text in group.texts.items():
        old = files.get(path)
        name = names.get(path, text.name)
        source = old.text.source if old is not None and old.text is not None else _original(path, name)
        more = group.said.get(path, ())
        kept = old.items if old is not None else ()
        if any(item.code == BROUGHT for item in more):
            kept = tuple(item for item in kept if item.code != _TAKEN_OUT)
        items = (*kept, *more)
        files[path] = MigratedFile(name, Rewritten(name, source.text, text.text, source), items)


def _original(path: str, name: str) -> Source:
    try:
        return decode(File(path).read_bytes(), name)
    except (OSError, InputError):
        return Source(name, "")


def _put_back(group: _Group, files: dict[str, MigratedFile], names: Mapping[str, str]) -> None:
    """Leave all files of a group unchanged."""
    assert group.at is not None
    place = names.get(group.at.path, _shown(group.at.path))
    for path in group.texts:
        old = files.get(path)
        if old is None or old.text is None:
            continue
        kept = [item for item in old.items if item.sort == "refusal"]
        first = next((item for item in old.items if item.sort == "change"), None)
        if first is not None:
            message = f"left as it is: {place} is built from it, and {group.problem}"
            kept.append(
                first._replace(
                    sort="refusal", code=refusals.BUILD, message=message, way_out=refusals.WAY_OUT_BUILD, safety="safe"
                )
            )
        source = old.text.source
        files[path] = MigratedFile(old.name, Rewritten(old.name, source.text, source.text, source), tuple(kept))


def _said(difference: BuildDifference) -> str:
    kind, namespace, name = difference.object
    who = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    if difference.found is None and difference.claim is not None:
        return f"{who} would refer to {difference.claim[0]} {difference.claim[2]}, which it does not build"
    if is_brought(difference):
        return (
            f"{who} asks for devices in a file that is not in this run (give migrate all, or -k DIR), or in a patch of "
            "an object that has no claim (put them into the base)"
        )
    where = f": {path_text(difference.path)}" if difference.path else ""
    return f"{who}{where} would be {_value(difference.found)} and not {_value(difference.wanted)}"


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _shown(path: str) -> str:
    """A path for people: relative if it is below the working directory."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
