"""Values as they are written into manifests."""

from __future__ import annotations

import json

import pytest
import yaml

from kubectl_dra.manifests.style import json_text


@pytest.mark.parametrize("code", [0x1B, *range(0x7F, 0xA1), 0xE9, 0x2028, 0x2029, 0xFEFF, 0x1F600])
def test_json_and_yaml_read_the_same(code: int) -> None:
    value = {"name": f"a{chr(code)}b"}
    assert json.loads(json_text(value)) == yaml.safe_load(json_text(value)) == value
