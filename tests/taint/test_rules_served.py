from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kubectl_dra.api.releases import parse_release
from kubectl_dra.cluster.client import Answered
from kubectl_dra.taint.rules import Serving, blind_scheduler, gates_of, how_to_turn_on, undetermined

ALPHA, BETA = "--runtime-config=resource.k8s.io/v1alpha3=true", "--runtime-config=resource.k8s.io/v1beta2=true"


@pytest.mark.parametrize(
    ("release", "said", "not_said"),
    [
        ("1.32.0", ["does not have them"], ["--runtime-config"]),
        ("1.33.1", [ALPHA, "--feature-gates=DRADeviceTaints=true"], ["DRADeviceTaintRules"]),
        ("1.34.0", [ALPHA, "--feature-gates=DRADeviceTaints=true"], ["DRADeviceTaintRules"]),
        ("1.35.0", [ALPHA, "--feature-gates=DRADeviceTaints=true,DRADeviceTaintRules=true"], []),
        ("1.36.4", [BETA, "--feature-gates=DRADeviceTaintRules=true"], ["DRADeviceTaints=true"]),
        ("1.37.0", ["does by default"], ["=true"]),
    ],
)
def test_how_to_turn_on(release: str, said: list[str], not_said: list[str]) -> None:
    text = how_to_turn_on(parse_release(release))
    assert all(part in text for part in said) and not any(part in text for part in not_said), text


@pytest.mark.parametrize(
    ("release", "blind"), [("1.35.9", False), ("1.36.0", True), ("1.36.2", True), ("1.36.3", False)]
)
def test_schedulers_that_do_not_stand_rules(release: str, blind: bool) -> None:
    assert bool(blind_scheduler(parse_release(release))) is blind


@pytest.mark.parametrize(
    ("release", "known", "gate"),
    [
        ("1.34.0", False, "DRADeviceTaints "),
        ("1.36.4", False, "DRADeviceTaintRules "),
        ("1.36.4", True, ""),
        ("1.37.1", False, ""),
    ],
)
def test_gates_that_cannot_be_seen(release: str, known: bool, gate: str) -> None:
    said = undetermined(Serving("v1beta2", parse_release(release), known))
    assert bool(said) is bool(gate) and gate in said


@dataclass(frozen=True)
class Metrics:
    """An API server whose metrics are this text, or which answers with this status."""

    answer: str | int

    def text(self, path: str) -> str:
        assert path == "/metrics"
        if isinstance(self.answer, int):
            raise Answered(self.answer, "no")
        return self.answer


@pytest.mark.parametrize(
    ("answer", "gates"),
    [
        (
            'kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 1\n'
            'kubernetes_feature_enabled{name="DRADeviceTaintRules",stage="BETA"} 0\n'
            'kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1\n',
            {"DRADeviceTaints": True, "DRADeviceTaintRules": False},
        ),
        ("up 1\n", {}),
        (403, {}),
    ],
)
def test_gates_in_the_metrics(answer: str | int, gates: dict[str, bool]) -> None:
    server: Any = Metrics(answer)
    assert gates_of(server) == gates
