"""Objects that no API server stores: a note, never a silent answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster.files import read_snapshot
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra

Dra = Callable[..., Ran]
GROUP = "resource.k8s.io/v1"


def claim(request: Any) -> dict[str, Any]:
    spec = {"devices": {"requests": [{"name": "r", **request}]}}
    return {"apiVersion": GROUP, "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "d"}, "spec": spec}


def published(*devices: Any) -> dict[str, Any]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": list(devices)}
    return {"apiVersion": GROUP, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def exactly(**more: Any) -> dict[str, Any]:
    return {"exactly": {"deviceClassName": "gpu", **more}}


@pytest.mark.parametrize(
    ("item", "mistake"),
    [
        (claim(exactly(count=-1)), "requests[0].exactly.count is -1"),
        (
            claim({**exactly(), "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}),
            "exactly and firstAvailable",
        ),
        (claim(exactly(tolerations=[{"operator": "Foo"}])), "operator is Foo"),
        (claim(exactly(tolerations=[{"operator": "Exists", "effect": "Foo"}])), "effect is Foo"),
        (published({"name": "a", "taints": [{"key": "k", "effect": "Foo"}]}), "effect is Foo"),
        (published({"attributes": {}}), "devices[0] has no name"),
        (published({"name": "a"}, {"name": "a"}), "devices[1] has the name of another"),
    ],
)
def test_a_note_says_so(tmp_path: Path, item: dict[str, Any], mistake: str) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}))
    notes = read_snapshot([str(path)]).notes
    assert any(f"no API server stores such a {item['kind']}" in note and mistake in note for note in notes), notes


def test_what_a_server_stores_has_none(tmp_path: Path) -> None:
    items = [
        claim(exactly(count=2, tolerations=[{"operator": "Exists", "effect": "NoExecute"}])),
        published({"name": "a"}),
    ]
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert read_snapshot([str(path)]).notes == ()


@pytest.mark.parametrize("anonymize", [(), ("--anonymize",)])
def test_a_saved_copy_has_the_note_once(dra: Dra, anonymize: tuple[str, ...]) -> None:
    items = [claim(exactly(count=-1)), published({"name": "a", "taints": [{"key": "k", "effect": "Foo"}]})]
    Path("wrong.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert dra("snapshot", "--snapshot", "wrong.json", "-o", "copy.json", *anonymize).code == 0
    notes = [note for note in read_snapshot(["copy.json"]).notes if "no API server stores" in note]
    assert len(notes) == 2, notes
