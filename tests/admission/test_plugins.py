"""matchLabelKeys and mismatchLabelKeys become part of the label selectors of pod affinity."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.admission.plugins import with_label_keys
from kubectl_dra.api.labels import LabelSelector, Requirement
from kubectl_dra.api.pods import Pod

LABELS = {"app": "web", "rev": "2"}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
SELECTOR = {"matchLabels": {"app": "web"}}


def stored(kind: str, **term: Any) -> LabelSelector | None:
    """The label selector of a required term, once the pod is stored."""
    entry = {"topologyKey": "zone", **term}
    affinity = {kind: {REQUIRED: [entry], PREFERRED: [{"weight": 7, "podAffinityTerm": entry}]}}
    pod = with_label_keys(Pod.from_json({"metadata": {"labels": LABELS}, "spec": {"affinity": affinity}}))
    assert pod.spec.affinity is not None
    found = pod.spec.affinity.pod_affinity if kind == "podAffinity" else pod.spec.affinity.pod_anti_affinity
    assert found.preferred[0].weight == 7
    assert found.preferred[0].term.label_selector == found.required[0].label_selector
    return found.required[0].label_selector


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(("field", "operator"), [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")])
def test_the_pods_own_value_is_required_or_excluded(kind: str, field: str, operator: str) -> None:
    found = stored(kind, labelSelector=SELECTOR, **{field: ["rev"]})
    assert found == LabelSelector({"app": "web"}, (Requirement("rev", operator, ("2",)),))


def test_keys_that_the_pod_does_not_have_are_ignored() -> None:
    assert stored("podAffinity", labelSelector=SELECTOR, matchLabelKeys=["none"]) == LabelSelector({"app": "web"})


def test_a_term_without_selector_stays_about_no_pod() -> None:
    assert stored("podAffinity", matchLabelKeys=["rev"]) is None


def test_a_pod_without_affinity_stays_as_it_is() -> None:
    pod = Pod.from_json({"metadata": {"labels": LABELS}, "spec": {}})
    assert with_label_keys(pod) is pod
