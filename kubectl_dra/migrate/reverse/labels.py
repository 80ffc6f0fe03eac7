"""From selectors back to their original node labels: recognised by their exact shape, never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.manifests.changes import Append, Change, Path, Set, value_at
from kubectl_dra.migrate.device_plugins.affinity import TERMS
from kubectl_dra.migrate.device_plugins.labels import Condition, translate
from kubectl_dra.migrate.reverse.resources import Unnamed, with_suffix
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue
from kubectl_dra.migrate.vendors.model import LabelRule, Resource

_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_DOMAIN: Final = re.compile(r'device\.(?:attributes|capacity)\["[^"]*"\]')
_CALL: Final = re.compile(r'(?:quantity|semver)\("([^"]*)"\)')
_NUMBER: Final = re.compile(r"(?<![\w.])-?[0-9]+(?![\w.])")
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
        found = list(dict.fromkeys(_with_suffix(pair, resource, catalogue, device_class))) if len(pair) == 2 else []
        if found:
            out.append(found[0])
            waiting = waiting[2:]
            continue
        selector = waiting.pop(0)
        found = list(dict.fromkeys(_found(selector, resource, catalogue, counts, device_class)))
        if not found:
            raise Unnamed(f"its selector {selector} is not one that a node label became")
        keys = list(dict.fromkeys(each.key for each in found))
        if len(keys) > 1:
            raise Unnamed(f"its selector {selector} can have been any of the labels {', '.join(keys)}")
        out.append(found[0])
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
                made = translate(wanted, labelled, resource, driver, counts)
                same = made.leaves and made.selectors == (selector,) and made.refusal is None and not made.unsafe
                if same and made.device_class in ("", device_class):
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
                made = translate(wanted, labelled, resource, driver, {})
                if made.selectors == selectors and made.device_class == device_class and not made.unsafe:
                    yield wanted


def _rules(catalogue: VendorCatalogue) -> Iterator[LabelRule]:
    for vendor in catalogue.vendors.values():
        yield from vendor.labels


def _values(selector: str) -> tuple[list[str], list[str]]:
    """The texts that the selector compares with, and the numbers (including those of quantities and versions)."""
    rest = _DOMAIN.sub("", selector)
    calls = [call[1] for call in _CALL.finditer(rest)]
    rest = _CALL.sub("", rest)
    texts = [json.loads(text[0]) for text in _TEXT.finditer(rest)]
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
        whole = [int(number.removesuffix("Mi")) for number in numbers if re.fullmatch(r"[0-9]+Mi", number)]
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


def chosen(spec: Mapping[str, Any], path: Path, wanted: Sequence[Condition]) -> list[Change]:
    """The changes that put conditions into a pod spec at ``path``: as nodeSelector if possible, else as
    affinity.

    Raises:
        Unnamed: the pod has several terms of node affinity, one of which must hold.
    """
    plain = {each.key: each.values[0] for each in wanted if each.operator == "In" and len(each.values) == 1}
    others = [each for each in wanted if plain.get(each.key) is None]
    out: list[Change] = []
    if spec.get("nodeSelector"):
        out += [Set((*path, "nodeSelector", key), value) for key, value in plain.items()]
    elif plain:
        out.append(Set((*path, "nodeSelector"), plain))
    if others:
        out += _affinity(spec, path, others)
    return out


def _affinity(spec: Mapping[str, Any], path: Path, wanted: Sequence[Condition]) -> list[Change]:
    expressions = [{"key": each.key, "operator": each.operator, "values": list(each.values)} for each in wanted]
    terms = value_at(spec, TERMS)
    if terms:
        if len(terms) > 1:
            raise Unnamed("the pod has several terms of node affinity, and where the labels stood is not certain")
        inside = (*path, *TERMS, 0, "matchExpressions")
        if value_at(spec, inside[len(path) :]):
            return [Append(inside, each) for each in expressions]
        return [Set(inside, expressions)]
    value: Any = [{"matchExpressions": expressions}]
    at: Path = TERMS
    while len(at) > 1 and not isinstance(value_at(spec, at[:-1]), Mapping):
        value = {at[-1]: value}
        at = at[:-1]
    return [Set((*path, *at), value)]
