"""A known defect of the release's allocator decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.allocation.features import DEFECTS, Quirks
from kubectl_dra.api.releases import COUNTERS_LEAK, LATER_ALL_CONTINUES_WITH_FIRST
from kubectl_dra.explain.causes import pool_name_shared
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.explain.trial import Trial

KNOWN_DEFECT = CauseKind(code="allocator-defect", family=Family.DEVICES)

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
    told: Words = Joined(tuple(DEFECTS[name].what for name in alone)) if alone else "several defects together"
    text = "the devices would suffice, but a known defect of this release's scheduler refuses them: {told}"
    fix = _WAYS_ROUND.get(alone[0], KNOWN_DEFECT.fix) if len(alone) == 1 else KNOWN_DEFECT.fix
    fact = Evidence("kube-scheduler", "defect", told)
    yield Finding(KNOWN_DEFECT, say(text, told=told), (fact,), Remedy(fix, proof))


FINDERS = (Finder(When.TOGETHER, _defect, 20),)
