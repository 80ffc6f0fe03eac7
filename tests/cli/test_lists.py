"""What all lists take: only the rows, and looking again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.conftest import Dra
from tools.command_runs import FORMATS

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
SAMPLES: Final = EXAMPLES.parent / "docs" / "samples"
FLEET: Final = ("--snapshot", str(EXAMPLES / "explain" / "mixed-fleet" / "cluster.yaml"))
ALIGNED: Final = ("--snapshot", str(SAMPLES / "alignment.yaml"))
LISTS: Final = (
    ("claims",),
    ("claims", "-o", "wide"),
    ("devices",),
    ("devices", "--full"),
    ("devices", "--by", "class"),
    ("top",),
    ("top", "owners"),
    ("drivers",),
)


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_rows_alone(words: tuple[str, ...], dra: Dra) -> None:
    """Nothing but the rows that stand below the headings otherwise, each on its line."""
    whole, rows = dra(*words, *FLEET), dra(*words, *FLEET, "--no-headers")
    assert rows.code == whole.code
    table = [line.split() for line in whole.out.splitlines()]
    header = next(number for number, cells in enumerate(table) if cells and cells[0].isupper())
    found = [line.split() for line in rows.out.splitlines()]
    assert found and found == table[header + 1 : header + 1 + len(found)]
    below = ("Next", "Each device", "A device of", "Left out", "and ")
    assert not any(line.startswith(below) for line in rows.out.splitlines())


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_line_for_each_row_with_all_columns(
    words: tuple[str, ...], dra: Dra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs read them, however narrow the screen is."""
    rows = dra(*words, *FLEET, "--no-headers").out
    monkeypatch.setenv("COLUMNS", "60")
    assert dra(*words, *FLEET, "--no-headers").out == rows


