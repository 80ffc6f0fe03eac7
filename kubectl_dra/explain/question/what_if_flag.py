"""Questions of the form "what if": a change to a request or to the cluster before the question is answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.allocation.extended_resources import resources_of
from kubectl_dra.api.claims import EXACT_COUNT, DeviceRequest
from kubectl_dra.api.pods import Pod, owner_of, replaced_by
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.taints import DeviceToleration
from kubectl_dra.cel import Environment
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.errors import InputError, UndeterminedError, UsageError
from kubectl_dra.explain.devices.wanted import compiled_selector, published_device
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, about_claim, about_pod
from kubectl_dra.explain.remedies.claim_edits import place_to_edit, with_request
from kubectl_dra.text import did_you_mean_or_known, nearest, some, whole_number

T = TypeVar("T")
GRAMMAR = (
    "[REQUEST:]count=N, [REQUEST:]class=NAME, [REQUEST:]selector=CEL, [REQUEST:]capacity=NAME=QUANTITY, "
    "[REQUEST:]toleration=KEY[=VALUE][:EFFECT], constraints=none, free=[NAMESPACE/]CLAIM, end=[NAMESPACE/]POD, "
    "untaint=DEVICE; of several claims with such a request CLAIM/REQUEST"
)
_OF_REQUEST = ("count", "class", "selector", "capacity", "toleration")
_OF_OTHERS = ("free", "end", "untaint")
OF_OBJECTS = ("class", *_OF_OTHERS)
"""Changes whose value is the name of an object, or of a device."""
WITH_NODE = "with-node"
"""The kind of a change that adds nodes, which has a flag of its own (``new_nodes``)."""
_OF_CLUSTER = ("constraints", *_OF_OTHERS)
_EFFECTS = ("NoSchedule", "NoExecute")


class WhatIfChange(NamedTuple):
    """One change: the request (empty: all), its kind, and its value.

    The request may have the claim before it, by its name or by that of the pod's entry for it.
    """

    request: str
    kind: str
    value: str

    @property
    def named(self) -> tuple[str, ...]:
        """The claims or pods that the value names, each with its namespace or without."""
        return tuple(name.strip() for name in self.value.split(","))

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the API in it."""
        of_objects = self.named if self.kind in (*OF_OBJECTS, WITH_NODE) else ()
        return tuple(part for name in (*of_objects, self.request) if name for part in name.split("/"))

    @property
    def of_cluster(self) -> bool:
        """Whether it changes the cluster, and not what the pod asks for."""
        return self.kind in (*_OF_OTHERS, WITH_NODE)

    @property
    def of_requests(self) -> bool:
        """Whether it changes what the pod asks for."""
        return self.kind in (*_OF_REQUEST, "constraints")

    @property
    def flag(self) -> tuple[str, str]:
        """The flag with its value, as words of a command."""
        return ("--with-node", self.value) if self.kind == WITH_NODE else ("--what-if", str(self))

    def field(self, only: str) -> str:
        """The field of a request that only the last change of it decides; empty where several add up.

        ``only`` is the one request that there is, which need not be named.
        """
        if self.kind not in _OF_REQUEST or self.kind == "toleration":
            return ""
        part = self.value.partition("=")[0] if self.kind == "capacity" else ""
        return f"{self.request or only}:{self.kind}={part}"

    @property
    def words(self) -> str:
        """The change in a sentence."""
        return f"the nodes of --with-node {self.value}" if self.kind == WITH_NODE else str(self)

    def __str__(self) -> str:
        return f"{self.request + ':' if self.request else ''}{self.kind}={self.value}"


def parse(text: str) -> WhatIfChange:
    """Read a change; the kind and its value are separated by ``=`` or a blank.

    Raises:
        UsageError: an unknown form.
    """
    stripped = text.strip()
    head = stripped.split("=", 1)[0].split(" ", 1)[0]
    request, colon, kind = head.rpartition(":")
    value = stripped[len(head) :].strip().removeprefix("=").strip()
    if kind not in (*_OF_REQUEST, *_OF_CLUSTER) or not value or (colon and not request):
        near = nearest(kind, (*_OF_REQUEST, *_OF_CLUSTER))
        hint = f' (did you mean "{near[0]}"?)' if near and near[0] != kind else ""
        raise UsageError(f'--what-if "{text}" is not understood{hint}; write one of: {GRAMMAR}')
    if request and kind in _OF_CLUSTER:
        raise UsageError(f'--what-if "{text}": {kind} is not about one request; leave "{request}:" out')
    if kind == "constraints" and value != "none":
        raise UsageError(
            f'--what-if "{text}": only constraints=none can be supposed: the claims without their constraints'
        )
    change = WhatIfChange(request, kind, value)
    if kind == "toleration":
        require_toleration(value, f"--what-if {change}")
    return change


