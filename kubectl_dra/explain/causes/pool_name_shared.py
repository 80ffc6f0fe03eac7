"""Two drivers use one pool name, and the scheduler mixes up their counters."""

from __future__ import annotations

from kubectl_dra.api.slices import PoolID
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.remedies.prove import World
from kubectl_dra.explain.scene.view import View

_DEFECT = "counters_keyed_by_pool_name"

POOL_NAME_SHARED = CauseKind(code="pool-name-shared", family=Family.RELEASE)


def shared_pool_names(view: View) -> dict[str, list[str]]:
    """Pool names that several drivers with shared counters use, with the drivers."""
    drivers: dict[str, set[str]] = {}
    for pool in view.pool_seen.values():
        if pool.counter_sets:
            drivers.setdefault(pool.id.name, set()).add(pool.id.driver)
    return {name: sorted(users) for name, users in drivers.items() if len(users) > 1}


def finding(view: View, world: World) -> Finding | None:
    """The cause if the claims fit without the defect; None if the defect does not decide."""
    quirks, shared = view.cycle.quirks, shared_pool_names(view)
    if not quirks.counters_keyed_by_pool_name or not shared:
        return None
    proof = world.with_quirks(quirks.without(_DEFECT)).proof()
    if proof is None:
        return None
    name, drivers = next(iter(shared.items()))
    text = "drivers {drivers} both use the pool name {name}, and the scheduler mixes up their shared counters"
    return Finding(
        POOL_NAME_SHARED,
        say(text, drivers=drivers, name=name),
        tuple(Evidence(Subject("pool", PoolID(driver, name)), "sharedCounters", "in use") for driver in drivers),
        Remedy(POOL_NAME_SHARED.fix, proof),
    )
