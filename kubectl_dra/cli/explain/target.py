"""Finds what is asked about: parses the arguments, then looks up the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.cli.kind_words import KINDS, VOLCANO_JOB, WORKLOADS, kind_of
from kubectl_dra.cli.listing import label_selector
from kubectl_dra.cluster.snapshot import ABSENT, Key, Snapshot, stand_in
from kubectl_dra.cluster.workload_pods import belongs_to, workloads_of
from kubectl_dra.command import CommandLine, kubectl
from kubectl_dra.errors import InputError, UndeterminedError, UsageError
from kubectl_dra.neighbours.no_pod import JOB, MAKERS, would_make
from kubectl_dra.text import did_you_mean, nearest, some

T = TypeVar("T")


_FEW: Final = 3
"""Names that are proposed."""
BY_ITSELF: Final = ("node", "class", "device", "driver", "computedomain")
"""Kinds that are explained one at a time, and through no pod."""
LABELS: Final = "labels"
"""The kind of a target that is a label selector: the pods with these labels."""
FORM: Final = (
    "pod/NAME, claim/NAME, template/NAME, deployment/NAME, node/NAME, class/NAME, device/NODE/NAME, driver/NAME, "
    "job/NAME (other workloads likewise), vm/NAME or computedomain/NAME"
)


class NotThere(InputError):
    """The object does not exist; ``subject`` names it, and ``commands`` show what there is."""

    def __init__(self, subject: str, message: str, *commands: tuple[str, CommandLine]) -> None:
        super().__init__(message)
        self.subject = subject
        self.commands = commands


class KindAbsent(UndeterminedError):
    """What was read has no object of the kind of ``subject``, so nobody knows whether it exists."""

    def __init__(self, subject: str, message: str) -> None:
        super().__init__(message)
        self.subject = subject


class TypedTarget(NamedTuple):
    """What is asked about: ``kind`` is a value of ``KINDS`` or ``WORKLOADS``, or empty if only a name was typed."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}" if self.kind else self.name


def targets_of(words: Sequence[str]) -> tuple[TypedTarget, ...]:
    """The targets in the arguments, of which there is at least one: ``TYPE NAME...``, ``TYPE/NAME...`` or names.

    Raises UsageError: they name nothing that can be explained.
    """
    kind, *names = words
    # Names of devices have slashes themselves, and so have the resources by which a class may be asked for.
    if kind_of(kind) and names and (kind_of(kind) in ("device", "class") or not any("/" in name for name in names)):
        return tuple(TypedTarget(kind_of(kind), name) for name in names)
    return tuple(_target(word) for word in words)


_LISTS: Final = {
    "node": ("get", "nodes"),
    "class": ("dra", "top", "classes"),
    "device": ("dra", "devices"),
    "driver": ("dra", "drivers"),
}
"""What has the names of a kind; of others what is pending has those that matter."""


def _target(word: str) -> TypedTarget:
    typed, slash, name = word.partition("/")
    kind = kind_of(typed)
    if not kind:
        from kubectl_dra.cli.usage_errors import like_file

        if like_file(word):
            error = UsageError(f'"{word}" looks like a file, not a pod or claim')
            error.commands = (("Write", CommandLine(("kubectl", "dra", "explain", "-f", word))),)
            raise error
    if not slash:
        if kind:
            shown = typed.lower() if kind in WORKLOADS.values() else kind
            error = UsageError(f"which {shown}? Write {shown}/NAME")
            error.commands = (("Names", kubectl(*_LISTS.get(kind, ("dra", "explain")))),)
            raise error
        return TypedTarget("", word)
    if not name or ("/" in name and kind != "device"):
        raise UsageError(f'"{word}" is not of the form {FORM}')
    if not kind:
        alike = (word for word in (*KINDS, *WORKLOADS) if word[:1] == typed[:1].lower() and len(word) > len("dev"))
        near = nearest(typed.lower(), ("pod", "job", *alike))
        hint = f"did you mean {near[0]}/{name}?" if near else f"write {FORM}"
        raise UsageError(f'explain knows no kind "{typed}"; {hint}')
    return TypedTarget(kind, name)


class Picked(NamedTuple):
    """The pod that answers for a workload or for labels, ``of``; of all its ``pods`` so many are ``hanging``."""

    of: str
    pods: int
    hanging: int


class MadeFrom(NamedTuple):
    """The claim that a template makes answers for it; ``users`` are the pods that use the template."""

    users: tuple[str, ...]


class NotMade(NamedTuple):
    """A pod as the workload ``of`` would make it, which has none."""

    of: str


class UsedBy(NamedTuple):
    """The pod that has an allocated claim, ``of``, and does not run with it; or, where it was ``started``, may not."""

    of: str
    started: bool


