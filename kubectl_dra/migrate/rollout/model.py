"""The data of a rollout plan, and the names of its files."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kubectl_dra.migrate.rollout.survey import Standing, Survey
from kubectl_dra.migrate.vendors.model import KnownDriver, Resource

CLASSES: Final = "1-classes.yaml"
QUOTAS: Final = "2-quotas.yaml"
POLICY: Final = "3-policy.yaml"
README: Final = "README.md"


class Moving(NamedTuple):
    """A resource that moves: what it becomes, whether the cluster has the class, and where it is used."""

    resource: Resource
    installed: bool | None
    namespaces: tuple[str, ...]


class Rollout(NamedTuple):
    """The content of the plan. ``staying`` are resources that no claim replaces, with the reason."""

    moving: tuple[Moving, ...]
    staying: tuple[tuple[str, str], ...]
    order: tuple[Standing, ...]
    survey: Survey
    quotas: tuple[dict[str, Any], ...]
    classes: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]
    live: bool
    drivers: tuple[KnownDriver, ...]

    @property
    def names(self) -> list[str]:
        """The resources that pods should no longer request."""
        return [one.resource.name for one in self.moving]
