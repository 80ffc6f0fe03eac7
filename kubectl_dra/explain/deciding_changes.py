"""Which change of the scheduler gives a pod another answer after an upgrade: each is tried on the release before it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from msgspec.structs import replace

from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.scheduling.devices import Ahead
from kubectl_dra.scheduling.release_changes import ChangeKind, Deciding, SchedulerAt, SchedulerChange, changes

Answer = Callable[[Settings], Hashable]
"""What a scheduler with these settings answers, without its reasons."""


class TookTooLong(Exception):
    """There was no time to try all changes; an ``Answer`` may raise it."""


def deciding_changes(before: Settings, after: Settings, answer: Answer) -> Deciding:
    """The changes between two schedulers whose answers differ, which alone, or else together, make the difference.

    Of several that do so alone those count without which the later scheduler would go on answering as the earlier one
    does, if there are any.

    Raises:
        TookTooLong: ``answer`` did.
    """
    found = tuple(changes(_scheduler(before), _scheduler(after)))
    was, will = answer(before), answer(after)

    def with_only(chosen: Iterable[SchedulerChange]) -> Hashable:
        return answer(_ahead(before, after, chosen))

    alone = tuple(each for each in found if with_only((each,)) == will)
    if len(alone) > 1:
        needed = tuple(each for each in alone if with_only(other for other in found if other is not each) == was)
        alone = needed or alone
    if alone:
        return Deciding(alone)
    if with_only(found) != will:
        return Deciding()
    return Deciding(_fewest(found, lambda chosen: with_only(chosen) == will), together=True)


def _fewest(
    found: Sequence[SchedulerChange], suffices: Callable[[Sequence[SchedulerChange]], bool]
) -> tuple[SchedulerChange, ...]:
    """Changes of which none can be left out."""
    left = list(found)
    for each in found:
        fewer = [other for other in left if other is not each]
        if suffices(fewer):
            left = fewer
    return tuple(left)


def _scheduler(settings: Settings) -> SchedulerAt:
    return SchedulerAt(settings.release, settings.patch, settings.gates)


def _ahead(before: Settings, after: Settings, chosen: Iterable[SchedulerChange]) -> Settings:
    """The scheduler before the upgrade with some of its changes."""
    chosen = tuple(chosen)
    on = {each.name for each in chosen if each.kind is ChangeKind.GATE_ON}
    off = {each.name for each in chosen if each.kind is ChangeKind.GATE_OFF}
    parts = frozenset(each.name for each in chosen)
    return replace(before, gates=(before.gates | on) - off, ahead=Ahead(after.release, after.patch, parts))
