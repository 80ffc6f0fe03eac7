"""What each command prints on a terminal of 80 and of 160 columns.

``python -m tests.golden.cases`` writes the files again; look at the difference before you keep it.
"""

from __future__ import annotations

import contextlib
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.taint.world import gpu, node, rule, slice_of
from tests.terminal import Terminal
from tools.api_server import APIServer

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent
WIDTHS: Final = (80, 160)
EXPLAIN: Final = "examples/explain/no-device-matches"
SAMPLE: Final = "examples/ci/sample"
FLEET: Final = "explain/all-held/cluster.yaml"


class Case(NamedTuple):
    """A command line, the folder (of which a copy is used) in which it runs, and its exit code.

    ``objects`` are what an API server has, where the command asks one.
    """

    name: str
    words: str
    folder: str = EXPLAIN
    code: int = 0
    objects: tuple[dict[str, Any], ...] = ()


_MANAGED: Final = {"app.kubernetes.io/managed-by": "kubectl-dra"}
_GPU_0: Final = {"driver": "gpu.example.com", "pool": "gpu-node-1", "device": "gpu-0"}
TAINTED: Final = (
    node("gpu-node-1"),
    slice_of(
        "gpu-node-1",
        gpu("gpu-0", "GPU-48e08ec7-ffff-4130-b4fd-fd1bef952a15", taints=[{"key": "ecc", "effect": "NoSchedule"}]),
        gpu("gpu-1", "GPU-1768ce39-1e41-4468-b302-1627f79f6484"),
    ),
    rule("kubectl-dra-gpu-node-1-gpu-0-1f3a9c", _GPU_0, "NoExecute", "maintenance", labels=_MANAGED),
    rule("firmware-window", {"driver": "gpu.example.com", "pool": "gpu-node-1"}, key="firmware"),
)


CASES: Final = (
    Case("explain", "explain pod/train-0 -n ml --snapshot cluster.yaml", code=1),
    Case("explain-fits", "explain -f manifest.yaml --snapshot cluster.yaml", "examples/explain/fits"),
    Case("explain-devices", "explain pod/train-0 -n ml --snapshot cluster.yaml --devices", code=1),
    Case("explain-all", "explain -A --snapshot cluster.yaml", code=1),
    Case("explain-pending", "explain --snapshot cluster.yaml", "examples/explain/mixed-fleet", 1),
    Case("explain-no-such-pod", "explain pod/trian-0 -n ml --snapshot cluster.yaml", code=2),
    Case("fit", f"fit -f fit/deployment-in-part/manifest.yaml --snapshot {FLEET}", "examples", 1),
    Case(
        "fit-with-node",
        f"fit -f fit/deployment-in-part/manifest.yaml --with-node like=l40s-1 --snapshot {FLEET}",
        "examples",
    ),
    Case("share", "share -f notebooks.yaml --snapshot alignment.yaml", "docs/samples"),
    Case("demo", "demo"),
    Case("can-no-such-command", "can explian", code=2),
    Case("ui-old-release", "ui --snapshot cluster.yaml --kubernetes-version 1.20", code=2),
    Case("lsp-no-such-file", "lsp --snapshot no-such-file.yaml", code=2),
    Case("devices", "devices --snapshot cluster.yaml"),
    Case("devices-full", "devices --snapshot cluster.yaml --full --pool gpu-1"),
    Case("devices-by", "devices --snapshot cluster.yaml --by class", "examples/explain/mixed-fleet"),
    Case("devices-many", "devices --snapshot cluster.yaml", "examples/explain/mixed-fleet"),
    Case("devices-wide", "devices --snapshot cluster.yaml -o wide --node gpu-1"),
    Case("claims", "claims --snapshot cluster.yaml", "examples/explain/mixed-fleet"),
    Case("claims-alignment", "claims --alignment --snapshot alignment.yaml", "docs/samples", 1),
    Case("claims-alignment-pod", "claims --alignment pod/train-0 --snapshot alignment.yaml", "docs/samples", 1),
    Case("drivers", "drivers --snapshot drivers.yaml", "docs/samples", 1),
    Case("top", "top classes --snapshot cluster.yaml", "examples/explain/mixed-fleet"),
    Case("metrics", "metrics --snapshot cluster.yaml"),
    Case("snapshot", "snapshot --snapshot cluster.yaml -o saved.json"),
    Case("lint", "lint .", SAMPLE, 1),
    Case("lint-clean", "lint manifests/good.yaml", SAMPLE),
    Case("lint-diff", "lint --diff .", SAMPLE, 1),
    Case("lint-rule", "lint --explain DRA101", SAMPLE),
    Case(
        "lint-upgrade",
        "lint --from 1.35.8 --kubernetes-version 1.37.1 --snapshot cluster.yaml",
        "examples/explain/amd-partitions-in-use",
        1,
    ),
    Case("migrate", "migrate pod.yaml", "tests/golden/before", 1),
    Case("migrate-check", "migrate --check pod.yaml", "tests/golden/before", 1),
    Case("migrate-diff", "migrate --diff pod.yaml", "tests/golden/before", 1),
    Case("migrate-code", "migrate --explain MIG103", SAMPLE),
    Case("devices-none", "devices --snapshot cluster.yaml --tainted --node gpu-1", code=1),
    Case(
        "explain-trace", "explain pod/train-0 -n ml --snapshot cluster.yaml --trace gpu.nvidia.com/gpu-1/gpu-0", code=1
    ),
    Case("taint", "taint gpu-3/gpu-0 maintenance:NoExecute --dry-run=client --snapshot cluster.yaml", code=3),
    Case("untaint", "untaint gpu-node-1/gpu-0 --dry-run=client", objects=TAINTED),
    Case("completion", "completion kubectl"),
    Case("taint-list", "taint --list --snapshot cluster.yaml", "examples/explain/all-tainted"),
    Case("version", "version --client"),
    Case("version-full", "version --client --full"),
)


