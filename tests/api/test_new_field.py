"""A field that is stored and checked: its row, and the row of its gate, are all that has to be written.

The two fields are made up; a release after those that are modelled brings them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.admission.server.verdict import check
from kubectl_dra.api import dra_fields, releases
from kubectl_dra.api.conversion import defaulted, gates_in_use, without_disabled
from kubectl_dra.api.releases import NEWEST_MODELLED, Release
from kubectl_dra.api.schema import row
from kubectl_dra.cli.main import run
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.save import reduced
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lsp.hovers import hover_at
from kubectl_dra.lsp.knowledge import Knowledge
from kubectl_dra.lsp.proposals import proposals_at
from tests.api.tables import forget

Json = dict[str, Any]
GATE = "DRAWarmPools"
NEXT = Release(1, NEWEST_MODELLED.minor + 1)
ROWS = {
    "warmPools": row("[]string pool", GATE, since=NEXT.minor, most=2, check="warm-pools subdomain set", read=False),
    "warmth": row(
        "string? keep", GATE, since=NEXT.minor, default="Cold", values=("Cold", "Warm"), check="warmth", read=False
    ),
}


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rows, as if they were written in the tables."""
    off_in_all = "." * (NEWEST_MODELLED.minor - releases.OLDEST_MODELLED.minor) + "-"
    monkeypatch.setitem(releases._GATES, GATE, off_in_all)
    for name, field in ROWS.items():
        monkeypatch.setitem(dra_fields._STRUCTS["ExactDeviceRequest"], name, field)
        monkeypatch.setitem(dra_fields._V1BETA1["DeviceRequest"], name, field)
    forget()
    yield
    monkeypatch.undo()
    forget()


def claim(**written: Any) -> Json:
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1, **written}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def exactly(raw: Json) -> Json:
    found: Json = raw["spec"]["devices"]["requests"][0]["exactly"]
    return found


def test_the_server_decodes_checks_defaults_and_drops_it() -> None:
    raw = claim(warmPools=["a", "a"], warmth="Hot")
    told = check(raw, release=NEXT, features={GATE})
    assert told and [(found.field.rpartition(".")[2], found.reason) for found in told.violations] == [
        ("warmPools[1]", "Duplicate"),
        ("warmth", "NotSupported"),
    ]
    told = check(claim(warmPools=["a", "b", "c"]), release=NEXT, features={GATE})
    assert told and [found.reason for found in told.violations] == ["TooMany"]
    told = check(claim(warmPools=["A"]), release=NEXT, features={GATE})
    assert told and [found.rule for found in told.violations] == ["warm-pools"]
    told = check(claim(warmPools="a"), release=NEXT, features={GATE})
    assert told and (told.code, told.violations[0].rule) == (400, "type-mismatch")
    assert exactly(defaulted(claim()))["warmth"] == "Cold"
    assert gates_in_use(raw) == {GATE}
    assert not ROWS.keys() & exactly(without_disabled(raw, ())).keys()
    assert exactly(without_disabled(raw, {GATE})) == exactly(raw)


def test_an_assumed_release_without_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text(yaml.safe_dump(claim(warmPools=["a"])))
    assert run(["lint", "--no-config", "-o", "json", str(path)]) == 1
    found = {one["code"]: one["message"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert found["DRA505"] == f"warmPools came in {NEXT}; the target is {NEWEST_MODELLED}"
    told = check(claim(warmPools=["a"]), release=NEWEST_MODELLED)
    assert told and told.violations[0].message.endswith(f"in {NEWEST_MODELLED}: it came with {NEXT}")


def test_a_snapshot_keeps_it_and_an_anonymized_copy_renames() -> None:
    raw = claim(warmPools=["acme-berlin", "acme-tokyo"], warmth="Warm")
    kept = reduced(raw)
    assert exactly(kept) == exactly(raw)
    pool = {"name": "acme-tokyo", "generation": 1, "resourceSliceCount": 1}
    published = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a"},
        "spec": {"driver": "gpu.example.com", "pool": pool, "allNodes": True},
    }
    anonymizer = Anonymizer([kept, published], "seed")
    renamed, of_pool = (anonymizer.item(one) for one in (kept, published))
    assert exactly(renamed)["warmth"] == "Warm" and "acme" not in json.dumps(renamed)
    assert exactly(renamed)["warmPools"][1] == of_pool["spec"]["pool"]["name"]


def test_an_editor_shows_and_completes_it() -> None:
    text = yaml.safe_dump(claim(warmPools=["a"], warmth="W"))
    known = Knowledge(AssumedCluster(NEWEST_MODELLED, frozenset()))
    told = hover_at(text, text.index("warmPools") + 2, (), known)
    assert told is not None
    for part in ("list of string", "At most 2 entries", f"`{GATE}`", f"{NEXT}", f"{NEWEST_MODELLED} does not have it"):
        assert part in told.text
    proposals = proposals_at(text, text.index("warmth: W") + len("warmth: W"), known)
    assert {one.label for one in proposals} == {"Cold", "Warm"}


def test_no_answer_passes_over_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    objects: list[Json] = [
        claim(warmPools=["a"]),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "a"},
            "spec": {"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": [{"name": "gpu-0"}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.example.com"},
            "spec": {"selectors": [{"cel": {"expression": "true"}}]},
        },
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
    ]
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    assert run(["explain", "claim/gpu", "--snapshot", str(path), "--complete"]) == 3
    assert "warmPools, which is not modelled" in " ".join(capsys.readouterr().out.split())
