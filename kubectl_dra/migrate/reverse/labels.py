"""From selectors back to their original node labels: recognised by their exact shape, never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.lexer import string_value
from kubectl_dra.manifests.changes import Append, Change, Set, fields_at, items_at, value_at
from kubectl_dra.migrate.device_plugins.labels import TERMS, Condition, translate
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import EMPTY, LabelRule, Resource, ResourceRule, Suffix
from kubectl_dra.text import whole_number

# Traces a request of a claim back to its original device-plugin resource.

_PLACE: Final = re.compile(r"\{(\w+)\}")
_GROUP: Final = re.compile(r"\(\?P<(\w+)>")
_SPECIAL: Final = re.compile(r"[\\.^$*+?{}\[\]|()]")


class Named(NamedTuple):
    """A resource from which a request may have been made.

    ``rest`` are the selectors that the resource does not explain; they came from labels. ``parts`` are the
    resources beside it that became capacity, with the number for each.
    """

    resource: Resource
    rest: tuple[str, ...]
    parts: Mapping[str, int]


class Unnamed(Exception):
    """No resource matches, or several do. The message says why, as a sentence about the request."""


def candidates(exactly: Mapping[str, Any], catalogue: VendorCatalogue) -> list[Named]:
    """The resources that the request may stand for, in vendor order.

    Raises:
        Unnamed: there are none.
    """
    device_class = str(exactly.get("deviceClassName") or "")
    known = [
        rule
        for vendor in catalogue.vendors.values()
        for rule in vendor.resources
        if rule.resource.device_class == device_class and rule.resource.outcome in ("auto", "note")
    ]
    chosen = list(_chosen_by_label(device_class, exactly, catalogue))
    if not known and not chosen:
        raise Unnamed(f"no resource of a device plugin is known for class {device_class}")
    selectors = tuple(_expressions(exactly))
    out: dict[str, Named] = {}
    unclear = []
    for rule in known:
        for name in _names(rule, selectors):
            candidate = _made(name, rule, exactly, selectors, catalogue)
            if candidate is not None:
                out.setdefault(name, candidate)
        own = rule.resource.selectors
        pattern = _pattern_text(rule) if rule.pattern is not None else ""
        # One that matches a single text has named it above.
        nameless = not _group_sources(pattern) and _literal(pattern) is None and not rule.resource.part_of
        if nameless and selectors[: len(own)] == own:
            unclear.append(pattern)
    if unclear:
        names = ", ".join((*out, *(f"those that match {pattern}" for pattern in unclear)))
        raise Unnamed(f"several resources became requests of class {device_class}: {names}")
    if not out:
        out = {candidate.resource.name: candidate for candidate in chosen}
    if not out:
        raise Unnamed(f"no resource of class {device_class} becomes a request with these selectors and this capacity")
    return list(out.values())


def _chosen_by_label(device_class: str, exactly: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[Named]:
    """Resources whose class was chosen by the suffix of a node label: GPUs of a fully partitioned node."""
    if exactly.get("capacity") or exactly.get("adminAccess") or exactly.get("allocationMode") == "All":
        return
    for vendor in catalogue.vendors.values():
        kinds = {
            kind
            for rule in vendor.labels
            for suffix in rule.suffixes
            if suffix.device_class == device_class
            for kind in suffix.kinds
        }
        for rule in vendor.resources:
            resource = catalogue.resource(rule.name) if rule.pattern is None and rule.resource.kind in kinds else None
            if resource is not None and resource.vendor == vendor.id and resource.outcome in ("auto", "note"):
                yield Named(resource, tuple(_expressions(exactly)), EMPTY)


def with_suffix(suffix: Suffix, selector: str) -> str | None:
    """The suffix of a label's value that became the selector; None if another one did."""
    pattern = str(getattr(suffix.pattern, "pattern", "")).removeprefix("(?P<before>.*)(?:").removesuffix(")")
    groups = _groups_in(pattern, suffix.values, (suffix.selector,), (selector,)) if suffix.selector else None
    return _filled_pattern(pattern, groups) if groups else None


def _expressions(exactly: Mapping[str, Any]) -> Iterator[str]:
    for selector in items_at(exactly, "selectors"):
        cel = value_at(selector, ("cel",))
        yield str(cel.get("expression")) if isinstance(cel, Mapping) else ""


