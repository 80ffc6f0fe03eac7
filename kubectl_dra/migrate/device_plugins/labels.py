"""One condition on a node label, and what it implies about the devices that a pod claims."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Delete, fields_at, items_at
from kubectl_dra.migrate.vendors.catalogue import Labelled, translated
from kubectl_dra.migrate.vendors.label_to_cel import Untranslatable, condition, joined
from kubectl_dra.migrate.vendors.model import KnownDriver, Resource, filled
from kubectl_dra.text import whole_number

_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_POSITIVE: Final = ("In", "Exists", "Gt")
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_BY_HAND: Final = "State by hand which devices are wanted, with a selector in the claim or another label."


class Condition(NamedTuple):
    """A condition on a label as the pod states it; ``where`` names its place for people."""

    key: str
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([self.key, self.operator, *([", ".join(self.values)] if self.values else [])])


class Translation(NamedTuple):
    """What becomes of a condition.

    Attributes:
        leaves: it is removed from the pod.
        selectors: CEL expressions that must all hold for the device.
        device_class: the class that it requires, empty if any.
        decided: the selectors (none means: always true) express all that it says about devices, so it can be one of
            several.
        advice: what to know of the label, whether it goes or stays.
        becomes: what the claim has in its place, for people.
        reasons: why the claim needs nothing in its place.
        refusal: (why, way out), or None.
        unsafe: the pod may not get what it got before, or not run where it ran.
    """

    leaves: bool = False
    selectors: tuple[str, ...] = ()
    device_class: str = ""
    decided: bool = False
    advice: tuple[str, ...] = ()
    becomes: str = ""
    reasons: tuple[str, ...] = ()
    refusal: tuple[str, str] | None = None
    unsafe: bool = False


def translate(
    wanted: Condition, labelled: Labelled, resource: Resource, driver: KnownDriver, counts: Mapping[str, int | None]
) -> Translation:
    """What becomes of a condition by its label's rule.

    ``counts`` are the amounts that the pod requests of each resource, None if not a number.
    """
    rule = labelled.rule
    if wanted.operator not in OPERATORS:
        return _refused(wanted, "has no operator that Kubernetes knows", "Correct it, and migrate again.")
    if rule.kinds and resource.kind not in rule.kinds:
        return _kept(rule.note)
    if rule.action == "keep":
        return _kept("" if rule.quiet else _with_selector(wanted, labelled, driver))
    if any(not _LABEL_VALUE.fullmatch(value) for value in wanted.values):
        return _refused(wanted, "has a value that no label can have", "Correct it, and migrate again.")
    if rule.action == "setting":
        return _setting(wanted, labelled)
    if rule.action == "drop":
        return _implied(wanted, labelled)
    if rule.from_key:
        return _from_key(wanted, labelled, resource, driver)
    try:
        translation = _selected(wanted, labelled, resource, driver, counts)
    except Untranslatable as error:
        return _refused(wanted, str(error), error.way_out or _BY_HAND)
    return translation._replace(leaves=False) if rule.action == "keep-and-select" else translation


def _kept(advice: str) -> Translation:
    return Translation(advice=(advice,) if advice else ())


def _refused(wanted: Condition, why: str, way_out: str) -> Translation:
    return Translation(refusal=(f"{wanted.key} {why}", way_out))


def _with_selector(wanted: Condition, labelled: Labelled, driver: KnownDriver) -> str:
    """The note for a label that stays, with the equivalent selector if there is one."""
    rule = labelled.rule
    if not rule.attribute or wanted.operator not in ("In", "NotIn"):
        return rule.note
    try:
        return f"{rule.note} A selector that says the same of devices: {_plain(wanted, labelled, driver)}"
    except Untranslatable:
        return rule.note


def _setting(wanted: Condition, labelled: Labelled) -> Translation:
    rule = labelled.rule
    positive = wanted.operator in _POSITIVE
    harmless = bool(rule.harmless) and (all(v in rule.harmless for v in wanted.values) if positive else True)
    if harmless and wanted.operator != "Exists":
        return Translation(leaves=True, reasons=(f"{wanted} is true of all devices that are claimed",))
    return Translation(leaves=True, advice=(rule.note,), unsafe=True)


def _implied(wanted: Condition, labelled: Labelled) -> Translation:
    value = labelled.rule.value
    listed = value in wanted.values
    implied = wanted.operator == "Exists" or (wanted.operator == "In" and listed)
    if not value:
        implied = wanted.operator in ("Exists", "In")
    elif wanted.operator == "NotIn":
        implied = not listed
    if implied:
        return Translation(leaves=True, decided=True, reasons=(f"{wanted} is implied by the claim",))
    return _refused(wanted, "requires nodes without the devices that the pod asks for", "Remove one of the two.")


def _from_key(wanted: Condition, labelled: Labelled, resource: Resource, driver: KnownDriver) -> Translation:
    """A label whose key holds the value: present or not, or the node's number of such devices."""
    rule = labelled.rule
    positive = wanted.operator == "Exists"
    if rule.value and wanted.operator in ("In", "NotIn"):
        positive = (wanted.operator == "In") == (rule.value in wanted.values)
    elif wanted.operator not in ("Exists", "DoesNotExist"):
        return _kept("It counts the devices of a node, which no attribute does.")
    inner = Condition(wanted.key, "In" if positive else "NotIn", (filled(rule.from_key, labelled.groups),))
    try:
        return _selected(inner, Labelled(replace(rule, from_key=""), labelled.groups), resource, driver, {})
    except Untranslatable as error:
        return _refused(wanted, str(error), _BY_HAND)


