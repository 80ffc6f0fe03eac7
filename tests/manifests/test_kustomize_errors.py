"""What is left of kustomize's errors: the cause, and not the way to it."""

from __future__ import annotations

import pytest

from kubectl_dra.manifests.inputs import cause_of

LOGGED = 'E1122 12:00:00.1 7 run.go:72] "command failed" err='
CHAIN = (
    "accumulating resources: accumulation err='accumulating resources from '../base': '/r/base' must resolve to a "
    "file': recursed accumulation of path '/r/base': "
)


@pytest.mark.parametrize(
    ("stderr", "cause"),
    [
        (
            f"{LOGGED}\"{CHAIN}loading KV pairs: env source files: [a.env]: evalsymlink failure on '/r/base/a.env' : "
            'lstat /r/base/a.env: no such file or directory"\n',
            "/r/base/a.env does not exist",
        ),
        (
            f"{LOGGED}\"{CHAIN}security; file '/r/x.yaml' is not in or below '/r/base': must build at directory\"",
            "/r/x.yaml is outside the directory /r/base, from which kustomize reads no files",
        ),
        (
            f'{LOGGED}<\n\t{CHAIN}Get "https://example.com/a.yaml": no such host\n\t: exit status 128\n >\n',
            "https://example.com/a.yaml cannot be fetched",
        ),
        (
            f'# Warning: old\n{LOGGED}"no resource matches strategic merge patch \\"B.v1.[noGrp]/a.[noNs]\\""\n',
            'no resource matches strategic merge patch "B.v1.[noGrp]/a.[noNs]"',
        ),
        (
            f'{LOGGED}"{CHAIN}yaml: line 1: x"',
            "yaml: line 1: x",
        ),
        ("Error: unable to find one of 'kustomization.yaml'\n", "unable to find one of 'kustomization.yaml'"),
        ("", "no message"),
    ],
)
def test_cause(stderr: str, cause: str) -> None:
    assert cause_of(stderr) == cause
