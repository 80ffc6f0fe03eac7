"""Checks users' vendor files: schema, names, patterns, and that all resulting CEL compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec.structs import replace

from kubectl_dra.api.limits import MAX_EXPRESSION_BYTES
from kubectl_dra.api.releases import EXPLAINED, UNTOLD
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.errors import CompileError
from kubectl_dra.cel.library.regex import PatternError
from kubectl_dra.data.code_pages import packed
from kubectl_dra.errors import InputError
from kubectl_dra.migrate.vendors.label_to_cel import Untranslatable, condition
from kubectl_dra.migrate.vendors.model import (
    Known,
    KnownDriver,
    LabelRule,
    ResourceRule,
    Vendor,
    filled,
    linear,
    vendor_of,
)

if TYPE_CHECKING:
    from kubectl_dra.manifests.documents import Document

_PLACE: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_SAMPLES: Final = {
    "text": "a",
    "integer": "1",
    "version": "1.2.3",
    "quantity": "1",
    "mebibytes": "1",
    "gibibytes": "1G",
    "pattern": "a",
    "topology": "1x1",
    "list": "a,b",
    "contains": "a,b",
}


def fail(document: Document, path: FieldPath, what: str) -> NoReturn:
    """Raise InputError: where in the file, the path there, and the error."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    raise InputError(f"{document.place(path)}: {where + ': ' if where else ''}{what}")


def read(path: str, known: Known) -> Iterator[Vendor]:
    """The vendors of a user's file, one per document. ``known`` are those that already exist.

    Raises:
        InputError: the file cannot be read or violates the schema: file, line and path in it, and the error.
    """
    from kubectl_dra.manifests.documents import read_documents

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    documents = read_documents(data, path, strict=True)
    if not documents:
        raise InputError(f"{path}: it contains no vendor")
    seen: set[str] = set()
    for document in documents:
        structure(document)
        vendor = check(document, known, seen)
        seen.add(vendor.id)
        yield vendor


@cache
def schema() -> Mapping[str, Any]:
    """The JSON Schema of a vendor's file."""
    import json

    file = packed("schemas") / "vendor.json"
    if file.is_file():
        schema_: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
        return schema_
    raise InputError("the schema vendor.json is missing from this installation")


def structure(document: Document) -> None:
    """Checks a document against the schema. Raises InputError."""
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema()).iter_errors(document.object)
    # The first in the file; of several at one place the simplest.
    first = min(
        errors,
        key=lambda error: (document.key_position(tuple(error.absolute_path)).line, len(error.message)),
        default=None,
    )
    if first is None:
        return
    message = "it needs a name or a pattern, and not both" if first.validator == "oneOf" else first.message
    fail(document, tuple(first.absolute_path), _short(message))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 240 else line[:237] + "..."


def check(document: Document, known: Known, seen: set[str]) -> Vendor:
    """The vendor of a document that fits the schema, fully checked. ``seen`` are ids of the same file.

    Raises:
        InputError: a duplicate name, an invalid pattern or CEL expression, or an unknown class.
    """
    raw = document.object
    if raw["vendor"] in known or raw["vendor"] in seen:
        fail(document, ("vendor",), f"there is a vendor {raw['vendor']} already; choose another id")
    for part, key in (("resources", "name"), ("labels", "key"), ("classes", "name"), ("drivers", "name")):
        _unique(document, part, key)
    for path, pattern in _patterns(raw, ()):
        try:
            linear(pattern)
        except PatternError as error:
            fail(document, path, str(error))
    for index, like in enumerate(raw.get("like", ())):
        if like not in known:
            fail(document, ("like", index), f"there is no vendor {like}")
    vendor = vendor_of(raw, linear, lambda name: known.device_class(name) if name else None)
    for index, device_class in enumerate(vendor.classes.values()):
        _compiles(document, ("classes", index, "selector"), device_class.selector)
    for index, rule in enumerate(vendor.resources):
        _check_resource(document, ("resources", index), rule, vendor, known)
    for part, rules in (("labels", vendor.labels), ("annotations", vendor.annotations)):
        for index, label in enumerate(rules):
            _check_label(document, (part, index), label, vendor, known)
    return vendor


def _unique(document: Document, part: str, key: str) -> None:
    seen: set[str] = set()
    for index, item in enumerate(document.object.get(part, ())):
        name = item.get(key)
        if name is not None and name in seen:
            fail(document, (part, index, key), f"{name} is there twice")
        seen.add(name)


