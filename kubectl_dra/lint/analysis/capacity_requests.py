"""Amounts that a request asks for by a name that no device of its class has."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Driver
from kubectl_dra.lint.analysis.claim_requests import alternatives
from kubectl_dra.lint.analysis.published_devices import known_driver
from kubectl_dra.lint.analysis.selector_targets import kinds_of_class
from kubectl_dra.lint.context import Context
from kubectl_dra.manifests.changes import fields_at


class UnknownCapacity(Struct, frozen=True):
    """A name in ``capacity.requests`` that no device of the class has. ``names`` are those that they have.

    ``meant`` is the one of them that differs by the driver as its domain only; empty if there is none.
    """

    path: FieldPath
    name: str
    device_class: str
    names: tuple[str, ...]
    meant: str


def unknown_capacities(context: Context) -> Iterator[UnknownCapacity]:
    """The amounts requested of devices of known drivers, if every capacity of these is known."""
    for alternative in alternatives(context):
        requested = fields_at(alternative.content, "capacity", "requests")
        name = alternative.content.get("deviceClassName")
        kinds = kinds_of_class(context, name) if requested and isinstance(name, str) else None
        drivers = {kind.driver: known_driver(context, kind.driver) for kind in kinds or ()}
        known = [driver for driver in drivers.values() if driver is not None and driver.complete and driver.capacities]
        if not kinds or len(known) < len(drivers):
            continue
        names = [
            driver.written(short)
            for driver in known
            for short in driver.capacities
            if any(kind.driver == driver.name and kind.publishes(_capacity(driver, short)) for kind in kinds)
        ]
        for key in map(str, requested):
            if key not in names:
                # Names are compared as they are written, whereas CEL and constraints add the driver as domain.
                meant = next((one for domain in drivers for one in _other(domain, key) if one in names), "")
                path = (*alternative.path, "capacity", "requests", key)
                yield UnknownCapacity(path, key, str(name), tuple(dict.fromkeys(names)), meant)


def _other(domain: str, key: str) -> tuple[str, str]:
    """The name with the domain, and without it."""
    return f"{domain}/{key}", key.removeprefix(f"{domain}/")


def _capacity(driver: Driver, name: str) -> Column:
    return Column("capacity", driver.name, name)
