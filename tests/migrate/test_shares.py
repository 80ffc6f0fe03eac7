"""Containers that share devices need no more of them than with a device plugin, and none that runs beside another's."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.migrate.device_plugins.claim_wiring import SharedRequest, User, shares

CASES: tuple[tuple[str, list[User], list[SharedRequest]], ...] = (
    ("one", [User(0, 2)], [SharedRequest(0, (0,), 2)]),
    ("two", [User(0, 1), User(1, 2)], [SharedRequest(0, (0,), 1), SharedRequest(1, (1,), 2)]),
    ("init as many", [User(0, 2, init=True), User(1, 2)], [SharedRequest(1, (0, 1), 2)]),
    ("init fewer", [User(0, 1, init=True), User(1, 8)], [SharedRequest(1, (0, 1), 1), SharedRequest(1, (1,), 7)]),
    ("init more", [User(0, 4, init=True), User(1, 1)], [SharedRequest(1, (0, 1), 1), SharedRequest(0, (0,), 3)]),
    (
        "init as many as the second",
        [User(0, 2, init=True), User(1, 1), User(2, 2)],
        [SharedRequest(1, (1,), 1), SharedRequest(2, (0, 2), 2)],
    ),
    ("two inits", [User(0, 1, init=True), User(1, 1, init=True), User(2, 1)], [SharedRequest(2, (0, 1, 2), 1)]),
    (
        "sidecar before the init container",
        [User(0, 1, init=True, sidecar=True), User(1, 1, init=True), User(2, 1)],
        [SharedRequest(2, (1, 2), 1), SharedRequest(0, (0,), 1)],
    ),
    (
        "sidecar after the init container",
        [User(0, 2, init=True), User(1, 1, init=True, sidecar=True), User(2, 1)],
        [SharedRequest(2, (0, 2), 1), SharedRequest(1, (0, 1), 1)],
    ),
)


@pytest.mark.parametrize(("users", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_shares(users: list[User], expected: list[SharedRequest]) -> None:
    assert list(shares(users)) == expected


@st.composite
def pods(draw: st.DrawFn) -> list[User]:
    inits = draw(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=4))
    containers = draw(st.lists(st.integers(1, 9), max_size=4))
    users = [User(order, amount, True, sidecar) for order, (amount, sidecar) in enumerate(inits)]
    return [*users, *(User(len(users) + order, amount) for order, amount in enumerate(containers))]


def together(one: User, other: User) -> bool:
    """Whether two containers run at the same time; ``one`` comes first."""
    return (not one.init or one.sidecar) if other.order > one.order else False


@given(pods())
def test_every_container_has_its_number(users: list[User]) -> None:
    found = shares(users)
    for user in users:
        assert sum(share.amount for share in found if user.order in share.users) == user.amount


@given(pods())
def test_containers_that_run_together_have_different_devices(users: list[User]) -> None:
    found = shares(users)
    for one, other in combinations(users, 2):
        if together(one, other):
            assert not any(one.order in share.users and other.order in share.users for share in found)


@given(pods())
def test_a_pod_needs_as_many_devices_as_the_scheduler_counted(users: list[User]) -> None:
    sidecars = [user for user in users if user.sidecar]
    running = sum(user.amount for user in users if not user.init) + sum(user.amount for user in sidecars)
    peaks = [
        user.amount + sum(sidecar.amount for sidecar in sidecars if sidecar.order < user.order)
        for user in users
        if user.init and not user.sidecar
    ]
    assert sum(share.amount for share in shares(users)) == max([running, *peaks])


@given(pods())
def test_a_request_is_named_after_one_of_its_users(users: list[User]) -> None:
    assert all(share.owner in share.users and share.amount > 0 for share in shares(users))
