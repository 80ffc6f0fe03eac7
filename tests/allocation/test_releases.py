"""What the allocators of older releases do otherwise; the corpora of each release have the rest."""

from __future__ import annotations

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.slices_seen import slices_as_read
from kubectl_dra.api.releases import Release, default_features
from kubectl_dra.api.slices import ResourceSlice
from tools.builders import allocate, claim, device, request, slice_of

BINDING = {"DRADeviceBindingConditions", "DRAConsumableCapacity"}


def features(minor: int, *without: str) -> Features:
    release = Release(1, minor)
    return Features.from_gates(default_features(release) - set(without), release)


def on(minor: int, *slices: ResourceSlice, count: int = 1) -> Attempt:
    defects = KnownDefects.of_release(Release(1, minor), 10)
    return allocate(slices, claim(request(count=count)), features=features(minor), defects=defects)


def test_which_variant_runs() -> None:
    assert [features(minor).stable for minor in (34, 35, 36, 37)] == [False, True, False, False]
    assert features(36, *BINDING).stable
    assert features(34, "DRAResourceClaimDeviceStatus").stable


def test_pools_are_sorted_from_1_36_on() -> None:
    assert [features(minor).any_pool_order for minor in (34, 35, 36, 37)] == [True, True, False, False]
    assert features(37, *BINDING).any_pool_order


def test_an_incomplete_pool_serves_up_to_1_34() -> None:
    half = slice_of(device("d1"), count=2)
    assert [on(minor, half).verdict.value for minor in (34, 35)] == ["allocated", "rejected"]


def test_an_invalid_pool_ends_the_search_up_to_1_34() -> None:
    twice = slice_of(device("d1"), device("d1"))
    assert on(34, twice).verdict is AttemptVerdict.ERROR
    assert on(34, twice).message == "pool p is invalid: duplicate device name d1"
    assert on(35, twice).verdict is AttemptVerdict.REJECTED


def test_a_random_order_that_decides_leaves_the_answer_open() -> None:
    good, twice = slice_of(device("d1")), slice_of(device("d1"), device("d1"), pool="q", name="other")
    found = on(34, good, twice)
    assert (found.verdict, found.order_decides) == (AttemptVerdict.UNDETERMINED, True)
    assert found.fails_in_some_order == "pool q is invalid: duplicate device name d1"
    assert on(36, good, twice).verdict is AttemptVerdict.ALLOCATED


def test_the_stable_variant_sees_no_shares() -> None:
    (read,) = slices_as_read([slice_of(device("d1", m=10, multi=True))], features(35))
    assert not any(entry.allow_multiple_allocations for entry in read.devices)
    (kept,) = slices_as_read([read], features(36))
    assert kept is read
