"""What the server itself says NoExecute would do: it answers a rule with the effect None with counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.meta import EMPTY
from kubectl_dra.taint.apply import Refused, Rules
from kubectl_dra.taint.patience import Patience, TimedOut
from kubectl_dra.taint.rules import Decision, Stage, Wish, stage_of

ANSWER_SECONDS: Final = 20.0
"""The controller updates the status at most every ten seconds."""
_COUNT = re.compile(r"([0-9]+) (published devices?|allocated devices?|pods?)\b")


class ServerAnswer(NamedTuple):
    """The counts of the server, each None where its message does not give one, and the message."""

    published: int | None
    allocated: int | None
    pods: int | None
    message: str


def server_answer(raw: Mapping[str, Any]) -> ServerAnswer | None:
    """The answer in a rule's status; None while there is none for what the rule says now."""
    generation = (raw.get("metadata") or EMPTY).get("generation")
    for condition in (raw.get("status") or EMPTY).get("conditions") or ():
        if condition.get("type") != "EvictionInProgress" or condition.get("reason") != "NoEffect":
            continue
        if condition.get("observedGeneration") not in (None, generation):
            continue
        message = str(condition.get("message") or "")
        counts = {what.split()[0].rstrip("s"): int(number) for number, what in reversed(_COUNT.findall(message))}
        return ServerAnswer(counts.get("published"), counts.get("allocated"), counts.get("pod"), message)
    return None


def is_fresh(wish: Wish, decision: Decision) -> bool:
    """Whether the server can be asked about a wish: nothing keeps the device back yet.

    There is no rule, or one that an interrupted run left at this very question.
    """
    return wish.taint.effect == "NoExecute" and (
        decision.action == "create" or decision.stage == Stage("None", "NoExecute")
    )


def ask_server(rules: Rules, wishes: Sequence[Wish], patience: Patience) -> dict[str, ServerAnswer]:
    """Makes the rules with effect None, and gives what the server says to each, by the rule's name.

    When it fails the rules that were made are deleted again.

    Raises:
        TimedOut: not every answer came before the deadline.
        Refused: somebody else wrote or deleted one of the rules.
        ClusterError: the server refuses, or cannot be reached.
    """
    made: list[Wish] = []
    try:
        for wish in wishes:
            old = rules.get(wish.name)
            if old is not None:
                # The server does not answer twice for the same rule.
                rules.delete(old)
            made.append(wish)
            rules.write(wish, Stage("None", "NoExecute"))
        return {wish.name: _answer(rules, wish, patience) for wish in wishes}
    except (TimedOut, Refused):
        take_back(rules, made)
        raise


def take_back(rules: Rules, wishes: Iterable[Wish]) -> None:
    """Deletes the rules that were only made to be answered."""
    for wish in wishes:
        raw = rules.get(wish.name)
        if raw is not None and stage_of(raw) == Stage("None", "NoExecute"):
            rules.delete(raw)


def _answer(rules: Rules, wish: Wish, patience: Patience) -> ServerAnswer:
    while True:
        raw = patience.ask(lambda: rules.get(wish.name))
        if raw is None:
            raise Refused(f"DeviceTaintRule {wish.name} of device {wish.device} was deleted by somebody else")
        answer = server_answer(raw)
        if answer is not None:
            return answer
        if patience.expired():
            raise TimedOut
        patience.pause(0.25)
