"""What is printed of a snapshot: each command for the live cluster says so, and none is the one that was just run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kubectl_dra.cluster.files import read_snapshot
from tests.ran import ran
from tools.examples import arguments, examples

NAMES = [path.name for path in examples()]
COMMAND = re.compile(r"(?P<label>.*(?:\$|:)) (?P<command>kubectl (?!dra lint).+)")


def questions(example: Path) -> list[list[str]]:
    """The example's question, in short and in full, and those about its first claim and a node with devices."""
    words = arguments(example)

    place = words[words.index("--snapshot") : words.index("--snapshot") + 2]
    snapshot = read_snapshot([place[1]])
    asked = [words, [*words, "--full"]]
    asked += [["explain", f"claim/{name}", "-n", space, *place] for space, name in [*snapshot.claims][:1]]
    nodes = {slice_.scope.node_name for slice_ in snapshot.slices} & {*snapshot.nodes}
    return asked + [["explain", f"node/{name}", *place] for name in sorted(nodes)[:1]]


@pytest.mark.parametrize("example", examples(), ids=NAMES)
def test_each_command_for_the_live_cluster_says_so(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example)
    for asked in questions(example):
        _, out, err = ran(*asked)
        assert out, err
        for line in out.splitlines():
            found = COMMAND.fullmatch(line)
            if found is not None and "--snapshot" not in found["command"]:
                assert "in the cluster, not the snapshot" in found["label"].lower(), (asked, line)


@pytest.mark.parametrize("example", examples(), ids=NAMES)
def test_what_to_do_next_is_not_what_was_just_done(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example)
    words = arguments(example)
    for _ in range(4):
        _, out, _ = ran(*words)
        found = re.search(r"^Next(?: \(.*\))?: kubectl dra (explain .+)$", out, re.MULTILINE)
        if found is None:
            return
        following = shlex.split(found[1])
        assert following != words
        words = following
