"""The attributes that constraints name, and the full names of those without a domain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import STANDARD, Driver, catalogue
from kubectl_dra.lint.analysis.claim_requests import alternatives_of
from kubectl_dra.lint.analysis.selector_targets import drivers_of
from kubectl_dra.lint.context import Context, walked
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Set, items_at, value_at
from kubectl_dra.text import join, nearest

STANDARD_NAMES: Final = ("pcieRoot", "pciBusID", "numaNode", "pageSize", "hugeTLB")
"""The names in the domain of attributes that all drivers share."""


_JOINED: Final = re.compile(r"[-_.]+(\w)")


def named_attributes(raw: Any) -> Iterator[tuple[FieldPath, str]]:
    """The attributes that constraints of an object name, each with its place."""
    for path, value in walked(raw, without=("opaque", "parameters", "metadata", "status")):
        if path[-1] in ("matchAttribute", "distinctAttribute") and isinstance(value, str):
            yield path, value


def attribute_fix(context: Context, path: FieldPath, name: str) -> Fix | None:
    """What to write for the name of an attribute that is none, such as numa-node."""
    domain, slash, short = name.rpartition("/")
    if not slash:
        return domain_fix(context, path, name) if name else None
    driver = catalogue().driver(domain)
    if driver is not None and (hint := driver.no_equal.get(short)):
        return Fix(f"Leave it out: {hint}.")
    camel = _JOINED.sub(lambda match: match[1].upper(), short)
    known = [f"{STANDARD}/{attribute}" for attribute in STANDARD_NAMES] if domain == STANDARD else []
    known += _written(driver) if driver is not None else ()
    near = next(_names(driver, camel), "") if driver is not None else ""
    near = near or next(iter(nearest(name, known, 1)), "")
    later = driver.attributes.get(near) if driver is not None else None
    if later is not None and later.since:
        return Fix(f"Write {later.before}, the nearest that earlier releases publish, or {near} from {later.since} on.")
    return Fix.named(path, (near,) if near else ())


def domain_fix(context: Context, path: FieldPath, name: str) -> Fix:
    """What to write for an attribute without a domain, given the known drivers of the constraint's requests."""
    drivers = tuple({driver.name: driver for driver in _drivers(context, path)}.values())
    full = _full(name, drivers)
    if full:
        return Fix.guess(f"Write {full}", Set(path, full))
    known = {written.rpartition("/")[2]: written for driver in drivers for written in _written(driver)}
    known |= {standard: f"{STANDARD}/{standard}" for standard in STANDARD_NAMES}
    near = nearest(name, known, 1)
    return Fix.named(path, [known[name] for name in near]) or Fix(
        f"Put a domain before it: the driver's, or {STANDARD} for {join(STANDARD_NAMES)}."
    )


def _full(name: str, drivers: tuple[Driver, ...]) -> str:
    """The one full name that can be meant; empty if there is none, or are several."""
    names = {written for driver in drivers for written in _names(driver, name)}
    # Other drivers publish the standard one, too.
    standard = f"{STANDARD}/{name}"
    if name in STANDARD_NAMES and (not names or standard in names or len(drivers) > 1):
        return standard
    return names.pop() if len(names) == 1 else ""


def _names(driver: Driver, name: str) -> Iterator[str]:
    """Full names of an attribute of a driver, or of the driver's substitute for it."""
    found = [full for full in _written(driver) if full.rpartition("/")[2] == name]
    if not found and driver.instead.get(name, "").startswith("attribute "):
        other = driver.instead[name].removeprefix("attribute ")
        found = [other if "/" in other else f"{driver.name}/{other}"]
    yield from found


def _written(driver: Driver) -> Iterator[str]:
    return (name if "/" in name else f"{driver.name}/{name}" for name in driver.attributes)


def _drivers(context: Context, path: FieldPath) -> Iterator[Driver]:
    """The known drivers of the devices that a constraint is about: those of its requests, or of all."""
    constraint = value_at(context.raw, path[:-1])
    wanted = [str(name).partition("/")[0] for name in items_at(constraint, "requests")]
    for request in context.item.requests:
        if wanted and request.get("name") not in wanted:
            continue
        for alternative in alternatives_of(request):
            device_class = alternative.get("deviceClassName")
            if isinstance(device_class, str):
                yield from drivers_of(context, device_class)
