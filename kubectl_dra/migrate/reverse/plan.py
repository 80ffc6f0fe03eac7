"""Plans the way back for one object: what it was before migrate made claims of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

from kubectl_dra.api.conversion import reshaped, to_v1
from kubectl_dra.api.versions import GROUP
from kubectl_dra.manifests.changes import Change, Delete, Path, Set, changed, value_at
from kubectl_dra.manifests.workloads import PodContainer, PodSpec, containers, pod_specs
from kubectl_dra.manifests.workloads import key_of as workload_key
from kubectl_dra.migrate import quotas
from kubectl_dra.migrate.device_plugins import plan as device_plugins
from kubectl_dra.migrate.device_plugins.affinity import node_selector
from kubectl_dra.migrate.device_plugins.placement import placement
from kubectl_dra.migrate.model import MigrationSettings, Note, ObjectPlan, PlanRefusal, PlanSurroundings, Share, Step
from kubectl_dra.migrate.reverse.labels import chosen, conditions
from kubectl_dra.migrate.reverse.pages import LOST, NO_RESOURCE, NO_TEMPLATE, NOT_OURS, QUOTA, RESTORED, TOLERATION
from kubectl_dra.migrate.reverse.resources import Named, Unnamed, candidates
from kubectl_dra.migrate.vendors.model import Resource

Key = tuple[str, str, str]
"""Kind, namespace and name."""

_BY_HAND: Final = "Take the manifest from before out of version control, or write the resource and remove the claim."
_READ: Final = "Name the file that has it as well; what is in the cluster only, kubectl get -o yaml writes."
_MOST_TRIES: Final = 32
_FIELDS: Final[Mapping[str, tuple[str, Share]]] = {
    "resourceClaimTemplateName": ("ResourceClaimTemplate", "template"),
    "resourceClaimName": ("ResourceClaim", "claim"),
}


class Reversal(NamedTuple):
    """The plan of one object, and the claims and templates that it then needs no more."""

    plan: ObjectPlan
    freed: tuple[Key, ...] = ()


class _Entry(NamedTuple):
    """A claim of a pod: its place in the list, its object, and the requests of that."""

    place: int
    name: str
    key: Key
    share: Share
    requests: Mapping[str, Mapping[str, Any]]


class _Stop(Exception):
    """Why an object is left alone."""

    def __init__(self, code: str, path: Path, message: str, way_out: str = _BY_HAND) -> None:
        self.refusal = PlanRefusal(code, path, message, way_out)


def key_of(raw: Mapping[str, Any]) -> Key:
    """Kind, namespace and name of an object."""
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return str(raw.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def plan(raw: Mapping[str, Any], world: Mapping[Key, Mapping[str, Any]], settings: MigrationSettings) -> Reversal:
    """Plans the way back of a workload or quota. ``world`` has all objects of the run by key."""
    hard = quotas.HARD.get(workload_key(raw))
    if hard is not None:
        return Reversal(_quota(raw, hard, settings))
    try:
        return _workload(raw, world, settings)
    except _Stop as stop:
        return Reversal(ObjectPlan(refusals=(stop.refusal,)))


def references(raw: Mapping[str, Any]) -> Iterator[Key]:
    """The claims and templates that the pods of an object refer to."""
    namespace = key_of(raw)[1]
    for spec in pod_specs(raw):
        for entry in _list(spec.content.get("resourceClaims")):
            for field, (kind, _) in _FIELDS.items():
                if isinstance(entry, Mapping) and isinstance(entry.get(field), str):
                    yield kind, namespace, entry[field]


# --- workloads -------------------------------------------------------------------------------------


def _workload(raw: Mapping[str, Any], world: Mapping[Key, Mapping[str, Any]], settings: MigrationSettings) -> Reversal:
    others: list[PlanRefusal] = []
    choices: dict[tuple[Key, str], list[Named]] = {}
    entries = [(spec, list(_entries(raw, spec, world, settings, choices, others))) for spec in pod_specs(raw)]
    used = [entry for _, found in entries for entry in found]
    if not used:
        return Reversal(ObjectPlan(refusals=tuple(others)))
    shares = {entry.share for entry in used}
    if len(shares) > 1:
        where = (*entries[0][0].path, "resourceClaims")
        raise _Stop(NOT_OURS, where, "migrate makes claims or claim templates of a workload, and not both")
    forward = replace(settings, reverse=False, strategy="claims", share=shares.pop(), version="v1")
    freed = tuple(dict.fromkeys(entry.key for entry in used))
    made = {key: to_v1(world[key]) for key in freed}
    around = PlanSurroundings(
        [other for key, other in world.items() if key not in made], frozenset(key for key in world if key not in made)
    )
    problem = ""
    fitting: list[tuple[list[Change], list[Resource]]] = []
    for changes, resources in _tries(entries, choices, settings):
        found = _difference(raw, changed(raw, changes), made, around, forward)
        problem = problem or found
        if not found:
            fitting.append((changes, resources))
    if fitting:
        changes, resources = fitting[0]
        alike = [one.name for _, others_too in fitting[1:] for one in others_too if one not in resources]
        planned = _planned(raw, entries, changes, resources, made, around, forward, alike)
        return Reversal(replace(planned, refusals=tuple(others)), freed)
    path = next((*spec.path, "resourceClaims") for spec, found in entries if found)
    raise _Stop(NOT_OURS, path, problem or "it asks for devices in a way that migrate does not write")


def _entries(
    raw: Mapping[str, Any],
    spec: PodSpec,
    world: Mapping[Key, Mapping[str, Any]],
    settings: MigrationSettings,
    choices: dict[tuple[Key, str], list[Named]],
    others: list[PlanRefusal],
) -> Iterator[_Entry]:
    """The claims that migrate can have made; ``choices`` get their resources, ``others`` why the rest stays."""
    for index, entry in enumerate(_list(spec.content.get("resourceClaims"))):
        path: Path = (*spec.path, "resourceClaims", index)
        try:
            found = _entry(raw, path, entry, world)
            if found is None:
                continue
            for name, exactly in found.requests.items():
                choices[found.key, name] = _candidates(found, name, exactly, path, settings)
            yield found
        except _Stop as stop:
            others.append(stop.refusal)


def _entry(raw: Mapping[str, Any], path: Path, entry: Any, world: Mapping[Key, Mapping[str, Any]]) -> _Entry | None:
    for field, (kind, share) in _FIELDS.items():
        if not isinstance(entry, Mapping) or not isinstance(entry.get(field), str):
            continue
        key = (kind, key_of(raw)[1], entry[field])
        found = world.get(key)
        if found is None or not str(found.get("apiVersion")).startswith(f"{GROUP}/v1"):
            raise _Stop(NO_TEMPLATE, path, f"{kind} {entry[field]} is not among the files that were read", _READ)
        below: Path = ("spec", "spec", "devices") if kind == "ResourceClaimTemplate" else ("spec", "devices")
        try:
            devices = value_at(reshaped(found), below)
        except (AttributeError, KeyError, TypeError, ValueError):
            devices = None
        requests = {
            str(request.get("name")): request["exactly"]
            for request in _list(devices.get("requests") if isinstance(devices, Mapping) else None)
            if isinstance(request, Mapping) and isinstance(request.get("exactly"), Mapping)
        }
        if not requests or set(devices) != {"requests"} or len(requests) != len(devices["requests"]):
            message = f"{kind} {entry[field]} has constraints, alternatives or settings, and migrate writes none"
            raise _Stop(NOT_OURS, path, message)
        return _Entry(int(path[-1]), str(entry.get("name")), key, share, requests)
    return None


def _candidates(
    entry: _Entry, name: str, exactly: Mapping[str, Any], path: Path, settings: MigrationSettings
) -> list[Named]:
    try:
        return candidates(exactly, settings.catalogue)
    except Unnamed as unnamed:
        raise _Stop(NO_RESOURCE, path, f"request {name} of {entry.key[0]} {entry.key[2]}: {unnamed}") from None


def _tries(
    entries: Sequence[tuple[PodSpec, Sequence[_Entry]]],
    choices: Mapping[tuple[Key, str], Sequence[Named]],
    settings: MigrationSettings,
) -> Iterator[tuple[list[Change], list[Resource]]]:
    """What the object may have been: the changes that lead there, for each way to name its requests.

    Raises:
        _Stop: there is none, or more than one.
    """
    problem: _Stop | None = None
    fitted: dict[tuple[str, ...], tuple[list[Change], list[Resource]]] = {}
    for number, names in enumerate(product(*choices.values())):
        if number == _MOST_TRIES:
            break
        named = dict(zip(choices, names, strict=True))
        try:
            changes = [change for spec, found in entries for change in _of_spec(spec, found, named, settings)]
        except _Stop as stop:
            problem = problem or stop
            continue
        resources = list({one.resource.name: one.resource for one in named.values()}.values())
        fitted[tuple(one.resource.name for one in named.values())] = changes, resources
    if not fitted and problem is not None:
        raise problem
    if len(fitted) > 1 and not _alike([resources for _, resources in fitted.values()]):
        path = next((*spec.path, "resourceClaims") for spec, found in entries if found)
        either = " or ".join(", ".join(dict.fromkeys(names)) for names in fitted)
        raise _Stop(NO_RESOURCE, path, f"the claim can have been made from {either}")
    yield from fitted.values()


def _alike(tries: Sequence[Sequence[Resource]]) -> bool:
    """Whether it makes no difference which of several: a device plugin that offers its devices by two names."""
    return len({repr([one._replace(name="", tolerations=()) for one in resources]) for resources in tries}) == 1


def _of_spec(
    spec: PodSpec, entries: Sequence[_Entry], named: Mapping[tuple[Key, str], Named], settings: MigrationSettings
) -> Iterator[Change]:
    """The changes of one pod spec."""
    if not entries:
        return
    every = _list(spec.content.get("resourceClaims"))
    if len(entries) == len(every) and set(spec.content) == {"resourceClaims"}:
        # Values of a chart had no settings of the pod before.
        yield Delete(spec.path)
    elif len(entries) == len(every):
        yield Delete((*spec.path, "resourceClaims"))
    else:
        yield from (Delete((*spec.path, "resourceClaims", entry.place)) for entry in entries)
    by_name = {entry.name: entry for entry in entries}
    counts: dict[str, int | None] = {}
    for container in containers(spec):
        amounts, changes = _of_container(spec, container, by_name, named, settings)
        yield from changes
        if not container.init:
            for name, amount in amounts.items():
                counts[name] = (counts.get(name) or 0) + amount
    labels = []
    # What the labels that stayed say depends on what the pod asked for.
    before = {**spec.content, "containers": [{"resources": {"limits": counts}}]}
    for entry in entries:
        for request, exactly in entry.requests.items():
            one = named[entry.key, request]
            path: Path = (*spec.path, "resourceClaims", entry.place)
            _check_label(spec, one.resource, str(exactly.get("deviceClassName")), path, settings)
            kept = placement(before, one.resource, settings.catalogue, settings.release).selectors
            rest = [selector for selector in one.rest if selector not in kept]
            try:
                device_class = str(exactly.get("deviceClassName"))
                found = conditions(rest, one.resource, settings.catalogue, counts, device_class)
            except Unnamed as unnamed:
                message = f"request {request} of {entry.key[0]} {entry.key[2]}: {unnamed}"
                raise _Stop(NO_RESOURCE, path, message) from None
            labels += [each for each in found if each not in labels]
    try:
        yield from chosen(spec.content, spec.path, labels)
    except Unnamed as unnamed:
        raise _Stop(NO_RESOURCE, spec.path, str(unnamed)) from None


def _check_label(spec: PodSpec, resource: Resource, device_class: str, path: Path, settings: MigrationSettings) -> None:
    """Refuses where a label that stayed on the pod can have chosen the class for another resource of the vendor."""
    for rule in settings.catalogue.vendor(resource.vendor).resources:
        other = settings.catalogue.resource(rule.name) if rule.name else None
        if other is None or other.name == resource.name or other.outcome not in ("auto", "note"):
            continue
        if placement(spec.content, other, settings.catalogue, settings.release).device_class == device_class:
            message = f"class {device_class} can be that of {resource.name}, or of {other.name} with a label of the pod"
            raise _Stop(NO_RESOURCE, path, message)


def _of_container(
    spec: PodSpec,
    container: PodContainer,
    entries: Mapping[str, _Entry],
    named: Mapping[tuple[Key, str], Named],
    settings: MigrationSettings,
) -> tuple[dict[str, int], list[Change]]:
    """What a container asked for, and the changes that ask for it again."""
    path: Path = (*container.path, "resources")
    resources = container.content.get("resources")
    claims = _list(resources.get("claims")) if isinstance(resources, Mapping) else []
    amounts: dict[str, int] = {}
    gone: list[int] = []
    for index, claim in enumerate(claims):
        entry = entries.get(str(claim.get("name"))) if isinstance(claim, Mapping) else None
        if entry is None:
            continue
        gone.append(index)
        wanted = claim.get("request")
        for name, exactly in entry.requests.items():
            if wanted in (None, "", name):
                one = named[entry.key, name]
                count = exactly.get("count") or 1
                if one.resource.allocation_mode == "All":
                    count = _all_of(spec, one.resource, (*spec.path, "resourceClaims", entry.place), settings)
                amounts[one.resource.name] = amounts.get(one.resource.name, 0) + count
                amounts.update(one.parts)
    if not gone:
        return {}, []
    changes: list[Change] = [Delete((*path, "claims", index)) for index in gone]
    if len(gone) == len(claims):
        changes = [Delete((*path, "claims"))]
    limits = resources.get("limits") if isinstance(resources, Mapping) else None
    written = {name: _written(amount, resources) for name, amount in amounts.items()}
    if isinstance(limits, Mapping) and limits:
        changes += [Set((*path, "limits", name), amount) for name, amount in written.items()]
    else:
        changes.append(Set((*path, "limits"), written))
    return amounts, changes


def _all_of(spec: PodSpec, resource: Resource, path: Path, settings: MigrationSettings) -> int:
    """How many a claim for all devices of a node stands for: as many as the topology has that the pod asks for."""
    for stated in node_selector(spec.content):
        labelled = settings.catalogue.label(stated.key, resource)
        if labelled is None or labelled.rule.compare != "topology" or labelled.rule.of != resource.name:
            continue
        if stated.condition is not None and re.fullmatch(r"[0-9]{1,5}(x[0-9]{1,5})*", stated.condition.values[0]):
            return prod(int(side) for side in stated.condition.values[0].split("x"))
    message = f"the claim is for all devices of a node, and no label of the pod says how many {resource.name} these are"
    raise _Stop(NO_RESOURCE, path, message)


def _written(amount: int, resources: Any) -> int | str:
    """The amount as the container's other whole numbers are: as texts where all of them are."""
    found = [resources.get(field) for field in ("limits", "requests")] if isinstance(resources, Mapping) else []
    others = [value for each in found if isinstance(each, Mapping) for value in each.values()]
    texts = [value for value in others if isinstance(value, str) and value.isdecimal()]
    return str(amount) if texts and not any(isinstance(value, int) for value in others) else amount


