"""What servers, kubeconfigs and plugins say never reaches the terminal raw, in any format."""

from __future__ import annotations

import json
import re
import socket
import stat
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_dra.cli.main import run
from kubectl_dra.safe_output import conceal
from tests.hostile.test_commands import RAW
from tools.api_server import kubeconfig
from tools.command_runs import FORMATS, POD, RUNS
from tools.hostile_server import HostileServer, answer

CANARY: Final = "\x1b[2J\x1b]0;t\x07\x7f\x9b31m\u202e\u200b\u2028\n::error::FORGED\r\n"
FORGED: Final = re.compile(r"^\s*::", re.MULTILINE)
OWN: Final = re.compile(r"^::(error|warning|notice) [^:]*::.*$", re.MULTILINE)
"""What ``-o github`` itself writes."""
SECRET: Final = "a-very-secret-token-0123456789"


def checked(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Runs it, and gives what it printed on both ways."""
    run([*words, "--request-timeout", "2s"])
    captured = capsys.readouterr()
    for text in (captured.out, captured.err):
        found = RAW.search(text) or FORGED.search(OWN.sub("", text) if "github" in words else text)
        assert found is None, (words, text[max(0, found.start() - 200) : found.end() + 60])
        assert SECRET not in text, words
        assert "Traceback" not in text and "a defect of" not in text, text
    return captured.out + captured.err


def all_formats() -> list[list[str]]:
    return [[*words, "-o", form] for words in RUNS for form in FORMATS.get(words[0], ()) if "plan" not in words]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(POD)
    # Where a line that begins so is a command to the runner.
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name in ("KUBECONFIG", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("words", [*RUNS, *all_formats()], ids=" ".join)
def test_what_a_server_says(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = {"kind": "Status", "status": "Failure", "message": CANARY + SECRET, "reason": CANARY, "code": 403}
    phrase = CANARY.replace("\n", " ").replace("\r", " ").encode("utf-8").decode("latin-1")
    item = {"metadata": {"name": CANARY, "namespace": CANARY}, "spec": {"nodeName": CANARY, CANARY: CANARY}}
    said = (
        answer(status, "403 Forbidden", "Connection: close"),
        answer(b"<html>", "200 OK", "Connection: close"),
        f"HTTP/1.1 500 {phrase}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode("latin-1"),
        answer({"kind": CANARY, "metadata": {"continue": ""}, "items": [item]}, "200 OK", "Connection: close"),
        answer({"items": []}, "200 OK", f'Warning: 299 - "{phrase}"', "Connection: close"),
    )
    for one in said:
        for discovery in (False, True):

            def misbehave(sock: socket.socket, _: str, data: bytes = one) -> None:
                sock.sendall(data)

            server = HostileServer(misbehave, discovery=discovery)
            (tmp_path / "config").write_text(json.dumps(kubeconfig(server.url, {"token": SECRET})))
            try:
                checked([*words, "--kubeconfig", "config", "-v", "9"], capsys)
            finally:
                server.close()


def entries(**changed: Any) -> dict[str, Any]:
    config = kubeconfig("http://127.0.0.1:1", {"token": SECRET})
    for place, value in changed.items():
        section, _, key = place.partition("__")
        entry = config[f"{section}s"][0]
        if key == "name":
            entry["name"] = value
        else:
            entry[section][key] = value
    return config


@pytest.mark.parametrize(
    "config",
    [
        entries(cluster__server=f"http://x{CANARY}"),
        entries(cluster__server=f"{CANARY}://x"),
        entries(cluster__server=f"http://127.0.0.1:1/{CANARY}"),
        entries(cluster__server={CANARY: CANARY}),
        entries(cluster__name=CANARY),
        entries(user__name=CANARY),
        entries(context__name=CANARY),
        entries(context__cluster=CANARY),
        entries(context__user=CANARY),
        entries(context__namespace=CANARY),
        entries(**{"cluster__certificate-authority": CANARY}, cluster__server="https://127.0.0.1:1"),
        entries(**{"cluster__certificate-authority-data": CANARY}, cluster__server="https://127.0.0.1:1"),
        entries(**{"cluster__proxy-url": CANARY}),
        entries(**{"cluster__proxy-url": f"socks5://{SECRET}:{SECRET}@127.0.0.1:1"}),
        entries(**{"cluster__tls-server-name": CANARY}, cluster__server="https://127.0.0.1:1"),
        entries(**{"user__client-certificate": CANARY, "user__client-key": CANARY}, cluster__server="https://[::1]:1"),
        entries(user__token=f"{SECRET}{CANARY}"),
        entries(user__tokenFile=CANARY, user__token=""),
        entries(user__as=CANARY),
        entries(user__exec=CANARY, user__token=""),
        entries(user__exec={"command": CANARY, "apiVersion": CANARY}, user__token=""),
        entries(
            user__exec={"command": CANARY, "apiVersion": "client.authentication.k8s.io/v1", "installHint": CANARY},
            user__token="",
        ),
        entries(**{"user__auth-provider": {"name": CANARY, "config": {"id-token": SECRET}}}, user__token=""),
        {**entries(), "current-context": CANARY},
        {**entries(), "clusters": {CANARY: CANARY}},
        {**entries(), "users": [{CANARY: CANARY}]},
        {CANARY: CANARY},
    ],
    ids=str,
)
def test_what_a_kubeconfig_holds(config: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config").write_text(json.dumps(config))
    for words in (["devices"], ["explain", "-A", "-o", "json"], ["version"]):
        for more in ([], ["--context", CANARY], ["--cluster", CANARY], ["--user", CANARY]):
            checked([*words, *more, "--kubeconfig", "config"], capsys)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_plugin_says(code: int, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "plugin"
    # A credential that was read before, which the plugin says once more.
    conceal(SECRET)
    plugin.write_text(f"#!{sys.executable}\nimport sys\nsys.{stream}.write({CANARY + SECRET!r})\nsys.exit({code})\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    said = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
    (tmp_path / "config").write_text(json.dumps(kubeconfig("https://127.0.0.1:1", {"exec": said})))
    text = checked(["devices", "--kubeconfig", "config"], capsys)
    assert "credential plugin" in text


def test_a_file_name_with_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = CANARY.replace("/", "")
    (tmp_path / name).write_text("[")
    checked(["devices", "--kubeconfig", name], capsys)
    checked(["devices", "--kubeconfig", f"{name}x"], capsys)
    checked(["devices", "--snapshot", name], capsys)
