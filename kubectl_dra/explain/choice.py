"""Which of the nodes that fit the scheduler takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kubectl_dra.explain.diagnosis import Choice, Verdict
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.trial import Outlook, Trial
from kubectl_dra.scheduling.profile import Point
from kubectl_dra.scheduling.reasons import PluginName

if TYPE_CHECKING:
    from kubectl_dra.scheduling.scores.best import BestNodes

BATCHING: Final = "OpportunisticBatching"


def choice(trial: Trial, verdict: Verdict) -> Choice | None:
    """The winning node, or those of which any may win; None if there is nothing to choose."""
    pod, settings, snapshot = trial.question.pod, trial.scene.settings, trial.scene.snapshot
    if pod is None or verdict is not Verdict.ALLOCATABLE or trial.chain is None:
        return None
    if settings.node or not snapshot.nodes or not settings.schedules(pod):
        return None
    # The nodes of a group's pods are chosen for all of them together.
    if pod.pod_group or pod.spec.workload_ref is not None:
        return None
    if len(trial.takers) == 1:
        return Choice(1, tuple(trial.takers))
    from kubectl_dra.scheduling.winner import winner, winner_among

    if trial.outlook is Outlook.FITS:
        return _told(trial, winner_among(trial.chain, trial.takers), len(trial.takers))
    outcome = trial.outcome
    return None if outcome is None else _told(trial, winner(outcome), len(trial.after_giving_back))


def certain_choice(trial: Trial) -> tuple[str, ...]:
    """The nodes of which one certainly wins, for a pod that fits; empty where that is not known."""
    found = choice(trial, Verdict.ALLOCATABLE)
    return found.nodes if found is not None and found.certain else ()


def _told(trial: Trial, best: BestNodes, feasible: int) -> Choice:
    unread = ("Pod",) if trial.scene.snapshot.missing("Pod") is not None and feasible > 1 else ()
    batched = (BATCHING,) if feasible > 1 and _batched(trial) else ()
    return Choice(feasible, best.nodes, best.enough, (*unread, *best.unknown, *batched))


def _batched(trial: Trial) -> bool:
    """Whether the pod may take the second-best node of an identical pod scheduled before: one without claims,
    and without spread constraints of its own or the profile's.
    """
    pod, filters = trial.question.pod, trial.scene.filters
    if pod is None or filters is None or BATCHING not in trial.scene.settings.gates:
        return False
    profile = filters.chain.state.profile
    spread = profile.runs(PluginName.POD_TOPOLOGY_SPREAD, Point.FILTER) and profile.args.spread.constraints
    return not (pod.claims or pod.spec.topology_spread_constraints or spread)


def open_choice(found: Choice | None, nodes: int) -> Iterator[Phrase]:
    """Why the winning node is not named; ``nodes`` is the size of the cluster."""
    if found is None or found.certain:
        return
    if found.enough:
        text = (
            "which of the {feasible:,} nodes the scheduler takes is not known: of {nodes:,} it looks at some until "
            "{enough:,} fit"
        )
        yield say(text, feasible=found.feasible, nodes=nodes, enough=found.enough)
    elif found.unknown:
        text = "which of the {feasible:,} nodes the scheduler takes depends on {unknown}, not known here"
        yield say(text, feasible=found.feasible, unknown=list(found.unknown))