@pytest.mark.parametrize("command", ["claims", "devices", "top", "drivers"])
def test_looking_again(command: str, dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe it prints again only what has changed."""
    ticks: list[float] = []

    def wait(seconds: float) -> None:
        ticks.append(seconds)
        if len(ticks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", wait)
    once, watched = dra(command, *FLEET), dra(command, *FLEET, "-w")
    assert watched.code == 130 and watched.out == once.out and len(ticks) == 2


@pytest.mark.parametrize("command", ["claims", "devices", "drivers"])
def test_only_tables_are_watched(command: str, dra: Dra) -> None:
    ran = dra(command, *FLEET, "-w", "-o", "json")
    assert ran.code == 2 and "--watch shows the table" in ran.err


REPORTS: Final = (
    (*("devices", *FLEET), 0),
    (*("devices", "--by", "class", *FLEET), 0),
    (*("devices", "--free", "--node", "h100-1", "--class", "gpu.amd.com", *FLEET), 1),
    (*("claims", *FLEET), 0),
    (*("claims", "-n", "default", *FLEET), 1),
    (*("claims", "--alignment", *ALIGNED), 1),
    (*("top", *FLEET), 0),
    (*("drivers", *FLEET), 3),
    (*("drivers", "--node", "h100-1", "--drain-check", *FLEET), 0),
    (*("explain", *FLEET), 1),
    (*("explain", "pod/serve-0", "-n", "ml", *FLEET), 1),
    (*("explain", "pod/serve-0", "pod/bert-0", "-n", "ml", *FLEET), 1),
    (*("explain", "node/h100-1", *FLEET), 3),
    (*("explain", "--explain", "class-missing"), 0),
    (*("explain", "--message", "no such message"), 3),
    (*("fit", "-f", str(EXAMPLES / "fit" / "deployment-in-part" / "manifest.yaml"), *FLEET), 1),
    (*("share", "-f", str(SAMPLES / "notebooks.yaml"), *ALIGNED), 0),
    (*("taint", "--list", *FLEET), 0),
    # No saved object shows that the cluster serves the rules.
    (*("taint", "h100-1/gpu-0", "k:NoSchedule", "--dry-run=client", *FLEET), 3),
    (*("untaint", "h100-1/gpu-0", "--dry-run=client", *FLEET), 1),
    (*("lint", str(EXAMPLES / "ci" / "sample" / "manifests")), 1),
    (*("migrate", str(SAMPLES / "train.yaml")), 1),
    (*("migrate", *FLEET), 0),
    (*("version", "--client"), 0),
)


@pytest.mark.parametrize("run", REPORTS, ids=lambda run: " ".join(word for word in run[:-1] if "/cluster" not in word))
def test_each_report_has_the_exit_code_of_its_command(run: tuple[str | int, ...], dra: Dra) -> None:
    """A pipe swallows it."""
    words, code = [str(word) for word in run[:-1]], run[-1]
    ran = dra(*words, "-o", "json")
    report = ran.json
    assert (ran.code, report["exitCode"]) == (code, code)
    assert [*report][:3] == ["schemaVersion", "kind", "exitCode"]


def test_every_command_with_json_is_among_them() -> None:
    tried = {str(run[0]) for run in REPORTS}
    assert {name for name, formats in FORMATS.items() if "json" in formats} <= tried


MANIFEST: Final = str(EXAMPLES / "fit" / "deployment-in-part" / "manifest.yaml")


@pytest.mark.parametrize(
    "words", ["devices", "top", "drivers", "claims", "explain", f"fit -f {MANIFEST}", "metrics", "taint --list"]
)
@pytest.mark.parametrize(
    "flag",
    ["-A", "-n ml", "-l app=x", "-o name", "-o wide", "-o json", "-o yaml", "--no-headers", "--sort-by=name", "-w"],
)
def test_kubectl_s_flags_work_or_are_refused_with_the_reason(
    words: str, flag: str, dra: Dra, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", stop)
    ran = dra(*words.split(), *FLEET, *flag.split())
    if ran.code == 2:
        told, *commands = ran.err.splitlines()
        assert not ran.out and told.startswith("error: ") and all("kubectl " in line for line in commands)
        assert "No such option" not in ran.err and "Invalid value" not in ran.err, ran.err
    else:
        assert ran.code in (0, 1, 3, 130)


@pytest.mark.parametrize("sort", ["devices", "age", "state", "name", ".metadata.name", "{.metadata.creationTimestamp}"])
def test_claims_are_sorted(sort: str, dra: Dra) -> None:
    items = dra("claims", *FLEET, "--sort-by", sort, "-o", "json").json["items"]
    key: dict[str, Callable[[dict[str, Any]], Any]] = {
        "devices": lambda item: -len(item["devices"]),
        "state": lambda item: item["state"] != "pending",
        "name": lambda item: item["name"],
    }
    if "ation" in sort or sort == "age":
        assert [item["created"] for item in items] == sorted(item["created"] for item in items)
    else:
        assert items == sorted(items, key=key[sort.removeprefix(".metadata.")])


def test_top_of_a_namespace(dra: Dra) -> None:
    whole = dra("top", "owners", *FLEET, "-o", "json").json["items"]
    for space in ("ml", "default"):
        ran = dra("top", "owners", *FLEET, "-n", space, "-o", "json")
        own = [item for item in whole if item["namespace"] == space]
        assert ran.json["items"] == own and ran.code == (0 if own else 1)
    assert "to count in namespace default." in dra("top", "claims", *FLEET, "-n", "default").out
    assert "top owners -n ml" in dra("top", *FLEET, "-n", "ml").err


def test_what_is_pending_as_names_and_rows(dra: Dra) -> None:
    assert dra("explain", *FLEET, "-o", "name").out == "pod/serve-0\n"
    rows = dra("explain", *FLEET, "--no-headers").out
    assert rows.startswith("ml ") and rows.count("\n") == 1
    for words in (
        ("pod/serve-0", "-n", "ml"),
        ("node/h100-1",),
        ("driver/gpu.nvidia.com",),
        ("--explain", "class-missing"),
    ):
        for flag in (("-o", "name"), ("--no-headers",)):
            ran = dra("explain", *words, *FLEET, *flag)
            assert ran.code == 2 and "is for the list of what is pending" in ran.err and not ran.out


def test_rows_of_taints(dra: Dra) -> None:
    taints = dra("taint", "--list", *FLEET, "-o", "json").json["items"]
    rows = dra("taint", "--list", *FLEET, "--no-headers", "-A").out
    assert rows and len(rows.splitlines()) == len(taints)
    assert dra("taint", "h100-1/gpu-0", "k:None", "--no-headers").code == 2


def test_devices_with_the_same_taint_share_a_row(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    cluster = FLEET[1]
    ran = dra("taint", "--list", "--snapshot", cluster)
    devices = [line.split("  ")[0] for line in ran.out.splitlines()[1:] if line.startswith("gpu.amd.com/")]
    assert devices == [f"gpu.amd.com/mi300x-2/gpu-0..7-{kind} (8)" for kind in ("cpx-nps1", "dpx-nps2", "spx-nps1")]
    alone = dra("taint", "--list", "--no-headers", "--snapshot", cluster)
    assert len(alone.out.splitlines()) == 24


@pytest.mark.parametrize("command", ["claims", "drivers"])
def test_full_is_wide(command: str, dra: Dra) -> None:
    """What a list leaves out to be short ``--full`` shows, in each list by the same flag."""
    assert dra(command, *FLEET, "--full").out == dra(command, *FLEET, "-o", "wide").out
    assert dra(command, *FLEET, "-A", "--full").code == dra(command, *FLEET).code
    ran = dra(command, *FLEET, "--full", "--limit", "1")
    assert (ran.code, ran.err) == (2, f"error: --full shows all {command}; leave --limit out\n")


def test_full_names_each_that_waits(dra: Dra, tmp_path: Path) -> None:
    """Pods that wait for the same share a row; with ``--full`` each has its own."""
    from tests.fit.worlds import CLASS, claim, node, write_cluster

    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
            "status": {"phase": "Pending"},
        }
        for name in ("one", "two")
    ]
    write_cluster(tmp_path / "cluster.json", [*node("a"), CLASS, claim("one"), claim("two"), *pods])
    cluster = ("--snapshot", str(tmp_path / "cluster.json"))
    assert "pod/one and 1 more" in dra("explain", "-A", *cluster).out
    out = dra("explain", "-A", "--full", *cluster).out
    assert "and 1 more" not in out and "pod/one" in out and "pod/two" in out