def suppose(
    question: Question, snapshot: Snapshot, changes: Sequence[WhatIfChange], environment: Environment
) -> tuple[Question, Snapshot]:
    """The question and the cluster as they would be with the changes; ``environment`` is that of selectors there.

    Claims and pods without a namespace are those of the question's. The question is asked of the changed cluster: a
    claim of the pod that is free then needs devices again.

    Raises:
        UsageError: an invalid value.
        InputError: a request, claim or device that does not exist, or the pod that is asked about should end.
    """
    key = question.namespace, question.name
    cluster = Cluster(snapshot)
    for change in changes:
        if change.kind in _OF_OTHERS:
            cluster = _made_in(cluster, change, question)
    after = cluster.snapshot
    if question.pod is not None:
        question = replace(question, claims=about_pod(question.pod, after, exists=question.exists).claims)
    elif key in snapshot.claims:
        if key not in after.claims:
            raise InputError(f"ResourceClaim {'/'.join(key)} is deleted with the pod that it was made for")
        question = replace(question, claims=about_claim(after.claims[key]).claims)
    return asking(question, changes, environment), after


def asking(question: Question, changes: Sequence[WhatIfChange], environment: Environment) -> Question:
    """The question with those of the changes that are of its own requests. Raises as ``suppose`` does."""
    for change in changes:
        if change.kind not in _OF_OTHERS:
            if change.kind == "selector" and change.value != "none":
                compiled_selector(change.value, environment, f"--what-if {change.flag[1].partition('=')[0]}")
            question = reworded(question, change)
    return question


def changes_for(question: Question, changes: Sequence[WhatIfChange]) -> tuple[WhatIfChange, ...]:
    """The changes that concern a question beside others: those of requests only one that has such requests."""
    called = _requests(question)
    return tuple(change for change in changes if not change.of_requests or _meant(change.request, called))


def without_effect(question: Question, changes: Sequence[WhatIfChange]) -> tuple[WhatIfChange, ...]:
    """The changes that ask for what the question asks for already. Raises as ``suppose`` does."""
    own = [change for change in changes if change.of_requests]
    return tuple(change for change in own if reworded(question, change) == question) if own == [*changes] else ()


def with_whole_name(change: WhatIfChange, snapshot: Snapshot) -> WhatIfChange:
    """The change with the whole name of its capacity, where devices have only one that ends like that.

    Raises:
        InputError: devices have capacities, and none of them has the one that is named.
    """
    name, _, amount = change.value.rpartition("=")
    known = {key for slice_ in snapshot.slices for device in slice_.devices for key in device.capacity}
    if change.kind != "capacity" or not known or name in known:
        return change
    own = [key for key in sorted(known) if key.rpartition("/")[2] == name]
    if len(own) == 1:
        return change._replace(value=f"{own[0]}={amount}")
    if snapshot.is_gap("ResourceSlice"):
        return change
    hint = f"it is one of {some(own)}" if own else did_you_mean_or_known(name, known)
    raise InputError(f"--what-if {change}: no device has capacity {name}; {hint}")


def to_make(question: Question, changes: Sequence[WhatIfChange]) -> Iterator[Phrase]:
    """Advice to make changes to the request real, if that is not obvious: claims and templates are immutable."""
    if not question.exists or not any(change.kind in (*_OF_REQUEST, "constraints") for change in changes):
        return
    what = "a new template" if any(state.template for state in question.claims) else "a new claim"
    owned = question.pod is not None and owner_of(question.pod) is not None
    where = place_to_edit(question.pod, "resourceClaims") if question.pod is not None and owned else "a new pod"
    text = "to make it real: write the change into {what} and name that in {where} (specs that exist are immutable)"
    yield say(text, what=what, where=where)


def supposed_to_end(changes: Iterable[WhatIfChange], snapshot: Snapshot, namespace: str) -> Iterator[Pod]:
    """The pods that are supposed to end, as they are."""
    for change in changes:
        for name in change.named if change.kind == "end" else ():
            space, _, own = name.rpartition("/")
            if (pod := snapshot.pods.get((space or namespace, own))) is not None:
                yield pod


