"""The scheduler of this release crashes when it watches DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.releases import RULES_UNSEEN as DEFECT
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding
from kubectl_dra.explain.phrase import named, say
from kubectl_dra.explain.trial import Trial
from kubectl_dra.scheduling.devices import UNSEEN

RULES_UNSEEN = CauseKind(code="taint-rules-crash", family=Family.RELEASE)


def _unseen(trial: Trial) -> Iterator[Finding]:
    settings, rules, pod = trial.scene.settings, trial.scene.snapshot.taint_rules, trial.question.pod
    if pod is None or pod.node_name or pod.finished:
        return
    if not rules or "DRADeviceTaintRules" not in settings.gates:
        return
    if not DEFECT.affects(*settings.like(UNSEEN)):
        return
    names = say("{rules:some}", rules=[named("DeviceTaintRule", rule) for rule in rules])
    release = say("{release}.{patch}", release=settings.release, patch=settings.patch)
    text = "the scheduler of {release} does not understand DeviceTaintRules ({names}) and may crash while one exists"
    yield Finding(
        RULES_UNSEEN,
        say(text, release=release, names=names),
        (
            Evidence("kube-scheduler", "release", release),
            Evidence(say("DeviceTaintRules {names}", names=names), "count", len(rules)),
        ),
    )


FINDERS = (Finder(When.SCENE, _unseen, 40),)
