"""Every migration there is, in the order in which they run, and the pages of all codes."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from kubectl_dra.migrate import migrations
from kubectl_dra.migrate.model import About, Migration
from kubectl_dra.migrate.refusals import ABOUT
from kubectl_dra.migrate.reverse_pages import ABOUT as BACK

FIRST: Final = "versions"
"""Runs first: the others see objects of the version that is asked for."""

FAMILIES: Final[Mapping[str, str]] = {
    "MIG1": "Device plugins",
    "MIG2": "Quotas and queues",
    "MIG3": "API versions",
    "MIG4": "Environment and runtime",
    "MIG5": "Back to device plugins",
    "MIG9": "What is left alone",
}
"""The title of each family of codes, by their beginning."""


@cache
def all_migrations() -> tuple[Migration, ...]:
    """The ``MIGRATION`` of each module in ``migrations``."""
    names = sorted(found.name for found in pkgutil.iter_modules(migrations.__path__))
    names.sort(key=lambda name: name != FIRST)
    return tuple(import_module(f"{migrations.__name__}.{name}").MIGRATION for name in names)


@cache
def about() -> Mapping[str, About]:
    """The page of each code, in the order of codes."""
    found = [*(page for migration in all_migrations() for page in migration.about), *BACK, *ABOUT]
    return {page.code: page for page in sorted(found, key=lambda page: page.code)}