def _difference(
    now: Mapping[str, Any],
    before: Mapping[str, Any],
    made: Mapping[Key, Mapping[str, Any]],
    around: PlanSurroundings,
    forward: MigrationSettings,
) -> str:
    """How what migrate makes of ``before`` differs from what is there; empty if it does not."""
    planned = device_plugins.plan(before, around, forward)
    after = changed(before, [change for step in planned.steps for change in step.changes])
    objects = {key_of(one.raw): to_v1(one.raw) for one in planned.objects}
    if not objects and planned.refusals:
        return f"migrate would refuse what it would have been: {planned.refusals[0].message}"
    for key, raw in made.items():
        if key not in objects:
            return f"migrate would not give its {key[0]} the name {key[2]}"
        if objects[key].get("spec") != raw.get("spec"):
            return f"{key[0]} {key[2]} is not what migrate makes: it was written or changed by hand"
    if len(objects) != len(made):
        return "migrate would make more claims of it than there are"
    return "" if after == now else "the pod uses its claims in another way than migrate writes"


def _planned(
    raw: Mapping[str, Any],
    entries: Sequence[tuple[PodSpec, Sequence[_Entry]]],
    changes: Sequence[Change],
    resources: Sequence[Resource],
    made: Mapping[Key, Mapping[str, Any]],
    around: PlanSurroundings,
    forward: MigrationSettings,
    alike: Sequence[str],
) -> ObjectPlan:
    names = ", ".join(resource.name for resource in resources)
    path = next((*spec.path, "resourceClaims") for spec, found in entries if found)
    shared = forward.share == "claim" and raw.get("kind") != "Pod"
    reason = f"the claim becomes {names} again"
    if shared:
        reason += "; each pod then has devices of its own, and all of them together shared these"
    if alike:
        reason += f"; it may have been {', '.join(dict.fromkeys(alike))}, which is the same devices"
    steps = [Step(RESTORED, path, reason, tuple(changes), "unsafe" if shared or alike else "safe")]
    extra: list[Change] = []
    for spec, found in entries:
        extra += _tolerations(spec, resources) if found else []
    less = [*changes, *extra]
    if extra and not _difference(raw, changed(raw, less), made, around, forward):
        reason = "a toleration is there that migrate may have added, or somebody by hand"
        steps.append(Step(TOLERATION, extra[0].path, reason, tuple(extra), "unsafe"))
    message = "what migrate took out beside the request (implied labels, variables, annotations) is not kept anywhere"
    return ObjectPlan(tuple(steps), notes=(Note(LOST, path, message),))