def _selected(
    wanted: Condition, labelled: Labelled, resource: Resource, driver: KnownDriver, counts: Mapping[str, int | None]
) -> Translation:
    rule = labelled.rule
    if wanted.operator == "Exists":
        return Translation(leaves=True, decided=True, reasons=(f"{wanted} is implied by the claim",))
    if wanted.operator == "DoesNotExist":
        raise Untranslatable("may not exist, and all devices that can be claimed are on nodes that have it")
    if not wanted.values:
        raise Untranslatable(f"has the operator {wanted.operator} and no value")
    if rule.compare == "topology":
        _check_topology(wanted, labelled, counts)
    if rule.device_class and wanted.operator == "NotIn":
        raise Untranslatable("says which partitions are not wanted, and not which are")
    if rule.suffixes:
        return _with_suffixes(wanted, labelled, resource, driver)
    selector = _plain(wanted, labelled, driver)
    return Translation(
        leaves=True,
        selectors=(selector,),
        device_class=rule.device_class,
        decided=True,
        becomes=_becomes(labelled, rule.device_class),
    )


def _plain(wanted: Condition, labelled: Labelled, driver: KnownDriver) -> str:
    return condition(labelled.rule, driver, wanted.operator, wanted.values)


def _becomes(labelled: Labelled, device_class: str) -> str:
    rule = labelled.rule
    what = f"attribute {rule.attribute}" if rule.attribute else f"capacity {rule.capacity}"
    chosen = f" and chooses class {device_class}" if device_class else ""
    return f"a selector on {what}{chosen}"


def _check_topology(wanted: Condition, labelled: Labelled, counts: Mapping[str, int | None]) -> None:
    """Refuse a topology larger than the pod's request, which spans several hosts."""
    of = labelled.rule.of
    chips = counts.get(of)
    for value in wanted.values:
        size = 1
        for side in value.split("x"):
            length = whole_number(side, 5)
            if chips is None or length is None:
                raise Untranslatable(f"cannot be compared with the number of {of}")
            size *= length
        if size != chips:
            raise Untranslatable(
                f"has {size} chips and the pod asks for {chips}: a slice of several hosts, whose workers get their ids "
                f"only where they ask for {of}",
                "Leave the workload on the device plugin.",
            )


class _Value(NamedTuple):
    """A label's value without its suffixes, and what the suffixes mean."""

    text: str
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _with_suffixes(wanted: Condition, labelled: Labelled, resource: Resource, driver: KnownDriver) -> Translation:
    """Like other labels, plus the meaning of the values' suffixes: a class, a partition's profile, or sharing."""
    rule = labelled.rule
    negative = wanted.operator == "NotIn"
    read = [_read(value, labelled, resource) for value in wanted.values]
    if negative and any(value.device_class or value.selectors for value in read):
        raise Untranslatable("says which partitions are not wanted, and not whether whole devices are")
    if negative:
        # Shares are not claimed, so not wanting them is no condition.
        read = [value for value in read if not value.notes]
        if not read:
            return Translation(leaves=True, decided=True, reasons=(f"{wanted} is true of all devices claimed",))
    classes = {value.device_class for value in read}
    if len(classes) > 1:
        raise Untranslatable("allows whole devices and partitions, which are of different classes")
    device_class = classes.pop()
    groups: dict[tuple[str, ...], list[str]] = {}
    for value in read:
        groups.setdefault(value.selectors, []).append(value.text)
    parts = [
        (condition(rule, driver, wanted.operator, list(dict.fromkeys(texts))), *extra)
        for extra, texts in groups.items()
    ]
    selectors = parts[0] if len(parts) == 1 else (joined([joined(part, "&&") for part in parts], "||"),)
    notes = tuple(dict.fromkeys(note for value in read for note in value.notes))
    return Translation(
        leaves=True,
        selectors=selectors,
        device_class=device_class,
        decided=True,
        advice=notes,
        becomes=_becomes(labelled, device_class),
        unsafe=bool(notes),
    )


