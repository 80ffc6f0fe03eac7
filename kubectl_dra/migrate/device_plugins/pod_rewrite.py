"""From requests of device plugins to claims, in every pod spec of a workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.releases import GROUP, gate_default
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Append, Change, Delete, Set, fields_at, items_at, value_at
from kubectl_dra.manifests.workloads import WorkloadPodSpec, containers, key_of
from kubectl_dra.migrate.codes import Safety
from kubectl_dra.migrate.device_plugins import environment as frameworks
from kubectl_dra.migrate.device_plugins.asks import Ask, Asks, by_name, extended, read_asks, why_claims
from kubectl_dra.migrate.device_plugins.asks import said as said_of
from kubectl_dra.migrate.device_plugins.claim_wiring import (
    Claim,
    Wiring,
    claimed_already,
    claimed_classes,
    held_back,
    moved,
    no_list,
    of_claims,
    only_one,
    wired,
    without_lone_parts,
)
from kubectl_dra.migrate.device_plugins.environment import environment, of_driver
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, agreed, missing, placement
from kubectl_dra.migrate.device_plugins.pods import base_claims, claimless, is_patch, plan_patch, pods_of, tidied
from kubectl_dra.migrate.model import (
    MigrationSettings,
    Moved,
    NewObject,
    Note,
    ObjectPlan,
    PlanRefusal,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.new_objects import (
    free_object,
    in_version,
    named_in_space,
    namespace_of,
    roles,
    template_key,
    workload_name,
)

# Pods of one ResourceClaim run on one node, if its device is on one: only one pod, or pods that may stand together.
_MAY_SHARE: Final = frozenset(
    (
        ("", "Pod"),
        ("", "ReplicationController"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("argoproj.io", "Rollout"),
    )
)


_NO_NAME: Final = PlanRefusal(
    "MIG117",
    ("metadata",),
    "the new claims would be named after the object, whose own name is missing or not valid",
    "Give it its name (fill the template in first: helm template, oc process), then migrate.",
)
_GUESSED: Final = (
    "the kind is not known: this looks like a pod template, and its CustomResourceDefinition may drop claims (a file "
    "for --vendors can say under workloads that it does not)"
)


class _Pod(NamedTuple):
    """The plan for one pod spec, before its new objects have names."""

    spec: WorkloadPodSpec
    asks: tuple[Ask, ...]
    wiring: Wiring
    changes: tuple[Change, ...]
    reason: str
    doubts: tuple[str, ...]
    notes: tuple[Note, ...]
    moved: tuple[Moved, ...]


class _Said(NamedTuple):
    """What is collected over the pod specs of an object."""

    objects: list[NewObject]
    notes: list[Note]
    refusals: list[PlanRefusal]


def plan(raw: Mapping[str, Any], surroundings: PlanSurroundings, settings: MigrationSettings) -> ObjectPlan:
    """Plan the claims of one workload; see ``model.Plan``."""
    barred = claimless(raw)
    if settings.reverse or (barred is not None and not barred.partly):
        return ObjectPlan()
    if surroundings.patch:
        return plan_patch(raw, surroundings.objects, settings)
    said = _Said([], [], [])
    steps: list[Step] = []
    pods: list[_Pod] = []
    pods_found = pods_of(raw, settings.catalogue)
    for spec in pods_found.specs:
        asks = read_asks(spec, settings.catalogue)
        said.refusals.extend(asks.refusals)
        of_pod = said._replace(notes=[])
        pod = _pod(raw, spec, asks, surroundings, settings, of_pod)
        if pod is not None:
            pods.append(pod._replace(doubts=(*pod.doubts, _GUESSED)) if pods_found.guessed else pod)
            continue
        said.notes.extend(of_pod.notes)
        if asks.zeros:
            changes = tidied(raw, (Delete(path) for path in asks.zeros))
            steps.append(Step("MIG102", asks.zeros[0], "a quantity of 0 asks for no device", changes))
    name = workload_name(raw)
    if pods and name is None:
        # Nothing moves, so nothing is to be known of it.
        return ObjectPlan(tuple(steps), refusals=tuple(dict.fromkeys((*said.refusals, _NO_NAME))))
    if pods and name is not None:
        steps += _named(raw, name, pods, surroundings, settings, said)
    return ObjectPlan(
        tuple(steps),
        tuple({repr(manifest.raw): manifest for manifest in said.objects}.values()),
        tuple(dict.fromkeys(said.notes)),
        tuple(dict.fromkeys(said.refusals)),
    )


def _pod(
    raw: Mapping[str, Any],
    spec: WorkloadPodSpec,
    asks: Asks,
    surroundings: PlanSurroundings,
    settings: MigrationSettings,
    said: _Said,
) -> _Pod | None:
    """The plan for a pod spec; None if nothing changes."""
    held = set(asks.held)
    placements = _placements(spec, asks.asks, settings, said, held)
    users = {ask.container.path for ask in asks.asks if ask.resource.vendor not in held}
    vendors = tuple(dict.fromkeys(ask.resource.vendor for ask in asks.asks if ask.resource.vendor not in held))
    beside = environment(spec, users, vendors, settings.catalogue)
    for vendor, refusal in beside.refusals:
        held.add(vendor)
        said.refusals.append(refusal)
    said.refusals.extend(only_one(asks.asks, held))
    # All objects are searched for claims: only where a request may meet them, or long lists take minutes.
    classes = claimed_classes(spec.content, namespace_of(raw), surroundings.objects) if asks.asks else frozenset()
    said.refusals.extend(claimed_already(asks.asks, placements, classes, held))
    moving = tuple(ask for ask in asks.asks if ask.resource.vendor not in held)
    for ask in asks.asks:
        if ask.resource.vendor in asks.held and not any(ask.keys[0] == refusal.path for refusal in asks.refusals):
            said.refusals.append(held_back(ask))
    moving = without_lone_parts(moving, said.refusals)
    if not moving:
        return None
    if by_name(moving, placements, settings):
        plan = extended(moving, placements, surroundings, settings)
        said.objects.extend(plan.objects)
        said.notes.extend(plan.notes)
        said.refusals.extend(plan.refusals)
        return None
    misshapen = no_list(spec)
    if misshapen is not None:
        said.refusals.append(misshapen)
        return None
    if not _can_be_shared(raw, settings, said):
        return None
    said.notes.extend(beside.notes)
    said.notes.extend(
        Note("MIG130", ask.keys[0], said_of(ask.resource.name, ask.resource.message))
        for ask in moving
        if ask.resource.message
    )
    stays = [*asks.beside, *(ask.resource.name for ask in asks.asks if ask.resource.vendor in held)]
    if stays:
        message = f"the pod claims devices and still asks device plugins for {', '.join(dict.fromkeys(stays))}"
        message += ": nothing places them near each other, and a node needs both"
        said.notes.append(Note("MIG133", spec.path, message, done=True))
    advice = frameworks.of_spec(raw, spec, moving)
    said.notes.extend(advice.notes)
    changes, reasons, doubts = _placed(spec, moving, placements, said)
    wiring = wired(moving, placements, _claim_names(spec))
    changes += [Delete(path) for path in asks.zeros]
    changes += [Delete(path) for ask in moving for path in ask.keys]
    for path, entries in wiring.references.items():
        changes += added(raw, (*path, "resources", "claims"), entries)
    changes += [*beside.changes, *advice.changes]
    changes += _tolerated(raw, spec, moving, settings, said)
    if is_patch(raw) and not base_claims(raw, surroundings.objects, settings.catalogue):
        doubts.append(
            "no container has an image, so it is probably a patch, and kustomize would not read a new object in its "
            "file as a resource; migrate it together with what it patches"
        )
    said.notes.extend(_gates(moving, settings))
    if spec.content.get("priorityClassName"):
        message = "its priority moves it ahead in the queue, but no pod is evicted to free a device for a claim"
        said.notes.append(Note("MIG142", (*spec.path, "priorityClassName"), message))
    messages = {note.message for note in said.notes}
    notes = [(path, message) for path, message in frameworks.by_labels(spec.content) if message not in messages]
    said.notes.extend(Note("MIG141", (*spec.path, *path), message) for path, message in notes)
    for ask in moving:
        if ask.resource.name in surroundings.shared:
            doubts.append(f"{surroundings.shared[ask.resource.name]} lets several pods share one {ask.resource.name}")
            said.notes.append(Note("MIG143", ask.keys[0], _to_share(ask)))
    chosen = why_claims(moving, placements, settings) if settings.strategy == "auto" else ""
    reasons += [f"a claim and not the resource's name, because of {chosen}"] if chosen else []
    notes_once = tuple(dict.fromkeys(said.notes))
    reason = of_claims(moving, placements, reasons)
    return _Pod(spec, moving, wiring, tuple(changes), reason, tuple(doubts), notes_once, moved(moving, placements))


def _placements(
    spec: WorkloadPodSpec, asks: Sequence[Ask], settings: MigrationSettings, said: _Said, held: set[str]
) -> dict[str, PlacementPlan]:
    annotations = fields_at(spec.metadata, "annotations")
    out: dict[str, PlacementPlan] = {}
    for ask in asks:
        resource = ask.resource
        if resource.name in out or resource.part_of:
            continue
        plan = placement(spec.content, resource, settings.catalogue, settings.release, annotations)
        out[resource.name] = plan
        for path, why, way_out in plan.refusals:
            said.refusals.append(PlanRefusal("MIG116", (*spec.path, *path), why.rstrip("."), way_out))
            held.add(resource.vendor)
    return out


def _placed(
    spec: WorkloadPodSpec, asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], said: _Said
) -> tuple[list[Change], list[str], list[str]]:
    """The changes of labels and affinity, the reasons, and why any of it is unsafe."""
    resources = {ask.resource.name: ask.resource for ask in asks}
    doubts = of_driver(resources)
    used = [placements[name] for name in resources if name in placements]
    if any(plan.safety == "unsafe" for plan in used):
        doubts.append("the claim does not say all that the labels said")
    labels = agreed(spec.content, used)
    changes: list[Change] = [replace(change, path=(*spec.path, *change.path)) for change in labels.changes]
    changes += [Delete((*spec.metadata_path, "annotations", name)) for plan in used for name in plan.annotations]
    for code, sentences in (("MIG131", labels.stays), ("MIG144", labels.goes)):
        for path, sentence in sentences:
            said.notes.append(Note(code, (*spec.path, *path), sentence.rstrip("."), writes=code == "MIG144"))
    return changes, list(labels.reasons), doubts


def _to_share(ask: Ask) -> str:
    how = "pods that trust each other can refer to one ResourceClaim, and then run on its node"
    if ask.resource.vendor == "nvidia":
        how += (
            "; its config for the driver, a GpuConfig, chooses sharing.strategy TimeSlicing or MPS (driver gates "
            "TimeSlicingSettings and MPSSupport)"
        )
    return f"the pod had a share of a device, and a claim takes a whole one: {how}"


def _claim_names(spec: WorkloadPodSpec) -> set[str]:
    """The names of the claims that a pod has or mentions."""
    claims = [*items_at(spec.content, "resourceClaims")]
    for container in containers(spec):
        claims += items_at(container.content, "resources", "claims")
    return {str(claim.get("name")) for claim in claims if isinstance(claim, Mapping)}


def added(raw: Mapping[str, Any], path: FieldPath, items: Sequence[Mapping[str, Any]]) -> Iterator[Change]:
    """Append items to a list that may not exist yet."""
    if value_at(raw, path):
        for item in items:
            yield Append(path, dict(item))
    elif items:
        yield Set(path, [dict(item) for item in items])


def _gates(asks: Sequence[Ask], settings: MigrationSettings) -> Iterator[Note]:
    for ask in asks:
        for gate in ask.resource.gates:
            if not gate_default(gate, settings.release):
                message = f"{ask.resource.name} needs the feature gate {gate}, off in {settings.release} by default"
                yield Note("MIG138", ask.keys[0], message)


def _tolerated(
    raw: Mapping[str, Any], spec: WorkloadPodSpec, asks: Sequence[Ask], settings: MigrationSettings, said: _Said
) -> Iterator[Change]:
    """Tolerations for taints that the vendor's nodes are known to have; others would never match."""
    taints = {taint for ask in asks for taint in settings.catalogue.vendor(ask.resource.vendor).taints}
    wanted = missing(spec.content, [ask.resource for ask in asks])
    known = [toleration for toleration in wanted if toleration.get("key") in taints]
    path = (*spec.path, "tolerations")
    if known:
        keys = ", ".join(toleration.get("key", "") for toleration in known)
        what, them = ("a toleration for taint", "it") if len(known) == 1 else ("tolerations for taints", "them")
        message = (
            f"adds {what} {keys}: for an extended resource an admission plugin may add {them}, for a claim none does"
        )
        said.notes.append(Note("MIG107", path, message, writes=True))
    return added(raw, path, known)


