"""Edits of a claim's requests and selectors and of a pod, the place of one, and where somebody writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.api.claims import EXACT_COUNT, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.nodes import Toleration
from kubectl_dra.api.pods import MAKES_AGAIN, Container, Pod, PodClaim, ResourceRequirements, owner_of
from kubectl_dra.cluster.snapshot import stand_in
from kubectl_dra.cluster.time_read import parse
from kubectl_dra.cluster.workload_pods import MAKER_LABELS
from kubectl_dra.explain.phrase import Words, say

C = TypeVar("C", bound=Container)


class RequestPlace(NamedTuple):
    """One request or subrequest: indices of claim, request and alternative, and its name.

    ``extended``: it belongs to the claim that the scheduler makes for extended resources, which nobody
    writes; ``container`` asks for ``resource`` then, as far as they are known. ``of`` is the claim's key where
    another claim has a request of this name.
    """

    claim: int
    request: int
    alternative: int
    name: str
    extended: bool
    resource: str = ""
    container: str = ""
    of: str = ""

    @property
    def typed(self) -> str:
        """The name that means only this one: with that of the claim where another one has such a request."""
        return f"{self.of.rpartition('/')[2]}/{self.name}" if self.of else self.name


def with_request(
    claim: ResourceClaim, request: int, alternative: int, edit: Callable[[DeviceRequest], DeviceRequest]
) -> ResourceClaim:
    """The claim with one request or subrequest edited."""
    requests = list(claim.requests)
    old = requests[request]
    if old.first_available:
        subrequests = list(old.first_available)
        subrequests[alternative] = edit(subrequests[alternative])
        requests[request] = replace(old, first_available=tuple(subrequests))
    elif old.exactly is not None:
        requests[request] = replace(old, exactly=edit(old.exactly))
    return replace(claim, requests=tuple(requests))


def limiting(pod: Pod, container: str, resource: str, amount: int) -> Pod:
    """The pod with one container that asks for another amount of an extended resource."""

    def limited(old: ResourceRequirements) -> ResourceRequirements:
        tables = old.requests, old.limits
        requests, limits = ({**table, resource: str(amount)} if resource in table else table for table in tables)
        return replace(old, requests=requests, limits=limits)

    return _in_container(pod, container, limited)


def requesting(pod: Pod, container: str, resource: str, amount: str) -> Pod:
    """The pod with one container that requests another amount of what nodes have."""
    return _in_container(pod, container, lambda old: replace(old, requests={**old.requests, resource: amount}))


def _in_container(pod: Pod, name: str, edit: Callable[[ResourceRequirements], ResourceRequirements]) -> Pod:
    def edited(old: C) -> C:
        return replace(old, resources=edit(old.resources)) if old.name == name else old

    return each_container(pod, edited)


def each_container(pod: Pod, edit: Callable[[C], C]) -> Pod:
    """The pod with all of its containers edited."""
    return with_spec(
        pod,
        containers=tuple(map(edit, pod.spec.containers)),  # type: ignore[arg-type]
        init_containers=tuple(map(edit, pod.spec.init_containers)),  # type: ignore[arg-type]
    )


def with_spec(pod: Pod, **fields: Any) -> Pod:
    """The pod with other fields of its spec."""
    return replace(pod, spec=replace(pod.spec, **fields))


def tolerating(pod: Pod, toleration: Toleration) -> Pod:
    """The pod with one more toleration."""
    return with_spec(pod, tolerations=(*pod.spec.tolerations, toleration))


def without_label(pod: Pod, key: str) -> Pod:
    """The pod whose nodeSelector does not ask for a label."""
    return with_spec(pod, node_selector={name: value for name, value in pod.spec.node_selector.items() if name != key})


def on_any_labels(pod: Pod) -> Pod:
    """The pod without its required node affinity."""
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    return with_spec(pod, affinity=replace(affinity, node_affinity=replace(affinity.node_affinity, required=None)))


def with_claims(pod: Pod, claim: str, instead: Iterable[str]) -> Pod:
    """The pod that names several claims in place of one."""
    of_template = [name for name, claim_name in pod.claim_statuses.items() if claim_name == claim]
    entries: list[PodClaim] = []
    for pod_claim in pod.spec.resource_claims:
        if pod_claim.claim_name == claim or (not pod_claim.claim_name and pod_claim.name in of_template):
            entries += [PodClaim(f"{pod_claim.name}-{number}", name) for number, name in enumerate(instead)]
        else:
            entries.append(pod_claim)
    return with_spec(pod, resource_claims=tuple(entries))


def with_selector(claim: ResourceClaim, old: str, new: str) -> ResourceClaim:
    """The claim with a selector replaced wherever a request has it."""

    def reworded(spec: DeviceRequest) -> DeviceRequest:
        return replace(spec, selectors=tuple(new if text == old else text for text in spec.selectors))

    for index, request in enumerate(claim.requests):
        for alternative in range(len(request.alternatives())):
            claim = with_request(claim, index, alternative, reworded)
    return claim


def in_single_requests(claim: ResourceClaim, request: int) -> ResourceClaim | None:
    """The claim with one request written as several of count 1; None for a prioritized list."""
    whole = claim.requests[request]
    if whole.exactly is None:
        return None
    single = replace(whole.exactly, count=1)
    names = [f"{whole.name}-{number}" for number in range(whole.exactly.count)]
    parts = tuple(replace(whole, name=name, exactly=single) for name in names)
    constraints = tuple(
        replace(kept, requests=tuple(n for own in kept.requests for n in (names if own == whole.name else (own,))))
        for kept in claim.constraints
    )
    return replace(
        claim, requests=(*claim.requests[:request], *parts, *claim.requests[request + 1 :]), constraints=constraints
    )


def needing_nothing(claim: ResourceClaim, requests: Iterable[int]) -> ResourceClaim:
    """The claim with some requests, by their numbers, that nothing satisfies already."""
    idle = frozenset(requests)
    return replace(
        claim,
        requests=tuple(
            _needless(request) if number in idle else request for number, request in enumerate(claim.requests)
        ),
    )


def _needless(request: Request) -> Request:
    spec = request.alternatives()[0]
    return replace(request, exactly=replace(spec, allocation_mode=EXACT_COUNT, count=0), first_available=())


# Where somebody writes a field of a pod: in the pod, or in the template from which its controller makes it.

_OF_CRON_JOB: Final = re.compile(r"(?P<name>.+)-(?P<minute>[0-9]{8})\Z", re.ASCII)
"""A CronJob calls its Jobs after the minute, counted from 1970, for which they are."""
_AHEAD: Final = 7 * 24 * 60


def place_to_edit(pod: Pod, field: str) -> Words:
    """The path of a field of the pod's ``spec``, and the object that has it if that is not the pod."""
    template = stand_in(pod)
    if template is not None and template.path:
        return say("{path}.{field} of {owner}", path=template.path, field=field, owner=template.workload)
    owner = owner_of(pod)
    if owner is None:
        return say("spec.{field}", field=field)
    for label, kind in MAKER_LABELS.items():
        if name := pod.metadata.labels.get(label):
            return say("{field} in the pod template of {kind} {name}", field=field, kind=kind, name=name)
    words = {"field": field, "kind": owner.kind, "name": owner.name}
    if owner.kind == "Job":
        cron_job = _cron_job(pod, owner.name)
        if cron_job:
            return say("spec.jobTemplate.spec.template.spec.{field} of CronJob {name}", field=field, name=cron_job)
        # Nobody can change the template of a Job.
        return say("spec.template.spec.{field} of Job {name}, created anew", **words)
    if owner.kind in MAKES_AGAIN:
        return say("spec.template.spec.{field} of {kind} {name}", **words)
    return say("{field} in the pod template of {kind} {name}", **words)


def _cron_job(pod: Pod, job: str) -> str:
    """The CronJob that made a Job, by the Job's name; empty if it seems that none did."""
    found = _OF_CRON_JOB.match(job)
    created = parse(pod.metadata.creation_timestamp)
    if found is None or created is None:
        return ""
    return found["name"] if 0 <= created.timestamp() / 60 - int(found["minute"]) < _AHEAD else ""
