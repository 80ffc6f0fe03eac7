from __future__ import annotations

from collections.abc import Callable

import pytest

from kubectl_dra.cluster.client import Answered
from kubectl_dra.errors import ClusterError
from kubectl_dra.taint.watching import OUTAGE_SECONDS, Patience, TimedOut


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)


def failing(*errors: ClusterError) -> Callable[[], str]:
    left = list(errors)

    def ask() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return ask


def patience(said: list[str], deadline: float | None = None) -> tuple[Patience, Clock]:
    clock = Clock()
    return Patience(said.append, deadline, clock.sleep, clock), clock


@pytest.mark.parametrize("status", [410, 429, 500, 503])
def test_what_passes_is_waited_out_and_said_once(status: int) -> None:
    said: list[str] = []
    waiting, clock = patience(said)
    errors = [Answered(status, "busy"), ClusterError("no connection"), Answered(status, "busy")]
    assert waiting.ask(failing(*errors)) == "answer"
    assert said == ["busy; trying again", "the API server answers again"] and clock.now > 1
    assert waiting.ask(failing()) == "answer" and len(said) == 2


@pytest.mark.parametrize("error", [Answered(403, "cannot list"), Answered(404, "no"), ClusterError("credentials", 401)])
def test_what_does_not_pass_is_raised(error: ClusterError) -> None:
    waiting, _ = patience([])
    with pytest.raises(ClusterError) as raised:
        waiting.ask(failing(error))
    assert raised.value is error


def test_the_deadline_holds_during_an_outage() -> None:
    waiting, clock = patience([], deadline=7.0)
    with pytest.raises(TimedOut):
        waiting.ask(failing(*[ClusterError("down")] * 1000))
    assert 7 <= clock.now < 8


def test_a_long_outage_ends_waiting() -> None:
    waiting, clock = patience([])
    with pytest.raises(ClusterError, match="down"):
        waiting.ask(failing(*[ClusterError("down")] * 1000))
    assert OUTAGE_SECONDS < clock.now < OUTAGE_SECONDS + 10


def test_pauses_end_at_the_deadline() -> None:
    waiting, clock = patience([], deadline=1.5)
    waiting.pause(1.0)
    assert not waiting.expired()
    waiting.pause(1.0)
    assert waiting.expired() and clock.now == 1.5
