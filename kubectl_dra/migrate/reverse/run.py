"""``migrate --reverse``: from the claims that migrate created back to requests of device plugins, file by file."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec.structs import replace

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import ObjectKey, object_key, title
from kubectl_dra.migrate.engine import MigrationJob, misread, result_of
from kubectl_dra.migrate.make_edits import code_of, settle
from kubectl_dra.migrate.model import MigratedFile, MigrationReport
from kubectl_dra.migrate.planned_edit import PlannedEdit
from kubectl_dra.migrate.reading import File, check_readable, source_of
from kubectl_dra.migrate.refusals import BUILD
from kubectl_dra.migrate.reverse.pages import REMOVED, STILL_USED
from kubectl_dra.migrate.reverse.plan import plan, references


def reverse(inputs: Sequence[Input], job: MigrationJob) -> MigrationReport:
    """Plan the reverse migration of all inputs. Writes nothing.

    Raises:
        InputError: a named file cannot be read, or no input can.
    """
    notes: list[str] = []
    closed: list[MigratedFile] = []
    files = [file for found in inputs if (file := _opened(found, notes, closed)) is not None]
    if not files:
        check_readable(inputs, notes)
    objects = sum(len(file.objects) for file in files)
    world: dict[ObjectKey, Mapping[str, Any]] = {}
    for file in files:
        for one in file.objects:
            world.setdefault(object_key(one.object), one.object)
    patched = {object_key(one.object) for file in files if is_patch(file.name) for one in file.objects}
    freed = {key for file in files for key in _restore(file, world, job, patched)}
    freed -= {key for file in files for found in file.objects for key in references(found.object)}
    for file in files:
        _remove(file, freed)
    results = (*closed, *(result_of(file) for file in files))
    return MigrationReport(
        tuple(result for result in results if result.items or result.changed),
        len(inputs),
        objects,
        replace(job.settings, reverse=True),
        job.unsafe,
        tuple(notes),
        tuple(misread(results)),
    )


def _opened(found: Input, notes: list[str], closed: list[MigratedFile]) -> File | None:
    source = source_of(found, notes, closed)
    if source is None:
        return None
    if "resource.k8s.io" not in source.text and "resourceClaims" not in source.text:
        return None
    try:
        return File(source, parse(source))
    except InputError as error:
        notes.append(str(error))
        return None


def _restore(
    file: File, world: Mapping[ObjectKey, Mapping[str, Any]], job: MigrationJob, patched: AbstractSet[ObjectKey]
) -> list[ObjectKey]:
    """Restore what a file's workloads requested. Returns the claims and templates that these no longer need.

    Workloads stay whose claims are ``patched`` by overlays: what the patch asks for would be lost.
    """
    # Copies of a workload, as overlays have them, have claims of the same name each in its own file.
    own = {object_key(one.object): one.object for one in reversed(file.objects)}
    around = ChainMap(own, dict(world))
    wants: list[PlannedEdit] = []
    freed: dict[int, tuple[ObjectKey, ...]] = {}
    for found in file.objects:
        reversal = plan(found.object, around, job.settings)
        want = PlannedEdit.of(file, found, reversal.plan, job.settings, job.unsafe)
        file.items += want.told
        if want.changes and not patched.isdisjoint(reversal.freed):
            file.items.append(want.refused(BUILD, "an overlay patches its claim, and what that asks for would be lost"))
        elif want.changes:
            wants.append(want)
            freed[id(want)] = reversal.freed
    settled = settle(file, wants)
    file.items += [want.refused(code_of(refused), str(refused)) for want, refused in settled.refused]
    file.items += [item for want in settled.good for item in want.made]
    if settled.made is not None:
        file.take(settled.made)
    return [key for want in settled.good for key in freed[id(want)]]


def _remove(file: File, freed: AbstractSet[ObjectKey]) -> None:
    """Remove the claims and templates that nothing needs any more."""
    wants: list[PlannedEdit] = []
    for found in file.objects:
        if object_key(found.object) in freed and found.object.get("apiVersion", "").startswith("resource.k8s.io/"):
            want = PlannedEdit(file, found)
            want.removes = True
            wants.append(want)
    message = "nothing among these files needs it any more; in the cluster it goes after its last pod"
    settled = settle(file, wants)
    file.items += [want.item("change", REMOVED, (), message) for want in settled.good]
    for want, refused in settled.refused:
        why = f"{title(want.owner)} stays, though nothing here needs it: {refused}"
        file.items.append(want.item("note", STILL_USED, (), why))
    if settled.made is not None:
        file.take(settled.made)
