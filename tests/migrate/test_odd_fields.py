"""Objects whose fields have values of another type: refused, noted or left, and never a defect."""

from __future__ import annotations

import json

import pytest

from kubectl_dra.migrate.engine import MIGRATIONS
from tests.migrate.runs import run
from tools.fuzz.odd_fields import fields_by_kind

FIELDS = fields_by_kind()
VERSIONS = {"resource.k8s.io/v1": "resource.k8s.io/v1beta2"}


@pytest.mark.parametrize("kind", ["DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "Pod"])
def test_any_field_may_hold_anything(kind: str) -> None:
    for field in FIELDS[kind]:
        if field.path[0] == "status":
            continue
        for value in ("x", ["x"], 1):
            odd = field.holding(value)
            if field.path != ("apiVersion",):
                odd["apiVersion"] = VERSIONS.get(odd["apiVersion"], odd["apiVersion"])
            assert not run(json.dumps(odd), migrations=MIGRATIONS).defects, (field.path, value)
