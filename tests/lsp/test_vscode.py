"""The extension of ``editors/vscode`` in Visual Studio Code itself, by its own runner of extensions' tests."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.lsp.test_server import CLAIM
from tools.controlplane.program import Unavailable
from tools.vscode import find_vscode

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
SUITE = Path(__file__).parent / "vscode" / "suite.js"
SECONDS = 180.0
TEMPLATE = """apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: one-gpu
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: train
    image: train
    resources:
      claims:
      - name: gpu
  resourceClaims:
  - name: gpu
    resourceClaimTemplateName: one-gpu
"""


@pytest.mark.exhaustive
def test_the_extension(chromium: Browser, tmp_path: Path) -> None:
    try:
        vscode = find_vscode()
    except Unavailable as error:
        pytest.skip(str(error))
    for name, text in {"claim.yaml": CLAIM, "pod.yaml": POD, "template.yaml": TEMPLATE}.items():
        (tmp_path / "files" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "files" / name).write_text(text)
    answers = _answers(chromium, vscode, tmp_path)
    assert "error" not in answers, answers
    assert (answers["code"], answers["underlined"]) == ("DRA601", 'device.attributes["gpu.nvidia.com"].productname')
    assert "**DRA601**" in answers["explained"]
    assert {"count", "allocationMode", "tolerations"} <= {*answers["proposed"]}
    assert answers["symbols"] == ["gpu"]
    assert "productName" in answers["offered"]
    assert answers["fixed"] == 'expression: device.attributes["gpu.nvidia.com"].productName == "NVIDIA A100-SXM4-40GB"'
    assert answers["definition"] == "template.yaml"


def _answers(browser: Browser, vscode: Path, folder: Path) -> dict[str, Any]:
    """What the suite wrote into the folder ``files``."""
    with _server(vscode, folder) as address:
        there = f"vscode-remote://{address}"
        development = [
            ["extensionDevelopmentPath", f"{there}{folder}/extensions/kubectl-dra"],
            ["extensionTestsPath", f"{there}{SUITE}"],
        ]
        page = browser.new_page()
        page.goto(f"http://{address}/?folder={quote(str(folder / 'files'))}&payload={quote(json.dumps(development))}")
        answers = folder / "files" / "answers.json"
        end = time.monotonic() + SECONDS
        while not answers.exists() and time.monotonic() < end:
            page.wait_for_timeout(200)
        assert answers.exists(), (folder / "server.log").read_text()[-3000:]
        return dict(json.loads(answers.read_text()))


@contextmanager
def _server(vscode: Path, folder: Path) -> Iterator[str]:
    """The address of a server with the extension, which starts this Python's program."""
    shutil.copytree(ROOT / "editors" / "vscode", folder / "extensions" / "kubectl-dra")
    install = ["npm", "install", "--omit=dev", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(install, cwd=folder / "extensions" / "kubectl-dra", check=True)
    (folder / "data" / "User").mkdir(parents=True)
    settings = {"kubectl-dra.command": [sys.executable, "-m", "kubectl_dra", "lsp"]}
    (folder / "data" / "User" / "settings.json").write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = ["--auth=none", f"--bind-addr={address}", "--disable-telemetry", "--disable-workspace-trust"]
    folders = [f"--extensions-dir={folder / 'extensions'}", f"--user-data-dir={folder / 'data'}"]
    environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(folder / "none"), "PYTHONPATH": str(ROOT)}
    with (folder / "server.log").open("w") as log:
        command = ["node", str(vscode), *flags, *folders, "--disable-update-check"]
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    try:
        _wait_for(address, folder / "server.log")
        yield address
    finally:
        os.killpg(server.pid, 15)
        server.wait()


def _wait_for(address: str, log: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            with urlopen(f"http://{address}/healthz", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(log.read_text()[-3000:])
