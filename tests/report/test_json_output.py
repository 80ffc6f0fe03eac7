"""Results as data: any text that an object can hold comes back from what is written."""

from __future__ import annotations

import json

import pytest
import yaml

from kubectl_dra.manifests.yaml_output import yaml_text
from kubectl_dra.report.json_output import json_text
from kubectl_dra.safe_output import visible

ODD = ("\ud800", "a\udfffb", "\x00\x1b\x7f\x9b", "\u202e\u2028\u200b\ufeff", "\U000e0041", "\ud83d\ude00", "é\n\r\t")


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_any_text_is_readable_again(text: str) -> None:
    result = {"key": text, text: [text], "in": {"a line": f"x {text} y"}}
    # Half a character is no text: it is replaced, as Kubernetes' decoders do it.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    expected = {"key": whole, whole: [whole], "in": {"a line": f"x {whole} y"}}
    written = visible(yaml_text(result))
    written.encode()
    assert yaml.safe_load(written) == expected
    assert json.loads(visible(json_text(result))) in (result, expected)