def shown(case: Case, columns: int) -> tuple[int, str]:
    """The exit code and what the terminal shows, without colours."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as running:
        folder = Path(shutil.copytree(ROOT / case.folder, Path(scratch) / "work"))
        kubeconfig = f"{scratch}/none"
        if case.objects:
            kubeconfig = serving(case.objects, running).kubeconfig(Path(scratch))
        environment = {"NO_COLOR": "1", "PYTHONPATH": str(ROOT), "KUBECONFIG": kubeconfig, "HOME": scratch}
        command = [sys.executable, "-m", "kubectl_dra", *case.words.split()]
        with Terminal(command, columns=columns, environment=environment, folder=folder) as terminal:
            code = terminal.end()
            return code, _settled(terminal.text)


def serving(objects: Sequence[dict[str, Any]], running: contextlib.ExitStack) -> APIServer:
    """An API server of 1.37 that has these objects."""
    server = APIServer()
    running.callback(server.close)
    plurals = {"ResourceSlice": "resourceslices", "DeviceTaintRule": "devicetaintrules"}
    plurals |= {"ResourceClaim": "resourceclaims", "DeviceClass": "deviceclasses", "Node": "nodes"}
    server.serve_group(v1=tuple(plurals.values()))
    server.routes["/version"] = {"gitVersion": "v1.37.1"}
    for kind, plural in plurals.items():
        where = "/api/v1" if kind == "Node" else "/apis/resource.k8s.io/v1"
        server.routes[f"{where}/{plural}"] = [raw for raw in objects if raw["kind"] == kind]
    return server


def path(case: Case, columns: int) -> Path:
    """The golden file."""
    return FOLDER / f"{case.name}.{columns}.txt"


def _settled(text: str) -> str:
    """Without what differs between machines."""
    # Ages grow, and their column with them.
    text = re.sub(r" {2,}\d+d {2,}", "   (age)   ", text)
    text = re.sub(r" {2,}\d+d$", "   (age)", text, flags=re.MULTILINE)
    text = re.sub(r"AGE {2,}", "AGE   ", text)
    text = re.sub(r"age: \d+d", "age: (age)", text)
    machine = f"{platform.system().lower()}/{platform.machine().lower()}"
    return re.sub(rf"{re.escape(platform.python_version())} on {re.escape(machine)}", "3.x on this machine", text)


if __name__ == "__main__":
    for each in CASES:
        for width in WIDTHS:
            code, text = shown(each, width)
            if code != each.code:
                raise SystemExit(f"{each.name}: exit code {code}, not {each.code}; nothing is written of it\n{text}")
            path(each, width).write_text(text)
