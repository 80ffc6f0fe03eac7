"""The second opinion on selectors: on what devices, and what is said where the engines differ."""

from __future__ import annotations

import pytest

from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import SelectorOpinion
from kubectl_dra.manifests.inputs import Input
from tests.lint.support import CLAIM, job

SLICE = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: a1}}}
  - {name: gpu-1, attributes: {model: {string: b2}}}
  - {name: gpu-2}
"""


def opinion(expression: str, more: str = SLICE) -> SelectorOpinion:
    text = f"{CLAIM}        selectors: [{{cel: {{expression: '{expression}'}}}}]\n{more}"
    found = lint([Input("f.yaml", True, text.encode())], job("DRA1"), 1, second=True).second_opinion
    assert found is not None
    return found


def test_both_engines_judge_each_device() -> None:
    found = opinion('device.attributes["gpu.example.com"].model == "a1"')
    assert (found.expressions, found.devices, found.agree, found.differ) == (1, 3, 3, ())
    assert "1 selectors on 3 devices by cel-python: 3 answers agree, 0 differ" in found.told


def test_what_cel_python_does_not_know_is_not_compared() -> None:
    found = opinion('device.attributes["gpu.example.com"].?model.orValue("") == "a1"')
    assert (found.agree, found.not_comparable) == (0, 3) and found.reasons
    assert "3 cannot be compared" in found.told


@pytest.mark.parametrize(("expression", "more", "words"), [("true", "", "no devices"), ("(", SLICE, "no selector")])
def test_nothing_to_compare_is_said(expression: str, more: str, words: str) -> None:
    assert words in opinion(expression, more).told


def test_a_difference_names_the_selector_and_both_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    from kubectl_dra.cel import cel_python

    monkeypatch.setattr(cel_python._Judge, "answer", lambda self, device: (False, ""))
    found = opinion('device.driver == "gpu.example.com"')
    (difference,) = found.differ
    assert difference.startswith('device.driver == "gpu.example.com" on 3 devices')
    assert difference.endswith("here True, cel-python False") and "1 differ" in found.told
