"""A directory of everything that could hurt: bounded time and memory, a word on each file, the rest checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lint.support import CLAIM

WRONG = CLAIM + "        cuont: 1\n"
HEAD = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: gpu}\n"
SECONDS = 60.0
BYTES = 700_000_000


def bomb(levels: int) -> str:
    lines = ["x0: &x0 [a,a,a,a,a,a,a,a,a]\n"]
    lines += [f"x{level}: &x{level} [{','.join([f'*x{level - 1}'] * 9)}]\n" for level in range(1, levels)]
    return HEAD + "".join(lines)


def claim_with(*expressions: str) -> str:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "selectors": selectors}}
    return json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "gpu"},
            "spec": {"devices": {"requests": [request]}},
        }
    )


TEN = "[1,2,3,4,5,6,7,8,9,10]"
EXPLODING = (
    "(" * 600 + "true" + ")" * 600,
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a != d))))",
    f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, 'aaaaaaaaaa'.replace('a', 'aaaaaaaaaa').size() > 0))))",
    f"'{'a' * 60}!'.matches('^(a+)+$')",
    "!" * 9000 + "true",
    "[" * 3000,
    "device.attributes['x'].a" + ".b" * 2000,
    "a?b:" * 2000 + "c",
    "1+" * 4000 + "1 > 0",
    "'\\u0000'",
    "\\" * 9000,
)

NAMES = CLAIM.replace("gpu.example.com", "%s%d").replace("name: gpu\nspec", "name: g%d\nspec")

FILES: dict[str, tuple[str | bytes, set[str]]] = {
    "binary.yaml": (b"apiVersion: \x00\x01" + bytes(range(256)) * 1000, {"DRA901"}),
    "latin.yaml": (HEAD.encode() + b"a: caf\xe9\n", {"DRA901"}),
    "bomb.yaml": (bomb(10), {"DRA901"}),
    "small-bomb.yaml": (bomb(4), {"DRA101"}),
    "itself.yaml": (HEAD + "a: &a [*a]\n", {"DRA901"}),
    "brackets.yaml": (HEAD + "a: " + "[" * 10_000 + "]" * 10_000, {"DRA901"}),
    "open.yaml": (HEAD + "a: " + "{a: " * 10_000, {"DRA901"}),
    "dashes.yaml": (HEAD + "a:\n" + "".join(f"{' ' * level}- \n" for level in range(1, 2000)), {"DRA901"}),
    "deep.json": ('{"apiVersion": "v1", "a":' + '{"a":' * 20_000 + "1" + "}" * 20_000 + "}", {"DRA901"}),
    "tab.yaml": (f"{HEAD}spec:\n\tdevices: {{}}\n", {"DRA901"}),
    "twice.yaml": (CLAIM + "kind: ResourceClaim\n", {"DRA902"}),
    "exploding.json": (claim_with(*EXPLODING), {"DRA112", "DRA113"}),
    "long-line.yaml": (CLAIM.replace("name: gpu\nspec", "name: " + "g" * 1_000_000 + "\nspec"), {"DRA104"}),
    "names.yaml": ("---\n".join(NAMES % (index, "g" * 5000, index) for index in range(60)), {"DRA104"}),
    "good.yaml": (WRONG, {"DRA101"}),
}


# A child inherits the peak of the process that it is forked from: a small one stands between a worker of many tests and
# the command, runs it, and writes what it used.
MEASURED = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    json.dump({"seconds": used.ru_utime + used.ru_stime, "bytes": used.ru_maxrss * 1024}, file)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Used(NamedTuple):
    """Seconds of processor time, and the peak of memory in bytes."""

    seconds: float
    bytes: int


def lint(folder: Path) -> tuple[dict[str, set[str]], Used]:
    """Codes by file name, and what the process used."""
    used = folder.parent / "used.json"
    command = [sys.executable, "-m", "kubectl_dra", "lint", str(folder), "-o", "json", "--no-config"]
    measured = [sys.executable, "-c", MEASURED, str(used), *command]
    done = subprocess.run(measured, cwd=folder.parent, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    found: dict[str, set[str]] = {}
    for one in json.loads(done.stdout)["findings"]:
        found.setdefault(Path(one["file"]).name, set()).add(one["code"])
    return found, Used(**json.loads(used.read_text()))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "files"
    folder.mkdir()
    for name, (text, _) in FILES.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with (folder / "huge.yaml").open("wb") as file:
        # 100 MB without a block on the disk.
        file.truncate(100_000_000)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "nowhere.yaml").symlink_to(folder / "gone.yaml")
    (folder / "itself-again.yaml").symlink_to(folder / "itself-again.yaml")
    os.mkfifo(folder / "pipe.yaml")
    return folder


def test_everything_at_once_is_bounded_and_hides_nothing(hostile: Path) -> None:
    found, used = lint(hostile)
    assert used.seconds < SECONDS and used.bytes < BYTES
    assert found.pop("huge.yaml") == {"DRA905"}
    assert set(found) == set(FILES)
    for name, (_, codes) in FILES.items():
        assert codes <= found[name], name


def test_many_documents_of_a_20_mb_file_are_all_read(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n" + f"    {'x' * 95}\n" * 100
    number = 20_000_000 // len(document)
    (folder / "many.yaml").write_text("---\n".join([document] * number + [WRONG]))
    started = time.monotonic()
    found, used = lint(folder)
    assert found == {"many.yaml": {"DRA101"}}
    assert used.bytes < BYTES and time.monotonic() - started < 10 * SECONDS
    # A search of the whole text for each of the documents took minutes.
    assert used.seconds < SECONDS
