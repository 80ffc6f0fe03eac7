"""What depends on a driver's release: its feature gates, its known defects, the API version that it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class DriverGate(Struct, frozen=True):
    """A feature gate of a driver: the release that it is ``since``, whether it is ``on`` by default, what it ``does``.

    Configs of these ``kinds``, or with these values (by path), fail where it is off; devices of these ``classes`` are
    published only where it is on, unless somebody does what ``instead`` says.
    """

    name: str
    since: str
    does: str
    on: bool = False
    kinds: tuple[str, ...] = ()
    config: Mapping[str, str] = {}
    classes: tuple[str, ...] = ()
    instead: str = ""

    def needing(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        """What in the parameters needs the gate: values by their paths, that of the kind first."""
        kind = parameters.get("kind")
        found = {"kind": str(kind)} if kind in self.kinds else {}
        for path, wanted in self.config.items():
            value: Any = parameters
            for part in path.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value == wanted:
                found[path] = wanted
        return found


class DriverDefect(Struct, frozen=True):
    """A known defect of a driver: the ``state`` that it leaves (a DriverState), and its number as OWNER/NAME#NUMBER.

    ``fixed`` is the first release without it, empty while there is none; only nodes with the ``label`` have it.
    ``empty``: it publishes slices without devices, and not just no slices.
    """

    known: str
    state: str
    means: str
    fixed: str = ""
    label: str = ""
    empty: bool = False

    def affects(self, version: str) -> bool:
        """Whether a release, such as the tag of an image, may have it."""
        if not self.fixed:
            return True
        return bool(version) and numbers(version) < numbers(self.fixed)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, by which versions are compared; those after a hyphen do not count."""
    return tuple(int(part) for part in re.findall("[0-9]{1,18}", version.partition("-")[0]))


def newest_before(version: str, firsts: Mapping[str, str]) -> str:
    """Of names with the releases from which they hold, the one that holds for a release; empty if none is known to."""
    own = numbers(version)
    known = [(numbers(first), name) for name, first in firsts.items() if own and numbers(first) <= own]
    return max(known)[1] if known else ""
