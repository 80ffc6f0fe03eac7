"""Requests of one pod that conflict with each other or with what the pod already has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kubectl_dra.manifests.changes import Path, value_at
from kubectl_dra.manifests.workloads import WorkloadPodSpec, containers
from kubectl_dra.migrate.device_plugins.asks import Ask
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan
from kubectl_dra.migrate.model import PlanRefusal


def no_list(spec: WorkloadPodSpec) -> PlanRefusal | None:
    """The refusal if something else stands where claims or tolerations would be added to a list."""
    paths: list[Path] = [(*spec.path, "resourceClaims"), (*spec.path, "tolerations")]
    values = [value_at(spec.content, path[len(spec.path) :]) for path in paths]
    for container in containers(spec):
        paths.append((*container.path, "resources", "claims"))
        values.append(value_at(container.content, ("resources", "claims")))
    for path, value in zip(paths, values, strict=True):
        if value and not isinstance(value, list):
            return PlanRefusal("MIG125", path, f"{path[-1]} is not a list", "Write it as a list, and migrate again.")
    return None


def held_back(ask: Ask) -> PlanRefusal:
    """The refusal of a request whose vendor cannot be migrated in this pod."""
    message = (
        f"container {ask.container.name}: {ask.resource.name} stays, because something else of its vendor in the pod "
        "cannot be migrated"
    )
    return PlanRefusal("MIG118", ask.keys[0], message, "Solve what is refused there; then both go together.")


def only_one(asks: Sequence[Ask], held: set[str]) -> Iterator[PlanRefusal]:
    """The refusal for a driver that gives all devices of a node to one claim, if two containers want some."""
    seen: dict[str, Ask] = {}
    for ask in asks:
        starts_first = ask.container.init and not ask.container.sidecar
        if ask.resource.allocation_mode != "All" or starts_first:
            continue
        if seen.setdefault(ask.resource.name, ask) is not ask and ask.resource.vendor not in held:
            held.add(ask.resource.vendor)
            message = f"two containers ask for {ask.resource.name}, and its driver gives a node's devices to one claim"
            way_out = "Let one container have all, or write by hand one request that both refer to."
            yield PlanRefusal("MIG113", ask.keys[0], message, way_out)


def claimed_already(
    asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], classes: Collection[str], held: set[str]
) -> Iterator[PlanRefusal]:
    """Requests of a pod that already claims the same class: most likely an unfinished manual migration."""
    vendors = set(held)
    for ask in asks:
        device_class = placements.get(ask.resource.name, PlacementPlan()).device_class or ask.resource.device_class
        if device_class in classes and ask.resource.vendor not in vendors and not ask.resource.part_of:
            held.add(ask.resource.vendor)
            message = (
                f"container {ask.container.name}: {ask.resource.name} stands beside a claim for {device_class}, and "
                "it is unclear whether the claim replaces it"
            )
            way_out = "Remove the resource if the claim replaces it; otherwise remove the claim and migrate again."
            yield PlanRefusal("MIG124", ask.keys[0], message, way_out)


def without_lone_parts(asks: Sequence[Ask], refusals: list[PlanRefusal]) -> tuple[Ask, ...]:
    """The requests, without those for a share of devices that their container does not request."""
    whole = {(ask.container.path, ask.resource.name) for ask in asks}
    out: list[Ask] = []
    for ask in asks:
        if ask.resource.part_of and (ask.container.path, ask.resource.part_of) not in whole:
            message = (
                f"{ask.resource.name} says how much of {ask.resource.part_of}, which the container does not ask for"
            )
            way_out = f"Add {ask.resource.part_of} with the number of devices."
            refusals.append(PlanRefusal("MIG112", ask.keys[0], message, way_out))
        else:
            out.append(ask)
    return tuple(out)
