"""A device of a ResourceSlice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.admission.server.classes import check_taint
from kubectl_dra.admission.server.counters import Sets, check_consumptions, check_mappings, check_node_resources
from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INTERNAL_ERROR,
    INVALID,
    REQUIRED,
    TOO_MANY,
    Key,
    ServerContext,
    Violation,
    Violations,
    beyond_limit,
    check_list,
    key_at,
    same_field,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_format,
    check_length,
    check_qualified,
    check_rows,
    is_version,
    label_key_problems,
    label_problems,
)
from kubectl_dra.admission.server.selectors import check_nodes
from kubectl_dra.api.behaviour import (
    DEFAULT_OUT_OF_RANGE,
    EMPTY_IS_INVALID,
    KEY_AT_MAP,
    STEP_ABOVE_ZERO,
    STORED_CAPACITY_UNREAD,
    STORED_UNREAD,
    VALUES_LIMITED,
)
from kubectl_dra.api.dra_fields import limit
from kubectl_dra.api.limits import MAX_ATTRIBUTE_VALUE, MAX_DEVICE_ENTRIES, MAX_DOMAIN, MAX_IDENTIFIER
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.schema import FieldPath

# Request policies of a device's capacity: which amounts one claim may take.

FRACTIONS: Final = "DRAFractionalCapacityRange"
_UNIT: Final = 1_000_000_000
_MILLI: Final = 1_000_000


def check_capacity(
    capacity: Mapping[str, Any] | None, at: FieldPath, field: str, shared: bool, context: ServerContext
) -> Violations:
    """One entry of ``capacity``; ``field`` is the text of ``at``, ``shared`` is allowMultipleAllocations."""
    policy = (capacity or {}).get("requestPolicy")
    if policy is None:
        return
    where = _Where((*at, "requestPolicy"), f"{field}.requestPolicy")
    if not shared:
        yield where.violation(FORBIDDEN, "policy-needs-multi", "needs allowMultipleAllocations: true on the device")
        return
    value = Quantity.from_json((capacity or {}).get("value"))
    values, limits = policy.get("validValues"), policy.get("validRange")
    if values and limits is not None:
        yield where.violation(FORBIDDEN, "policy-both", "has validValues and validRange; only one may be set")
    elif values or limits is not None:
        default = policy.get("default")
        if default is None:
            message = f"must be set with {'validValues' if values else 'validRange'}"
            yield where.child("default").violation("Required", "policy-default-missing", message)
        elif values:
            amounts = [Quantity.from_json(quantity) for quantity in values]
            exact = context.on(FRACTIONS)
            yield from _check_values(amounts, Quantity.from_json(default), value, where.child("validValues"), exact)
        else:
            yield from _check_range(limits, Quantity.from_json(default), value, where.child("validRange"), context)


class _Where(Struct, eq=False):
    """A path together with its text, which may be shortened."""

    path: FieldPath
    field: str

    def child(self, part: str | int) -> _Where:
        """The place of a field or an item in it."""
        shown = f"[{part}]" if isinstance(part, int) else f".{part}"
        return _Where((*self.path, part), self.field + shown)

    def violation(self, reason: str, rule: str, message: str) -> Violation:
        """A violation at this place."""
        return violation(self.path, reason, rule, message, field=self.field)


def _check_values(
    values: list[Quantity], default: Quantity, capacity: Quantity, where: _Where, exact: bool
) -> Violations:
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            message = f"{values[index]} is less than the value before it; values must ascend"
            yield where.child(index).violation(INVALID, "policy-values-order", message)
    most = limit("CapacityRequestPolicy", "validValues")
    too_many = most is not None and len(values) > most
    if too_many:
        message = f"has {len(values)} values, at most {most} are allowed"
        yield where.violation(TOO_MANY, "policy-values-too-many", message)
    else:
        yield from _check_each(values, capacity, where, exact)
    # The server looks for the default only in a list that is not too long.
    if too_many or default not in values:
        yield where.violation(INVALID, "policy-values-default", f"the default {default} is not among the values")


def _check_each(values: list[Quantity], capacity: Quantity, where: _Where, exact: bool) -> Violations:
    for index, value in enumerate(values):
        if value > capacity:
            message = f"{value} is more than the capacity's value {capacity}"
            yield where.child(index).violation(INVALID, "policy-values-large", message)
    seen: set[object] = set()
    for index, value in enumerate(values):
        # Without the feature compared as whole numbers, rounded up: 1200m and 1500m are equal then.
        whole = _digits(value) if exact else value.value()
        if whole in seen:
            message = f"{value} is already in the list" + ("" if exact else ", fractions rounded up")
            yield where.child(index).violation(DUPLICATE, "policy-values-duplicate", message)
        seen.add(whole)


def _check_range(
    limits: Mapping[str, Any], default: Quantity, capacity: Quantity, where: _Where, context: ServerContext
) -> Violations:
    given = (limits.get(name) for name in ("min", "max", "step"))
    least, most, step = (None if amount is None else Quantity.from_json(amount) for amount in given)
    if least is None:
        yield where.child("min").violation("Required", "policy-range-min-missing", "must be set in a validRange")
        return
    own = context.release in DEFAULT_OUT_OF_RANGE
    comparisons = [
        ("min", "min", least > capacity, f"min {least} is more than the capacity's value {capacity}"),
        ("min", "default" if own else "min", default < least, f"the default {default} is less than min {least}"),
    ]
    if most is not None:
        comparisons += [
            ("max", "max", least > most, f"min {least} is more than max {most}"),
            ("max", "max", most > capacity, f"max {most} is more than the capacity's value {capacity}"),
            ("max", "default" if own else "max", default > most, f"the default {default} is more than max {most}"),
        ]
    for name, field, broken, message in comparisons:
        if broken:
            yield where.child(field).violation(INVALID, f"policy-range-{name}", message)
    named = (("default", default), ("min", least), ("max", most), ("step", step))
    amounts = {name: amount for name, amount in named if amount is not None}
    fractional = context.on(FRACTIONS) and any(amount.nanos % _UNIT for amount in amounts.values())
    uncountable: dict[str, str] = {}
    if fractional:
        text = "is not a number of thousandths below 2^63"
        uncountable = {name: text for name, amount in amounts.items() if not _in_thousandths(amount)}
    elif own and step is not None and step.nanos > 0:
        text = f"is not between 0 and {2**63 - 1}"
        uncountable = {name: text for name, amount in amounts.items() if not 0 <= amount.nanos <= (2**63 - 1) * _UNIT}
    for name, text in uncountable.items():
        yield where.child(name).violation(INVALID, "policy-range-step", f"{amounts[name]} {text}")
    if step is None or (fractional and uncountable):
        return
    where = where.child("step")
    yield from _check_step(step, least, most, default, capacity, where, context, fractional, not uncountable)


def _check_step(
    step: Quantity,
    least: Quantity,
    most: Quantity | None,
    default: Quantity,
    capacity: Quantity,
    where: _Where,
    context: ServerContext,
    fractional: bool,
    countable: bool,
) -> Violations:
    rule, above_zero = "policy-range-step", context.release in STEP_ABOVE_ZERO
    if above_zero and step.nanos <= 0:
        yield where.violation(INVALID, "policy-range-step-zero", "must be more than 0")
        return
    if least.nanos + step.nanos > capacity.nanos:
        message = f"min {least} and one step {step} are more than the capacity's value {capacity}"
        yield where.violation(INVALID, rule, message)
    if not countable:
        return
    if not above_zero and not step.value():
        message = "is 0, which crashes the API server's handler of this request"
        yield where.violation(INTERNAL_ERROR, "policy-range-step-zero", message)
        return
    for name, amount in (("the default", default), ("max", most)):
        if amount is None:
            continue
        if fractional:
            rest = (amount.nanos - least.nanos) % step.nanos
        else:
            # The difference wraps around at 64 bits.
            rest = ((amount.value() - least.value() + 2**63) % 2**64 - 2**63) % step.value()
        if rest:
            message = f"{name} {amount} is not min {least} plus a multiple of the step {step}"
            yield where.violation(INVALID, rule, message)


def _digits(value: Quantity) -> tuple[int, int]:
    """The number as it is written, with its fraction digits: 1 and 1000m differ."""
    return value.unscaled * 10 ** max(value.exponent, 0), max(-value.exponent, 0)


def _in_thousandths(amount: Quantity) -> bool:
    return amount.nanos % _MILLI == 0 and -(2**63) <= amount.nanos // _MILLI < 2**63


VALUES_MAX: Final = 48
LIST_VALUES: Final = ("bools", "ints", "strings", "versions")
_VALUES: Final = ("bool", "int", "string", "version", *LIST_VALUES)
_KEY_SHOWN: Final = MAX_DOMAIN + 1 + MAX_IDENTIFIER
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes")


def check_device(
    device: Mapping[str, Any],
    at: FieldPath,
    per_device: bool,
    sets: Sets,
    context: ServerContext,
    old: Mapping[str, Any] | None = None,
) -> Violations:
    """One device; ``per_device`` is perDeviceNodeSelection of its slice, ``sets`` are the counter sets there.

    What the stored device ``old`` has is not checked again.
    """
    yield from check_format(text(device, "name"), (*at, "name"), "device-name-invalid", label_problems)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    yield from _check_sizes(attributes, capacity, at, context)
    yield from _check_attributes(attributes, (*at, "attributes"), context)
    shared = device.get("allowMultipleAllocations") is True
    if not (
        context.release in STORED_CAPACITY_UNREAD and old is not None and same_field(device, old, "Device", "capacity")
    ):
        yield from _check_capacities(capacity, (*at, "capacity"), shared, context)
    taint = partial(check_taint, context=context)
    most = limit("Device", "taints", context.release)
    if not (context.release in STORED_UNREAD and old is not None and same_field(device, old, "Device", "taints")):
        yield from check_list(device.get("taints"), (*at, "taints"), most, "taints-too-many", taint, context)
        yield from beyond_limit(device.get("taints"), (*at, "taints"), most, taint, context)
    yield from check_consumptions(device, at, sets, context)
    if per_device:
        needed = f"must have one of {', '.join(_NODE_FIELDS)}, as the slice has perDeviceNodeSelection"
        yield from check_nodes(device, at, _NODE_FIELDS, "per-device-node", needed)
    elif any(device.get(field) is not None for field in _NODE_FIELDS):
        message = f"{', '.join(_NODE_FIELDS)} need perDeviceNodeSelection: true in the slice's spec"
        yield violation(at, INVALID, "per-device-node-unexpected", message)
    yield from check_binding(device, at, context)
    yield from check_mappings(device.get("nodeAllocatableResourceMappings"), capacity, at)
    yield from check_node_resources(device.get("nodeAllocatableResources"), capacity, at)
    yield from check_rows(device, at, "Device", context)


def _check_sizes(
    attributes: Mapping[str, Any], capacity: Mapping[str, Any], at: FieldPath, context: ServerContext
) -> Violations:
    keys = len(attributes) + len(capacity)
    if keys > MAX_DEVICE_ENTRIES:
        message = f"has {keys} attributes and capacities together, at most {MAX_DEVICE_ENTRIES} are allowed"
        yield violation(at, INVALID, "device-keys-too-many", message)
    values = sum(
        sum(len((attribute or {}).get(name) or ()) for name in LIST_VALUES) or 1 for attribute in attributes.values()
    )
    if values > VALUES_MAX and context.release in VALUES_LIMITED:
        message = f"has {values} attribute values, at most {VALUES_MAX} are allowed"
        yield violation(at, INVALID, "device-values-too-many", message)


def _check_key(name: str, at: FieldPath, rule: str, context: ServerContext) -> Violations:
    """The name of an attribute or capacity. The server reports it at the map, up to 1.35 at the entry."""
    for problem in check_qualified(name, at, (rule, rule), below=(Key(name),), release=context.release):
        yield problem if context.release in KEY_AT_MAP else replace(problem, field=key_at(at, name, _KEY_SHOWN)[1])


def _check_attributes(attributes: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    for name, attribute in attributes.items():
        yield from _check_key(name, at, "attribute-key", context)
        path, field = key_at(at, name, _KEY_SHOWN)
        for problem in _check_attribute(attribute or {}, context):
            inside, reason, rule, message = problem
            shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside)
            yield violation((*path, *inside), reason, rule, message, field=field + shown)


def _check_attribute(attribute: Mapping[str, Any], context: ServerContext) -> Any:
    """What is wrong with an attribute: (path inside it, reason, rule, message)."""
    for name, several in (("string", "strings"), ("version", "versions")):
        value = attribute.get(name)
        if value is not None:
            yield from _check_text(value, (name,), name)
        for index, item in enumerate(attribute.get(several) or ()):
            yield from _check_text(item or "", (several, index), name)
    for name in LIST_VALUES:
        if attribute.get(name) == []:
            yield (name,), INVALID, "attribute-list-empty", "must not be empty where it is set"
    given = [name for name in _VALUES if attribute.get(name) is not None]
    if len(given) != 1:
        has = " and ".join(given) if given else "no value"
        reason = INVALID if given or context.release in EMPTY_IS_INVALID else REQUIRED
        yield (), reason, "attribute-one-value", f"has {has}; exactly one of {', '.join(_VALUES[:4])} must be set"


def _check_text(value: str, inside: FieldPath, kind: str) -> Any:
    if kind == "version" and not is_version(value):
        message = f"{value!r} is not a semantic version such as 1.2.3"
        yield inside, INVALID, "attribute-version", message
    rule = "attribute-version" if kind == "version" else "attribute-string-long"
    for problem in check_length(value, inside, MAX_ATTRIBUTE_VALUE, rule):
        yield inside, problem.reason, rule, problem.message


def _check_capacities(capacity: Mapping[str, Any], at: FieldPath, shared: bool, context: ServerContext) -> Violations:
    for name, value in capacity.items():
        yield from _check_key(name, at, "capacity-key", context)
        path, field = key_at(at, name, _KEY_SHOWN)
        yield from check_capacity(value, path, field, shared, context)


def check_binding(device: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    """Binding conditions and binding failure conditions, of a device."""
    lists = {name: device.get(name) or () for name in ("bindingConditions", "bindingFailureConditions")}
    name_at = partial(check_format, rule="binding-name", problems=label_key_problems)
    for name, values in lists.items():
        yield from check_list(values, (*at, name), limit("Device", name), "binding-too-many", name_at, context)
    for name, values in lists.items():
        others = lists["bindingConditions"] if name == "bindingFailureConditions" else ()
        for index, value in enumerate(values):
            where = (*at, name, index)
            if value in values[:index]:
                yield violation(where, DUPLICATE, "binding-duplicate", f"{value!r} is already in the list")
            if value in others:
                yield violation(where, INVALID, "binding-overlap", f"{value!r} is a bindingCondition, too")
    for name, other in (tuple(lists), tuple(lists)[::-1]):
        if lists[other] and not lists[name]:
            yield violation((*at, name), INVALID, "binding-pair", f"must be set together with {other}")