def _patterns(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """All patterns of a file, with their paths."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            here = (*path, key)
            is_pattern = key in ("pattern", "unless") or (key == "values" and path[-2:-1] == ("forms",))
            if is_pattern and isinstance(below, str):
                yield here, below
            else:
                yield from _patterns(below, here)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _patterns(below, (*path, index))


def _check_resource(document: Document, path: FieldPath, rule: ResourceRule, vendor: Vendor, known: Known) -> None:
    resource = rule.resource
    if resource.outcome not in ("auto", "keep") and not resource.message:
        fail(document, path, f"the outcome {resource.outcome} needs a message")
    if resource.outcome in ("auto", "note") and not resource.device_class and not resource.part_of:
        fail(document, path, f"the outcome {resource.outcome} needs a class")
    if resource.outcome in ("ask", "refuse") and not resource.way_out:
        fail(document, path, f"the outcome {resource.outcome} needs a way_out")
    if resource.device_class and not resource.driver:
        what = f"the class {resource.device_class} is not known here; add it to classes, or name its driver"
        fail(document, (*path, "class"), what)
    groups = _groups(rule.pattern)
    samples = {group: next(iter(rule.values.get(group, {"": "1"}).values()), "1") for group in groups}
    for key in ("class", "capacity", "selectors"):
        texts = {
            "class": [resource.device_class],
            "capacity": resource.capacity.values(),
            "selectors": resource.selectors,
        }
        _places(document, (*path, key), texts[key], groups)
    for index, selector in enumerate(resource.selectors):
        _compiles(document, (*path, "selectors", index), filled(selector, samples))
    for name, amount in resource.capacity.items():
        _quantity(document, (*path, "capacity", name), filled(amount, samples))


def _quantity(document: Document, path: FieldPath, amount: str) -> None:
    from kubectl_dra.api.quantity import Quantity

    try:
        Quantity.parse(amount)
    except ValueError as error:
        fail(document, path, str(error))


def _check_label(document: Document, path: FieldPath, rule: LabelRule, vendor: Vendor, known: Known) -> None:
    groups = _groups(rule.pattern)
    _places(document, path, (rule.from_key, rule.same_as), groups)
    if rule.action in ("select", "keep-and-select") and not rule.same_as:
        if bool(rule.attribute) == bool(rule.capacity):
            fail(document, path, f"the action {rule.action} needs an attribute or a capacity, and not both")
        for driver in _drivers(vendor, known):
            _check_condition(document, path, rule, driver)
    for index, suffix in enumerate(rule.suffixes):
        here = (*path, "suffixes", index, "selector")
        within = _groups(suffix.pattern)
        _places(document, here, (suffix.selector,), within)
        _compiles(document, here, filled(suffix.selector, dict.fromkeys(within, "1")))


def _check_condition(document: Document, path: FieldPath, rule: LabelRule, driver: KnownDriver) -> None:
    """Compile what the rule makes of a value that it knows, in each of its forms."""
    value = next(iter(rule.spelling.map), _SAMPLES[rule.compare])
    for form in (rule.form, *(other.form for other in rule.forms)):
        if "{}" not in form:
            fail(document, path, f"the form {form} has no place {{}} for the attribute")
        try:
            expression = condition(replace(rule, form=form, forms=()), driver, "In", [value])
        except Untranslatable as error:
            fail(document, path, f"a value such as {value} {error}")
        _compiles(document, path, expression)


def _drivers(vendor: Vendor, known: Known) -> Iterator[KnownDriver]:
    """The drivers whose devices the vendor's labels are compared with."""
    names = dict.fromkeys(
        chain(
            (rule.resource.driver for rule in vendor.resources),
            (device_class.driver for device_class in vendor.classes.values()),
        )
    )
    for name in filter(None, names):
        yield vendor.drivers.get(name) or known.driver(name) or KnownDriver(name)


def _groups(pattern: Any) -> Sequence[str]:
    return tuple(pattern.groupindex) if pattern is not None else ()


def _places(document: Document, path: FieldPath, texts: Any, groups: Sequence[str]) -> None:
    for text in texts:
        for place in _PLACE.findall(text):
            if place not in groups:
                fail(document, path, f"{{{place}}} is not a named group of the pattern")


def _compiles(document: Document, path: FieldPath, expression: str) -> None:
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.program import compile_expression

    if not expression:
        return
    if len(expression.encode()) > MAX_EXPRESSION_BYTES:
        fail(document, path, f"the selector has more than {MAX_EXPRESSION_BYTES} bytes")
    for release in (EXPLAINED.oldest, UNTOLD):
        try:
            compile_expression(Environment.for_release(release), expression)
        except CompileError as error:
            why = error.issues[0].said if error.issues else str(error)
            fail(document, path, f"the selector {_short(expression)} does not compile: {_short(why)}")
