"""``--with-node`` over the examples: what an answer or an error tells to paste."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.ran import ran

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "explain"
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _asked() -> Iterator[tuple[str, list[str]]]:
    """Each example about a pod, with the words of its command."""
    for folder in sorted(EXAMPLES.iterdir()):
        words = shlex.split((folder / "command").read_text())[2:] if folder.is_dir() else []
        if words[:1] == ["explain"] and any(word.startswith("pod/") or word == "-f" for word in words):
            yield folder.name, words


ASKED: Final = tuple(_asked())


def _objects(folder: Path) -> Iterator[dict[str, Any]]:
    file = next(folder.glob("cluster.*"))
    for document in yaml.load_all(file.read_text(), Loader=LOADER):
        yield from (document or {}).get("items") or [document or {}]


def _node_of(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """The first node that has devices, if any has, and the node with its slices as another one."""
    objects = list(_objects(folder))
    nodes = {raw["metadata"]["name"]: raw for raw in objects if raw.get("kind") == "Node"}
    slices = [raw for raw in objects if raw.get("kind") == "ResourceSlice" and raw["spec"].get("nodeName") in nodes]
    name = next((slice_["spec"]["nodeName"] for slice_ in slices if slice_["spec"].get("devices")), next(iter(nodes)))
    own = [nodes[name], *(slice_ for slice_ in slices if slice_["spec"]["nodeName"] == name)]
    text = json.dumps(own, default=str).replace(f'"{name}"', '"thought-of"')
    new: list[dict[str, Any]] = json.loads(text)
    for each in new[1:]:
        each["metadata"]["name"] += "-new"
        each["spec"]["pool"]["name"] += "-new"
    return name, new


def _commands(text: str) -> Iterator[str]:
    """The commands on lines of their own, which may go on in the next line in no text that is this wide."""
    for line in text.splitlines():
        if (match := re.search(r"(?:^|[:$] )(kubectl (?:dra )?[a-z].*)$", line)) is not None:
            yield match[1]


@pytest.mark.parametrize(("example", "words"), ASKED, ids=[example for example, _ in ASKED])
def test_no_command_is_about_a_node_that_is_only_supposed(
    example: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    monkeypatch.setenv("COLUMNS", "400")
    name, new = _node_of(EXAMPLES / example)
    file = tmp_path / "new.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": new}))
    supposed = {f"{name}-more", "thought-of", "new-node"}
    for flag in (name, str(file), "8xH100", "nvidia.com/gpu=1"):
        for more in ((), ("--full",)):
            code, out, errors = ran(*words, "--with-node", flag, *more)
            assert "a defect of" not in errors, (flag, errors)
            for command in _commands(out):
                if "--with-node" not in command:
                    assert supposed.isdisjoint(re.split("[ /=,]", command)), (flag, code, command)


NO_FORMS: Final = (
    *("", "8H100", "DGX-H100", "RTX 4090", "nvidia.com/gpu", "nvidia.com/gpu:8", "MIG", "gpu-1", "trn2.48xlarge"),
    *("driver=gpu.nvidia.com", "driver=gpu.nvidia.com,devices=8", "devices=8", "gpu=8", "H100", "0xH100", "8xRTX4090"),
    *(
        "8xMI300X",
        "TPU v5e",
        "product=H200,devices=8,memori=1Gi",
        "l40s-1,product=H100",
        "p5",
        "nvidia.com/mig-1g.5gb=7",
    ),
)
"""Values that cannot be used, or not with every claim."""


@pytest.mark.parametrize(("example", "words"), ASKED, ids=[example for example, _ in ASKED])
def test_what_an_error_proposes_can_be_used(example: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    monkeypatch.setenv("COLUMNS", "400")
    for flag in NO_FORMS:
        code, _, errors = ran(*words, "--with-node", flag)
        assert "a defect of" not in errors, (flag, errors)
        for command in _commands(errors) if code == 2 else ():
            again, out, told = ran(*shlex.split(command)[2:])
            assert "--with-node" in command, (flag, command)
            assert (again in (0, 1, 3) and out) and not told.startswith("error: "), (flag, command, told)
