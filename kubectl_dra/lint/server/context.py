"""What the server's rules depend on: its release, feature gates and namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.versions import Release

if TYPE_CHECKING:
    from kubectl_dra.cel import Environment


class ServerContext(NamedTuple):
    """The server an object is sent to, and the namespace it goes into.

    ``labels`` are that namespace's, None where they are not known.
    """

    release: Release
    features: frozenset[str]
    environment: Environment
    labels: Mapping[str, str] | None = None

    def on(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return gate in self.features
