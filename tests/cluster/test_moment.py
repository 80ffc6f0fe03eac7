"""Ages have one base: the time at which the cluster was read, in whatever command and however it is saved."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from kubectl_dra.cli.main import run
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.save import Recorder, record_files, said, write_list
from kubectl_dra.cluster.time_read import moment, parse
from kubectl_dra.explain.clock import Clock
from kubectl_dra.taint import times
from tests.test_layers import FILES, nodes
from tools.api_server import APIServer

ROOT: Final = Path(__file__).parents[2]
SAVED: Final = ROOT / "examples/explain/all-held/cluster.yaml"
READS_THE_CLOCK: Final = {
    "cluster/client.py": "a server that does not tell its time",
    "cluster/follow.py": "how far a live cluster's clock is ahead of ours",
    "cluster/time_read.py": "nothing has a time",
    "report/html/page.py": "when a page was made",
    "taint/times.py": "when a change was written to a live cluster",
}


def test_only_these_read_the_clock() -> None:
    found = set()
    for file in FILES:
        for node in nodes(file) if "date" in file.read_text() else ():
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if re.fullmatch(r"(.*\.)?datetime\.(now|utcnow|today)|(.*\.)?date\.today", name):
                found.add(str(file.relative_to(ROOT / "kubectl_dra")))
    assert found == READS_THE_CLOCK.keys()


def test_all_commands_count_from_the_time_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """However long ago that is."""
    told = {}
    for command in ("claims", "top claims", "explain pod/sdxl-66d9f7b8c-h7m6r -n inference --full"):
        run([*command.split(), "--snapshot", str(SAVED)])
        told[command] = capsys.readouterr()
    made, at = "2026-08-21T14:20:05Z", moment(read_snapshot([str(SAVED)]))
    assert at.saved and str(at) == "2026-08-22T10:41:09Z"
    for command in ("claims", "top claims"):
        (line,) = [line for line in told[command].out.splitlines() if "rl-agent-3-gpu" in line]
        assert times.age(made, at.at) == "20h" and " 20h" in line
        assert f"as of {at}" in told[command].err
    assert "has held 1 device for over 20 hours" in told["explain pod/sdxl-66d9f7b8c-h7m6r -n inference --full"].out


def test_a_live_cluster_tells_the_time_and_a_snapshot_keeps_it(tmp_path: Path) -> None:
    server = APIServer()
    try:
        cluster = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path)))
        recorder = Recorder()
        cluster.read_into(recorder)
        items, read = recorder.items(), recorder.build(complete=True)
    finally:
        server.close()
    now, known = moment(read), parse(read.read_at)
    assert known is not None and not now.saved and abs((datetime.now(UTC) - now.at).total_seconds()) < 60
    path = tmp_path / "saved.json"
    with path.open("w") as stream:
        write_list(items, said(read), stream)
    kept = moment(read_snapshot([str(path)]))
    assert kept.saved and kept.at == known == now.at
    again = record_files([str(path)])
    again.items()
    assert again.build().read_at == read.read_at


def test_the_servers_clock_counts(tmp_path: Path) -> None:
    """Ours may be wrong: nothing is older than the server says because of it."""
    server = APIServer(date="Wed, 21 Oct 2026 07:28:00 GMT")
    try:
        read = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path))).read_snapshot()
    finally:
        server.close()
    assert read.read_at == "2026-10-21T07:28:00Z"


def test_objects_tell_where_nothing_else_does(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(
        """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: n, creationTimestamp: "2026-01-01T00:00:00Z"}
status: {conditions: [{type: PodScheduled, status: "False", lastTransitionTime: "2026-01-01T00:02:00Z"}]}
"""
    )
    snapshot = read_snapshot([str(path)])
    assert str(moment(snapshot)) == "2026-01-01T00:02:00Z"
    assert Clock(snapshot).age("2026-01-01T00:00:00Z") == timedelta(minutes=2)
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: n}\n")
    assert not moment(read_snapshot([str(path)])).saved
