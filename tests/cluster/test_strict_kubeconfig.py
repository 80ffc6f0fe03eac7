"""What a kubeconfig may not do: hang, print a secret, run a program of the folder that one is in."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster import credential_plugins
from kubectl_dra.cluster.connection import ConnectionOptions, connect
from kubectl_dra.cluster.proxies import proxy_for
from kubectl_dra.errors import ClusterError
from tools.api_server import kubeconfig

TOKEN = "TOPSECRET-token-0123456789"
PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "plugin", "interactiveMode": "Never"}


def refusal(folder: Path, content: Any, **options: Any) -> str:
    path = folder / "config"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ClusterError) as caught:
        connect(ConnectionOptions(kubeconfig=str(path), **options))
    return str(caught.value)


@pytest.mark.parametrize("key", ["user", "cluster", "namespace"])
def test_no_value_is_printed(tmp_path: Path, key: str) -> None:
    config = kubeconfig("https://one", {"token": TOKEN})
    config["contexts"][0]["context"][key] = {"token": TOKEN}
    said = refusal(tmp_path, config)
    assert TOKEN not in said and f"$.{key}" in said


@pytest.mark.parametrize("key", ["token", "password", "client-key-data", "as", "tokenFile", "exec", "auth-provider"])
@pytest.mark.parametrize("value", [[TOKEN], {TOKEN: TOKEN}, {"name": [TOKEN]}])
def test_no_value_of_a_user_is_printed(tmp_path: Path, key: str, value: Any) -> None:
    assert TOKEN not in refusal(tmp_path, kubeconfig("https://one", {"token": "x", key: value}))


def test_an_alias_bomb(tmp_path: Path) -> None:
    names = "abcdefghij"
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise(names)]
    began = time.monotonic()
    assert "aliases" in refusal(tmp_path, "\n".join(("a: &a [x]", *lines)))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("path", [".:/usr/bin:/bin", ":/usr/bin:/bin", "/usr/bin::/bin", "/usr/bin:.", "sub:/bin"])
def test_no_plugin_of_the_current_folder_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    for folder in (tmp_path, tmp_path / "sub"):
        folder.mkdir(exist_ok=True)
        (folder / "plugin").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (folder / "plugin").chmod(0o755)
    said = refusal(tmp_path, kubeconfig("https://one", {"exec": PLUGIN}))
    assert "relative to the current directory" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("word", "host", "port", "spared"),
    [
        ("*.foo.com", "bar.foo.com", 443, True),
        ("*.foo.com", "foo.com", 443, False),
        ("foo.com:443", "bar.foo.com", 443, True),
        ("foo.com:444", "bar.foo.com", 443, False),
        (".foo.com", "foo.com", 443, False),
        (".foo.com", "bar.foo.com", 443, True),
        ("[fd00::1]:443", "fd00::1", 443, True),
        ("fd00::/8", "fd00::1", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("o.com", "foo.com", 443, False),
        ("a, *", "foo.com", 443, True),
        ("..", "foo.com", 443, False),
    ],
)
def test_whom_no_proxy_spares(monkeypatch: pytest.MonkeyPatch, word: str, host: str, port: int, spared: bool) -> None:
    for name in ("https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", word)
    assert proxy_for("", "https", host, port) == ("" if spared else "http://proxy:3128")


def test_what_a_plugin_says_is_heard_without_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(credential_plugins, "listeners", [heard.append])
    answer = {"apiVersion": PLUGIN["apiVersion"], "kind": "ExecCredential", "status": {"token": TOKEN}}
    (tmp_path / "plugin").write_text(f"#!/bin/sh\necho renewed >&2; echo '{json.dumps(answer)}'\n")
    (tmp_path / "plugin").chmod(0o755)
    config = kubeconfig("https://one", {"exec": {**PLUGIN, "command": "./plugin"}})
    (tmp_path / "config").write_text(json.dumps(config))
    assert connect(ConnectionOptions(kubeconfig=str(tmp_path / "config"))).authorization() == f"Bearer {TOKEN}"
    assert heard == ["renewed"]
