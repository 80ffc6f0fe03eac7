"""Finds the pod or claim in question: parses the arguments, then looks up the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import ABSENT, Key, Snapshot
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import InputError, UndeterminedError, UsageError
from kubectl_dra.text import nearest, some

T = TypeVar("T")
KINDS = {
    "pod": "pod",
    "pods": "pod",
    "po": "pod",
    "claim": "claim",
    "claims": "claim",
    "resourceclaim": "claim",
    "resourceclaims": "claim",
    "resourceclaims.resource.k8s.io": "claim",
    "node": "node",
    "nodes": "node",
    "no": "node",
}
WORKLOADS = frozenset(
    f"{name}{end}"
    for name in ("deployment", "statefulset", "daemonset", "replicaset", "job", "cronjob")
    for end in ("", "s", "s.apps", "s.batch")
) | {"deploy", "sts", "ds", "rs", "cj"}
TEMPLATES = frozenset(("resourceclaimtemplate", "resourceclaimtemplates", "template", "templates"))


class NotThere(InputError):
    """The pod or claim does not exist; ``subject`` names it."""

    def __init__(self, subject: str, message: str) -> None:
        super().__init__(message)
        self.subject = subject


class TypedTarget(NamedTuple):
    """The arguments: ``kind`` is ``pod``, ``claim`` or ``node``, or empty if only a name was given."""

    kind: str
    name: str


def target_of(words: Sequence[str]) -> TypedTarget:
    """The target in the arguments, of which there is at least one.

    Raises:
        UsageError: they name no pod, claim or node.
    """
    written = " ".join(words)
    kind, slash, name = "/".join(words).partition("/")
    if kind.lower() not in KINDS and _like_file(written):
        command = CommandLine(("kubectl", "dra", "explain", "-f", written))
        raise UsageError(f'"{written}" looks like a file, not a pod or claim; write: {command}')
    if not slash:
        if kind.lower() in KINDS:
            shown = KINDS[kind.lower()]
            raise UsageError(f"which {shown}? Write {shown}/NAME; kubectl dra explain lists what is pending")
        if kind.lower() not in WORKLOADS | TEMPLATES:
            return TypedTarget("", kind)
    if slash and (not name or "/" in name):
        hint = "; explain takes one at a time" if len(words) > 1 else ""
        raise UsageError(f'"{written}" is not of the form pod/NAME, claim/NAME or node/NAME{hint}')
    known = KINDS.get(kind.lower())
    if known is None:
        near = nearest(kind, KINDS)
        hint = f"; did you mean {near[0]}/{name}?" if near else ""
        if kind.lower() in WORKLOADS:
            hint = "; name one of its pods (kubectl get pods), or explain its manifest with -f"
        elif kind.lower() in TEMPLATES:
            hint = "; name a claim that was made from it, or explain its manifest with -f"
        raise UsageError(f'explain knows pods, claims and nodes, not "{kind}"{hint}')
    return TypedTarget(known, name)


def _like_file(word: str) -> bool:
    """Whether a target looks like a path: it ends like a manifest, or such a file exists."""
    return word.lower().endswith((".yaml", ".yml", ".json")) or Path(word).is_file()


def find(target: TypedTarget, namespace: str, snapshot: Snapshot, *, anywhere: bool = False) -> Pod | ResourceClaim:
    """The object that a target names.

    A bare name that the namespace does not have is looked up ``anywhere``, and accepted if exactly one object
    has it.

    Raises:
        UsageError: a bare name that both a pod and a claim have.
        NotThere: no such object.
        UndeterminedError: the possible objects could not be read.
    """
    if target.kind == "pod":
        return _find(snapshot.pods, namespace, target.name, "Pod", snapshot)
    if target.kind == "claim":
        return _find(snapshot.claims, namespace, target.name, "ResourceClaim", snapshot)
    spaces = _spaces([*snapshot.pods, *snapshot.claims], target.name)
    if anywhere and len(spaces) == 1:
        namespace = spaces[0]
    return _of_any_kind(target.name, namespace, snapshot)


def _of_any_kind(name: str, namespace: str, snapshot: Snapshot) -> Pod | ResourceClaim:
    pod, claim = snapshot.pods.get((namespace, name)), snapshot.claims.get((namespace, name))
    if pod is not None and claim is not None:
        raise UsageError(
            f"a pod and a claim of namespace {namespace} are called {name}; write pod/{name} or claim/{name}"
        )
    found = pod or claim
    if found is not None:
        return found
    for kind in ("Pod", "ResourceClaim"):
        _raise_unread(kind, namespace, name, snapshot)
    near = [f"pod/{other}" for other in _near(snapshot.pods, namespace, name)]
    near += [f"claim/{other}" for other in _near(snapshot.claims, namespace, name)]
    hint = _elsewhere([*snapshot.pods, *snapshot.claims], name)
    if (namespace, name) in snapshot.templates:
        hint = _template(namespace, name, snapshot)
    elif not hint and near:
        hint = f"nearest: {', '.join(near)}"
    hint = hint or "kubectl dra explain lists what is pending"
    raise NotThere(f"{namespace}/{name}", f"no pod and no claim is called {name} in namespace {namespace}; {hint}")


def _find(table: Mapping[Key, T], namespace: str, name: str, kind: str, snapshot: Snapshot) -> T:
    found = table.get((namespace, name))
    if found is not None:
        return found
    _raise_unread(kind, namespace, name, snapshot)
    hint = _of_other_kind(kind, namespace, name, snapshot) or _elsewhere(table, name)
    if not hint and (near := _near(table, namespace, name)):
        hint = f"nearest: {', '.join(near)}"
    elif not hint and not table and snapshot.is_gap(kind, namespace):
        sources = ", ".join(snapshot.sources) or "what was read"
        said = f"{kind} {name} of namespace {namespace} was not read; there are no objects of kind {kind} in {sources}"
        raise NotThere(f"{kind} {namespace}/{name}", said)
    elif not hint and not table:
        hint = f"there are no objects of kind {kind} in {', '.join(snapshot.sources) or 'what was read'}"
    more = f"; {hint}" if hint else ""
    raise NotThere(f"{kind} {namespace}/{name}", f"{kind} {name} does not exist in namespace {namespace}{more}")


def _raise_unread(kind: str, namespace: str, name: str, snapshot: Snapshot) -> None:
    """Raise if the object may exist and could not be read."""
    gap = snapshot.missing(kind, namespace)
    if gap is not None and gap.reason != ABSENT:
        raise UndeterminedError(f"{kind} {namespace}/{name} could not be read: {gap}")


def _spaces(keys: Iterable[Key], name: str) -> list[str]:
    """The namespaces that have an object of this name."""
    return sorted({space for space, other in keys if other == name})


def _elsewhere(keys: Iterable[Key], name: str) -> str:
    spaces = _spaces(keys, name)
    return f"there is one in namespace {spaces[0]} (use -n {spaces[0]})" if spaces else ""


def _near(table: Mapping[Key, object], namespace: str, name: str) -> tuple[str, ...]:
    return nearest(name, [other for space, other in table if space == namespace])


def _of_other_kind(kind: str, namespace: str, name: str, snapshot: Snapshot) -> str:
    """What else has that name, and how to ask about it."""
    key = (namespace, name)
    if kind == "Pod" and key in snapshot.claims:
        return f"there is a ResourceClaim of that name: write claim/{name}"
    if kind == "ResourceClaim" and key in snapshot.pods:
        return f"there is a Pod of that name: write pod/{name}"
    return _template(namespace, name, snapshot) if kind == "ResourceClaim" and key in snapshot.templates else ""


def _template(namespace: str, name: str, snapshot: Snapshot) -> str:
    """What to ask about instead of a template."""
    users = [
        f"pod/{pod.metadata.name}"
        for (space, _), pod in snapshot.pods.items()
        if space == namespace and any(entry.template_name == name for entry in pod.claims)
    ]
    ask = f"ask about a pod that uses it: {some(users)}" if users else "no pod uses it"
    return f"it is a ResourceClaimTemplate; {ask}"
