"""What a command imports: starting is most of the time that a small answer takes.

Modules are counted, not milliseconds, so that the answer is the same on every machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import kubectl_dra

EXAMPLE = Path(__file__).parents[2] / "examples" / "explain" / "attribute-absent"
EXPLAIN = (EXAMPLE / "command").read_text(encoding="utf-8").split()[2:]
RUN = """
import json, sys
from kubectl_dra.cli.main import run
run(sys.argv[1:])
kinds = [value for name, module in list(sys.modules.items()) if name.startswith("kubectl_dra.")
         for value in vars(module).values() if isinstance(value, type)]
defined = sorted({kind.__qualname__ for kind in kinds if "__dataclass_fields__" in vars(kind)})
sys.stderr.write(json.dumps([sorted(sys.modules), defined]))
"""
HEAVY = {
    "celpy",
    "http.client",
    "jsonschema",
    "kubectl_dra.cluster.client",
    "kubectl_dra.cluster.live",
    "kubectl_dra.lint",
    "kubectl_dra.migrate",
    "kubernetes",
    "rich",
    "ruamel",
    "ssl",
    "yaml",
}
"""What an answer from a snapshot in JSON has no use for."""
CAUSES = "kubectl_dra.explain.causes."


COMMANDS = sorted(path.stem for path in (Path(kubectl_dra.__file__).parent / "cli" / "help").glob("*.txt"))


def loaded(words: list[str]) -> tuple[set[str], list[str]]:
    """All modules after a command, and those of our classes that are dataclasses."""
    command = [sys.executable, "-c", RUN, *words]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=True)
    modules, dataclasses = json.loads(done.stderr)
    return set(modules), dataclasses


@pytest.mark.parametrize(
    ("words", "own", "others"),
    [
        (EXPLAIN, 256, 180),
        (["--help"], 25, 155),
        (["version", "--client"], 90, 180),
        *(([name, "--help"], 18, 172) for name in COMMANDS),
    ],
    ids=["explain", "help", "version", *COMMANDS],
)
def test_few_modules_are_imported(words: list[str], own: int, others: int) -> None:
    modules, dataclasses = loaded(words)
    ours = {name for name in modules if name.startswith("kubectl_dra")}
    assert modules & HEAVY == set()
    # A file of causes is found by being there, and each answer asks all of them.
    assert sum(not name.startswith(CAUSES) for name in ours) <= own, (
        "import what few answers need in the function that needs it"
    )
    assert len(modules - ours) <= others
    assert len(dataclasses) <= 1, "a struct of msgspec takes a twentieth of the time to define"
