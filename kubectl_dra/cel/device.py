"""The value of the variable ``device`` in a selector, and of an expression as an attribute of a device."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.cel.errors import ErrorKind, EvaluationError
from kubectl_dra.cel.library.support import accepted
from kubectl_dra.cel.values import INT_MAX, INT_MIN, DefaultMap, Duration, OptionalValue, Timestamp, Uint, Value


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


# Columns of devices: one property of each, such as an attribute, as something that can be compared and hashed.


def broken_devices(devices: Sequence[DeviceInput], list_attributes: bool) -> dict[int, EvaluationError]:
    """Devices, by index, on which every expression fails because an attribute cannot be converted."""
    # Readers of snapshots share equal values between devices: one look at each object is enough.
    tables = {id(device.attributes): device.attributes for device in devices}
    different = {id(raw): raw for table in tables.values() for raw in table.values()}
    doubtful = _doubtful(different)
    broken: dict[int, EvaluationError] = {}
    if not doubtful:
        return broken
    for index, device in enumerate(devices):
        if doubtful.isdisjoint(map(id, device.attributes.values())):
            continue
        try:
            device_value(device, list_attributes)
        except EvaluationError as error:
            broken[index] = error
    return broken


_is_version: Final = accepted(Semver.parse, SemverError)


def _doubtful(attributes: Mapping[int, Mapping[str, Any]]) -> set[int]:
    """The keys of attributes that may not convert; only a conversion can tell."""
    versions: dict[str, bool] = {}
    doubtful: set[int] = set()
    for key, raw in attributes.items():
        if len(raw) != 1:
            doubtful.add(key)
            continue
        ((kind, value),) = raw.items()
        type_ = value.__class__
        if type_ is str and kind == "version":
            plain = versions.get(value)
            if plain is None:
                plain = versions[value] = _is_version(value)
        elif type_ is int:
            plain = kind == "int" and -(2**63) <= value < 2**63
        else:
            plain = (type_ is str and kind == "string") or (type_ is bool and kind == "bool")
        if not plain:
            doubtful.add(key)
    return doubtful


def read_column(
    devices: Sequence[DeviceInput], kind: str, domain: str | None, identifier: str | None
) -> list[Hashable]:
    """One hashable per device for the parts of a ``Column``. Devices with equal ones have equal values in it."""
    if kind == "driver":
        return [device.driver for device in devices]
    if kind == "allowMultipleAllocations":
        return [bool(device.allow_multiple_allocations) for device in devices]
    attributes = kind == "attribute"
    if identifier is None:
        return [_domain(device, attributes, domain) for device in devices]
    if domain is None or "/" in domain + identifier:
        return [_entry(device, attributes, domain, identifier) for device in devices]
    return _plain_column(devices, attributes, domain, identifier)


def _plain_column(devices: Sequence[DeviceInput], attributes: bool, domain: str, name: str) -> list[Hashable]:
    """One attribute or capacity of all devices: the same as ``_entry``, but fast in the common case."""
    qualified = f"{domain}/{name}"
    usual = "string" if attributes else "value"
    values: list[Hashable] = []
    for device in devices:
        entries = device.attributes if attributes else device.capacity
        if device.driver != domain:
            value = entries.get(qualified)
        elif qualified in entries:
            values.append(_entry(device, attributes, domain, name))
            continue
        else:
            value = entries.get(name)
        if value is None:
            values.append(None)
            continue
        text = value.get(usual)
        plain = text.__class__ is str and len(value) == 1
        values.append(text if plain else _frozen(value, attributes))
    return values


def _entry(device: DeviceInput, attributes: bool, domain: str | None, name: str) -> Hashable:
    """One attribute or capacity; None if absent."""
    entries = device.attributes if attributes else device.capacity
    driver = device.driver
    if domain is None:
        domain = driver
    value = entries.get(f"{domain}/{name}") if "/" not in domain else None
    if domain == driver and "/" not in name:
        plain = entries.get(name)
        if plain is not None:
            if value is not None:
                # Published twice, with and without domain: leave the choice to the conversion.
                return _domain(device, attributes, domain)
            value = plain
    return None if value is None else _frozen(value, attributes)


def _domain(device: DeviceInput, attributes: bool, domain: str | None) -> Hashable:
    """All entries of a domain with their identifiers."""
    driver = device.driver
    if domain is None:
        domain = driver
    entries = [
        (split_name(name, driver), value)
        for name, value in (device.attributes if attributes else device.capacity).items()
    ]
    return tuple(
        [(identifier, _frozen(value, attributes)) for (prefix, identifier), value in entries if prefix == domain]
    )


def _frozen(value: Mapping[str, Any], attribute: bool) -> Hashable:
    """A hashable for a value and its type (true is not 1)."""
    if not attribute:
        amount = value.get("value")
        return amount if amount.__class__ is str else repr(amount)
    if len(value) == 1:
        ((kind, content),) = value.items()
        type_ = content.__class__
        if (kind == "string" and type_ is str) or (kind == "int" and type_ is int):
            return content  # type: ignore[no-any-return]
        if type_ is str or type_ is bool:
            return kind, content
    return (repr(value),)


# The value of an expression as an attribute of a device: what derived attributes are (alpha in 1.37).

Attribute = Mapping[str, Any]
"""The API's one-of, such as ``{"string": "A100"}`` or ``{"ints": [0, 1]}``."""

_KINDS: Final[Mapping[type, tuple[str, str]]] = {
    bool: ("bool", "bool"),
    int: ("int", "int"),
    str: ("string", "string"),
    Semver: ("version", "semver"),
}
"""By type: the field of an attribute, and the name that errors use."""
_GO_NAMES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int64",
    str: "string",
    Semver: "semver.Version",
    Uint: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    Duration: "time.Duration",
    Timestamp: "time.Time",
    Quantity: "*resource.Quantity",
    list: "[]ref.Val",
    tuple: "[]ref.Val",
    dict: "map[ref.Val]ref.Val",
}


def as_attribute(value: Value) -> Attribute:
    """The value of an expression as an attribute. Raises EvaluationError for a kind that attributes do not have."""
    plain = _unwrapped(value)
    kind = _KINDS.get(plain.__class__)
    if kind is not None:
        return {kind[0]: str(plain) if plain.__class__ is Semver else plain}
    if value.__class__ is not OptionalValue and isinstance(value, (list, tuple)):
        return _of_list(value)
    raise EvaluationError(f"unsupported CEL return type: {_go_name(value)}")


def _of_list(values: list[Value] | tuple[Value, ...]) -> Attribute:
    if not values:
        return {"strings": []}
    first = _unwrapped(values[0])
    kind = _KINDS.get(first.__class__)
    if kind is None:
        raise EvaluationError(f"unsupported list element type: {_go_name(values[0])}")
    plain_values = []
    for index, element in enumerate(values):
        plain = _unwrapped(element)
        if plain.__class__ is not first.__class__:
            raise EvaluationError(f"expected list element at index {index} to be {kind[1]}, got {_go_name(element)}")
        plain_values.append(str(plain) if kind[0] == "version" else plain)
    return {f"{kind[0]}s": plain_values}


def _unwrapped(value: Value) -> Value:
    """The content of an optional, which Kubernetes unwraps; other values as they are."""
    return value.value if value.__class__ is OptionalValue and value.has_value else value


def _go_name(value: Value) -> str:
    if value.__class__ is OptionalValue and not value.has_value:
        return "<nil>"
    plain = _unwrapped(value)
    return _GO_NAMES.get(plain.__class__, plain.__class__.__name__)
