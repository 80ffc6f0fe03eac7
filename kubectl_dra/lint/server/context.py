"""What the server's rules depend on: its release, feature gates and namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.versions import Release

if TYPE_CHECKING:
    from kubectl_dra.cel import Environment


class ServerContext(NamedTuple):
    """The server that receives an object, and the object's namespace.

    ``labels`` are that namespace's, None if unknown.
    """

    release: Release
    features: frozenset[str]
    environment: Environment
    labels: Mapping[str, str] | None = None

    def on(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate in self.features
