"""The value of the variable ``device`` in a selector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.cel.errors import ErrorKind, EvaluationError
from kubectl_dra.cel.values import INT_MAX, INT_MIN, DefaultMap, Value


class DeviceInput(Protocol):
    """A device in the shape of resource.k8s.io/v1: raw JSON values, with names not yet qualified."""

    @property
    def driver(self) -> str: ...
    @property
    def attributes(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def capacity(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def allow_multiple_allocations(self) -> bool: ...


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of an attribute or capacity name. The default domain is the driver's."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def attribute_value(name: str, attribute: Mapping[str, Any], list_attributes: bool) -> Value:
    """The CEL value of one attribute.

    Raises EvaluationError for a value that the scheduler cannot convert: an empty one, a version that does
    not parse, or a list where list attributes (gate DRAListTypeAttributes, Kubernetes 1.37) are unknown.
    """
    if list_attributes:
        for key in ("ints", "bools", "strings"):
            values = attribute.get(key)
            if values is not None:
                return list(values)
        versions = attribute.get("versions")
        if versions is not None:
            return [_version(name, version) for version in versions]
    value = attribute.get("string")
    if value is None:
        value = attribute.get("int")
        if value is None:
            value = attribute.get("bool")
            if value is None:
                version = attribute.get("version")
                if version is not None:
                    return _version(name, version)
    if value.__class__ is int and not INT_MIN <= value <= INT_MAX:
        value = None
    if value is None:
        raise _unconvertible(name, "unsupported attribute value")
    return value


def _version(name: str, text: str) -> Semver:
    try:
        return Semver.parse(text)
    except SemverError as error:
        raise _unconvertible(name, f"parse semantic version: {error}") from None


def _unconvertible(name: str, why: str) -> EvaluationError:
    return EvaluationError(f"attribute {name}: {why}", kind=ErrorKind.ATTRIBUTE, name=name, reason=why)


def device_value(device: DeviceInput, list_attributes: bool = False) -> dict[str, Value]:
    """The value of ``device``. Like the scheduler, it converts all attributes, used or not.

    Raises EvaluationError for an attribute that cannot be converted.
    """
    driver = device.driver
    attributes: DefaultMap = DefaultMap()
    for name, attribute in device.attributes.items():
        domain, identifier = split_name(name, driver)
        attributes.setdefault(domain, {})[identifier] = attribute_value(name, attribute, list_attributes)
    capacity: DefaultMap = DefaultMap()
    for name, amount in device.capacity.items():
        domain, identifier = split_name(name, driver)
        try:
            quantity = Quantity.from_json(amount.get("value"))
        except QuantityError as error:
            raise EvaluationError(f"capacity {name}: {error}") from None
        capacity.setdefault(domain, {})[identifier] = quantity
    return _value(device, attributes, capacity)


def _value(device: DeviceInput, attributes: DefaultMap, capacity: DefaultMap) -> dict[str, Value]:
    shared = bool(device.allow_multiple_allocations)
    return {"driver": device.driver, "allowMultipleAllocations": shared, "attributes": attributes, "capacity": capacity}


def narrow_value(
    device: DeviceInput, names: Iterable[tuple[str, str | None, str | None]], list_attributes: bool = False
) -> dict[str, Value]:
    """The value of ``device`` with only some attributes and capacities; takes a fraction of the time.

    Each of ``names`` is (``attribute`` or ``capacity``, domain, identifier), where None means the domain of
    the device's driver. Use it for expressions that read nothing else (see ``columns``), on devices whose
    attributes all convert.
    """
    driver = device.driver
    attributes: DefaultMap = DefaultMap()
    capacity: DefaultMap = DefaultMap()
    for kind, domain, identifier in names:
        if domain is None:
            domain = driver
        entries = device.attributes if kind == "attribute" else device.capacity
        raw = entries.get(f"{domain}/{identifier}")
        if domain == driver and identifier is not None and identifier in entries:
            if raw is not None:
                # Published twice, with and without domain: the order of the entries decides.
                return device_value(device, list_attributes)
            raw = entries[identifier]
        if raw is None:
            continue
        if kind == "attribute":
            attributes.setdefault(domain, {})[identifier] = attribute_value(str(identifier), raw, list_attributes)
        else:
            capacity.setdefault(domain, {})[identifier] = Quantity.from_json(raw.get("value"))
    return _value(device, attributes, capacity)
