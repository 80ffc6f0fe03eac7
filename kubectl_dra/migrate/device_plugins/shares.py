"""Which containers share devices. As with device plugins, later containers reuse the devices of init
containers.

The kubelet gives a container that starts after an init container that one's devices first, and reserves those
of a sidecar (an init container with restartPolicy Always). A pod therefore needs only as many devices as run
at one time. The claims request the same: each device of the pod is a unit, and units used by the same
containers become one request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class User(NamedTuple):
    """A container that needs ``amount`` devices; ``order`` is its position among all containers of the pod."""

    order: int
    amount: int
    init: bool = False
    sidecar: bool = False


class SharedRequest(NamedTuple):
    """``amount`` devices used by ``users`` (orders of containers). ``owner`` gives the request its name."""

    owner: int
    users: tuple[int, ...]
    amount: int


def shares(users: Sequence[User]) -> tuple[SharedRequest, ...]:
    """The fewest requests that give every container its number of devices, and no device to two that run together."""
    line: list[list[int]] = []
    lasting = [user for user in users if not user.init or user.sidecar]
    for user in sorted(lasting, key=lambda user: (user.init, -user.order if user.sidecar else user.order)):
        line += [[user.order] for _ in range(user.amount)]
    early = {user.order: user for user in users if user.sidecar}
    for user in users:
        if user.init and not user.sidecar:
            running = {order for order in early if order < user.order}
            free = [unit for unit in line if not running & set(unit)]
            # One whole container's devices, where there are just as many, keep the requests few.
            chosen = next(
                (found for other in lasting if len(found := [u for u in free if other.order in u]) == user.amount), free
            )[: user.amount]
            for unit in chosen:
                unit.append(user.order)
            more: list[list[int]] = [[user.order] for _ in range(user.amount - len(chosen))]
            line += more
    counts: dict[tuple[int, ...], int] = {}
    for unit in line:
        counts[tuple(unit)] = counts.get(tuple(unit), 0) + 1
    return tuple(SharedRequest(found[0], tuple(sorted(found)), count) for found, count in counts.items())
