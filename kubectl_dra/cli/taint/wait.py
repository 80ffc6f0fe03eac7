"""Waiting until tainted devices are free, and the second step of --drain."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cli.taint.session import EXIT_LEFT, TaintWorld, say
from kubectl_dra.taint import typed as times
from kubectl_dra.taint.apply import RuleWriter
from kubectl_dra.taint.blast_radius import ENDED
from kubectl_dra.taint.drain import Drain
from kubectl_dra.taint.result import Tainted
from kubectl_dra.taint.rules import NEXT_AT, UNCHANGED, RuleStage, Wish
from kubectl_dra.taint.targets import parts_of
from kubectl_dra.taint.watching import Lookout, Patience, TimedOut


def wait(
    world: TaintWorld,
    rules: RuleWriter,
    wishes: Sequence[Wish],
    result: Tainted,
    deadline: float | None,
    *,
    escalate: bool,
) -> Tainted:
    """Wait until the devices are free or until ``deadline`` (``time.monotonic``; None means no limit).

    ``escalate``: --drain, which turns NoSchedule into NoExecute on the way.

    Raises:
        RuleGone, RuleRefused: somebody else deleted or changed one of the rules.
        ClusterError: the cluster can no longer be reached.
    """
    with _lookout(world, deadline) as lookout:
        drain = _drain(world, wishes, result, lookout, "NoSchedule" if escalate else "")
        try:
            if escalate:
                _let_end(rules, wishes, drain)
            blockers = drain.wait()
        except TimedOut:
            # The server did not answer at the end: what was known last is told.
            return replace(result, free=False, blockers=drain.blockers, exit_code=EXIT_LEFT)
    for watcher in drain.watchers:
        say(f"note: {watcher}")
    ended = replace(result, free=not blockers, blockers=blockers, exit_code=EXIT_LEFT if blockers else 0)
    return ended if blockers else replace(ended, held_parts=drain.held_parts)


def let_end(world: TaintWorld, rules: RuleWriter, wishes: Sequence[Wish], result: Tainted) -> None:
    """--drain without --wait: returns when every rule has the effect NoExecute. Raises as ``wait``."""
    with _lookout(world) as lookout:
        _let_end(rules, wishes, _drain(world, wishes, result, lookout, "NoSchedule"))


def _lookout(world: TaintWorld, deadline: float | None = None) -> Lookout:
    assert world.cluster is not None
    # This may take hours, and each look leaves garbage.
    gc.enable()
    return Lookout(world.cluster, Patience(say, deadline, limit=world.cluster.client.until))


def _drain(world: TaintWorld, wishes: Sequence[Wish], result: Tainted, lookout: Lookout, effect: str) -> Drain:
    assert world.cluster is not None
    pods = [identity for identity, pod in result.radius.pods().items() if pod.fate != ENDED]
    parts = parts_of([wish.device for wish in wishes], world.inventory.rows)
    others = [part for each in parts.values() for part in each]
    return Drain(world.cluster, lookout, _taints(wishes, effect), pods, others)


def _let_end(rules: RuleWriter, wishes: Sequence[Wish], drain: Drain) -> None:
    """Turn NoSchedule into NoExecute: each rule at its own time, or all when the devices are free earlier.

    Raises:
        TimedOut: --wait ends before that.
    """
    patience = drain.patience
    due = {wish.name: _due(patience.ask(lambda wish=wish: rules.get(wish.name))) for wish in wishes}  # type: ignore[misc]
    whole = patience.deadline
    for at in sorted(set(due.values())):
        left, free = at - time.time(), False
        if left > 0:
            say(f"NoSchedule now; NoExecute in {times.span(left)}, or as soon as the devices are free")
            until = time.monotonic() + left
            patience.deadline = until if whole is None else min(whole, until)
            with suppress(TimedOut):
                free = not drain.wait()
            patience.deadline = whole
            if patience.expired():
                raise TimedOut
        now = [wish for wish in wishes if due[wish.name] == at or (free and due[wish.name] > at)]
        for wish in now:
            written = patience.ask(lambda wish=wish: rules.write(wish, RuleStage("NoExecute"), escalate=True))  # type: ignore[misc]
            if written.outcome != UNCHANGED:
                say(f"{wish.device}: NoExecute")
        drain.taints(_taints(now))
        if free:
            return


def _due(raw: Mapping[str, Mapping[str, Mapping[str, str]]] | None) -> float:
    """When NoExecute comes, in seconds since the epoch; 0 if it is already set or wanted at once."""
    end = times.parse((raw or {}).get("metadata", {}).get("annotations", {}).get(NEXT_AT, ""))
    return end.timestamp() if end is not None else 0.0


def _taints(wishes: Sequence[Wish], effect: str = "") -> dict[DeviceID, DeviceTaint]:
    """The taint that evicts pods, per device; of several the strongest."""
    order = {"NoExecute": 0, "NoSchedule": 1, "None": 2}
    out: dict[DeviceID, DeviceTaint] = {}
    for wish in sorted(wishes, key=lambda wish: -order[wish.taint.effect]):
        out[wish.device] = DeviceTaint(wish.taint.key, wish.taint.value, effect or wish.taint.effect, "", wish.name)
    return out