def _can_be_shared(raw: Mapping[str, Any], settings: MigrationSettings, said: _Said) -> bool:
    if settings.share == "template" or (key_of(raw) in _MAY_SHARE and not frameworks.is_queued(raw)):
        return True
    if frameworks.is_queued(raw):
        message, way_out = "Kueue counts claims from templates only", "Migrate it without --share claim."
        said.refusals.append(PlanRefusal("MIG119", ("kind",), message, way_out))
        return False
    message = f"one ResourceClaim for all pods of a {key_of(raw)[1]} would hold them all to one node and its devices"
    way_out = "Migrate it without --share claim: each pod then has a claim of its own."
    said.refusals.append(PlanRefusal("MIG119", ("kind",), message, way_out))
    return False


def _named(
    raw: Mapping[str, Any],
    name: str,
    pods: Sequence[_Pod],
    surroundings: PlanSurroundings,
    settings: MigrationSettings,
    said: _Said,
) -> Iterator[Step]:
    """Name the new objects, and the pods' references to them."""
    kind = "ResourceClaim" if settings.share == "claim" else "ResourceClaimTemplate"
    namespace = namespace_of(raw)
    mine: set[tuple[str, str, str]] = set()
    words = roles(raw, [pod.spec.path for pod in pods])
    names: dict[str, str] = {}
    alike = len({repr([(claim.what, claim.spec) for claim in pod.wiring.claims]) for pod in pods}) == 1
    requests: list[Mapping[str, Any]] = []
    for pod, role in zip(pods, words, strict=True):
        entries: list[dict[str, str]] = []
        for claim in pod.wiring.claims:
            object_name = names.get(repr((claim.what, claim.spec)))
            if object_name is None:
                object_name = _there(kind, namespace, claim, surroundings, settings)
                what = "" if alike and claim.what in (name, name.rpartition("-")[2]) else claim.what
                wanted = "-".join(part for part in (name, "" if alike else role, what) if part)
                object_name = object_name or free_object(
                    kind, namespace, wanted.replace(".", "-"), surroundings.taken, mine
                )
                mine.add((kind, namespace, object_name))
                names[repr((claim.what, claim.spec))] = object_name
                safety = _of_all(pods, claim, settings, raw)
                said.objects.append(claim_object(kind, object_name, namespace, claim, safety))
            field = "resourceClaimName" if settings.share == "claim" else "resourceClaimTemplateName"
            entries.append({"name": claim.name, field: object_name})
            requests += [request["exactly"] for request in claim.spec["devices"]["requests"]]
        listed = added(raw, (*pod.spec.path, "resourceClaims"), entries)
        changes = _with_parent(raw, pod.spec.path, tidied(raw, (*pod.changes, *listed)))
        doubts = _doubts(pod, settings, raw)
        reason = f"{pod.reason}; unsafe, because {' and '.join(doubts)}" if doubts else pod.reason
        yield Step("MIG101", pod.asks[0].keys[0], reason, changes, "unsafe" if doubts else "safe", pod.notes, pod.moved)
    classes = [request["deviceClassName"] for request in requests]
    every = any(request.get("allocationMode") == "All" for request in requests)
    said.notes.extend(frameworks.of_object(raw, classes, every))
    if settings.share == "claim" and key_of(raw)[1] != "Pod":
        message = "all its pods use the same devices, and run where these are: count the replicas that fit"
        said.notes.append(Note("MIG108", ("spec",), message, done=True))


