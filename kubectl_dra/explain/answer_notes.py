"""Notes of an answer besides its causes: what may still go wrong, and what was not tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from kubectl_dra.allocation.budgets import PROOF_NODES
from kubectl_dra.allocation.extended_resources import amount_of
from kubectl_dra.api.releases import SCORING_FAILS
from kubectl_dra.explain.causes import (
    claim_and_device_plugin,
    devices_held,
    evicted_at_once,
    no_consumer,
    pool_name_shared,
)
from kubectl_dra.explain.diagnosis import Finding, Way
from kubectl_dra.explain.phrase import Phrase, Statement, Words, say
from kubectl_dra.explain.question.last_word import last_word
from kubectl_dra.explain.question.what_if_flag import to_make
from kubectl_dra.explain.scene.assumptions import NO_CONSUMER, notes_of
from kubectl_dra.explain.scheduler_profile import scheduler_notes
from kubectl_dra.explain.trial import Trial
from kubectl_dra.explain.unread import NotSeen, Unread

MAX_NOTED_NODES = 5


class SearchLimit(Statement, frozen=True):
    """Where the search for changes that help has ended early: there may be more of them."""

    CODE: ClassVar[str]


class NotAllTried(SearchLimit, frozen=True):
    """The cluster is so large that each proof takes long."""

    CODE = "large-cluster"
    TEXT = "not every change was tried: in a cluster of this size each one takes long to prove"


class NotAllInTime(SearchLimit, frozen=True):
    """There are too many combinations of devices."""

    CODE = "too-many-combinations"
    TEXT = "not every change was tried: there are too many combinations of devices to try them all"


class NotOnAllNodes(SearchLimit, frozen=True):
    """Of many different nodes, only the nearest were tried."""

    CODE = "nearest-nodes"
    TEXT = "changes were tried on the {tried} nodes that come closest to what is asked for, of {nodes:,}"
    tried: int
    nodes: int


def answer_notes(
    trial: Trial, findings: Sequence[Finding], unclear: Sequence[Words], ways: Sequence[Way]
) -> tuple[Words, ...]:
    """All notes, each once."""
    supposed = trial.scene.settings.supposed
    kinds = {finding.kind for finding in findings}
    said = {one.gap for one in unclear if isinstance(one, Unread)}
    assumed = [
        note
        for note in notes_of(trial.scene)
        if (note is not NO_CONSUMER or no_consumer.NOBODY_CONSUMES not in kinds)
        and not (isinstance(note, NotSeen) and note.gap in said)
    ]
    return tuple(
        dict.fromkeys(
            (
                *(say("supposed: {change}", change=str(change)) for change in supposed),
                *to_make(trial.question, supposed),
                *unclear,
                *scheduler_notes(trial),
                *assumed,
                *_about_causes(trial, findings),
                *_cut(trial, findings, ways),
            )
        )
    )


def _about_causes(trial: Trial, findings: Sequence[Finding]) -> Iterator[Phrase]:
    pod, view = trial.question.pod, trial.view
    if pod is not None and pod.priority > 0 and any(_held_otherwise(finding) for finding in findings):
        text = "the pod's priority ({priority}) does not help: no pod is evicted to free a device"
        yield say(text, priority=pod.priority)
    if view.cycle.quirks.counters_keyed_by_pool_name:
        for name, drivers in pool_name_shared.shared_pool_names(view).items():
            yield say(
                "not determined: drivers {drivers} use one pool name ({name}), and the scheduler of this release mixes "
                "up their shared counters; the node that it looks at first decides",
                drivers=drivers,
                name=name,
            )
    yield from _handed_out_twice(trial)
    for name in trial.fitting:
        if view.node_by_name[name].ready is False:
            text = "node {name} is not ready: its slices may be left over, and its devices not be prepared"
            yield say(text, name=name)
    if not any(finding.kind is evicted_at_once.AT_ONCE for finding in findings):
        yield from evicted_at_once.eviction_notes(trial)
    yield from _bound_later(trial)
    yield from _not_looked_at(trial, findings)
    yield from _not_scored(trial)
    never = claim_and_device_plugin.never_bound(trial)
    if never and not any(finding.kind is claim_and_device_plugin.MIXED for finding in findings):
        text = "on {nodes:some} the pod would fit, but never bind: {why}"
        yield say(text, nodes=sorted(never), why=claim_and_device_plugin.MIXED.why)


def _held_otherwise(finding: Finding) -> bool:
    """Somebody else has what the pod needs, and the finding does not say that priority is of no use."""
    return finding.kind.held and finding.kind not in devices_held.SAYING_PRIORITY


def _bound_later(trial: Trial) -> Iterator[Phrase]:
    """A device that the pod would get and for which the scheduler waits before it binds the pod."""
    if not trial.view.cycle.features.binding_conditions:
        return
    text = "on {node} the pod is bound only when the driver has set {conditions:some} of {device}"
    for name in trial.takers:
        attempt = trial.attempts.get(name)
        for picked in (each for placed in attempt.placements for each in placed) if attempt is not None else ():
            if conditions := picked.candidate.device.binding_conditions:
                yield say(text, node=name, device=picked.candidate.id, conditions=list(conditions))
                return


def _handed_out_twice(trial: Trial) -> Iterator[Phrase]:
    """Nodes whose devices a device plugin and a driver both offer, judging by names."""
    for name in sorted(trial.fitting)[:MAX_NOTED_NODES]:
        drivers = sorted({item.id.driver for item in trial.view.on_node(name)})
        for resource, value in trial.view.node_by_name[name].allocatable.items():
            domain, slash, _ = resource.partition("/")
            for driver in drivers:
                if slash and driver.endswith(domain) and amount_of(value):
                    yield say(
                        "{node} offers {resource} by a device plugin and devices of {driver} by DRA: the same device "
                        "may be handed out twice",
                        node=name,
                        resource=resource,
                        driver=driver,
                    )


def _not_looked_at(trial: Trial, findings: Sequence[Finding]) -> Iterator[Phrase]:
    """The pod fits, but no scheduler has reacted to it: normal for a moment, otherwise it will not run."""
    pod = trial.question.pod
    if pod is None or not trial.fitting or findings or not trial.question.exists or pod.node_name or pod.finished:
        return
    word = last_word(pod, trial.scene.snapshot)
    if pod.condition("PodScheduled") is None and (word is None or not word.message):
        yield say(
            "no scheduler has reported on the pod yet (no condition PodScheduled): if that stays so, see whether "
            "{name} runs",
            name=pod.scheduler_name,
        )


def _not_scored(trial: Trial) -> Iterator[Phrase]:
    """The scheduler fails when it compares nodes: a pod with allocated and pending claims, several nodes."""
    settings = trial.scene.settings
    if len(trial.fitting) < 2 or not trial.scene.allocated or not trial.claims:
        return
    if not SCORING_FAILS.affects(settings.release, settings.patch):
        return
    yield say(
        "the pod may stay pending all the same: the scheduler of {release}.{patch} fails at scoring nodes for a pod of "
        "which some claims are allocated and others are not, where several nodes fit ({reference}, "
        "fixed in {fixed})",
        release=settings.release,
        patch=settings.patch,
        reference=SCORING_FAILS.reference,
        fixed=SCORING_FAILS.fixed_in(settings.release.minor),
    )


def _cut(trial: Trial, findings: Sequence[Finding], ways: Sequence[Way]) -> Iterator[SearchLimit]:
    """Changes were not tried on all the different nodes."""
    around = trial.surroundings
    if around is not None and around.rebuilds.stopped:
        yield NotAllTried()
    if trial.view.cycle.exhausted:
        yield NotAllInTime()
    if not ways and not any(finding.proof for finding in findings):
        return
    nodes = len(trial.view.different_nodes())
    if nodes > PROOF_NODES:
        yield NotOnAllNodes(PROOF_NODES, nodes)
