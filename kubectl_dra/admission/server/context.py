"""What the server's rules depend on: its release, feature gates and namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.behaviour import DECLARED_RULES, REPEATED_AT_ITEM
from kubectl_dra.api.releases import Release

if TYPE_CHECKING:
    from kubectl_dra.cel import Environment


class ServerContext(Struct, frozen=True):
    """The server that receives an object, and the object's namespace.

    ``labels`` are that namespace's, None if unknown.
    """

    release: Release
    features: frozenset[str]
    environment: Environment
    labels: Mapping[str, str] | None = None
    old: Mapping[str, Any] | None = None
    """The stored object that is replaced, in v1's shape; None for an object to be created."""

    def on(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate in self.features

    def as_stored(self) -> ServerContext:
        """The same, but for expressions that the server has stored: they may use more."""
        from kubectl_dra.cel.environment import Environment

        return replace(self, environment=Environment.for_release(self.release, self.features, stored=True))

    def repeated(self, name: str) -> tuple[str, ...]:
        """Where below an item the server reports that the item's key, in this field, is in the list already."""
        return () if self.release in REPEATED_AT_ITEM else (name,)

    def is_declarative(self) -> bool:
        """Whether the checks that the API's types declare are enforced, in the shapes of the object's own version."""
        return self.release in DECLARED_RULES
