"""Objects of any shape in a snapshot that is saved or anonymized: a gap or a sentence, and no defect."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.save import Recorder, said
from kubectl_dra.errors import DraError, InputError
from tools.fuzz.odd_fields import ODD, fields_by_kind

FIELDS = fields_by_kind()


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_any_field_may_hold_anything(kind: str) -> None:
    for field in FIELDS[kind]:
        for value in ODD:
            recorder = Recorder()
            with suppress(DraError):
                item = json.dumps(field.holding(value)).encode()
                recorder.add_item(item, Place("page", 1, 0), kind, field.item["apiVersion"])
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


@pytest.mark.parametrize("number", ["1e999", "9" * 100_000])
def test_a_number_that_no_field_has(number: str) -> None:
    item = b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "generation": %s}}' % number.encode()
    with pytest.raises(InputError, match="cannot be read"):
        Recorder().add_item(item, Place("s", 1, 1), "Node", "v1")


@pytest.mark.parametrize(("minimum", "kept"), [(2.0, [2]), (None, [None]), ("all", [])])
def test_an_object_of_another_layer_is_read_as_by_the_other_commands(minimum: object, kept: list[object]) -> None:
    recorder = Recorder()
    about = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    item = {**about, "metadata": {"name": "pg", "namespace": "a"}, "spec": {"minMember": minimum, "queue": "q"}}
    recorder.add(item, Place("page", 1, 0))
    assert [each["spec"].get("minMember") for each in recorder.items()] == kept
    gaps = [gap for gap in said(recorder.build())["gaps"] if gap["kind"] == "PodGroup.scheduling.volcano.sh"]
    assert [(gap["namespace"], gap["reason"]) for gap in gaps] == ([] if kept else [("a", "unreadable")])
