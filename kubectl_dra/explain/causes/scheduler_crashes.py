"""A request for all devices crashes the scheduler of this release, because it meets a device with shared counters."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import ALL
from kubectl_dra.api.releases import CRASH_ON_ALL
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding
from kubectl_dra.explain.phrase import Subject, named, say
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.devices import CRASH

PANIC = CauseKind(code="scheduler-crashes", family=Family.RELEASE)


def _crash(trial: Trial) -> Iterator[Finding]:
    settings = trial.scene.settings
    crashes = CRASH_ON_ALL.affects(*settings.like(CRASH))
    if not crashes or not trial.view.cycle.features.partitionable_devices:
        return
    for located in trial.funnels:
        funnel = located.funnel
        device = next((item for item in funnel.usable if item.device.consumes_counters), None)
        if funnel.spec.allocation_mode != ALL or device is None:
            continue
        release = say("{release}.{patch}", release=settings.release, patch=settings.patch)
        text = (
            "{where} asks for all devices, and the scheduler of {release} crashes when one of them uses shared "
            "counters, as {device} does"
        )
        counter_set = device.device.consumes_counters[0].counter_set
        field = say("{where} allocationMode", where=located.where)
        yield Finding(
            PANIC,
            say(text, where=located.where, release=release, device=device.id),
            (
                Evidence("kube-scheduler", "release", release),
                Evidence(Subject("claim", named("ResourceClaim", located.claim)), field, ALL),
                Evidence(Subject("device", device.id), "consumesCounters", counter_set),
            ),
            claim=located.claim.key,
            request=funnel.name,
        )
        return


FINDERS = (Finder(When.CRASH, _crash),)
