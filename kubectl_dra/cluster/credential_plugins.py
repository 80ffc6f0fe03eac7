"""Credentials from elsewhere: a program that the kubeconfig names, with limits, or its auth-provider ``oidc``."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final, NamedTuple

from msgspec import to_builtins

from kubectl_dra.cluster.kubeconfig import ClusterEntry, ExecPlugin, UserEntry
from kubectl_dra.cluster.time_read import parse
from kubectl_dra.errors import ClusterError
from kubectl_dra.safe_output import conceal

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_CLUSTER_EXTENSION: Final = "client.authentication.k8s.io/exec"
_LARGEST_OUTPUT: Final = 1 << 20
_INTERACTIVE_SECONDS: Final = 300.0
"""A person may have to log in."""
_SECRET: Final = re.compile(r"[A-Za-z0-9_\-.+/=]{32,}")


listeners: Final[list[Callable[[str], None]]] = []
"""Called with what a plugin that works says on standard error. The command line adds one."""


class ExecCredential(NamedTuple):
    """The result of a plugin; absent fields are empty. ``expires`` is in seconds since the epoch, None for never."""

    token: str
    certificate: str
    key: str
    expires: float | None


def run_plugin(plugin: ExecPlugin, cluster: ClusterEntry, seconds: float | None) -> ExecCredential:
    """Run the plugin of a kubeconfig's user for at most ``seconds``; None sets no limit.

    What it says on standard error goes to ``listeners``: kubectl shows it, too.

    Raises:
        ClusterError: the plugin cannot be started, fails, takes too long, or does not return a credential.
    """
    command, version = plugin.command, plugin.api_version
    if version not in _VERSIONS:
        raise _failed(command, f"its apiVersion must be {' or '.join(_VERSIONS)}")
    interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not interactive:
        raise _failed(command, "it needs a terminal, but standard input is not one")
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, **{variable.name: variable.value for variable in plugin.env}}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(info)
    if interactive and seconds is not None:
        seconds = max(seconds, _INTERACTIVE_SECONDS)
    try:
        output, said = _output(_program(command), [command, *plugin.args], environment, seconds, interactive)
    except (OSError, ValueError) as error:
        hint = " ".join(plugin.install_hint.split())
        reason = getattr(error, "strerror", None) or str(error)
        raise _failed(command, f"{reason}; {hint}" if hint else reason) from None
    credential = _read(output, command, version)
    for secret in (credential.token, credential.key):
        conceal(secret)
    if said.strip():
        for listener in listeners:
            listener(said.rstrip("\n"))
    return credential


def _program(command: str) -> str:
    """The path of a program that is looked for in ``PATH``.

    One in a folder without an absolute name is refused: it may belong to the repository that one happens to be in.

    Raises:
        OSError: there is none.
    """
    if "/" in command:
        return command
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder or ".") / command
        if path.is_file() and os.access(path, os.X_OK):
            if not path.is_absolute():
                raise OSError(errno.ENOENT, f"PATH finds it in {folder or '.'}, relative to the current directory")
            return str(path)
    raise FileNotFoundError(
        errno.ENOENT, "PATH has no such program: install it, or write where it is in the kubeconfig"
    )


def _output(
    program: str, words: list[str], environment: Mapping[str, str], seconds: float | None, interactive: bool
) -> tuple[bytes, str]:
    """What the program writes to standard output and standard error. Raises OSError, ClusterError."""
    process = subprocess.Popen(
        words,
        executable=program,
        env=environment,
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        # Where somebody sees it, it may ask for a log-in.
        stderr=None if interactive else subprocess.PIPE,
    )
    texts: dict[str, bytes] = {}
    readers = [
        Thread(target=_drain, args=(texts, name, stream, process), daemon=True)
        for name, stream in (("out", process.stdout), ("err", process.stderr))
        if stream is not None
    ]
    end = None if seconds is None else time.monotonic() + seconds
    try:
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if end is None else max(end - time.monotonic(), 0))
        code = process.wait(None if end is None else max(end - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        raise _failed(words[0], f"it did not answer within {seconds:g} s; give --request-timeout") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if any(len(text) > _LARGEST_OUTPUT for text in texts.values()):
        raise _failed(words[0], f"it writes more than {_LARGEST_OUTPUT >> 20} MB")
    said = texts.get("err", b"").decode(errors="replace")
    if code:
        raise _failed(words[0], f"process returned {code}. {said}" if said.strip() else f"process returned {code}")
    return texts.get("out", b""), said


def _drain(texts: dict[str, bytes], name: str, stream: IO[bytes], process: subprocess.Popen[bytes]) -> None:
    """Read a stream to its end. A program that writes too much is killed."""
    text = texts[name] = stream.read(_LARGEST_OUTPUT + 1)
    if len(text) > _LARGEST_OUTPUT:
        process.kill()


def _read(output: bytes, command: str, version: str) -> ExecCredential:
    try:
        answer = json.loads(output)
    except ValueError:
        raise _failed(command, "failed to decode process output: it is not JSON") from None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise _failed(command, "malformed response: not an ExecCredential")
    if answer.get("apiVersion") != version:
        raise _failed(command, f"malformed response: its apiVersion is not {version}")
    status = answer.get("status")
    texts = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
    if not isinstance(status, dict) or not all(isinstance(status.get(name) or "", str) for name in texts):
        raise _failed(command, "malformed response: no status with a token or a certificate")
    token, certificate, key, expires = (str(status.get(name) or "") for name in texts)
    if bool(certificate) != bool(key) or not (token or certificate):
        raise _failed(command, "malformed response: it has neither a token nor a certificate with its key")
    return ExecCredential(token, certificate, key, _moment(expires, command))


def _moment(text: str, command: str) -> float | None:
    if not text:
        return None
    moment = parse(text)
    if moment is None:
        raise _failed(command, "malformed response: its expirationTimestamp is not a time such as 2030-01-02T03:04:05Z")
    return moment.timestamp()


def _cluster_info(cluster: ClusterEntry) -> dict[str, Any]:
    """The cluster as the plugin's API has it: with the authority itself, where the kubeconfig names a file."""
    authority = cluster.certificate_authority_data
    if cluster.certificate_authority:
        authority = Path(cluster.certificate_authority).read_bytes()
    configs = (extension.extension for extension in cluster.extensions if extension.name == _CLUSTER_EXTENSION)
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
    }
    return {name: value for name, value in info.items() if value} | {"config": next(configs, None)}


