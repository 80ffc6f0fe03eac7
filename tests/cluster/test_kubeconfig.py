from __future__ import annotations

import json
import os
import ssl
import stat
import threading
import time
from base64 import urlsafe_b64encode
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster import contents, credential_plugins
from kubectl_dra.cluster.connection import Connection, ConnectionOptions, connect
from kubectl_dra.cluster.proxies import proxy_for
from kubectl_dra.errors import ClusterError
from tools.api_server import kubeconfig

PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def _write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def _host(connection: Connection) -> str:
    return connection.server


def _token(connection: Connection) -> str:
    return connection.authorization()


def test_home_and_flags(tmp_path: Path) -> None:
    _write(tmp_path / "home" / ".kube" / "config", kubeconfig("https://one", {"token": "t"}))
    found = connect(ConnectionOptions())
    assert (_host(found), found.context, found.namespace, _token(found)) == ("https://one", "test", "team", "Bearer t")
    found = connect(ConnectionOptions(server="https://two/", namespace="mine", token="x"))
    assert (_host(found), found.namespace, _token(found)) == ("https://two", "mine", "Bearer x")
    flags = ConnectionOptions(insecure_skip_tls_verify=True, tls_server_name="name")
    endpoint = connect(flags).endpoint
    assert endpoint.tls is not None and endpoint.tls.verify_mode is ssl.CERT_NONE
    assert endpoint.tls_name == "name"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (ConnectionOptions(), "mine"),
        (ConnectionOptions(tls_server_name="other"), "other"),
        (ConnectionOptions(insecure_skip_tls_verify=True), "mine"),
        (ConnectionOptions(server="https://two"), ""),
        (ConnectionOptions(server="https://two", tls_server_name="other"), "other"),
    ],
)
def test_the_name_of_the_certificate_goes_with_the_server(
    flags: ConnectionOptions, expected: str, tmp_path: Path
) -> None:
    config = kubeconfig("https://one", {"token": "t"})
    config["clusters"][0]["cluster"]["tls-server-name"] = "mine"
    _write(tmp_path / "home" / ".kube" / "config", config)
    assert connect(flags).endpoint.tls_name == expected


def test_several_files_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = kubeconfig("https://one", {"token": "1"}, name="first")
    two = kubeconfig("https://two", {"token": "2"}, name="second")
    two["clusters"].append({"name": "d", "cluster": {"server": "https://three"}})
    two["users"].append({"name": "v", "user": {"token": "3"}})
    files = [_write(tmp_path / "1", one), str(tmp_path / "none"), _write(tmp_path / "2", two)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(files))
    found = connect(ConnectionOptions())
    assert (found.context, _host(found), _token(found)) == ("first", "https://one", "Bearer 1")
    # Both files have cluster c and user u: those of the first count.
    assert _host(connect(ConnectionOptions(context="second"))) == "https://one"
    found = connect(ConnectionOptions(cluster="d", user="v"))
    assert (_host(found), _token(found)) == ("https://three", "Bearer 3")


def test_paths_count_from_their_file(tmp_path: Path) -> None:
    _write(tmp_path / "sub" / "token", "from-file")
    config = _write(tmp_path / "sub" / "config", kubeconfig("https://one", {"tokenFile": "token"}))
    assert _token(connect(ConnectionOptions(kubeconfig=config))) == "Bearer from-file"


def test_impersonation_of_the_kubeconfig(tmp_path: Path) -> None:
    user = {"token": "t", "as": "jane", "as-groups": ["dev"]}
    config = _write(tmp_path / "config", kubeconfig("https://one", user))
    headers = connect(ConnectionOptions(kubeconfig=config)).impersonation
    assert headers == (("Impersonate-User", "jane"), ("Impersonate-Group", "dev"))
    flagged = connect(ConnectionOptions(kubeconfig=config, as_user="joe", as_groups=("ops",)))
    assert flagged.impersonation == (("Impersonate-User", "joe"), ("Impersonate-Group", "ops"))


def test_exec_plugin(tmp_path: Path) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "made"},
    }
    plugin = tmp_path / "plugin"
    _write(plugin, f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {**PLUGIN, "command": "./plugin"}}
    config = _write(tmp_path / "config", kubeconfig("https://one", user))
    assert _token(connect(ConnectionOptions(kubeconfig=config))) == "Bearer made"