StandIn = Picked | MadeFrom | NotMade | UsedBy | None


class Looked(NamedTuple):
    """An object that was found, and what it stands in for, if that was asked about."""

    item: Pod | ResourceClaim | ResourceClaimTemplate
    stand_in: StandIn = None


def find(target: TypedTarget, namespace: str, snapshot: Snapshot, *, anywhere: bool = False) -> Looked:
    """The object that a target names; of a workload, the pod that is stuck.

    What the namespace does not have is looked up ``anywhere``, and accepted if exactly one namespace has it.

    Raises:
        UsageError: a bare name that both a pod and a claim have.
        NotThere: no such object.
        UndeterminedError: the possible objects could not be read.
    """
    if anywhere:
        spaces = _spaces(_keys(target, snapshot), target.name)
        namespace = spaces[0] if len(spaces) == 1 else namespace
    if target.kind == "pod":
        pod = _find(snapshot.pods, namespace, target.name, "Pod", snapshot)
        if (made_by := _stands_for(pod)) is not None:
            told = f"Pod {target.name} does not exist in namespace {namespace}; write {made_by}, which the manifest has"
            raise NotThere(f"Pod {namespace}/{target.name}", told)
        return Looked(pod)
    if target.kind == "claim":
        return through_claim(_find(snapshot.claims, namespace, target.name, "ResourceClaim", snapshot), snapshot)
    if target.kind == "template":
        template = _find(snapshot.templates, namespace, target.name, "ResourceClaimTemplate", snapshot)
        return Looked(template, MadeFrom(_users_of(template, snapshot)))
    if target.kind:
        return _of_several(target, namespace, snapshot)
    return _of_any_kind(target.name, namespace, snapshot)


def through_claim(claim: ResourceClaim, snapshot: Snapshot) -> Looked:
    """The claim; of one that has its devices, the pod on their node that does not run with them, or may not."""
    from kubectl_dra.explain.pending_alike import not_running_with

    pod = not_running_with(claim, snapshot)
    return Looked(claim) if pod is None else Looked(pod, UsedBy(claim.metadata.name, pod.phase == "Running"))


def _keys(target: TypedTarget, snapshot: Snapshot) -> Iterable[Key]:
    """Namespaces and names of what a target can mean."""
    if target.kind in ("pod", "claim", "template"):
        return {"pod": snapshot.pods, "claim": snapshot.claims, "template": snapshot.templates}[target.kind]
    if target.kind:
        pods = [pod for pod in snapshot.pods.values() if _is_meant(pod, target) or _stands_for(pod) == target]
        return [(pod.metadata.namespace, target.name) for pod in pods]
    made_by = ((pod.metadata.namespace, owner.name) for pod in snapshot.pods.values() for owner in workloads_of(pod))
    return [*snapshot.pods, *snapshot.claims, *made_by]


def is_elsewhere(target: TypedTarget, snapshot: Snapshot) -> bool:
    """Whether some namespace has what a target means: then its error says which, and not only that another is none."""
    return target.kind != LABELS and any(name == target.name for _, name in _keys(target, snapshot))


def _is_meant(pod: Pod, target: TypedTarget) -> bool:
    """Whether a pod has the labels, or belongs to the workload, that a target names."""
    if target.kind == LABELS:
        return label_selector(target.name).matches(pod.metadata.labels)
    return has_made(pod, target)


def has_made(pod: Pod, target: TypedTarget) -> bool:
    """Whether the workload that a target names has made a pod."""
    return belongs_to(pod, Owner(target.kind, target.name))


def _stands_for(pod: Pod) -> TypedTarget | None:
    """The workload of a manifest for one of whose pods a pod stands; None of other pods."""
    stands_for = stand_in(pod)
    return TypedTarget(stands_for.kind, stands_for.name) if stands_for is not None else None


