"""Objects of any shape in a snapshot that is saved or anonymized: a gap or a sentence, and no defect."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.copies import Place
from kubectl_dra.cluster.save import Recorder, said
from kubectl_dra.errors import DraError
from tests.fuzz.examples import examples

ODD: tuple[Any, ...] = ([], ["x"], {"a": [1]}, 1, True, None, [["x"]])


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values below."""
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in found:
        yield (*path, key)
        yield from places(below, (*path, key))


def each_field() -> dict[str, list[tuple[dict[str, Any], tuple[str | int, ...]]]]:
    """By kind, an object of the examples for each of its fields, with the field's path."""
    seen: set[tuple[str, ...]] = set()
    found: dict[str, list[tuple[dict[str, Any], tuple[str | int, ...]]]] = {}
    for items, _ in examples():
        for item in items:
            for path in places(item):
                shape = (item["kind"], *(part if isinstance(part, str) else "*" for part in path))
                if shape not in seen:
                    seen.add(shape)
                    found.setdefault(item["kind"], []).append((item, path))
    return found


FIELDS = each_field()


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_any_field_may_hold_anything(kind: str) -> None:
    for item, path in FIELDS[kind]:
        for value in ODD:
            odd = copy.deepcopy(item)
            *above, last = path
            at: Any = odd
            for part in above:
                at = at[part]
            at[last] = value
            recorder = Recorder()
            with suppress(DraError):
                recorder.add_item(json.dumps(odd).encode(), Place("page", 1, 0), kind, item["apiVersion"])
            items = recorder.items()
            with suppress(DraError):
                head = said(recorder.build())
                anonymizer = Anonymizer(items, "seed")
                json.dumps([anonymizer.said(head), *(anonymizer.item(each) for each in items)])


def test_what_cannot_be_written_is_not_kept() -> None:
    recorder = Recorder()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {"volumes": 5}}
    with pytest.raises(DraError, match="Pod"):
        recorder.add(pod, Place("page", 1, 0))
    assert not recorder.items()