def _made(
    name: str, rule: ResourceRule, exactly: Mapping[str, Any], selectors: Sequence[str], catalogue: VendorCatalogue
) -> Named | None:
    """The resource of the name, if its request begins like this one."""
    parts = _parts(rule, exactly)
    if parts is None:
        return None
    resource = catalogue.resource(name, {name: 1, **parts})
    if resource is None or resource.vendor != rule.resource.vendor:
        return None
    own = len(resource.selectors)
    same = (
        resource.outcome in ("auto", "note")
        and resource.device_class == exactly.get("deviceClassName")
        and not resource.part_of
        and tuple(selectors[:own]) == resource.selectors
        and (resource.allocation_mode == "All") == (exactly.get("allocationMode") == "All")
        and bool(resource.admin_access) == bool(exactly.get("adminAccess"))
    )
    return Named(resource, tuple(selectors[own:]), parts) if same else None


def _parts(rule: ResourceRule, exactly: Mapping[str, Any]) -> Mapping[str, int] | None:
    """The resources that became capacity, by name; None if the capacity request has another origin."""
    wanted = {str(key): str(value) for key, value in fields_at(exactly, "capacity", "requests").items()}
    if wanted == dict(rule.resource.capacity):
        return EMPTY
    out: dict[str, int] = {}
    for part in rule.parts:
        text = wanted.pop(part.capacity, None)
        if text is None:
            continue
        digits = text.removesuffix(part.unit)
        number = whole_number(digits)
        if number is None or (part.unit and digits == text):
            return None
        out[part.name] = number
    return None if any(wanted[key] != rule.resource.capacity.get(key) for key in wanted) else out


def _names(rule: ResourceRule, selectors: Sequence[str]) -> Iterator[str]:
    """The names that an entry may cover, judging by its selectors."""
    if rule.pattern is None:
        yield rule.name
        return
    groups = _groups_in(_pattern_text(rule), rule.values, rule.resource.selectors, selectors)
    name = None if groups is None else _filled_pattern(_pattern_text(rule), groups)
    if name is not None and rule.pattern.fullmatch(name):
        yield name


def _groups_in(
    pattern: str, values: Mapping[str, Mapping[str, str]], templates: Sequence[str], selectors: Sequence[str]
) -> Mapping[str, str] | None:
    """The pattern's groups, read back from the selectors that they filled; None if these do not fit."""
    sources = _group_sources(pattern)
    out: dict[str, str] = {}
    for template, selector in zip(templates, selectors, strict=False):
        seen: set[str] = set()
        text, at = "", 0
        for place in _PLACE.finditer(template):
            group = place[1]
            if group not in sources:
                return None
            text += re.escape(template[at : place.start()])
            text += f"(?P={group})" if group in seen else f"(?P<{group}>{_alternatives(values, group, sources)})"
            seen.add(group)
            at = place.end()
        match = re.fullmatch(text + re.escape(template[at:]), selector)
        if match is None:
            return None
        for group, value in match.groupdict().items():
            backwards = {new: old for old, new in values.get(group, {}).items()}
            out[group] = backwards.get(value or "", value or "")
    return out if set(out) == set(sources) else None


def _alternatives(values: Mapping[str, Mapping[str, str]], group: str, sources: Mapping[str, str]) -> str:
    if group in values:
        words = sorted(values[group].values(), key=len, reverse=True)
        return "|".join(re.escape(word) for word in words)
    return sources[group]


def _pattern_text(rule: ResourceRule) -> str:
    return str(getattr(rule.pattern, "pattern", ""))


def _group_sources(pattern: str) -> dict[str, str]:
    """The text of each named group."""
    return {name: pattern[start:end] for name, start, end in _spans(pattern)}


