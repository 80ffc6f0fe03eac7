"""A run of each command against a cluster, for the tests and programs that misuse all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kubectl_dra.cli import main
from kubectl_dra.cli.main import COMMANDS

HELP: Final = Path(main.__file__).parent / "help"

WITHOUT_CLUSTER: Final = ("completion", "demo", "lsp", "ui")
"""An editor talks to lsp on standard input; of a cluster it reads what ``lint --live`` reads. ui needs a terminal."""
WORDS: Final = {
    "explain": [["explain", "pod/a"], ["explain", "-A"]],
    "fit": [["fit", "-f", "pod.yaml"]],
    "share": [["share", "--class", "gpu"]],
    "lint": [["lint", "--live", "pod.yaml"]],
    "migrate": [
        ["migrate", "plan", "--live", "-A", "--output-dir", "out"],
        ["migrate", "--live", "-A"],
        ["migrate", "pod.yaml", "--live"],
    ],
    "taint": [["taint", "n/d", "a=b:NoSchedule", "--yes"], ["taint", "--list"]],
    "untaint": [["untaint", "n/d", "a-", "--yes"]],
    "snapshot": [["snapshot", "-o", "-"], ["snapshot", "-o", "-", "--anonymize"]],
    "devices": [["devices"], ["devices", "--tainted"]],
}
RUNS: Final = [words for name in COMMANDS if name not in WITHOUT_CLUSTER for words in WORDS.get(name, [[name]])]
FORMATS: Final = {
    "explain": ("text", "json", "yaml", "html"),
    "devices": ("text", "wide", "json", "yaml", "name", "html"),
    "top": ("text", "json"),
    "claims": ("text", "json"),
    "fit": ("text", "json"),
    "lint": ("text", "json", "sarif", "github", "junit"),
    "migrate": ("text", "json"),
    "taint": ("text", "json"),
}
POD: Final = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  resourceClaims: [{name: g, resourceClaimTemplateName: t}]
  containers: [{name: c, image: i, resources: {claims: [{name: g}]}}]
"""


def codes(command: str) -> set[int]:
    """The exit codes that the help of a command lists."""
    text = (HELP / f"{command}.txt").read_text(encoding="utf-8").partition("Exit codes:")[2]
    return {int(found) for found in re.findall(r"^ +(\d+)  ", text, re.MULTILINE)}