def _tolerations(spec: PodSpec, resources: Sequence[Resource]) -> list[Change]:
    """The deletions of tolerations that stand where migrate puts them: last in their list."""
    found = _list(spec.content.get("tolerations"))
    ours = [toleration for resource in resources for toleration in resource.tolerations]
    first = len(found)
    while first and found[first - 1] in ours:
        first -= 1
    path: Path = (*spec.path, "tolerations")
    if first == len(found):
        return []
    return [Delete(path)] if first == 0 else [Delete((*path, index)) for index in range(first, len(found))]


# --- quotas ----------------------------------------------------------------------------------------


def _quota(raw: Mapping[str, Any], path: Path, settings: MigrationSettings) -> ObjectPlan:
    """The keys that migrate added go, where it would add just them again."""
    hard = value_at(raw, path)
    keys = [key for key in hard if str(key).endswith(".deviceclass.resource.k8s.io/devices")] if hard else []
    changes = tuple(Delete((*path, key)) for key in keys)
    if not changes:
        return ObjectPlan()
    before = changed(raw, changes)
    forward = replace(settings, reverse=False, strategy="claims")
    again = quotas.plan(before, PlanSurroundings(), forward)
    after = changed(before, [change for step in again.steps for change in step.changes])
    if after != raw:
        names = ", ".join(str(key) for key in keys)
        way_out = "Take the keys out by hand when no pod of the namespace has claims any more."
        message = f"{names} is not what migrate adds to this quota"
        return ObjectPlan(refusals=(PlanRefusal(NOT_OURS, (*path, keys[0]), message, way_out),))
    reason = f"the quota counts {', '.join(map(str, keys))} no more"
    return ObjectPlan((Step(QUOTA, (*path, keys[0]), reason, changes),))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