def _failed(command: str, reason: str) -> ClusterError:
    """The error in one line, without anything that may be a token."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in reason).split())
    line = _SECRET.sub("…", line)
    line = line if len(line) <= 300 else f"{line[:297]}..."
    return ClusterError(f"the credential plugin {command} of the kubeconfig failed: {line}")


def authorization(cluster: ClusterEntry, user: UserEntry) -> Callable[[], str]:
    """What gives the header of a user with an auth-provider. Raises ClusterError: it gets no credentials."""
    from kubernetes import client
    from kubernetes import config as loaders

    # Untyped in the package.
    load: Any = loaders
    untyped: Any = client
    configuration = untyped.Configuration()
    whole = {
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": to_builtins(cluster)}],
        "users": [{"name": "x", "user": {"auth-provider": to_builtins(user.auth_provider)}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    try:
        load.load_kube_config_from_dict(whole, client_configuration=configuration, persist_config=False)
    except Exception as error:
        # Whatever it raises may hold secrets.
        raise ClusterError(f"the kubeconfig's auth-provider gave no credentials ({type(error).__name__})") from None

    def header() -> str:
        for setting in configuration.auth_settings().values():
            if setting["in"] == "header" and setting["key"] == "authorization" and setting["value"]:
                return str(setting["value"]).strip()
        return ""

    return header