def _of_several(target: TypedTarget, namespace: str, snapshot: Snapshot) -> Looked:
    """The pod of a workload, or with labels, that has come least far, and of several the newest."""
    from kubectl_dra.explain.pending_alike import progress_of

    pods = [pod for (space, _), pod in snapshot.pods.items() if space == namespace and _is_meant(pod, target)]
    if not pods and target.kind == "Job" and (namespace, target.name) not in snapshot.others.get(JOB, {}):
        # Of Kubernetes there is none of that name.
        volcano = target._replace(kind=VOLCANO_JOB)
        pods = [pod for (space, _), pod in snapshot.pods.items() if space == namespace and _is_meant(pod, volcano)]
    title = f"-l {target.name}" if target.kind == LABELS else f"{_shown(target.kind)} {target.name}"
    written = [pod for (space, _), pod in snapshot.pods.items() if space == namespace and _stands_for(pod) == target]
    if not pods and written:
        return Looked(written[0], NotMade(title))
    if not pods and (pod := would_make(target.kind, target.name, namespace, snapshot)) is not None:
        return Looked(pod, NotMade(title))
    if not pods:
        _raise_unread("Pod", namespace, f"of {title}", snapshot)
        _raise_absent("Pod", f"a pod of {title}", namespace, snapshot)
        for maker in MAKERS.get(target.kind, ()):
            # It may be suspended, and so have none.
            _raise_unread(maker, namespace, target.name, snapshot)
        said = f"no pod of {title} was found in namespace {namespace}"
        if target.kind == LABELS:
            said = f"no pod in namespace {namespace} has the labels {target.name}"
        hint = _no_pod_hint(target, namespace, snapshot)
        told = f"{said}; {hint}" if hint else said
        commands = () if hint else (_no_pod_command(target, namespace),)
        raise NotThere(f"{title} in namespace {namespace}", told, *commands)
    pods.sort(key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    progress = {pod.metadata.name: progress_of(pod, snapshot) for pod in pods}
    hanging = sum(state.hangs for state in progress.values())
    return Looked(min(pods, key=lambda pod: progress[pod.metadata.name]), Picked(title, len(pods), hanging))


def _shown(kind: str) -> str:
    """The kind in sentences."""
    return "Volcano Job" if kind == VOLCANO_JOB else kind


def _no_pod_hint(target: TypedTarget, namespace: str, snapshot: Snapshot) -> str:
    """What is like what was asked about; empty where nothing is."""
    if target.kind == LABELS:
        return ""
    if hint := _workload_of_that_name(target.name, namespace, snapshot):
        return hint
    if hint := elsewhere(_keys(target, snapshot), target.name):
        return hint
    written = [each for pod in snapshot.pods.values() if (each := _stands_for(pod)) is not None]
    if written and (alike := nearest(target.name, sorted({each.name for each in written}))):
        meant = [each for each in written if each.name == alike[0]]
        return f"the manifest has {next((each for each in meant if each.kind == target.kind), meant[0])}"
    if written:
        return f"the manifest has {some(sorted({str(each) for each in written}), _FEW)}"
    names = {name for kind, name in _workloads(namespace, snapshot) if kind == target.kind}
    return did_you_mean(nearest(target.name, sorted(names)))


def _no_pod_command(target: TypedTarget, namespace: str) -> tuple[str, CommandLine]:
    """What shows the labels that pods have, or why a workload makes none."""
    if target.kind == LABELS:
        return "Their labels", kubectl("get", "pods", "--show-labels", namespace=namespace)
    command = kubectl("describe", kind=target.kind.lower(), name=target.name, namespace=namespace)
    return "If it exists, see why it makes none", command


def _workloads(namespace: str, snapshot: Snapshot) -> set[Owner]:
    """What made the pods of a namespace."""
    pods = (pod for (space, _), pod in snapshot.pods.items() if space == namespace)
    return {owner for pod in pods for owner in workloads_of(pod) if owner.kind in WORKLOADS.values()}


def _workload_of_that_name(name: str, namespace: str, snapshot: Snapshot) -> str:
    """The workload that has the name which something of another kind was looked up by."""
    owners = sorted(owner for owner in _workloads(namespace, snapshot) if owner.name == name)
    return f"there is a {_shown(owners[0].kind)} of that name: write {TypedTarget(*owners[0])}" if owners else ""


def _of_any_kind(name: str, namespace: str, snapshot: Snapshot) -> Looked:
    pod, claim = snapshot.pods.get((namespace, name)), snapshot.claims.get((namespace, name))
    if pod is not None and claim is not None:
        raise UsageError(
            f"a pod and a claim of namespace {namespace} are called {name}; write pod/{name} or claim/{name}"
        )
    if pod is not None:
        made = _stands_for(pod)
        return Looked(pod) if made is None else _of_several(made, namespace, snapshot)
    if claim is not None:
        return through_claim(claim, snapshot)
    made_by = sorted(owner for owner in _workloads(namespace, snapshot) if owner.name == name)
    if made_by:
        return _of_several(TypedTarget(*made_by[0]), namespace, snapshot)
    for kind in ("Pod", "ResourceClaim"):
        _raise_unread(kind, namespace, name, snapshot)
    near = [f"pod/{other}" for other in _near(snapshot.pods, namespace, name)]
    near += [f"claim/{other}" for other in _near(snapshot.claims, namespace, name)]
    hint = elsewhere(_keys(TypedTarget("", name), snapshot), name)
    if other := _named_otherwise(name, namespace, snapshot):
        hint = f"write {other}"
    hint = hint or did_you_mean(near)
    for kind in ("Pod", "ResourceClaim"):
        if not hint:
            _raise_absent(kind, f"a {kind} {name}", namespace, snapshot)
    told = f"no pod and no claim is called {name} in namespace {namespace}"
    if hint:
        raise NotThere(f"{namespace}/{name}", f"{told}; {hint}")
    raise NotThere(f"{namespace}/{name}", told, ("What is pending", kubectl("dra", "explain", namespace=namespace)))


def _find(table: Mapping[Key, T], namespace: str, name: str, kind: str, snapshot: Snapshot) -> T:
    object_ = table.get((namespace, name))
    if object_ is not None:
        return object_
    _raise_unread(kind, namespace, name, snapshot)
    hint = _of_other_kind(kind, namespace, name, snapshot) or elsewhere(table, name)
    hint = hint or did_you_mean(_near(table, namespace, name))
    if not hint and not table:
        _raise_absent(kind, f"{kind} {namespace}/{name}", namespace, snapshot)
        hint = f"there are no objects of kind {kind} in {', '.join(snapshot.sources) or 'what was read'}"
    if not hint:
        here = sorted(other for space, other in table if space == namespace)
        spaces = sorted({space for space, _ in table})
        hint = f"there are: {some(here, 3)}" if here else f"there are some in: {some(spaces, 3)} (use -n)"
    raise NotThere(f"{kind} {namespace}/{name}", f"{kind} {name} does not exist in namespace {namespace}; {hint}")


def _raise_unread(kind: str, namespace: str, name: str, snapshot: Snapshot) -> None:
    """Raise if the object may exist and could not be read."""
    gap = snapshot.missing(kind, namespace)
    if gap is not None and gap.reason != ABSENT:
        raise UndeterminedError(f"{kind} {namespace}/{name} could not be read: {gap}")


def _raise_absent(kind: str, title: str, namespace: str, snapshot: Snapshot) -> None:
    """Raise if what was read has no object of the kind, and a cluster may have some."""
    gap = snapshot.missing(kind, namespace)
    if gap is not None:
        raise KindAbsent(title, f"{gap}, so whether there is {title} is unknown{gap.help}")


def _spaces(keys: Iterable[Key], name: str) -> list[str]:
    """The namespaces that have an object of this name."""
    return sorted({space for space, other in keys if other == name})


def elsewhere(keys: Iterable[Key], name: str) -> str:
    """Where else there is an object of this name; empty if nowhere."""
    spaces = _spaces(keys, name)
    return f"there is one in namespace {spaces[0]} (use -n {spaces[0]})" if spaces else ""


def _near(table: Mapping[Key, object], namespace: str, name: str) -> tuple[str, ...]:
    return nearest(name, [other for space, other in table if space == namespace])


def _named_otherwise(name: str, namespace: str, snapshot: Snapshot) -> str:
    """What else has that name, as it is asked about."""
    typed = [f"template/{name}"] if (namespace, name) in snapshot.templates else []
    drivers = {slice_.driver for slice_ in snapshot.slices}
    kinds = {"node": snapshot.nodes, "class": snapshot.classes, "driver": drivers}
    typed += [f"{kind}/{name}" for kind, names in kinds.items() if name in names]
    devices = (
        f"device/{slice_.scope.node_name or slice_.pool.name}/{name}"
        for slice_ in snapshot.slices
        if name in slice_.names
    )
    return " or ".join((typed or [*islice(dict.fromkeys(devices), _FEW)])[:_FEW])


def _of_other_kind(kind: str, namespace: str, name: str, snapshot: Snapshot) -> str:
    """What else has that name, and how to ask about it."""
    key = (namespace, name)
    if kind != "Pod" and key in snapshot.pods:
        return f"there is a Pod of that name: write pod/{name}"
    if kind != "ResourceClaim" and key in snapshot.claims:
        return f"there is a ResourceClaim of that name: write claim/{name}"
    if kind != "ResourceClaimTemplate" and key in snapshot.templates:
        return f"there is a ResourceClaimTemplate of that name: write template/{name}"
    return _workload_of_that_name(name, namespace, snapshot)


def _users_of(template: ResourceClaimTemplate, snapshot: Snapshot) -> tuple[str, ...]:
    """The pods that use a template, as they are asked about."""
    return tuple(
        f"pod/{pod.metadata.name}"
        for (space, _), pod in snapshot.pods.items()
        if space == template.metadata.namespace
        and any(pod_claim.template_name == template.metadata.name for pod_claim in pod.claims)
    )
