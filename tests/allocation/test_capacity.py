"""What a request takes from a device's capacity, and when that does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.allocation.attempt import AttemptVerdict
from kubectl_dra.allocation.capacity import (
    NOTHING,
    CapacityLack,
    amount_taken,
    consumption,
    fault,
    shortage,
    violates_policy,
)
from kubectl_dra.allocation.features import KnownDefects
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import Device
from tools.builders import allocate, claim, device, picked, request, slice_of

LARGEST = 2**63 - 1
RANGE: dict[str, Any] = {"validRange": {"min": "2Gi", "max": "10Gi", "step": "3Gi"}, "default": "2Gi"}
NEWEST = KnownDefects.of_release(Release(1, 37))


def quantity(text: str) -> Quantity:
    return Quantity.parse(text)


def capacity_of(value: str, policy: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"value": value} | ({"requestPolicy": policy} if policy else {})


def device_with(value: str, policy: dict[str, Any] | None = None) -> Device:
    return slice_of(device("d1", capacity={"m": capacity_of(value, policy)})).devices[0]


@pytest.mark.parametrize(
    ("asked", "policy", "taken"),
    [
        (None, None, "16Gi"),
        (None, RANGE, "2Gi"),
        ("5Gi", None, "5Gi"),
        ("1Gi", RANGE, "2Gi"),
        ("2Gi", RANGE, "2Gi"),
        ("2049Mi", RANGE, "5Gi"),
        ("10Gi", RANGE, "11Gi"),
        ("3Gi", {"validRange": {"min": "2Gi"}}, "3Gi"),
        ("3Gi", {"validRange": {"max": "4Gi"}}, "3Gi"),
        ("3Gi", {"validValues": ["2Gi", "4Gi", "8Gi"]}, "4Gi"),
        ("9Gi", {"validValues": ["2Gi", "4Gi", "8Gi"]}, "9Gi"),
    ],
)
def test_amount_taken(asked: str | None, policy: dict[str, Any] | None, taken: str) -> None:
    wanted = None if asked is None else quantity(asked)
    assert str(amount_taken(wanted, capacity_of("16Gi", policy))) == taken


@pytest.mark.parametrize(
    ("amount", "policy", "wrong"),
    [
        ("7Gi", None, False),
        ("2Gi", RANGE, False),
        ("5Gi", RANGE, False),
        ("6Gi", RANGE, True),
        ("11Gi", RANGE, True),
        ("3Gi", {"validRange": {"min": "2Gi", "max": "4Gi"}}, False),
        ("4Gi", {"validValues": ["2Gi", "4Gi"]}, False),
        ("3Gi", {"validValues": ["2Gi", "4Gi"]}, True),
        ("3Gi", {"validValues": ["2Gi", "4Gi"], "default": "3Gi"}, False),
    ],
)
def test_violates_policy(amount: str, policy: dict[str, Any] | None, wrong: bool) -> None:
    assert violates_policy(quantity(amount), capacity_of("16Gi", policy)) is wrong


def test_shortage_says_why_in_the_order_of_the_checks() -> None:
    one = device_with("10Gi", RANGE)
    unknown = shortage(one, {"nosuch": quantity("1")}, NOTHING, NOTHING)
    assert unknown is not None and (unknown.reason, unknown.capacity) == (CapacityLack.UNKNOWN, "nosuch")
    policy = shortage(one, {"m": quantity("9Gi")}, {"m": quantity("10Gi")}, NOTHING)
    assert policy is not None and (policy.reason, str(policy.amount)) == (CapacityLack.POLICY, "11Gi")
    full = shortage(one, {"m": quantity("5Gi")}, {"m": quantity("4Gi")}, {"m": quantity("2Gi")})
    assert full is not None and (full.reason, str(full.used), str(full.value)) == (
        CapacityLack.INSUFFICIENT,
        "6Gi",
        "10Gi",
    )
    assert shortage(one, {"m": quantity("5Gi")}, {"m": quantity("3Gi")}, {"m": quantity("2Gi")}) is None


def test_a_capacity_that_is_not_requested_counts_with_all_of_it() -> None:
    two = slice_of(device("d1", capacity={"m": {"value": "4"}, "n": {"value": "2"}})).devices[0]
    short = shortage(two, {"m": quantity("1")}, {"n": quantity("1")}, NOTHING)
    assert short is not None and (short.capacity, short.requested) == ("n", None)
    assert {name: str(amount) for name, amount in consumption(two, {"m": quantity("1")}).items()} == {
        "m": "1",
        "n": "2",
    }


@pytest.mark.parametrize(("binary", "text"), [(True, "4Ki"), (False, "4096")])
def test_the_format_of_a_rounded_amount(binary: bool, text: str) -> None:
    decimal = {"validRange": {"min": "1024", "step": "1024"}}
    taken = consumption(device_with("1Mi", decimal), {"m": quantity("3500")}, binary=binary)
    assert str(taken["m"]) == text


@pytest.mark.parametrize(
    ("value", "policy", "asked", "why"),
    [
        ("10", None, "5", ""),
        ("10", None, "-5", "negative"),
        ("-10", None, None, "negative"),
        ("10", {"default": "-1"}, None, "negative"),
        ("10", {"validRange": {"min": "1", "step": "2"}}, str(LARGEST), ""),
        ("10", {"validRange": {"min": "0", "step": "2"}}, str(LARGEST), "rounding request"),
        ("10", {"validRange": {"min": "1", "step": "2"}}, str(LARGEST + 1), "exceeds MaxInt64"),
        # Without a step nothing is rounded.
        ("10", {"validRange": {"min": "1"}}, str(LARGEST + 1), ""),
        ("10", {"validValues": ["1"]}, str(LARGEST + 1), ""),
    ],
)
def test_what_ends_an_attempt_from_137_on(
    value: str, policy: dict[str, Any] | None, asked: str | None, why: str
) -> None:
    found = fault(device_with(value, policy), {"m": quantity(asked)} if asked else None)
    assert why in found if why else found == ""


def test_a_device_without_the_capacity_is_only_passed_over() -> None:
    assert fault(device_with("-1"), {"nosuch": quantity("1")}) == ""


def test_the_attempt_ends_before_another_device_is_tried() -> None:
    slices = [slice_of(device("bad", m="-1"), device("good", m="4"))]
    wanted = claim(request(m=1, selector='device.capacity["d"].m.compareTo(quantity("5")) < 0'))
    assert picked(allocate(slices, claim(request()))) == ["bad"]
    ended = allocate(slices, claim(request()), defects=NEWEST)
    assert ended.verdict is AttemptVerdict.ERROR
    assert ended.message == (
        'claim default/claim, request r: checking capacity for device d/p/bad: capacity "m": capacity value is negative'
    )
    # The amount counts, not the capacity: a request of one is not negative, there is only no room for it.
    assert picked(allocate(slices, wanted, defects=NEWEST)) == ["good"]


def test_a_device_that_is_not_selected_does_no_harm() -> None:
    slices = [slice_of(device("bad", a="x", m="-1"), device("good", a="y", m="4"))]
    wanted = claim(request(selector='device.attributes["d"].a == "y"'))
    assert picked(allocate(slices, wanted, defects=NEWEST)) == ["good"]


@pytest.mark.parametrize(
    ("asked", "valid", "taken"),
    [
        ("700m", {"min": "500m", "step": "500m"}, "1"),
        ("1001m", {"min": "500m", "step": "250m"}, "1250m"),
        ("400m", {"min": "500m", "step": "250m"}, "500m"),
        ("3", {"min": "1", "step": "2"}, "3"),
        # A bound that thousandths cannot express: whole units are counted, and 500u is 1 of them.
        ("1200m", {"min": "0", "step": "500u"}, "2"),
    ],
)
def test_steps_of_less_than_one(asked: str, valid: dict[str, str], taken: str) -> None:
    one = capacity_of("16Gi", {"default": valid["min"], "validRange": valid})
    amount = amount_taken(quantity(asked), one, fractional=True)
    assert str(amount) == taken
    assert not violates_policy(amount, one, fractional=True)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("100u", "capacity request cannot be represented in the device's range arithmetic: request 100u is not"),
        ("9223372036854775807", "range arithmetic: request 9223372036854775807 is not a representable milli value"),
        ("9223372036854775", ""),
    ],
)
def test_what_thousandths_cannot_express(asked: str, why: str) -> None:
    device = device_with("1", {"validRange": {"min": "0", "step": "1"}})
    found = fault(device, {"m": quantity(asked)}, fractional=True)
    assert why in found and bool(found) is bool(why)
