"""Which shapes of claims Kueue refuses or counts, by its release, and that its words for them are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kubectl_dra.data.messages import Speaker, understood
from kubectl_dra.neighbours.kueue_controller import ClaimRule, TakenShape, claim_rules, refusals, taken_shapes
from tests.neighbours.test_foundation import pod, snapshot_of
from tests.neighbours.test_kueue_controller import CHART, running, settings

JSON = dict[str, Any]
RELEASES = ["0.14.0", "0.15.0", "0.17.8", "0.18.0", "0.18.2", "0.19.2"]
COUNTS_CLAIMS = {"KueueDRAIntegration": True, "DynamicResourceAllocation": True}
NAMED = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
MADE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
EXTENDED: JSON = {"containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]}


class Shape(NamedTuple):
    spec: JSON
    devices: JSON | None = None


def exactly(**fields: Any) -> JSON:
    request = {"deviceClassName": "gpu.example.com", **fields}
    return {"requests": [{"name": "gpu", "exactly": request}]}


SHAPES = {
    "named claim": Shape(NAMED),
    "constraints": Shape(MADE, {**exactly(), "constraints": [{"matchAttribute": "example.com/numa"}]}),
    "config": Shape(MADE, {**exactly(), "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {}}}]}),
    "firstAvailable": Shape(
        MADE, {"requests": [{"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu.example.com"}]}]}
    ),
    "selectors": Shape(MADE, exactly(selectors=[{"cel": {"expression": "true"}}])),
    "adminAccess": Shape(MADE, exactly(adminAccess=True)),
    "allocationMode All": Shape(MADE, exactly(allocationMode="All")),
    "capacity": Shape(MADE, exactly(capacity={"requests": {"memory": "10Gi"}})),
    "mapped to sources": Shape(MADE, exactly(deviceClassName="mig.example.com")),
    "extended resource": Shape(EXTENDED),
}
PLAIN = Shape(MADE, exactly())
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu.example.com"},
    "spec": {"extendedResourceName": "example.com/gpu"},
}


def taken(shape: Shape, release: str, gates: JSON | None = None) -> tuple[TakenShape, ...]:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"spec": {"devices": shape.devices or {}}},
    }
    configured = settings(COUNTS_CLAIMS if gates is None else gates)
    text = configured["data"]["config.yaml"]
    sources = '"resources": {"deviceClassMappings": [{"name": "m", "deviceClassNames": ["mig.example.com"], '
    sources += '"sources": [{"counter": {"name": "memory"}}]}]}'
    configured["data"] = {"config.yaml": f"{text[:-1]}, {sources}}}"}
    kueue = running(image=f"registry.k8s.io/kueue/kueue:v{release}", **CHART)
    read = snapshot_of(pod(shape.spec), template, CLASS, kueue, configured)
    return taken_shapes((read.pods["ml", "train-0"].spec,), "ml", read)


@pytest.mark.parametrize("rule", claim_rules(), ids=lambda rule: f"{rule.shape} {rule.since}-{rule.before}")
def test_each_rule(rule: ClaimRule) -> None:
    (found,) = taken(SHAPES[rule.shape], rule.since or "0.14")
    assert (found.refuses, found.counts) == (rule.refuses.format(template="t"), rule.counts)
    if rule.before:
        assert (found.refuses, found.counts) not in {
            (shape.refuses, shape.counts) for shape in taken(SHAPES[rule.shape], rule.before)
        }
    if rule.refuses:
        known = understood(found.refuses, (Speaker.KUEUE,))
        assert known is not None and known.entry.says == (Speaker.KUEUE,) and not known.entry.normal


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_has_one_rule_for_a_shape(release: str) -> None:
    shapes = [rule.shape for rule in claim_rules() if rule.holds(release)]
    assert len(shapes) == len(set(shapes)) and set(shapes) <= SHAPES.keys()
    assert {rule.shape for rule in claim_rules()} == SHAPES.keys()


@pytest.mark.parametrize("release", RELEASES)
def test_a_plain_claim_counts(release: str) -> None:
    assert taken(PLAIN, release) == ()


def test_the_first_refusal_is_that_which_kueue_writes() -> None:
    both = Shape(MADE, exactly(adminAccess=True, allocationMode="All"))
    assert refusals(taken(both, "0.19.2")) == (
        "ResourceClaimTemplate t: AdminAccess is not supported",
        "ResourceClaimTemplate t: AllocationMode 'All' is not supported",
    )


@pytest.mark.parametrize(
    ("release", "gates"),
    [
        # It counts no claims, and so refuses none.
        ("0.17.8", {"DynamicResourceAllocation": False}),
        ("0.17.8", {"LendingLimit": True}),
        ("0.19.2", {"KueueDRAIntegration": False}),
        # Its command line may turn the gate on.
        ("0.17.8", {}),
        ("main", COUNTS_CLAIMS),
        ("20260801-v0.19.0-4-g1a2b3c4", COUNTS_CLAIMS),
    ],
)
def test_nothing_is_predicted(release: str, gates: JSON) -> None:
    assert taken(SHAPES["firstAvailable"], release, gates) == ()
