"""What an anonymized copy has of each field of resource.k8s.io, by the row of the field alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_dra.api.fields import KINDS, Field, fields
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.anonymize_dra import DraParts
from kubectl_dra.cluster.identities import Identities

PARTS = DraParts(Identities((), "seed"))
VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")


def filled(struct: str, version: str) -> dict[str, Any]:
    """A struct with something in each of its fields: in texts and keys, words that only the owner knows.

    Those with code of their own stay empty: no row speaks of them.
    """
    if struct in PARTS._structs:
        return {}
    return {name: something(name, field, version) for name, field in fields(struct, version).items()}


def something(name: str, field: Field, version: str) -> Any:
    """The value of a field of ``filled``."""
    secret = "All" if field.anonymize == "keep" else f"Xerxes{name.title()}"
    scalars: dict[str, Any] = {"int": 7, "bool": True, "quantity": "40Gi", "time": "2026-11-20T10:00:00Z"}
    one = scalars.get(field.type, secret) if field.scalar else filled(field.type, version)
    if field.type in ("any", "object"):
        one = {secret: secret}
    if field.container == "map":
        return {f"{secret}.org/{secret}": one}
    return [one, one] if field.container else one


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_field_keeps_what_only_its_owner_knows(kind: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the last look at every text, too: a text whose row says nothing leaves only its presence."""
    monkeypatch.setattr(Identities, "checked", lambda self, value: value)
    raw = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": {"name": "a"}, **filled(kind, version)}
    raw["spec"]["xerxesField"] = {"xerxes": "xerxes"}
    before = json.dumps(raw)
    written = json.dumps(Anonymizer([raw], "seed").item(raw))
    assert json.dumps(raw) == before
    assert "xerxes" not in written.lower() and len(written) > 200


def test_every_instruction_is_carried_out() -> None:
    asked: set[str] = set()
    ahead = [(kind, version) for kind in KINDS for version in VERSIONS]
    seen = set(ahead)
    while ahead:
        struct, version = ahead.pop()
        for field in fields(struct, version).values():
            asked.add(field.anonymize)
            below = (field.type, version)
            if not field.scalar and below not in seen:
                seen.add(below)
                ahead.append(below)
    assert asked - {"", "drop"} == {*PARTS._texts}


def test_an_item_that_is_null_stays_null() -> None:
    """As the API server allows it everywhere."""
    spec = {"config": [None], "selectors": [None, {"cel": None}], "extendedResourceName": None}
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}, "spec": spec}
    assert Anonymizer([raw], "seed").item(raw)["spec"] == spec