@pytest.mark.parametrize(
    ("command", "args", "reason"),
    [
        ("no-such-plugin", [], "PATH has no such program: install it, or write where it is in the kubeconfig"),
        ("sh", ["-c", "echo 'log in first' >&2; exit 3"], "process returned 3. log in first"),
        ("echo", ["hello"], "failed to decode process output"),
        ("echo", ["{}"], "malformed response"),
    ],
)
def test_exec_plugin_that_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str, args: list[str], reason: str
) -> None:
    user = {"exec": {**PLUGIN, "command": command, "args": args}}
    config = _write(tmp_path / "config", kubeconfig("https://one", user))
    with pytest.raises(ClusterError) as caught:
        connect(ConnectionOptions(kubeconfig=config))
    assert str(caught.value).startswith(f"the credential plugin {command} of the kubeconfig failed: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "the kubeconfig has no current context"),
        ("a: [", {}, "config:1"),
        ("- a", {}, "config: not a kubeconfig"),
        ("contexts: x", {}, "the kubeconfig's contexts must be a list"),
        (b"a: \xff", {}, "config: not a text file"),
        (r'a: ["\ud800"]', {}, "not valid YAML: found invalid Unicode character escape"),
        (r'{"b\udfff": 1}', {}, "an escape of half a character"),
        (kubeconfig("https://one", {"tokenFile": "a\0b"}), {}, "the token cannot be read: not a file name"),
        (
            kubeconfig("https://one", {"as": "jane", "as-groups": 5}),
            {},
            "Expected `array`, got `int` - at `$.as-groups`",
        ),
        ("contexts: [1]", {}, "an entry of the kubeconfig's contexts has no name"),
        ("contexts: [{name: a, context: 1}]", {}, "contexts entry a of the kubeconfig is broken"),
        (kubeconfig("https://one", {}, name="prod"), {"context": "prdo"}, 'has no context "prdo"; there is prod'),
        (kubeconfig("https://one", {}), {"cluster": "x"}, 'has no cluster "x"; there is c'),
        (kubeconfig("https://one", {}), {"user": "x"}, 'has no user "x"; there is u'),
        (kubeconfig("", {}), {}, 'the cluster of context "test" has no server'),
        (kubeconfig("https://one", {}), {"as_groups": ("g",)}, "--as-group and --as-uid need --as"),
        (
            kubeconfig("https://one", {"client-certificate": "none", "client-key": "none"}),
            {},
            "there is no such file",
        ),
        (kubeconfig("https://one", {}, **{"certificate-authority": "x"}), {}, 'context "test" cannot be used'),
    ],
)
def test_broken_kubeconfigs(tmp_path: Path, content: Any, options: dict[str, Any], message: str) -> None:
    config = _write(tmp_path / "config", content)
    with pytest.raises(ClusterError) as caught:
        connect(ConnectionOptions(kubeconfig=config, **options))
    assert message in str(caught.value)


def test_no_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match=r"there is no kubeconfig at ~/.kube/config: name one with --kubeconfig"):
        connect(ConnectionOptions())
    with pytest.raises(ClusterError, match="none: there is no such kubeconfig"):
        connect(ConnectionOptions(kubeconfig=str(tmp_path / "none")))
    with pytest.raises(ClusterError, match="the kubeconfig cannot be read: Is a directory"):
        connect(ConnectionOptions(kubeconfig=str(tmp_path)))
    assert _host(connect(ConnectionOptions(server="127.0.0.1:8080"))) == "http://127.0.0.1:8080"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ClusterError, match="there is no kubeconfig at"):
        connect(ConnectionOptions())


def test_an_auth_provider(tmp_path: Path) -> None:
    """Its token comes from the package ``kubernetes``."""
    words = (b'{"alg":"none"}', b'{"exp":99999999999}', b"x")
    token = ".".join(urlsafe_b64encode(word).decode().rstrip("=") for word in words)
    provider = {"name": "oidc", "config": {"id-token": token, "client-id": "x", "idp-issuer-url": "https://x"}}
    _write(tmp_path / "home" / ".kube" / "config", kubeconfig("https://one", {"auth-provider": provider}))
    assert _token(connect(ConnectionOptions())) == f"Bearer {token}"


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that is run with any uid."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)
    with pytest.raises(ClusterError, match=r"there is no kubeconfig at ~/.kube/config: name one with --kubeconfig"):
        connect(ConnectionOptions())


def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(json.dumps(kubeconfig("https://one", {}))))
    writer.start()
    assert _host(connect(ConnectionOptions(kubeconfig=str(pipe)))) == "https://one"
    writer.join()
    monkeypatch.setattr(contents, "PIPE_SECONDS", 0.2)
    with pytest.raises(ClusterError, match=r"pipe: nothing was written into this pipe for 0.2 s"):
        connect(ConnectionOptions(kubeconfig=str(pipe)))
    config = _write(tmp_path / "config", kubeconfig("https://one", {"tokenFile": str(pipe)}))
    with pytest.raises(ClusterError, match=r"pipe: nothing was written into this pipe for 0.2 s"):
        connect(ConnectionOptions(kubeconfig=config))
    ends: list[tuple[dict[str, str], dict[str, str]]] = [
        ({"certificate-authority": str(pipe)}, {}),
        ({}, {"client-certificate": str(pipe), "client-key": str(pipe)}),
    ]
    for cluster, user in ends:
        config = _write(tmp_path / "config", kubeconfig("https://one", user, **cluster))
        with pytest.raises(ClusterError, match="pipe: is a pipe, not a file"):
            connect(ConnectionOptions(kubeconfig=config))


# What a kubeconfig may not do: hang, print a secret, run a program of the folder that one is in.


TOKEN = "TOPSECRET-token-0123456789"


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
    said = refusal(tmp_path, kubeconfig("https://one", {"exec": {**PLUGIN, "command": "plugin"}}))
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
