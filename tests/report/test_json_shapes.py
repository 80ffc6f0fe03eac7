"""One key has one shape, in the schemas of all commands; and no report has a word that another replaced."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from kubectl_dra.report.json_output import SCHEMA_VERSION

SCHEMAS: Final = Path(__file__).parents[2] / "schemas"
# What a user writes for migrate is no report.
REPORTS: Final = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json") if path.stem != "vendor"}
OWN: Final = frozenset(("items", "summary"))
"""What a report has of its own under these: a row of it, and numbers by nouns."""
OBJECTS: Final = {
    "claim": {"namespace", "name"},
    "pod": {"namespace", "name"},
    "subject": {"kind", "name"},
    "workload": {"kind", "namespace", "name"},
    "owner": {"kind", "name"},
    "fix": {"text"},
    "next": {"argv", "text"},
    "assumed": {"kubernetesVersion"},
    "taint": {"key", "effect"},
}
"""What an object under a key always has."""
LISTS: Final = {
    "devices": {"driver", "pool", "device"},
    "pods": {"namespace", "name"},
    "causes": {"code", "title", "page", "text"},
    "fixes": {"text"},
    "changes": {"kind", "text"},
    "commands": {"argv", "text"},
    "unread": {"kind", "reason"},
    "taints": {"key", "effect"},
    "pools": {"driver", "name"},
}
"""What each entry of a list under a key always has."""
REPLACED: Final = ("waysOut", "wayOut", "remedy", "url", "allocatable", "not-allocatable", "fits", "does-not-fit")


def resolved(node: Any, name: str) -> Any:
    """The schema that a reference leads to, with what stands beside it."""
    while "$ref" in node:
        file, _, pointer = node["$ref"].partition("#")
        target: Any = REPORTS[Path(file).name if file else name]
        for part in filter(None, pointer.split("/")):
            target = target[part]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def properties(node: Any, name: str, within: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every property of a schema: the key under which it stands, its own, and what it may be."""
    if isinstance(node, list):
        for part in node:
            yield from properties(part, name, within)
    elif isinstance(node, dict):
        for key, value in node.get("properties", {}).items():
            yield within, key, resolved(value, name)
            yield from properties(value, name, key)
        for key, value in node.items():
            if key != "properties":
                yield from properties(value, name, within)


def shape(node: Any, name: str) -> str:
    """The type of a value, without null; numbers are one type."""
    node = resolved(node, name)
    if "properties" in node:
        return "object"
    parts = node.get("oneOf") or node.get("anyOf")
    if parts:
        return "|".join(sorted({shape(part, name) for part in parts} - {"null"}))
    values = [node["const"]] if "const" in node else node.get("enum", [])
    kinds = node.get("type") or [{bool: "boolean", str: "string", int: "integer"}[type(value)] for value in values[:1]]
    kinds = [kinds] if isinstance(kinds, str) else kinds
    told = {"number" if kind == "integer" else kind for kind in kinds} - {"null"}
    if told == {"array"} and "items" in node:
        return f"[{shape(node['items'], name)}]"
    return "|".join(sorted(told))


def every() -> Iterator[tuple[str, str, str, Any]]:
    for name, schema in REPORTS.items():
        yield from ((name, *found) for found in properties(schema, name))


def has(node: Any, name: str, wanted: set[str]) -> bool:
    node = resolved(node, name)
    own = {key for part in (node, *node.get("allOf", ())) for key in resolved(part, name).get("properties", ())}
    parts = node.get("oneOf") or node.get("anyOf") or [{}]
    return all(wanted <= own | set(resolved(part, name).get("properties", ())) for part in parts)


@pytest.mark.parametrize("name", REPORTS)
def test_it_is_a_schema_of_this_version(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(REPORTS[name])
    versions = [node["const"] for _, key, node in properties(REPORTS[name], name) if key == "schemaVersion"]
    assert versions and set(versions) == {SCHEMA_VERSION}


def test_one_key_has_one_type() -> None:
    shapes: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, within, key, node in every():
        if within != "summary" and key not in OWN:
            shapes[key][shape(node, name)].add(name)
    # A value of an attribute, and what a change replaces, may be of several types.
    several = {key: dict(found) for key, found in shapes.items() if len(found) > 1 and key not in ("from", "to")}
    assert not several
    assert len(shapes) > 200


@pytest.mark.parametrize("key", OBJECTS)
def test_an_object_has_its_names(key: str) -> None:
    found = [(name, node) for name, within, each, node in every() if each == key]
    assert found
    assert not [name for name, node in found if not has(node, name, OBJECTS[key])]


@pytest.mark.parametrize("key", LISTS)
def test_a_list_has_such_objects(key: str) -> None:
    found = [(name, node) for name, within, each, node in every() if each == key and within != "summary"]
    assert found
    assert not [name for name, node in found if not has(node["items"], name, LISTS[key])]


def test_keys_are_in_camel_case() -> None:
    assert not {key for _, _, key, _ in every() if not re.fullmatch(r"[a-z]+([A-Z]+[a-z]*)*", key)}


@pytest.mark.parametrize("word", REPLACED)
def test_no_report_has_a_word_that_another_replaced(word: str) -> None:
    assert [name for name, schema in REPORTS.items() if f'"{word}"' in json.dumps(schema)] == []


def reports(node: Any) -> Iterator[Any]:
    """The schemas of whole reports."""
    if isinstance(node, dict):
        if {"schemaVersion", "kind"} <= node.get("properties", {}).keys():
            yield node
        for part in node.values():
            yield from reports(part)
    elif isinstance(node, list):
        for part in node:
            yield from reports(part)


@pytest.mark.parametrize("name", REPORTS)
def test_each_report_has_the_exit_code(name: str) -> None:
    found = list(reports(REPORTS[name]))
    assert found and all("exitCode" in report["required"] for report in found)


def test_one_verdict() -> None:
    verdicts: dict[str, set[str]] = defaultdict(set)
    for name, _, key, node in every():
        if key == "verdict":
            verdicts[name] |= set(node["enum"])
    known = verdicts["explain.json"]
    assert known >= {"allocated", "can-be-scheduled", "cannot-be-scheduled", "undetermined"}
    assert all(words <= known | {"impossible"} for words in verdicts.values())