def _spans(pattern: str) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of the content of each named group that is not nested."""
    at = 0
    while (match := _GROUP.search(pattern, at)) is not None:
        depth, end = 1, match.end()
        while depth and end < len(pattern):
            if pattern[end] == "\\":
                end += 1
            elif pattern[end] in "()":
                depth += 1 if pattern[end] == "(" else -1
            end += 1
        yield match[1], match.end(), end - 1
        at = end


def _filled_pattern(pattern: str, groups: Mapping[str, str]) -> str | None:
    """The only text that the pattern matches with these groups; None if the rest of it is not fixed."""
    out, at = "", 0
    for name, start, end in [*_spans(pattern), ("", len(pattern), len(pattern))]:
        opening = len(f"(?P<{name}>") if name else 0
        literal = _literal(pattern[at : start - opening])
        if literal is None:
            return None
        out += literal + groups.get(name, "")
        at = end + 1
    return out


def _literal(pattern: str) -> str | None:
    """The text that a pattern without operators matches; None for one with operators."""
    plain = re.sub(r"\\([^A-Za-z0-9])", lambda match: "x" if match[1] else "", pattern)
    return None if _SPECIAL.search(plain) else re.sub(r"\\(.)", r"\1", pattern)


_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_DOMAIN: Final = re.compile(r'device\.(?:attributes|capacity)\["[^"]*"\]')
_CALL: Final = re.compile(r'(?:quantity|semver)\("([^"]*)"\)')
_NUMBER: Final = re.compile(r"(?<![\w.])-?[0-9]{1,18}(?![\w.])")
_OPERATORS: Final = ("In", "NotIn", "Gt", "Lt")


def conditions(
    selectors: Sequence[str],
    resource: Resource,
    catalogue: VendorCatalogue,
    counts: Mapping[str, int | None],
    device_class: str,
) -> list[Condition]:
    """The conditions on node labels behind the selectors: one for each, or for two (a product and its
    profile).

    Raises:
        Unnamed: a selector that matches no label, or several.
    """
    out: list[Condition] = []
    waiting = list(selectors)
    while waiting:
        pair = tuple(waiting[:2])
        conditions = (
            list(dict.fromkeys(_with_suffix(pair, resource, catalogue, device_class))) if len(pair) == 2 else []
        )
        if conditions:
            out.append(conditions[0])
            waiting = waiting[2:]
            continue
        selector = waiting.pop(0)
        conditions = list(dict.fromkeys(_found(selector, resource, catalogue, counts, device_class)))
        if not conditions:
            raise Unnamed(f"its selector {selector} is not one that a node label became")
        keys = list(dict.fromkeys(condition.key for condition in conditions))
        if len(keys) > 1:
            raise Unnamed(f"its selector {selector} can have been any of the labels {', '.join(keys)}")
        out.append(conditions[0])
    return out


def _found(
    selector: str, resource: Resource, catalogue: VendorCatalogue, counts: Mapping[str, int | None], device_class: str
) -> Iterator[Condition]:
    read = _values(selector)
    for rule in _rules(catalogue):
        if not rule.key or rule.action != "select" or not (rule.attribute or rule.capacity):
            continue
        labelled = catalogue.label(rule.key, resource)
        if labelled is None or labelled.rule is not rule:
            continue
        driver = catalogue.compared(rule, resource)
        for operator in _OPERATORS:
            for values in _candidates(rule, operator, read):
                wanted = Condition(rule.key, operator, values)
                translation = translate(wanted, labelled, resource, driver, counts)
                same = (
                    translation.leaves
                    and translation.selectors == (selector,)
                    and translation.refusal is None
                    and not translation.unsafe
                )
                if same and translation.device_class in ("", device_class):
                    yield wanted


def _with_suffix(
    selectors: tuple[str, ...], resource: Resource, catalogue: VendorCatalogue, device_class: str
) -> Iterator[Condition]:
    """Conditions on a label whose value had a suffix, which chose the class and became the second selector."""
    for rule in _rules(catalogue):
        for suffix in rule.suffixes if rule.key else ():
            ending = with_suffix(suffix, selectors[1]) if suffix.device_class == device_class else None
            labelled = catalogue.label(rule.key, resource) if ending else None
            if labelled is None or labelled.rule is not rule:
                continue
            driver = catalogue.compared(rule, resource)
            for values in _candidates(rule, "In", _values(selectors[0])):
                wanted = Condition(rule.key, "In", tuple(f"{value}{ending}" for value in values))
                translation = translate(wanted, labelled, resource, driver, {})
                if (
                    translation.selectors == selectors
                    and translation.device_class == device_class
                    and not translation.unsafe
                ):
                    yield wanted


def _rules(catalogue: VendorCatalogue) -> Iterator[LabelRule]:
    for vendor in catalogue.vendors.values():
        yield from vendor.labels


def _values(selector: str) -> tuple[list[str], list[str]]:
    """The texts that the selector compares with, and the numbers (including those of quantities and versions).

    There are none where an escape is invalid: migrate writes no such text.
    """
    rest = _DOMAIN.sub("", selector)
    calls = [call[1] for call in _CALL.finditer(rest)]
    rest = _CALL.sub("", rest)
    try:
        texts = [string_value(text[0]) for text in _TEXT.finditer(rest)]
    except ValueError:
        return [], []
    numbers = _NUMBER.findall(_TEXT.sub("", rest))
    return texts, [*calls, *(number for number in numbers if not calls)]


def _candidates(rule: LabelRule, operator: str, read: tuple[list[str], list[str]]) -> Iterator[tuple[str, ...]]:
    """Values that the label may have had; the translation decides which are right."""
    texts, numbers = read
    if rule.compare in ("text", "topology", "list", "pattern", "contains"):
        if operator not in ("In", "NotIn"):
            return
        for start in range(len(texts)):
            yield from _texts(rule, texts[start:])
    elif rule.compare in ("mebibytes", "gibibytes"):
        whole = [int(number.removesuffix("Mi")) for number in numbers if re.fullmatch(r"[0-9]{1,18}Mi", number)]
        if operator in ("Gt", "Lt"):
            yield from ((str(number + shift),) for number in whole for shift in (0, -1))
        elif rule.compare == "mebibytes":
            yield tuple(str(number) for number in whole[::2])
        else:
            yield tuple(f"{(number + 512) // 1024}G" for number in whole[::2])
    elif numbers:
        yield tuple(numbers) if operator in ("In", "NotIn") else (numbers[-1],)


def _texts(rule: LabelRule, texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    spelling = rule.spelling
    backwards = {new: old for old, new in spelling.map.items()}
    plain: list[str] = []
    for text in texts:
        if text in backwards:
            plain.append(backwards[text])
            continue
        text = text.removeprefix(spelling.prefix)
        for old, new in spelling.replace.items():
            text = text.replace(new, old)
        plain.append(text)
    if spelling.also_prefix:
        # Of two spellings of one value the label had the short one.
        prefix = spelling.also_prefix
        yield tuple(text for text in plain if not (text.startswith(prefix) and text[len(prefix) :] in plain))
    yield tuple(plain)


def chosen(spec: Mapping[str, Any], path: FieldPath, wanted: Sequence[Condition]) -> list[Change]:
    """The changes that put conditions into a pod spec at ``path``: as nodeSelector if possible, else as
    affinity.

    Raises:
        Unnamed: the pod has several terms of node affinity, one of which must hold.
    """
    plain = {
        condition.key: condition.values[0]
        for condition in wanted
        if condition.operator == "In" and len(condition.values) == 1
    }
    others = [condition for condition in wanted if plain.get(condition.key) is None]
    out: list[Change] = []
    if spec.get("nodeSelector"):
        out += [Set((*path, "nodeSelector", key), value) for key, value in plain.items()]
    elif plain:
        out.append(Set((*path, "nodeSelector"), plain))
    if others:
        out += _affinity(spec, path, others)
    return out


def _affinity(spec: Mapping[str, Any], path: FieldPath, wanted: Sequence[Condition]) -> list[Change]:
    expressions = [
        {"key": condition.key, "operator": condition.operator, "values": list(condition.values)} for condition in wanted
    ]
    terms = value_at(spec, TERMS)
    if terms:
        if len(terms) > 1:
            raise Unnamed("the pod has several terms of node affinity, and where the labels stood is not certain")
        inside = (*path, *TERMS, 0, "matchExpressions")
        if value_at(spec, inside[len(path) :]):
            return [Append(inside, expression) for expression in expressions]
        return [Set(inside, expressions)]
    value: Any = [{"matchExpressions": expressions}]
    at: FieldPath = TERMS
    while len(at) > 1 and not isinstance(value_at(spec, at[:-1]), Mapping):
        value = {at[-1]: value}
        at = at[:-1]
    return [Set((*path, *at), value)]
