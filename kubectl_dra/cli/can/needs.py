"""Which permissions each command needs. The roles in ``examples/rbac`` have them, as a test says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cli.claims import run as claims
from kubectl_dra.cli.devices import run as devices
from kubectl_dra.cli.drivers import run as drivers
from kubectl_dra.cli.snapshot.run import SAVED_KINDS
from kubectl_dra.cli.top import run as top
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS, resource_of
from kubectl_dra.cluster.snapshot import KINDS, Permission


class Needs(Struct, frozen=True):
    """The permissions of a command: those that it ``always`` needs, and those on which only some answers depend.

    ``role`` is the file of ``examples/rbac`` with a ClusterRole that has them all.
    """

    always: tuple[Permission, ...]
    sometimes: tuple[Permission, ...]
    role: str


def _permissions(verbs: Iterable[str], *kinds: str) -> tuple[Permission, ...]:
    return tuple(Permission(verb, *resource_of(kind)) for kind in kinds for verb in verbs)


READ: Final = "read"
_LIST: Final = ("list",)
_READS: Final = _permissions(_LIST, *KINDS)

_USERS: Final = _permissions(_LIST, "ResourceSlice", "ResourceClaim", "Node")
_SCENE: Final = _permissions(_LIST, "DeviceClass", "ResourceClaimTemplate", "Pod")
_WAITS: Final = _permissions(("watch",), "DeviceTaintRule", "ResourceSlice")
_DRAINS: Final = _permissions(("get", "watch"), "ResourceClaim", "Pod")
_EXPLAINS: Final = Needs(_READS, _permissions(_LIST, *SCHEDULING_KINDS), READ)
_TAINTS: Final = _permissions(("get", "list", "create", "patch", "delete"), "DeviceTaintRule")
_UNTAINTS: Final = _permissions(("list", "delete"), "DeviceTaintRule")
_CHOOSES: Final = _permissions(_LIST, "DeviceClass", "Pod")

NEEDS: Final[Mapping[str, Needs]] = {
    **dict.fromkeys(("explain", "fit", "share", "ui", "metrics"), _EXPLAINS),
    "snapshot": Needs(_READS, _permissions(_LIST, *SAVED_KINDS), READ),
    "devices": Needs(_permissions(_LIST, *devices.KINDS), (), READ),
    "claims": Needs(_permissions(_LIST, *claims.KINDS), (), READ),
    "top": Needs(_permissions(_LIST, *top.KINDS), (), READ),
    "drivers": Needs(_permissions(_LIST, *drivers.KINDS), (), READ),
    "taint": Needs((*_TAINTS, *_USERS, *_SCENE), (*_WAITS, *_DRAINS), "taint"),
    "untaint": Needs((*_UNTAINTS, *_USERS), (*_WAITS, *_CHOOSES), "untaint"),
}
"""By command; other commands ask no cluster, or what ``explain`` asks."""
NEIGHBOURS: Final[Mapping[Permission, str]] = {Permission("list", *resource_of(kind)): kind for kind in NEIGHBOUR_KINDS}
"""The kinds of other layers, which few clusters serve all of, by the permission to list them."""
