"""Questions of the form "what if": a change to a request or to the cluster before the question is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.taints import DeviceToleration
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.names import nearest
from kubectl_dra.wording import some

GRAMMAR = (
    "[REQUEST:]count=N, [REQUEST:]class=NAME, [REQUEST:]selector=CEL, [REQUEST:]capacity=NAME=QUANTITY, "
    "[REQUEST:]toleration=KEY[=VALUE][:EFFECT], constraints=none, free=[NAMESPACE/]CLAIM, end=[NAMESPACE/]POD, "
    "untaint=DEVICE"
)
_OF_REQUEST = ("count", "class", "selector", "capacity", "toleration")
_OF_CLUSTER = ("constraints", "free", "end", "untaint")
_EFFECTS = ("NoSchedule", "NoExecute")


class Supposition(NamedTuple):
    """One change: the request (empty: all), its kind, and its value."""

    request: str
    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.request + ':' if self.request else ''}{self.kind}={self.value}"


def parse(text: str) -> Supposition:
    """Read a change; the kind and its value are separated by ``=`` or a blank.

    Raises:
        UsageError: an unknown form.
    """
    stripped = text.strip()
    head = stripped.split("=", 1)[0].split(" ", 1)[0]
    request, colon, kind = head.rpartition(":")
    value = stripped[len(head) :].lstrip("= ").strip()
    if kind not in (*_OF_REQUEST, *_OF_CLUSTER) or not value or (colon and not request):
        near = nearest(kind, (*_OF_REQUEST, *_OF_CLUSTER))
        hint = f' (did you mean "{near[0]}"?)' if near and near[0] != kind else ""
        raise UsageError(f'--what-if "{text}" is not understood{hint}; write one of: {GRAMMAR}')
    if request and kind in _OF_CLUSTER:
        raise UsageError(f'--what-if "{text}": {kind} is not about one request; leave "{request}:" out')
    return Supposition(request, kind, value)


def suppose(question: Question, snapshot: Snapshot, changes: Sequence[Supposition]) -> tuple[Question, Snapshot]:
    """The question and the cluster as they would be with the changes.

    Claims and pods without a namespace are those of the question's. The question is asked of the changed cluster: a
    claim of the pod that is free then needs devices again.

    Raises:
        UsageError: an invalid value.
        InputError: a request, claim or device that does not exist, or the pod that is asked about should end.
    """
    asked = question.namespace, question.name
    cluster = Cluster(snapshot)
    for change in changes:
        if change.kind == "free":
            cluster = _freed(cluster, change.value, question)
        elif change.kind == "end":
            cluster = _ended(cluster, change.value, question)
        elif change.kind == "untaint":
            cluster = _untainted(cluster, change.value)
    after = cluster.snapshot
    if question.pod is not None:
        question = replace(question, claims=about_pod(question.pod, after, exists=question.exists).claims)
    elif asked in snapshot.claims:
        if asked not in after.claims:
            raise InputError(f"ResourceClaim {'/'.join(asked)} is deleted with the pod that it was made for")
        question = replace(question, claims=about_claim(after.claims[asked]).claims)
    for change in changes:
        if change.kind not in ("free", "end", "untaint"):
            question = _reworded(question, change)
    return question, after


def to_make(question: Question, changes: Sequence[Supposition]) -> Iterator[Phrase]:
    """How to make changes to the request real, if that is not obvious: claims and templates are immutable."""
    if not question.exists or not any(change.kind in (*_OF_REQUEST, "constraints") for change in changes):
        return
    what = "a new template" if any(state.template for state in question.claims) else "a new claim"
    text = "to make it real: write the change into {what} and name that in a new pod (specs that exist are immutable)"
    yield say(text, what=what)


def _reworded(question: Question, change: Supposition) -> Question:
    names: list[str] = []
    hit = False
    states = []
    for state in question.claims:
        claim = state.claim
        if claim is None or claim.allocation is not None:
            states.append(state)
            continue
        if change.kind == "constraints":
            hit = True
            states.append(replace(state, claim=replace(claim, constraints=())))
            continue
        edit = _edit(change)
        requests = []
        for entry in claim.requests:
            exactly, listed = entry.exactly, list(entry.first_available)
            names.extend(entry.result_name(spec) for spec in entry.alternatives())
            if exactly is not None and change.request in ("", entry.name):
                exactly, hit = edit(exactly), True
            for index, spec in enumerate(listed):
                if change.request in ("", entry.name, entry.result_name(spec)):
                    listed[index], hit = edit(spec), True
            requests.append(replace(entry, exactly=exactly, first_available=tuple(listed)))
        states.append(replace(state, claim=replace(claim, requests=tuple(requests))))
    if not hit:
        what = f'request "{change.request}"' if change.request else "unallocated request"
        raise InputError(f"--what-if {change}: no {what} in these claims; there are: {some(names) or 'none'}")
    return replace(question, claims=tuple(states))


def _edit(change: Supposition) -> Callable[[DeviceRequest], DeviceRequest]:
    value = change.value
    if change.kind == "count":
        if not value.isdigit() or not int(value):
            raise UsageError(f'--what-if {change}: "{value}" is not a positive number')
        return lambda spec: replace(spec, allocation_mode="ExactCount", count=int(value))
    if change.kind == "class":
        return lambda spec: replace(spec, device_class=value)
    if change.kind == "selector":
        return lambda spec: replace(spec, selectors=() if value == "none" else (value,))
    if change.kind == "capacity":
        name, _, amount = value.rpartition("=")
        try:
            quantity = Quantity.parse(amount)
        except QuantityError as error:
            raise UsageError(f"--what-if {change}: {error}") from None
        return lambda spec: replace(spec, capacity={**(spec.capacity or {}), name: quantity})
    toleration = _toleration(value)
    return lambda spec: replace(spec, tolerations=(*spec.tolerations, toleration))


def _toleration(text: str) -> DeviceToleration:
    key_value, colon, effect = text.rpartition(":")
    if not colon or effect not in _EFFECTS:
        key_value, effect = text, ""
    key, equal, value = key_value.partition("=")
    return DeviceToleration(key=key, operator="Equal" if equal else "Exists", value=value, effect=effect)


def _freed(cluster: Cluster, names: str, question: Question) -> Cluster:
    """Claims, separated by commas, give their devices back."""
    freed, snapshot = [], cluster.snapshot
    for name in names.split(","):
        found = snapshot.claims.get(_key(name, question.namespace))
        if found is None or found.allocation is None:
            held = [f"{space}/{other}" for (space, other), entry in snapshot.claims.items() if entry.allocation]
            near = nearest(name, held) or held[:3]
            raise InputError(
                f"--what-if free={name}: no allocated claim of that name; there are: {some(near) or 'none'}"
            )
        freed.append(found)
    keep = (question.namespace, question.name) if question.pod is not None else None
    return cluster.freeing(freed, keep)


def _ended(cluster: Cluster, names: str, question: Question) -> Cluster:
    """Pods, separated by commas, end."""
    gone, pods = [], cluster.snapshot.pods
    for name in names.split(","):
        key = _key(name, question.namespace)
        if question.pod is not None and key == (question.namespace, question.name):
            raise InputError(f"--what-if end={name}: that is the pod that is asked about")
        found = pods.get(key)
        if found is None:
            known = [f"{space}/{other}" for space, other in pods]
            near = nearest(name, known) or known[:3]
            raise InputError(f"--what-if end={name}: no pod of that name; there are: {some(near) or 'none'}")
        gone.append(found)
    return cluster.ending(gone)


def _key(name: str, namespace: str) -> Key:
    space, slash, rest = name.strip().partition("/")
    return (space, rest) if slash else (namespace, space)


def _untainted(cluster: Cluster, name: str) -> Cluster:
    from kubectl_dra.explain.question.device_name import device_named

    try:
        wanted, _ = device_named(cluster.snapshot, name)
    except InputError as error:
        raise InputError(f"--what-if untaint={name}: {error}") from None
    return cluster.untainting(wanted)