def _there(kind: str, namespace: str, claim: Claim, surroundings: PlanSurroundings, settings: MigrationSettings) -> str:
    """The template of a sibling that says the same; empty if there is none."""
    if kind != "ResourceClaimTemplate" or not surroundings.alike:
        return ""
    raw = in_version(claim_object(kind, "", namespace, claim, "safe").raw, settings.version)
    return surroundings.alike.get(template_key(raw), "")


def _with_parent(raw: Mapping[str, Any], path: FieldPath, changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes, preceded by one that creates a missing pod spec from the fields set in it."""
    if value_at(raw, path) is not None:
        return tuple(changes)
    fields = {
        str(change.path[-1]): change.value for change in changes if isinstance(change, Set) and change.path[:-1] == path
    }
    rest = [change for change in changes if not (isinstance(change, Set) and change.path[:-1] == path)]
    return (*rest, Set(path, fields))


def _doubts(pod: _Pod, settings: MigrationSettings, raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Why the change of a pod is unsafe; empty if it is safe."""
    doubts = list(pod.doubts)
    if settings.share == "claim" and key_of(raw)[1] != "Pod":
        doubts.append("pods that had their own devices share them")
    if key_of(raw)[1] == "HelmRelease":
        doubts.append("what the chart makes of its values is not certain")
    return tuple(doubts)


def _of_all(pods: Sequence[_Pod], claim: Claim, settings: MigrationSettings, raw: Mapping[str, Any]) -> Safety:
    """Safety of a claim shared by several pods: that of the safest of them."""
    users = [
        pod for pod in pods if any((wired.what, wired.spec) == (claim.what, claim.spec) for wired in pod.wiring.claims)
    ]
    return "safe" if any(not _doubts(pod, settings, raw) for pod in users) else "unsafe"


def claim_object(kind: str, name: str, namespace: str, claim: Claim, safety: Safety) -> NewObject:
    """A ResourceClaim, or a template for one, that is added for a workload."""
    metadata = named_in_space(name, namespace)
    spec = claim.spec if kind == "ResourceClaim" else {"spec": claim.spec}
    raw: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}
    reason = "each pod gets a claim like this" if kind == "ResourceClaimTemplate" else "all pods use this claim"
    return NewObject("MIG104" if kind == "ResourceClaim" else "MIG103", raw, reason, safety)
