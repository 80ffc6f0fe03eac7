"""Causes in known defects of the cluster's release: crashes, mixed-up counters, and what an allocation cannot hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.attempt import Verdict as Outcome
from kubectl_dra.api.claims import ALL, MAX_RESULTS, ResourceClaim
from kubectl_dra.api.known_defects import COUNTERS_LEAK, CRASH_ON_ALL, RULES_UNSEEN, SCORING_FAILS
from kubectl_dra.explain.blocked import Located
from kubectl_dra.explain.causes import claim as claim_causes
from kubectl_dra.explain.causes import devices, release, request
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.explain.remedies.prove import WhatIf
from kubectl_dra.explain.retry import MAX_CONFIGS
from kubectl_dra.explain.scene.prepare import Case
from kubectl_dra.explain.scene.view import View
from kubectl_dra.wording import join, some

_DEFECTS: Final[Mapping[str, str]] = {
    "counters_leak": "a device that is tried first and refused, for its taint or a constraint, goes on to count "
    "against the shared counters",
    "counters_keyed_by_pool_name": "drivers that use one pool name share their counters",
    "distinct_remembers_one": "distinctAttribute compares with one device of each request only",
    "all_fails_on_any_pool": "a request for all devices fails on any unusable pool of the node",
    "all_drops_exhausted": "a request for all devices leaves out shared devices that are full",
    "claim_config_repeated": "a configuration of the claim is repeated for every request that it names",
    "counter_slices_everywhere": "slices with shared counters of other nodes are looked at as well",
    "share_without_capacity_charges": "a share that takes no capacity counts against the shared counters once more",
}
"""What each of ``Quirks`` means for those who wait for devices."""
_WAYS_ROUND: Final[Mapping[str, str]] = {
    "counters_leak": f"Upgrade the scheduler to {COUNTERS_LEAK.fixed_in(36)} or later. Until then let a selector "
    "leave out the devices that are refused.",
}


def defect(name: str) -> str:
    """A defect of the allocator, by its name in ``Quirks``, in words."""
    return _DEFECTS[name]


def way_round(name: str) -> str:
    """What to do about one defect."""
    return _WAYS_ROUND.get(name, devices.KNOWN_DEFECT.fix)


def rules_unseen(case: Case) -> Iterator[Cause]:
    """The cause of a scheduler that watches DeviceTaintRules without understanding them."""
    settings, rules = case.settings, case.snapshot.taint_rules
    if not rules or "DRADeviceTaintRules" not in settings.gates:
        return
    if not RULES_UNSEEN.affects(settings.release, settings.patch):
        return
    kind = release.RULES_UNSEEN
    names = some([rule.metadata.name for rule in rules])
    yield Cause(
        kind,
        f"the scheduler of {settings.release}.{settings.patch} does not understand DeviceTaintRules ({names}) and may "
        "crash while one exists",
        (
            Evidence("kube-scheduler", "release", f"{settings.release}.{settings.patch}"),
            Evidence(f"DeviceTaintRules {names}", "count", str(len(rules))),
        ),
        kind.fix,
    )


def crash(case: Case, funnels: Sequence[Located]) -> Iterator[Cause]:
    """The cause of a request for all devices that ends the scheduler: it meets a device with shared counters."""
    settings = case.settings
    if not CRASH_ON_ALL.affects(settings.release, settings.patch):
        return
    if not case.view.cycle.features.partitionable_devices:
        return
    for located in funnels:
        funnel = located.funnel
        if funnel.spec.allocation_mode != ALL:
            continue
        device = next((item for item in funnel.usable if item.device.consumes_counters), None)
        if device is None:
            continue
        kind = release.PANIC
        yield Cause(
            kind,
            f"{located.where} asks for all devices, and the scheduler of {settings.release}.{settings.patch} crashes "
            f"when one of them uses shared counters, as {device.id} does",
            (
                Evidence("kube-scheduler", "release", f"{settings.release}.{settings.patch}"),
                Evidence(f"claim {located.claim.key}", f"{located.where} allocationMode", ALL),
                Evidence(f"device {device.id}", "consumesCounters", device.device.consumes_counters[0].counter_set),
            ),
            kind.fix,
            claim=located.claim.key,
            request=funnel.name,
        )
        return


def shared_pool_names(view: View) -> dict[str, list[str]]:
    """Pool names that several drivers with shared counters use, with the drivers."""
    drivers: dict[str, set[str]] = {}
    for pool in view.pool_seen.values():
        if pool.counter_sets:
            drivers.setdefault(pool.id.name, set()).add(pool.id.driver)
    return {name: sorted(users) for name, users in drivers.items() if len(users) > 1}


def mixed_up(view: View, proved: str) -> Cause | None:
    """The cause where counters of two drivers that use one pool name decide."""
    for name, drivers in shared_pool_names(view).items():
        kind = release.POOL_NAME_SHARED
        return Cause(
            kind,
            f"drivers {join(drivers)} both use the pool name {name}, and the scheduler mixes up their shared counters",
            tuple(Evidence(f"pool {driver}/{name}", "sharedCounters", "in use") for driver in drivers),
            kind.fix,
            proved,
        )
    return None


def unscored(case: Case, fitting: Collection[str]) -> str:
    """A note where the scheduler fails at comparing nodes: a pod with allocated and pending claims, several nodes.

    See ``known_defects.SCORING_FAILS``.
    """
    settings = case.settings
    if not SCORING_FAILS.affects(settings.release, settings.patch):
        return ""
    if len(fitting) < 2 or not case.allocated or not case.unallocated:
        return ""
    return (
        f"the pod may stay pending all the same: the scheduler of {settings.release}.{settings.patch} fails at scoring "
        "nodes for a pod of which some claims are allocated and others are not, where several nodes fit "
        f"({SCORING_FAILS.reference}, fixed in {SCORING_FAILS.fixed_in(settings.release.minor)})"
    )


def overfull(attempts: Mapping[str, Attempt], unavailable: Collection[str]) -> Cause | None:
    """The cause where every allocation that fits has more configurations than the API server takes."""
    found = [
        attempt
        for name, attempt in attempts.items()
        if attempt.verdict is Outcome.ALLOCATED and name not in unavailable
    ]
    largest = [max((len(result.config) for result in attempt.results), default=0) for attempt in found]
    if not largest or min(largest) <= MAX_CONFIGS:
        return None
    kind, most = claim_causes.TOO_MANY_CONFIGS, min(largest)
    return Cause(
        kind,
        f"the claims fit, but the allocation would hold {most} configurations, and {MAX_CONFIGS} is the most",
        (Evidence(f"allocation on node {found[0].node}", "devices.config", f"{most} entries"),),
        kind.fix,
    )


def too_large_together(claims: Sequence[ResourceClaim], whatif: WhatIf) -> Cause | None:
    """The cause where prioritized lists fit only with more devices than one allocation holds."""
    for index, claim in enumerate(claims):
        largest = [max(spec.count for spec in entry.alternatives()) for entry in claim.requests if entry.alternatives()]
        if not any(entry.first_available for entry in claim.requests) or sum(largest) <= MAX_RESULTS:
            continue
        parts = [_only(claim, number) for number in range(len(claim.requests))]
        proof = whatif.with_claims([*claims[:index], *parts, *claims[index + 1 :]])
        if proof is None:
            continue
        kind = request.TOO_MANY_TOGETHER
        asked = [
            Evidence(
                f"claim {claim.key}",
                f'request "{entry.name}"',
                join(f"{spec.name or entry.name}: {spec.count}" for spec in entry.alternatives()),
            )
            for entry in claim.requests
        ]
        return Cause(
            kind,
            f"claim {claim.key} fits only with alternatives of more than {MAX_RESULTS} devices in all",
            tuple(asked),
            kind.fix,
            f"with a claim for each request {str(proof).removeprefix('then ')}",
            claim=claim.key,
        )
    return None


def _only(claim: ResourceClaim, number: int) -> ResourceClaim:
    """A claim with one of the requests, and the constraints that are about that one alone."""
    entry = claim.requests[number]
    own = tuple(
        constraint
        for constraint in claim.constraints
        if constraint.requests and all(name.split("/")[0] == entry.name for name in constraint.requests)
    )
    return replace(claim, requests=(entry,), constraints=own)
