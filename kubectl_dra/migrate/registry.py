"""All migrations in running order, and the pages of all codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from kubectl_dra.migrate import other_kinds, quotas
from kubectl_dra.migrate.device_plugins import plan as device_plugins
from kubectl_dra.migrate.model import ChangePage, Migration
from kubectl_dra.migrate.refusals import ABOUT
from kubectl_dra.migrate.reverse.pages import ABOUT as BACK
from kubectl_dra.migrate.versions import plan as versions

FAMILIES: Final[Mapping[str, str]] = {
    "MIG1": "Device plugins",
    "MIG2": "Quotas and queues",
    "MIG3": "API versions",
    "MIG4": "Environment and runtime",
    "MIG5": "Back to device plugins",
    "MIG9": "What is left alone",
}
"""The title of each family of codes, by prefix."""


def all_migrations() -> tuple[Migration, ...]:
    """Every migration. The one for API versions runs first, so that the others see the requested version."""
    return versions.MIGRATION, device_plugins.MIGRATION, other_kinds.MIGRATION, quotas.MIGRATION


@cache
def about() -> Mapping[str, ChangePage]:
    """The page of each code, in code order."""
    found = [*(page for migration in all_migrations() for page in migration.about), *BACK, *ABOUT]
    return {page.code: page for page in sorted(found, key=lambda page: page.code)}
