"""An object of another layer whose fields have wrong types is one that was not read: the rest of the answer stands.

Every field that is read of every such object of the cases is broken in turn.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.api.schema import Field
from tools.cases import CASES, Case, asked

JSON = dict[str, Any]
AtField = tuple[str | int, ...]


def layer_kind(item: Mapping[str, Any]) -> str:
    """The kind here of an object of another layer; empty of any other object."""
    kind = kind_here(item["kind"], item["apiVersion"])
    return kind if kind in NEIGHBOUR_KINDS else ""


def read_fields(item: Mapping[str, Any], struct: str, at: AtField = ()) -> Iterator[tuple[AtField, Field]]:
    """The fields of an object that are read, and the entries of its lists and maps."""
    table = fields(struct, "v1")
    for name, value in item.items():
        if (field := table.get(name)) is None:
            continue
        path = (*at, name)
        yield path, field
        inner: list[tuple[AtField, Any]] = [(path, value)]
        if field.container:
            keyed = value.items() if isinstance(value, dict) else enumerate(value)
            inner = [((*path, key), each) for key, each in keyed]
            yield from ((place, replace(field, container="")) for place, _ in inner)
        if not field.scalar:
            for place, each in inner:
                yield from read_fields(each, field.type, place)


def broken(item: JSON, at: AtField, field: Field) -> JSON:
    """The object with a value of a wrong type there."""
    out: Any = copy.deepcopy(item)
    place = out
    for step in at[:-1]:
        place = place[step]
    place[at[-1]] = 7 if field.type in ("string", "time") and not field.container else "x"
    return out  # type: ignore[no-any-return]


def answer(case: Case, objects: list[JSON], folder: Path, gaps: tuple[JSON, ...] = ()) -> tuple[int, JSON]:
    question = asked(case._replace(objects=objects))
    question.files["cluster.yaml"][-1]["kubectl-dra"]["gaps"] = list(gaps)
    code, out, errors = question.ask("-o", "json", folder=folder)
    assert "a defect of" not in errors
    return code, json.loads(out or "{}")


def essence(code: int, report: JSON) -> tuple[Any, ...]:
    """What an answer says, apart from the words of the gaps."""
    causes = [(cause["code"], cause["text"]) for cause in report.get("causes", ())]
    return code, report.get("verdict"), report.get("answer"), causes


UNNAMED = (("metadata",), ("metadata", "namespace"), ("metadata", "name"))
"""Where something else is broken as well: nobody knows which object it was."""
OBJECTS = [(case, item) for case in CASES for item in case.objects if layer_kind(item)]


@pytest.mark.parametrize(
    ("case", "item"), OBJECTS, ids=[f"{case.file}: {case.name}: {item['kind']}" for case, item in OBJECTS]
)
def test_a_malformed_object_is_one_that_was_not_read(case: Case, item: JSON, tmp_path: Path) -> None:
    kind, space = layer_kind(item), item["metadata"].get("namespace", "default")
    rest = [raw for raw in case.objects if raw is not item]
    unread = {"kind": kind, "reason": "unreadable", "namespace": space if NEIGHBOUR_KINDS[kind].namespaced else ""}
    expected = essence(*answer(case, rest, tmp_path, (unread,)))
    tried = set()
    for at, field in read_fields(item, kind):
        shape = tuple("*" if isinstance(step, int) else step for step in at)
        if shape in tried or at in UNNAMED:
            continue
        tried.add(shape)
        code, report = answer(case, [*rest, broken(item, at, field)], tmp_path)
        assert code != 2
        assert essence(code, report) == expected, at
