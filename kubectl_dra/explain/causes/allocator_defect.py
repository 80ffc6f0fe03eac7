"""A known defect of the release's allocator decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.allocation.features import Quirks
from kubectl_dra.api.known_defects import COUNTERS_LEAK, LATER_ALL_CONTINUES_WITH_FIRST
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes import pool_name_shared
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.explain.trial import Trial

KNOWN_DEFECT = CauseKind(
    code="allocator-defect",
    title="A known defect of the scheduler's allocator decides",
    why="With the known defects of this release the allocation fails; without them it would succeed.",
    fix="Upgrade to a release with the fix; until then ask in separate claims, or for other devices.",
    seen_as="cannot allocate all claims",
    normal=(
        "Never. Whether the defect occurs can depend on the order in which devices are tried, so it may come and go."
    ),
    confirm=(confirm.PENDING, confirm.AFFECTED),
    family=Family.DEVICES,
)

DEFECTS: Final[Mapping[str, str]] = {
    "counters_leak": "a device that is tried first and refused, for its taint or a constraint, goes on to count "
    "against the shared counters",
    "counters_keyed_by_pool_name": "drivers that use one pool name share their counters",
    "distinct_remembers_one": "distinctAttribute compares with one device of each request only",
    "all_fails_on_any_pool": "a request for all devices fails on any unusable pool of the node",
    "all_drops_exhausted": "a request for all devices leaves out shared devices that are full",
    "claim_config_repeated": "a configuration of the claim is repeated for every request that it names",
    "counter_slices_everywhere": "slices with shared counters of other nodes are looked at as well",
    "capacity_wraps": "the arithmetic of a request policy's range wraps past the largest 64-bit integer",
    "share_without_capacity_charges": "a share that takes no capacity counts against the shared counters once more",
    "distinct_compares_nothing": "distinctAttribute accepts devices with equal values",
    "later_all_continues_with_first": "a later alternative for all devices goes on with what the first asks for",
    "shares_charge_nothing": "shared devices that are allocated do not count against the shared counters",
    "request_takes_share_twice": "a request for several devices takes several shares of one",
    "devices_of_claim_summed": "very large numbers of devices wrap around when they are summed up",
}
"""What each of ``Quirks`` means for those who wait for devices."""
_WAYS_ROUND: Final[Mapping[str, str]] = {
    "counters_leak": f"Upgrade the scheduler to {COUNTERS_LEAK.fixed_in(36)} or later. Until then let a selector "
    "leave out the devices that are refused.",
    "later_all_continues_with_first": f"Upgrade the scheduler to 1.{LATER_ALL_CONTINUES_WITH_FIRST.gone} or later. "
    "Until then let the alternative ask for a number of devices instead of all.",
}


def _defect(trial: Trial) -> Iterator[Finding]:
    world, quirks = trial.world, trial.view.cycle.quirks
    proof = world.with_quirks(Quirks.none()).proof()
    if proof is None:
        return
    named = pool_name_shared.finding(trial.view, world)
    if named is not None:
        yield named
        return
    alone = [name for name in Quirks.__struct_fields__ if world.with_quirks(quirks.without(name)).proof() is not None]
    told: Words = Joined(tuple(DEFECTS[name] for name in alone)) if alone else "several defects together"
    text = "the devices would suffice, but a known defect of this release's scheduler refuses them: {told}"
    fix = _WAYS_ROUND.get(alone[0], KNOWN_DEFECT.fix) if len(alone) == 1 else KNOWN_DEFECT.fix
    fact = Evidence("kube-scheduler", "defect", told)
    yield Finding(KNOWN_DEFECT, say(text, told=told), (fact,), Remedy(fix, proof))


FINDERS = (Finder(When.TOGETHER, _defect, 20),)
