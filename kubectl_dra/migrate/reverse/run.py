"""``migrate --reverse``: from the claims that migrate created back to requests of device plugins, file by file."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.conversion import ConversionError, to_v1
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Change, Delete, changed, items_at, value_at
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import ObjectKey, object_key, title
from kubectl_dra.manifests.workloads import CLAIM_REFERENCES, WorkloadPodSpec, pod_specs
from kubectl_dra.manifests.workloads import key_of as workload_key
from kubectl_dra.migrate import quotas
from kubectl_dra.migrate.codes import (
    BUILD,
    LOST,
    NO_RESOURCE,
    NOT_OURS,
    REMOVED,
    RESTORED,
    STILL_USED,
    TOLERATION,
)
from kubectl_dra.migrate.device_plugins import pod_rewrite as device_plugins
from kubectl_dra.migrate.engine import MigrationJob, defects_recorded, misread, result_of
from kubectl_dra.migrate.make_edits import carry_out, settle
from kubectl_dra.migrate.model import (
    MigratedFile,
    MigrationReport,
    MigrationSettings,
    Moved,
    NamespaceDemand,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.new_objects import template_key
from kubectl_dra.migrate.planned_edit import PlannedEdit
from kubectl_dra.migrate.reading import File, check_readable, opened, source_of
from kubectl_dra.migrate.reverse.labels import Named
from kubectl_dra.migrate.reverse.requests import (
    MadeClaim,
    Stop,
    carried_out,
    machine_path,
    made_claim,
    plan_machine,
    plan_quota,
    resources_of,
    restored,
)
from kubectl_dra.migrate.run_objects import demand_of
from kubectl_dra.migrate.vendors.model import Resource


def reverse(inputs: Sequence[Input], job: MigrationJob) -> MigrationReport:
    """Plan the reverse migration of all inputs. Writes nothing.

    Raises:
        InputError: a named file cannot be read, or no input can.
    """
    notes: list[str] = []
    closed: list[MigratedFile] = []
    files = [file for input_ in inputs if (file := _opened(input_, notes, closed)) is not None]
    if not files:
        check_readable(inputs, notes)
    objects = sum(len(file.objects) for file in files)
    by_key: dict[ObjectKey, Mapping[str, Any]] = {}
    for file in files:
        for manifest in file.objects:
            by_key.setdefault(object_key(manifest.object), manifest.object)
    patched = {object_key(manifest.object) for file in files if is_patch(file.name) for manifest in file.objects}
    defects: list[str] = []
    freed = {key for file in files for key in _restore(file, by_key, job, patched, defects)}
    freed -= {key for file in files for manifest in file.objects for key in references(manifest.object)}
    for file in files:
        _remove(file, freed)
    left = demand_of((manifest.object for file in files for manifest in file.objects), job.settings.catalogue)
    for file in files:
        _restore_quotas(file, left, job, defects)
    results = (*closed, *(result_of(file) for file in files))
    return MigrationReport(
        tuple(result for result in results if result.items or result.changed),
        len(inputs),
        objects,
        replace(job.settings, reverse=True),
        job.unsafe,
        tuple(notes),
        (*defects, *misread(results)),
    )


def _opened(file: Input, notes: list[str], closed: list[MigratedFile]) -> File | None:
    source = source_of(file, notes, closed)
    if source is None:
        return None
    if "resource.k8s.io" not in source.text and "resourceClaims" not in source.text:
        return None
    try:
        return opened(source)
    except InputError as error:
        notes.append(str(error))
        return None


def _restore(
    file: File,
    by_key: Mapping[ObjectKey, Mapping[str, Any]],
    job: MigrationJob,
    patched: AbstractSet[ObjectKey],
    defects: list[str],
) -> list[ObjectKey]:
    """Restore what a file's workloads requested. Returns the claims and templates that these no longer need.

    Workloads stay whose claims are ``patched`` by overlays: what the patch asks for would be lost.
    """
    # Copies of a workload, as overlays have them, have claims of the same name each in its own file.
    own = {object_key(manifest.object): manifest.object for manifest in reversed(file.objects)}
    around = ChainMap(own, dict(by_key))
    wants: list[PlannedEdit] = []
    for manifest in file.objects:
        if workload_key(manifest.object) in quotas.HARD:
            continue
        with defects_recorded(defects, file, manifest, "reverse"):
            reversal = plan(manifest.object, around, job.settings)
            want = PlannedEdit.of(file, manifest, reversal.plan, job.settings, job.unsafe)
            file.items += want.told
            if want.changes and not patched.isdisjoint(reversal.freed):
                why = "an overlay patches its claim, and what that asks for would be lost"
                file.items.append(want.refused(BUILD, why))
            elif want.changes:
                want.frees = reversal.freed
                wants.append(want)
    return [key for want in _made(file, wants) for key in want.frees]


def _restore_quotas(file: File, left: NamespaceDemand, job: MigrationJob, defects: list[str]) -> None:
    """Take keys that count claims out of the quotas of a file, where none of these claims is ``left``."""
    wants: list[PlannedEdit] = []
    for manifest in file.objects:
        hard = quotas.HARD.get(workload_key(manifest.object))
        if hard is None:
            continue
        with defects_recorded(defects, file, manifest, "reverse"):
            quota_plan = plan_quota(manifest.object, hard, left, job.settings)
            want = PlannedEdit.of(file, manifest, quota_plan, job.settings, job.unsafe)
            file.items += want.told
            wants += [want] if want.changes else []
    _made(file, wants)


def _made(file: File, wants: Sequence[PlannedEdit]) -> Sequence[PlannedEdit]:
    """Make the changes of a file, and return those that were made."""
    good = carry_out(file, wants)
    file.items += [item for want in good for item in want.made]
    return good


def _remove(file: File, freed: AbstractSet[ObjectKey]) -> None:
    """Remove the claims and templates that nothing needs any more."""
    wants: list[PlannedEdit] = []
    for manifest in file.objects:
        if object_key(manifest.object) in freed and manifest.object.get("apiVersion", "").startswith(
            "resource.k8s.io/"
        ):
            want = PlannedEdit(file, manifest)
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


# Plans the reverse migration of one object: its state before migrate gave it claims.


_MOST_TRIES: Final = 32
_PodClaims = Sequence[tuple[WorkloadPodSpec, Sequence[MadeClaim]]]
"""The pods of an object, each with its claims."""


class Reversal(NamedTuple):
    """The plan of one object, and the claims and templates that it then no longer needs."""

    plan: ObjectPlan
    freed: tuple[ObjectKey, ...] = ()


def plan(
    raw: Mapping[str, Any], by_key: Mapping[ObjectKey, Mapping[str, Any]], settings: MigrationSettings
) -> Reversal:
    """Plan the reverse migration of a workload. ``by_key`` has all objects of the run by key."""
    machine = machine_path(raw)
    try:
        return Reversal(*plan_machine(raw, machine, by_key, settings)) if machine else _workload(raw, by_key, settings)
    except Stop as stop:
        return Reversal(ObjectPlan(refusals=(stop.refusal,)))


def references(raw: Mapping[str, Any]) -> Iterator[ObjectKey]:
    """The claims and templates that the pods of an object, or virtual machines, refer to."""
    namespace = object_key(raw)[1]
    for content in (*(spec.content for spec in pod_specs(raw)), value_at(raw, machine_path(raw) or ("spec",))):
        for pod_claim in items_at(content, "resourceClaims"):
            for field, kind in CLAIM_REFERENCES.items():
                if isinstance(pod_claim, Mapping) and isinstance(pod_claim.get(field), str):
                    yield kind, namespace, pod_claim[field]


def _workload(
    raw: Mapping[str, Any], by_key: Mapping[ObjectKey, Mapping[str, Any]], settings: MigrationSettings
) -> Reversal:
    others: list[PlanRefusal] = []
    choices: dict[tuple[ObjectKey, str], list[Named]] = {}
    entries = [(spec, list(_entries(raw, spec, by_key, settings, choices, others))) for spec in pod_specs(raw)]
    used = [claim for _, claims in entries for claim in claims]
    if not used:
        return Reversal(ObjectPlan(refusals=tuple(others)))
    shares = {claim.share for claim in used}
    if len(shares) > 1:
        where = (*entries[0][0].path, "resourceClaims")
        raise Stop(NOT_OURS, where, "migrate makes claims or claim templates of a workload, and not both")
    forward = replace(settings, reverse=False, strategy="claims", share=shares.pop(), version="v1")
    freed = tuple(dict.fromkeys(claim.key for claim in used))
    try:
        created = {key: to_v1(by_key[key]) for key in freed}
    except ConversionError as wrong:
        raise Stop(
            NOT_OURS, (*entries[0][0].path, "resourceClaims"), f"what it refers to is not valid: {wrong}"
        ) from None
    rest = {key: other for key, other in by_key.items() if key not in created}
    around = PlanSurroundings(rest.values(), frozenset(rest), alike=dict(_of_siblings(raw, created, by_key)))
    way = _Forward(raw, created, around, forward)
    problem = ""
    fitting: list[tuple[list[Change], list[Resource]]] = []
    for changes, resources in _tries(entries, choices, settings):
        difference = way.difference(changed(raw, changes))
        problem = problem or difference
        if not difference:
            fitting.append((changes, resources))
    if not fitting:
        raise Stop(NOT_OURS, _place(entries), problem or "it asks for devices in a way that migrate does not write")
    changes, resources = fitting[0]
    alike = [resource.name for _, others_too in fitting[1:] for resource in others_too if resource not in resources]
    return Reversal(replace(_planned(way, entries, changes, resources, alike), refusals=tuple(others)), freed)


def _place(entries: _PodClaims) -> FieldPath:
    """The list with the first claim."""
    return next((*spec.path, "resourceClaims") for spec, claims in entries if claims)


def _of_siblings(
    raw: Mapping[str, Any],
    created: Mapping[ObjectKey, Mapping[str, Any]],
    by_key: Mapping[ObjectKey, Mapping[str, Any]],
) -> Iterator[tuple[str, str]]:
    """The templates that are called after another Pod that uses them too."""
    mine = object_key(raw)
    if mine[0] != "Pod":
        return
    for key, template in created.items():
        for other, pod in by_key.items():
            if other[:2] == mine[:2] and other != mine and key[2].startswith(f"{other[2]}-") and key in references(pod):
                yield template_key(template), key[2]
                break


def _entries(
    raw: Mapping[str, Any],
    spec: WorkloadPodSpec,
    by_key: Mapping[ObjectKey, Mapping[str, Any]],
    settings: MigrationSettings,
    choices: dict[tuple[ObjectKey, str], list[Named]],
    others: list[PlanRefusal],
) -> Iterator[MadeClaim]:
    """The claims that migrate may have created. ``choices`` get their resources, ``others`` the reasons why
    the rest stays.
    """
    for index, pod_claim in enumerate(items_at(spec.content, "resourceClaims")):
        path: FieldPath = (*spec.path, "resourceClaims", index)
        try:
            claim = made_claim(raw, path, pod_claim, by_key)
            if claim is None:
                continue
            for name, exactly in claim.requests.items():
                choices[claim.key, name] = resources_of(claim, name, exactly, path, settings)
            yield claim
        except Stop as stop:
            others.append(stop.refusal)


def _tries(
    entries: _PodClaims,
    choices: Mapping[tuple[ObjectKey, str], Sequence[Named]],
    settings: MigrationSettings,
) -> Iterator[tuple[list[Change], list[Resource]]]:
    """What the object may have been: the changes that lead there, for each way to name its requests.

    Raises:
        Stop: there is no possibility, or more than one.
    """
    problem: Stop | None = None
    fitted: dict[tuple[str, ...], tuple[list[Change], list[Resource]]] = {}
    for number, names in enumerate(product(*choices.values())):
        if number == _MOST_TRIES:
            break
        named = dict(zip(choices, names, strict=True))
        try:
            changes = [change for spec, claims in entries for change in restored(spec, claims, named, settings)]
        except Stop as stop:
            problem = problem or stop
            continue
        resources = list(
            {restored_part.resource.name: restored_part.resource for restored_part in named.values()}.values()
        )
        fitted[tuple(restored_part.resource.name for restored_part in named.values())] = changes, resources
    if not fitted and problem is not None:
        raise problem
    if len(fitted) > 1 and not _alike([resources for _, resources in fitted.values()]):
        either = " or ".join(", ".join(dict.fromkeys(names)) for names in fitted)
        raise Stop(NO_RESOURCE, _place(entries), f"the claim can have been made from {either}")
    yield from fitted.values()


def _alike(tries: Sequence[Sequence[Resource]]) -> bool:
    """Whether the choice makes no difference: a device plugin offers its devices by two names."""
    unnamed = ([replace(resource, name="", tolerations=()) for resource in resources] for resources in tries)
    return len(set(map(repr, unnamed))) == 1


class _Forward(NamedTuple):
    """An object as it is now, and what migrate ``created`` for it when it went forward with these settings."""

    now: Mapping[str, Any]
    created: Mapping[ObjectKey, Mapping[str, Any]]
    around: PlanSurroundings
    settings: MigrationSettings

    def difference(self, before: Mapping[str, Any]) -> str:
        """Difference between the migrated ``before`` and the current state; empty if there is none."""
        planned = device_plugins.plan(before, self.around, self.settings)
        after, objects = carried_out(planned, before)
        if not objects and planned.refusals:
            return f"migrate would refuse what it would have been: {planned.refusals[0].message}"
        for key, raw in self.created.items():
            if key not in objects:
                return f"migrate would not give its {key[0]} the name {key[2]}"
            if objects[key].get("spec") != raw.get("spec"):
                return f"{key[0]} {key[2]} is not what migrate makes: it was written or changed by hand"
        if len(objects) != len(self.created):
            return "migrate would make more claims of it than there are"
        return "" if after == self.now else "the pod uses its claims in another way than migrate writes"


def _planned(
    way: _Forward, entries: _PodClaims, changes: Sequence[Change], resources: Sequence[Resource], alike: Sequence[str]
) -> ObjectPlan:
    names = ", ".join(resource.name for resource in resources)
    path = _place(entries)
    shared = way.settings.share == "claim" and way.now.get("kind") != "Pod"
    reason = f"the claim becomes {names} again"
    if shared:
        reason += "; each pod then has devices of its own, and all of them together shared these"
    if alike:
        reason += f"; it may have been {', '.join(dict.fromkeys(alike))}, which is the same devices"
    moved = tuple(Moved(resource.name, resource.device_class, resource.driver) for resource in resources)
    steps = [Step(RESTORED, path, reason, tuple(changes), "unsafe" if shared or alike else "safe", moved=moved)]
    extra: list[Change] = []
    for spec, claims in entries:
        extra += _tolerations(spec, resources) if claims else []
    less = [*changes, *extra]
    if extra and not way.difference(changed(way.now, less)):
        reason = "a toleration is there that migrate may have added, or somebody by hand"
        steps.append(Step(TOLERATION, extra[0].path, reason, tuple(extra), "unsafe"))
    message = "what migrate took out beside the request (implied labels, variables, annotations) is not kept anywhere"
    return ObjectPlan(tuple(steps), notes=(Note(LOST, path, message),))


def _tolerations(spec: WorkloadPodSpec, resources: Sequence[Resource]) -> list[Change]:
    """Deletes tolerations where migrate puts them: at the end of their list."""
    tolerations = items_at(spec.content, "tolerations")
    ours = [toleration for resource in resources for toleration in resource.tolerations]
    first = len(tolerations)
    while first and tolerations[first - 1] in ours:
        first -= 1
    path: FieldPath = (*spec.path, "tolerations")
    if first == len(tolerations):
        return []
    return [Delete(path)] if first == 0 else [Delete((*path, index)) for index in range(first, len(tolerations))]
