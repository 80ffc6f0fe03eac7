"""Quotas and queues that count device plugins' resources get keys that count claims."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Set, fields_at, items_at, value_at
from kubectl_dra.manifests.workloads import GroupKind, key_of
from kubectl_dra.migrate.device_plugins.asks import shown, within
from kubectl_dra.migrate.model import (
    MigrationSettings,
    NamespaceDemand,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended
from kubectl_dra.migrate.vendors.model import Resource

HARD: Final[Mapping[GroupKind, FieldPath]] = {
    ("", "ResourceQuota"): ("spec", "hard"),
    ("kubeflow.org", "Profile"): ("spec", "resourceQuotaSpec", "hard"),
}
_VOLCANO_FIELDS: Final[tuple[FieldPath, ...]] = (
    ("spec", "capability"),
    ("spec", "deserved"),
    ("spec", "guarantee", "resource"),
)
QUOTAS: Final[frozenset[GroupKind]] = frozenset(
    (
        *HARD,
        ("", "LimitRange"),
        ("kueue.x-k8s.io", "ClusterQueue"),
        ("kueue.x-k8s.io", "Cohort"),
        ("scheduling.volcano.sh", "Queue"),
    )
)
"""The kinds that count resources."""

_COUNT: Final = (
    "Count devices of the class that the pods claim in its place, or say in a file for --vendors that it stays "
    "(outcome: keep)."
)
_LIMITS: Final = ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio")


def plan(raw: Mapping[str, Any], surroundings: PlanSurroundings, settings: MigrationSettings) -> ObjectPlan:
    """Plan the claim keys of one quota, limit range or queue; see ``model.Plan``."""
    key = key_of(raw)
    # Where a DeviceClass carries the resource's name, the old keys count its claims.
    if settings.reverse or settings.strategy == "extended-resource" or key not in QUOTAS:
        return ObjectPlan()
    if key in HARD:
        return _quota(raw, HARD[key], _demand(raw, surroundings), settings)
    if key[1] == "LimitRange":
        return ObjectPlan(notes=tuple(_limit_range(raw, settings)))
    if key[1] == "Queue":
        return _volcano(raw, _demand(raw, surroundings), settings)
    return _kueue(raw, _demand(raw, surroundings), settings)


class _Demanded(NamedTuple):
    """What the pods that a quota counts ask for."""

    namespace: str
    demand: NamespaceDemand

    def waits_for(self, resource: Resource, catalogue: VendorCatalogue) -> str:
        """An object that asks device plugins for the resource, where no claim is for such devices; else empty."""
        claimed = self.demand.classes(self.namespace)
        if any(claimed & _classes_of(reading, catalogue) for reading in catalogue.readings(resource.name)):
            return ""
        return self.demand.who_asks(self.namespace, resource.name)

    def classes(
        self, resource: Resource, others: Collection[str], catalogue: VendorCatalogue, *, offered: bool = False
    ) -> Sequence[str]:
        """The classes of the resource's devices, for each vendor that its claims show: HAMi's are not NVIDIA's.

        These are the vendor's own class and those that labels chose, unless ``others`` have them. With ``offered``,
        claims that only --unsafe writes count too.
        """
        claimed = self.demand.classes(self.namespace)
        if offered:
            claimed |= self.demand.classes_offered(self.namespace)
        shown = [reading for reading in catalogue.readings(resource.name) if claimed & _classes_of(reading, catalogue)]
        out: dict[str, None] = {}
        for reading in shown or [resource]:
            chosen = claimed & catalogue.classes_by_label(reading)
            out |= dict.fromkeys((reading.device_class, *sorted(chosen - {reading.device_class, *others})))
        return tuple(out)


def _classes_of(resource: Resource, catalogue: VendorCatalogue) -> frozenset[str]:
    """The classes that claims for the resource can have."""
    return catalogue.classes_by_label(resource) | {resource.device_class}


def _demand(raw: Mapping[str, Any], surroundings: PlanSurroundings) -> _Demanded:
    return _Demanded(namespace_of_quota(raw), surroundings.demand())


def namespace_of_quota(raw: Mapping[str, Any]) -> str:
    """The namespace that a quota is for; empty where it does not say, or is for all."""
    return str(value_at(raw, ("metadata", "name" if raw.get("kind") == "Profile" else "namespace")) or "")


def _waits(who: str, name: str, resource: Resource, key: str, path: FieldPath) -> Note:
    message = (
        f"nothing here claims the devices of {name}, and {who} still asks the device plugin for {resource.name}: the "
        f"amount stays as it is; {key} has to be added with the first claim, which nothing limits without it"
    )
    return Note("MIG208", path, message)


def quota_key(device_class: str) -> str:
    """The key of a ResourceQuota that counts the devices of a class."""
    return f"{device_class}.deviceclass.resource.k8s.io/devices"


def _quota(raw: Mapping[str, Any], path: FieldPath, demanded: _Demanded, settings: MigrationSettings) -> ObjectPlan:
    added: dict[str, tuple[int, list[FieldPath], list[str]]] = {}
    notes: list[Note] = []
    refusals: list[PlanRefusal] = []
    hard = fields_at(raw, *path)
    own = {found.device_class for key in hard if (found := _resource_of(key, settings)) is not None}
    for key, amount in hard.items():
        name = str(key).removeprefix("requests.").removeprefix("limits.")
        if not is_extended(name):
            continue
        where = (*path, key)
        if not str(key).startswith("requests."):
            if settings.catalogue.moves(name):
                message = f"{key} counts nothing: quotas count extended resources as requests.{name}"
                notes.append(Note("MIG202", where, message))
            continue
        counted = _counted(name, where, settings)
        if isinstance(counted, PlanRefusal):
            refusals.append(counted)
        elif (whole := _whole(amount)) is None:
            refusals.append(_not_a_number(name, amount, where))
        elif counted is not None:
            who = demanded.waits_for(counted, settings.catalogue)
            classes = demanded.classes(counted, own, settings.catalogue, offered=bool(who))
            new_key = quota_key(classes[0])
            if who and new_key not in hard:
                notes.append(_waits(who, key, counted, new_key, where))
                continue
            for device_class in classes:
                sum_so_far, places, names = added.get(device_class, (0, [], []))
                added[device_class] = (sum_so_far + whole, [*places, where], [*names, name])
    changes: list[Change] = []
    split: dict[str, list[str]] = {}
    for device_class, (total, places, names) in added.items():
        if quota_key(device_class) in hard:
            continue
        changes.append(Set((*path, quota_key(device_class)), str(total)))
        both = f"{total} of these and {total} by claims" if len(names) == 1 else "both amounts"
        message = (
            f"requests.{names[0]} stays for pods that still ask for {names[0]}, so that the namespace may have up to "
            f"{both}: take the old key out with the last such pod"
        )
        if (note := Note("MIG204", places[0], message)) not in notes:
            notes.append(note)
        for name in names:
            split.setdefault(name, []).append(device_class)
        if len(names) > 1:
            message = f"{', '.join(names)} are devices of one class, {device_class}: one key counts them together"
            notes.append(Note("MIG204", places[-1], message))
    for name, classes in split.items():
        if len(classes) > 1:
            message = (
                f"requests.{name} counted devices of {' and '.join(classes)} together, and each class now has the "
                "whole number: set the numbers that are meant"
            )
            notes.append(Note("MIG204", (*path, f"requests.{name}"), message))
    spec = value_at(raw, path[:-1])
    if changes and isinstance(spec, Mapping) and (spec.get("scopes") or spec.get("scopeSelector")):
        message = "a quota with scopes counts pods only, and no claims"
        way_out = f"Put {', '.join(quota_key(name) for name in added)} into a quota without scopes."
        return ObjectPlan(notes=(), refusals=(*refusals, PlanRefusal("MIG207", path, message, way_out)))
    steps: tuple[Step, ...] = ()
    if changes:
        keys = "a key of its own" if len(added) == 1 else "keys of their own"
        reason = f"devices of {', '.join(added)} that pods claim are counted by {keys}"
        steps = (Step("MIG201", path, reason, tuple(changes)),)
    return ObjectPlan(steps, (), tuple(notes), tuple(refusals))


def _resource_of(key: object, settings: MigrationSettings) -> Resource | None:
    name = str(key).removeprefix("requests.")
    return settings.catalogue.resource(name) if is_extended(name) else None


def _counted(name: str, path: FieldPath, settings: MigrationSettings) -> Resource | PlanRefusal | None:
    """What a counted resource becomes, or why no key exists for it."""
    resource = settings.catalogue.resource(name)
    if resource is None:
        message = f"{name} belongs to no known vendor, so no key for claims is guessed"
        way_out = "Say in a file for --vendors which DeviceClass it becomes, or that it stays (outcome: keep)."
        return PlanRefusal("MIG111", path, message, way_out)
    if resource.outcome == "keep":
        return None
    if resource.part_of:
        return PlanRefusal(
            "MIG207", path, f"{name}: a quota of claims counts devices, and this is a part of one", _COUNT
        )
    if resource.outcome in ("ask", "refuse") or not resource.device_class:
        reason = resource.message or "it becomes no device of a class"
        # What its users can do is another question, but for names that only quotas have.
        way_out = resource.way_out if resource.kind == "quota" and resource.way_out else _COUNT
        return PlanRefusal("MIG207", path, f"{name}: {within(reason)}", way_out)
    return resource


def _limit_range(raw: Mapping[str, Any], settings: MigrationSettings) -> Iterator[Note]:
    for index, limit in enumerate(items_at(raw, "spec", "limits")):
        for field in _LIMITS:
            for name in fields_at(limit, field):
                if settings.catalogue.moves(str(name)):
                    given = "gives no device to" if field.startswith("default") else "does not limit"
                    message = f"{field} of {name} {given} a pod with claims, and there is no LimitRange for these"
                    yield Note("MIG203", ("spec", "limits", index, field, name), message)


def _kueue(raw: Mapping[str, Any], demanded: _Demanded, settings: MigrationSettings) -> ObjectPlan:
    """A ClusterQueue keeps its names; Kueue's Configuration maps classes to them."""
    notes: list[Note] = []
    refusals: list[PlanRefusal] = []
    groups = items_at(raw, "spec", "resourceGroups")
    covered = [name for group in groups for name in items_at(group, "coveredResources")]
    own = {found.device_class for name in covered if (found := _resource_of(name, settings)) is not None}
    for index, group in enumerate(groups):
        for number, name in enumerate(items_at(group, "coveredResources")):
            path: FieldPath = ("spec", "resourceGroups", index, "coveredResources", number)
            resource = settings.catalogue.resource(str(name)) if is_extended(str(name)) else None
            if resource is None or resource.outcome == "keep":
                continue
            if resource.outcome in ("ask", "refuse") or not resource.device_class:
                reason = resource.message or "claims have no quantity of that name"
                way_out = resource.way_out or "Count devices in its place."
                refusals.append(PlanRefusal("MIG207", path, f"{name}: {within(reason)}", way_out))
                continue
            classes = ", ".join(demanded.classes(resource, own, settings.catalogue, offered=True))
            message = (
                f"the queue keeps {name}: for pods with claims add to Kueue's Configuration (v1beta2) "
                f"resources.deviceClassMappings: [{{name: {name}, deviceClassNames: [{classes}]}}]"
            )
            notes.append(Note("MIG205", path, message))
    return ObjectPlan(notes=tuple(notes), refusals=tuple(refusals))