def users_of_freed(changes: Iterable[WhatIfChange], snapshot: Snapshot, namespace: str) -> dict[str, tuple[Pod, ...]]:
    """The pods that use the claims which are supposed to be free, and are not supposed to end, by claim."""
    changes = tuple(changes)
    ended = {pod.key for pod in supposed_to_end(changes, snapshot, namespace)}
    out: dict[str, tuple[Pod, ...]] = {}
    for name in (name for change in changes for name in change.named if change.kind == "free"):
        space, _, own = name.rpartition("/")
        claim = snapshot.claims.get((space or namespace, own))
        reserved = claim.reserved_for if claim is not None else ()
        pods = (snapshot.pods.get((space or namespace, user.name)) for user in reserved if user.is_pod)
        users = tuple(pod for pod in pods if pod is not None and not pod.finished and pod.key not in ended)
        if claim is not None and users:
            out[claim.key] = users
    return out


def in_use(freed: Mapping[str, Sequence[Pod]]) -> Iterator[Phrase]:
    """Note that pods use what is supposed to be free."""
    for claim, pods in freed.items():
        text = (
            "{count:pod|pods} {pods:some 2} {count:uses|use} claim {claim} and {count:has|have} to end before it is "
            "free"
        )
        yield say(text, count=len(pods), pods=[pod.key for pod in pods], claim=claim)


def made_again(ended: Iterable[Pod]) -> Iterator[Phrase]:
    """Note that owners make pods again which are supposed to end."""
    for pod in ended:
        owner = replaced_by(pod)
        if owner is not None and not pod.metadata.deletion_timestamp:
            text = "{owner} makes pod {pod} again, which wants its devices back unless it is scaled down or suspended"
            yield say(text, owner=str(owner), pod=pod.key)


def reworded(question: Question, change: WhatIfChange) -> Question:
    """The question about claims that ask for something else.

    Raises:
        UsageError: an invalid value.
        InputError: no such request.
    """
    called = _requests(question)
    wanted = _meant(change.request, called)
    hit = False
    entries: list[ClaimEntry] = []
    for at, state in enumerate(question.claims):
        claim = state.claim
        if claim is not None and claim.allocation is None and change.kind == "constraints":
            claim, hit = replace(claim, constraints=()), True
        elif claim is not None and claim.allocation is None:
            edit = edit_of(change)
            for request in called:
                if request.entry == at and request in wanted:
                    claim, hit = with_request(claim, request.request, request.alternative, edit), True
        entries.append(replace(state, claim=claim))
    if not hit and not called and question.pod is not None and (resources := resources_of(question.pod)):
        raise InputError(
            f"--what-if {change}: nobody writes the request for {some(resources, 2)}, which the scheduler makes of the "
            "container's limit: change that in a manifest and ask with -f; free=, end=, untaint= and --with-node work"
        )
    if not hit:
        what = f'request "{change.request}"' if change.request else "unallocated request"
        names = some(_typed_names(called)) or "none"
        raise InputError(f"--what-if {change}: no {what} in these claims; there are: {names}")
    return replace(question, claims=tuple(entries))


class _Called(NamedTuple):
    """A request or subrequest of a claim to be allocated: where it is, and by which names it is called.

    ``claims`` are the names of its claim: its own, and that of the pod's entry.
    """

    entry: int
    request: int
    alternative: int
    names: tuple[str, str]
    claims: tuple[str, str]


def _requests(question: Question) -> list[_Called]:
    """The requests that may change."""
    return [
        _Called(at, index, number, (request.name, request.result_name(spec)), (state.claim.metadata.name, state.entry))
        for at, state in enumerate(question.claims)
        if state.claim is not None and state.claim.allocation is None
        for index, request in enumerate(state.claim.requests)
        for number, spec in enumerate(request.alternatives())
    ]


def _meant(name: str, called: Sequence[_Called]) -> list[_Called]:
    """The requests that a name means: an empty one all of them. The claim's own name comes before that of an entry."""
    if not name:
        return [*called]
    found = [request for request in called if name in request.names]
    for which in (0, 1):
        found = found or [
            request for request in called if name in [f"{request.claims[which]}/{own}" for own in request.names]
        ]
    return found


