"""What strangers wrote in a manifest or a snapshot is shown in a hover as text: no picture, no link, no markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kubectl_dra.cli.lint import LintFlags
from kubectl_dra.cli.lint.run import job_for
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.lint.engine import lint
from kubectl_dra.lsp.hovers import hover_at
from kubectl_dra.lsp.knowledge import Knowledge
from kubectl_dra.manifests.inputs import Input

HOSTILE: Final = (
    "![t](https://evil.example/p.png)",
    "[run](command:workbench.action.terminal.new)",
    "<img src=https://evil.example/p.png>",
    "<https://evil.example>",
    "`](https://evil.example)`",
    "``` x ```",
    "**bold** _it_ ~~no~~",
    "# heading",
    "a`b``c",
    " ` ",
)
HARMLESS: Final = {
    "paragraph_open", "paragraph_close", "inline", "text", "code_inline", "strong_open", "strong_close", "softbreak",
    "fence", "hr",
}  # fmt: skip
CLAIM: Final = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: gpu}}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: {name}
        selectors:
        - cel:
            expression: device.attributes[{domain}].model == "x"
"""


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or [])


def _only_text(text: str) -> None:
    found = {token.type for token in _tokens(MarkdownIt("commonmark").enable("strikethrough").parse(text))}
    assert found <= HARMLESS, (found - HARMLESS, text)


def _known(snapshot: Path | None) -> tuple[Any, Knowledge]:
    flags = LintFlags(snapshots=(str(snapshot),) if snapshot is not None else ())
    job, _ = job_for(flags, ConnectionFlags())
    return job, Knowledge(job.target)


def _snapshot(folder: Path, domain: str, value: str) -> Path:
    device = {"name": "gpu-0", "attributes": {f"{domain}/model": {"string": value}}}
    spec = {"driver": domain, "nodeName": "n", "pool": {"name": "n", "resourceSliceCount": 1, "generation": 1}}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    found = [
        {**kind, "metadata": {"name": "s"}, "spec": {**spec, "devices": [device]}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
    ]
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
    return path


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("saved", [False, True], ids=["alone", "with a snapshot"])
def test_nothing_of_a_stranger_is_markup(hostile: str, saved: bool, tmp_path: Path) -> None:
    snapshot = _snapshot(tmp_path, "gpu.example.com", hostile) if saved else None
    job, known = _known(snapshot)
    shown = 0
    for domain in (hostile, "gpu.example.com"):
        text = CLAIM.format(name=json.dumps(hostile), domain=json.dumps(domain).replace('"', "'"))
        findings = lint([Input("claim.yaml", True, text.encode())], job, 1).findings
        for offset in range(len(text)):
            hover = hover_at(text, offset, findings, known)
            if hover is not None:
                shown += 1
                # The pages of rules are ours, with links and lists: what a finding says of the object is not.
                own = hover.text
                for found in findings:
                    if f"**{found.code}**" in own:
                        own = "\n\n".join(part for part in own.split("\n\n")[1:2])
                _only_text(own)
    assert shown > 20
    if saved:
        at = text.index("model")
        hover = hover_at(text, at, (), known)
        assert hover is not None and "1 of 1 devices" in hover.text