def _volcano(raw: Mapping[str, Any], demanded: _Demanded, settings: MigrationSettings) -> ObjectPlan:
    changes: list[Change] = []
    notes: list[Note] = []
    refusals: list[PlanRefusal] = []
    first: FieldPath = ()
    for path in _VOLCANO_FIELDS:
        amounts = fields_at(raw, *path)
        for name, amount in amounts.items():
            if not is_extended(str(name)) or str(name).startswith("deviceclass/"):
                continue
            counted = _counted(str(name), (*path, name), settings)
            if isinstance(counted, PlanRefusal):
                refusals.append(counted)
                continue
            if counted is None:
                continue
            who = demanded.waits_for(counted, settings.catalogue)
            classes = demanded.classes(counted, (), settings.catalogue, offered=bool(who))
            keys = [f"deviceclass/{class_name}" for class_name in classes]
            if who and keys[0] not in amounts:
                notes.append(_waits(who, str(name), counted, keys[0], (*path, name)))
                continue
            for key in keys:
                if key not in amounts and Set((*path, key), amount) not in changes:
                    first = first or (*path, name)
                    changes.append(Set((*path, key), amount))
    steps: tuple[Step, ...] = ()
    if changes:
        reason = "Volcano counts claims of a class as deviceclass/CLASS"
        steps = (Step("MIG206", first, reason, tuple(changes)),)
    return ObjectPlan(steps, (), tuple(notes), tuple(refusals))


def _whole(value: Any) -> int | None:
    try:
        quantity = Quantity.from_json(value)
    except QuantityError:
        return None
    return quantity.value() if quantity.is_integer() and quantity.sign() >= 0 else None


def _not_a_number(name: str, value: Any, path: FieldPath) -> PlanRefusal:
    message = f"requests.{name} is {shown(value)}, which is not a number of devices"
    return PlanRefusal("MIG114", path, message, "Put the number in (fill the template in first), then migrate.")
