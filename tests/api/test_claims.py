from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.claims import DeviceConstraint, Request, ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID

SPEC: dict[str, Any] = {
    "devices": {
        "requests": [
            {"name": "one", "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}, {}]}},
            {
                "name": "any",
                "firstAvailable": [
                    {"name": "big", "deviceClassName": "b", "count": 2, "capacity": {"requests": {"m": "1Gi"}}},
                    {"name": "all", "deviceClassName": "b", "allocationMode": "All", "new": 1},
                ],
            },
        ],
        "constraints": [{"matchAttribute": "a/b"}, {"requests": ["any/big"], "distinctAttribute": "a/c"}],
        "future": 1,
    }
}


def test_requests() -> None:
    claim = ResourceClaim.from_json({"metadata": {"name": "x", "namespace": "ns"}, "spec": SPEC})
    one, several = claim.requests
    assert claim.key == "ns/x"
    assert claim.unmodelled == ("future",)
    assert one.exactly is not None
    assert (one.exactly.name, one.exactly.count, one.exactly.selectors) == ("one", 1, ("true", None))
    assert one.alternatives() == (one.exactly,)
    big, everything = several.alternatives()
    assert big.capacity == {"m": Quantity.parse("1024Mi")}
    assert (everything.allocation_mode, everything.count, everything.unmodelled) == ("All", 0, ("new",))
    assert several.result_name(big) == "any/big"
    assert one.result_name(one.exactly) == "one"
    assert Request.from_json({"name": "neither"}).alternatives() == ()


@pytest.mark.parametrize(
    ("requests", "request_", "sub", "covered"),
    [
        ([], "one", "", True),
        (["one"], "one", "", True),
        (["one"], "any", "big", False),
        (["any"], "any", "big", True),
        (["any/big"], "any", "big", True),
        (["any/big"], "any", "all", False),
        (["any/big"], "any", "", False),
    ],
)
def test_constraint_covers(requests: list[str], request_: str, sub: str, covered: bool) -> None:
    assert DeviceConstraint.from_json({"requests": requests, "matchAttribute": "a/b"}).covers(request_, sub) is covered


def test_template_makes_claims() -> None:
    template = ResourceClaimTemplate.from_json(
        {"metadata": {"name": "t"}, "spec": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}}
    )
    claim = template.claim("made", "ns")
    assert claim.requests == ResourceClaim.from_json({"spec": SPEC}).requests
    assert (claim.key, claim.metadata.labels, claim.allocation) == ("ns/made", {"a": "b"}, None)


def test_status() -> None:
    result = {
        "request": "one",
        "driver": "d",
        "pool": "p",
        "device": "x",
        "shareID": "s",
        "consumedCapacity": {"m": "1Gi"},
    }
    claim = ResourceClaim.from_json(
        {
            "status": {
                "allocation": {"devices": {"results": [result]}, "allocationTimestamp": "t"},
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
                "devices": [{"driver": "d", "pool": "p", "device": "x", "conditions": [{"type": "Ready"}]}],
            }
        }
    )
    assert claim.allocation is not None
    assert claim.allocation.node_selector is None
    (found,) = claim.allocation.results
    assert (found.device, found.share_id) == (DeviceID("d", "p", "x"), "s")
    assert found.consumed_capacity == {"m": Quantity.parse("1Gi")}
    assert claim.reserved_for[0].uid == "u"
    assert claim.device_statuses[0].device == found.device