def _read(value: str, labelled: Labelled, resource: Resource) -> _Value:
    """A value and its suffixes. Raises Untranslatable if a suffix cannot be migrated."""
    out = _Value(value)
    for suffix in labelled.rule.suffixes:
        match = suffix.pattern.fullmatch(out.text)
        if match is None or (suffix.kinds and resource.kind not in suffix.kinds):
            continue
        groups = {group: text or "" for group, text in match.groupdict().items()}
        texts = translated(groups, suffix.values)
        if texts is None:
            continue
        if suffix.refuse:
            raise Untranslatable(suffix.refuse, suffix.way_out)
        selectors = (filled(suffix.selector, texts),) if suffix.selector else ()
        out = _Value(
            texts["before"],
            suffix.device_class or out.device_class,
            (*out.selectors, *selectors),
            (*out.notes, suffix.note) if suffix.note else out.notes,
        )
    return out


# Conditions on node labels in a pod's spec, and what remains when some are removed.

TERMS: Final[FieldPath] = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)
PREFERRED: Final[FieldPath] = ("affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")


class Stated(NamedTuple):
    """A condition and its path from the pod's spec; None if it is malformed."""

    path: FieldPath
    key: str
    condition: Condition | None


class StatedTerm(NamedTuple):
    """A term of the required node affinity: conditions that must all hold. ``fields`` are its conditions on fields."""

    path: FieldPath
    stated: tuple[Stated, ...]
    fields: bool


def node_selector(spec: Mapping[str, Any]) -> Iterator[Stated]:
    """The conditions of ``nodeSelector``."""
    for key, value in fields_at(spec, "nodeSelector").items():
        condition = Condition(key, "In", (value,)) if isinstance(value, str) else None
        yield Stated(("nodeSelector", key), key, condition)


def required_terms(spec: Mapping[str, Any]) -> tuple[StatedTerm, ...]:
    """The terms of the required node affinity, one of which must hold."""
    return tuple(_term((*TERMS, index), raw) for index, raw in enumerate(items_at(spec, *TERMS)))


def preferred(spec: Mapping[str, Any]) -> Iterator[Stated]:
    """The conditions of all preferred terms of the node affinity."""
    for index, raw in enumerate(items_at(spec, *PREFERRED)):
        if isinstance(raw, Mapping):
            yield from _term((*PREFERRED, index, "preference"), raw.get("preference")).stated


def _term(path: FieldPath, raw: Any) -> StatedTerm:
    if not isinstance(raw, Mapping):
        return StatedTerm(path, (), False)
    stated = []
    for index, expression in enumerate(items_at(raw, "matchExpressions")):
        if isinstance(expression, Mapping):
            stated.append(_expression((*path, "matchExpressions", index), expression))
    return StatedTerm(path, tuple(stated), bool(raw.get("matchFields")))


def _expression(path: FieldPath, raw: Mapping[str, Any]) -> Stated:
    key, operator, values = raw.get("key"), raw.get("operator"), items_at(raw, "values")
    texts = all(isinstance(value, str) for value in values)
    if not isinstance(key, str) or not isinstance(operator, str) or not texts:
        return Stated(path, key if isinstance(key, str) else "", None)
    return Stated(path, key, Condition(key, operator, tuple(values)))


def emptied(spec: Mapping[str, Any], removed: Collection[FieldPath]) -> tuple[Delete, ...]:
    """The fewest deletions that remove these parts of a pod's spec, including mappings and lists left empty."""
    tree: dict[str | int, Any] = {}
    for path in removed:
        below = tree
        for part in path:
            below = below.setdefault(part, {})
    return tuple(Delete(path) for path in _gone(spec, tree, ()))


def _gone(value: Any, tree: Mapping[str | int, Any], path: FieldPath) -> list[FieldPath]:
    out: list[FieldPath] = []
    remaining = len(value)
    for part, below in tree.items():
        here = (*path, part)
        paths = _gone(value[part], below, here) if below else [here]
        remaining -= paths == [here]
        out.extend(paths)
    return [path] if path and not remaining else out
