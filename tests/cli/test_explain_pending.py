"""``explain`` without a target, and with a name alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.report.blocks_text import LINES
from tests.cli.conftest import EXAMPLES, Dra, cluster_of


def objects(example: str) -> list[dict[str, Any]]:
    """The objects of an example's cluster."""
    items: list[dict[str, Any]] = yaml.safe_load((EXAMPLES / example / "cluster.yaml").read_text())["items"]
    return items


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A cluster in which twenty pods wait, each for a number of devices of its own."""
    items = objects("gaudi-too-few")
    pod = next(item for item in items if item["kind"] == "Pod" and item["metadata"]["name"] == "llama-hpu-0")
    name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = next(item for item in items if item["metadata"]["name"] == name)
    for number in range(1, 20):
        (copy, copied) = yaml.safe_load(yaml.safe_dump([pod, claim]))
        copy["metadata"].update(name=f"llama-hpu-{number}", uid=f"pod-{number}")
        copied["metadata"].update(name=f"{name}-{number}", uid=f"claim-{number}")
        copied["metadata"]["ownerReferences"][0].update(name=f"llama-hpu-{number}", uid=f"pod-{number}")
        copied["spec"]["devices"]["requests"][0]["exactly"]["count"] = 8 + number
        copy["status"]["resourceClaimStatuses"][0]["resourceClaimName"] = f"{name}-{number}"
        items += [copy, copied]
    path = tmp_path / "many.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


def test_what_is_pending_is_listed(dra: Dra) -> None:
    ran = dra("explain", "--snapshot", cluster_of("mixed-fleet"))
    assert ran.code == 1 and "pod/serve-0" in ran.out
    assert "Next: kubectl dra explain pod/serve-0 -n ml --snapshot" in ran.out
    assert ran.out == dra("explain", "-A", "--snapshot", cluster_of("mixed-fleet")).out


def test_nothing_is_pending(dra: Dra, tmp_path: Path) -> None:
    items = [item for item in objects("mixed-fleet") if item["metadata"]["name"] != "serve-0"]
    items = [item for item in items if item["kind"] != "ResourceClaim" or item.get("status", {}).get("allocation")]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    ran = dra("explain", "--snapshot", "cluster.yaml")
    assert (ran.code, ran.out) == (0, "No claim is pending.\n")


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_many_are_listed_on_fifteen_lines(dra: Dra, many: str, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = dra("explain", "--snapshot", many)
    lines = ran.out.splitlines()
    assert ran.code == 1 and len(lines) <= LINES
    assert lines[:2] == ["20 pods are stuck", ""]
    table = lines[2 : lines.index("", 2)]
    assert all(len(line) <= columns for line in table[:-1]) and " more: kubectl dra explain --full" in table[-1]
    whole = dra("explain", "--snapshot", many, "--full").out
    assert all(f"pod/llama-hpu-{number} " in whole for number in range(20))


def test_many_are_counted_by_cause_first(dra: Dra, many: str, tmp_path: Path) -> None:
    """Two causes in two namespaces: which is the more frequent is seen without reading the rows."""
    items = yaml.safe_load(Path(many).read_text())["items"]
    for item in items:
        if item["kind"] == "ResourceClaim" and item["metadata"]["name"].endswith(("-1", "-2", "-3")):
            item["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "nothing.example.com"
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all(items))
    ran = dra("explain", "--snapshot", "two.yaml")
    lines = ran.out.splitlines()
    assert len(lines) <= LINES
    assert [line.split() for line in lines[:6]] == [
        ["20", "pods", "are", "stuck"],
        [],
        ["CAUSE", "COUNT", "NAMESPACES"],
        ["too-few-on-one-node", "17", "ml"],
        ["class-missing", "3", "ml"],
        [],
    ]
    assert lines[6].split()[:2] == ["NAMESPACE", "NAME"]


def test_a_namespace_narrows_it(dra: Dra, many: str) -> None:
    ran = dra("explain", "-n", "default", "--snapshot", many)
    assert ran.code == 0 and ran.out.startswith("No claim is pending in namespace default; 20 in other namespaces.")
    assert "more: kubectl dra explain -n ml --full" in dra("explain", "-n", "ml", "--snapshot", many).out


@pytest.mark.parametrize("flag", [["--watch"], ["--what-if", "count=1"], ["--trace", "a/b"], ["--request", "gpu"]])
def test_what_needs_a_target_says_so(dra: Dra, flag: list[str]) -> None:
    ran = dra("explain", *flag)
    assert ran.code == 2 and "say which: pod/NAME, claim/NAME or -f MANIFEST" in ran.err


def test_a_name_alone_is_enough_where_one_object_has_it(dra: Dra, many: str) -> None:
    exact = dra("explain", "pod/llama-hpu-3", "-n", "ml", "--snapshot", many)
    ran = dra("explain", "llama-hpu-3", "-n", "ml", "--snapshot", many)
    assert ran.code == exact.code == 1
    assert ran.out == exact.out.replace("pod/llama-hpu-3", "llama-hpu-3")
    # A snapshot has no namespace of its own.
    assert dra("explain", "llama-hpu-3", "--snapshot", many).out.splitlines()[0] == exact.out.splitlines()[0]
    claim = next(item["metadata"]["name"] for item in objects("gaudi-too-few") if item["kind"] == "ResourceClaim")
    assert dra("explain", claim, "-n", "ml", "--snapshot", many).out.startswith(f"Claim ml/{claim} ")


def test_a_name_that_a_pod_and_a_claim_have(dra: Dra, tmp_path: Path) -> None:
    items = objects("gaudi-too-few")
    claim = yaml.safe_load(yaml.safe_dump(next(item for item in items if item["kind"] == "ResourceClaim")))
    claim["metadata"].update(name="llama-hpu-0", uid="another")
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([*items, claim]))
    ran = dra("explain", "llama-hpu-0", "-n", "ml", "--snapshot", "cluster.yaml")
    assert ran.code == 2
    assert ran.err == (
        "error: a pod and a claim of namespace ml are called llama-hpu-0; write pod/llama-hpu-0 or claim/llama-hpu-0\n"
    )
    assert dra("explain", "pod/llama-hpu-0", "-n", "ml", "--snapshot", "cluster.yaml").code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["llama-hpu-0", "-n", "prod"], "in namespace prod; there is one in namespace ml (use -n ml)"),
        (["lama-hpu-0", "-n", "ml"], "in namespace ml; did you mean pod/llama-hpu-0 or "),
        (["gaudi3-x8", "-n", "ml"], "in namespace ml; write template/gaudi3-x8"),
        (["zzzzzz", "-n", "ml"], "in namespace ml\nWhat is pending: kubectl dra explain -n ml --snapshot"),
        (["pods"], "which pod? Write pod/NAME\nNames: kubectl dra explain"),
        (["deployment"], "which deployment? Write deployment/NAME"),
    ],
)
def test_a_name_that_nothing_has(dra: Dra, words: list[str], said: str) -> None:
    ran = dra("explain", *words, "--snapshot", cluster_of("gaudi-too-few"))
    assert ran.code == 2 and said in ran.err