def _typed_names(called: Sequence[_Called]) -> list[str]:
    """The requests by names each of which means one: with the claim where several have such a request."""
    shared = Counter(request.names[1] for request in called)
    return [
        request.names[1] if shared[request.names[1]] == 1 else f"{request.claims[0]}/{request.names[1]}"
        for request in called
    ]


def edit_of(change: WhatIfChange) -> Callable[[DeviceRequest], DeviceRequest]:
    """What a change makes of a request. Fixes that can be supposed mean the same by this.

    Raises:
        UsageError: an invalid value.
    """
    value = change.value
    if change.kind == "count":
        count = whole_number(value)
        if not count:
            raise UsageError(f'--what-if {change}: "{value}" is not a positive number')
        return lambda spec: replace(spec, allocation_mode=EXACT_COUNT, count=count)
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
    toleration = toleration_of(value)
    return lambda spec: replace(spec, tolerations=(*spec.tolerations, toleration))


def require_toleration(text: str, typed: str) -> None:
    """Raises UsageError if the API server would refuse the toleration; ``typed`` is the flag with it."""
    from kubectl_dra.admission.server.names import label_key_problems, label_value_problems

    key_value, colon, effect = text.rpartition(":") if ":" in text else (text, "", "")
    if colon and effect not in _EFFECTS:
        raise UsageError(f'{typed}: "{effect}" is no effect; write NoSchedule or NoExecute')
    key, equal, value = key_value.partition("=")
    if equal and not key:
        raise UsageError(f"{typed} names no taint: write KEY, KEY=VALUE or KEY=VALUE:EFFECT")
    for problem in label_key_problems(key) if key else ():
        raise UsageError(f'{typed}: "{key}" is no key of a taint: {problem}')
    for problem in label_value_problems(value):
        raise UsageError(f'{typed}: "{value}" is no value of a taint: {problem}')


def toleration_of(text: str) -> DeviceToleration:
    """What KEY[=VALUE][:EFFECT] tolerates."""
    key_value, colon, effect = text.rpartition(":")
    if not colon or effect not in _EFFECTS:
        key_value, effect = text, ""
    key, equal, value = key_value.partition("=")
    return DeviceToleration(key=key, operator="Equal" if equal else "Exists", value=value, effect=effect)


def _made_in(cluster: Cluster, change: WhatIfChange, question: Question) -> Cluster:
    """The cluster after a change that is not about the requests. Claims and pods are separated by commas."""
    pod_key = (question.namespace, question.name) if question.pod is not None else None
    if change.kind == "untaint":
        snapshot = cluster.snapshot
        try:
            id, device = published_device(snapshot, change.value)
        except InputError as error:
            raise InputError(f"--what-if {change}: {error}") from None
        by_rule = snapshot.is_gap("DeviceTaintRule") or any(rule.selects(*id) for rule in snapshot.taint_rules)
        if not device.taints and not by_rule:
            raise InputError(f"--what-if {change}: device {id} has no taint")
        return cluster.untainting(id)
    if change.kind == "free":
        held = {key: claim for key, claim in cluster.snapshot.claims.items() if claim.allocation is not None}
        return cluster.freeing(_named(change, "allocated claim", held, cluster, question).values(), pod_key)
    gone = _named(change, "pod", cluster.snapshot.pods, cluster, question)
    if pod_key is not None and pod_key in gone:
        raise InputError(f"--what-if {change}: that is the pod that is asked about")
    return cluster.ending(gone.values())


def _named(
    change: WhatIfChange, what: str, known: Mapping[Key, T], cluster: Cluster, question: Question
) -> dict[Key, T]:
    """The objects that a change names.

    Raises:
        InputError: there is none of a name.
        UndeterminedError: nor was it read whether there is.
    """
    objects: dict[Key, T] = {}
    for name in change.named:
        space, slash, rest = name.partition("/")
        key = (space, rest) if slash else (question.namespace, space)
        if key not in known:
            typed = f"--what-if {change.kind}={name}"
            kind = "Pod" if change.kind == "end" else "ResourceClaim"
            gap = cluster.snapshot.missing(kind, key[0])
            if gap is not None:
                raise UndeterminedError(
                    f"{typed}: {gap}, so whether there is a {kind} {'/'.join(key)} is unknown{gap.help}"
                )
            hint = did_you_mean_or_known(name, ["/".join(parts) for parts in known])
            raise InputError(f"{typed}: no {what} of that name; {hint}")
        objects[key] = known[key]
    return objects
