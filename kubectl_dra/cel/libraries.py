"""Which releases have which version of CEL's function libraries, and of the language: one row for each.

New expressions may usually use what the previous release knew; stored ones may use all that this release knows.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from msgspec import Struct

from kubectl_dra.api.releases import Release, Releases


class LibraryVersion(Struct, frozen=True):
    """Functions and macros that came together. New expressions may use them from minor release ``since`` on, stored
    ones from ``stored_since`` on, and both up to ``until``. With ``feature``, new ones need that gate instead.
    """

    since: int = 0
    stored_since: int = 0
    until: int | None = None
    feature: str | None = None

    def offered(self, release: Release, features: Set[str], *, stored: bool) -> bool:
        """Whether expressions of a release with these gates may use them."""
        if not stored and self.feature is not None and self.feature not in features:
            return False
        first = self.stored_since if stored or self.feature is not None else self.since
        return release in Releases(first, self.until)


LIST_ATTRIBUTES: Final = "DRAListTypeAttributes"

ALWAYS: Final = LibraryVersion()
OPTIONAL_MACROS: Final = LibraryVersion(28, 28)
MIXED_NUMBERS: Final = LibraryVersion(29)
OPTIONALS: Final = LibraryVersion(29)
QUANTITIES: Final = LibraryVersion(29)
SETS: Final = LibraryVersion(30)
FORMATTED_STRINGS: Final = LibraryVersion(30)
ADDRESSES: Final = LibraryVersion(31)
SEMVERS: Final = LibraryVersion(31)
BINDINGS: Final = LibraryVersion(31, 31)
NAMED_FORMATS: Final = LibraryVersion(32)
TWO_VARIABLES: Final = LibraryVersion(33, 32)
REPAIRED_SEMVERS: Final = LibraryVersion(34, 33)
LISTS: Final = LibraryVersion(35, 34)
INCLUDES: Final = LibraryVersion(36, 36, until=36, feature=LIST_ATTRIBUTES)
INCLUDES_ANY: Final = LibraryVersion(stored_since=37, feature=LIST_ATTRIBUTES)
FORMER: Final = LibraryVersion(until=36)
FORMER_QUANTITIES: Final = LibraryVersion(29, until=36)
FORMER_LISTS: Final = LibraryVersion(35, 34, until=36)
REVISED: Final = LibraryVersion(37, 37)
"""Functions that 1.37 changed; the three above are their earlier versions."""

# The language itself, and the variable ``device``.

SHARING: Final = Releases(34)
"""Devices say whether they can be shared."""
LISTS_BY_GATE: Final = Releases(36)
"""Attributes may be lists where the gate is on."""
LISTS_STORED: Final = Releases(37)
"""Stored expressions may use list attributes even with the gate off."""
ESCAPED_FIELDS: Final = Releases(37)
"""Fields may stand in backquotes, in new and stored expressions."""
STRICT_ALTERNATIVES: Final = Releases(37)
"""``or`` and ``orValue`` take optionals only."""
