"""Objects of any shape in a snapshot that is saved or anonymized: a gap or a sentence, and no defect."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.copies import Place
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
