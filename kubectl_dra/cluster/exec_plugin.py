"""Credentials from a program named in the kubeconfig, with limits on time and size."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from threading import Thread
from typing import IO, Any, Final, NamedTuple

from kubectl_dra.errors import ClusterError

_GROUP: Final = "client.authentication.k8s.io/"
_CLUSTER_EXTENSION: Final = "client.authentication.k8s.io/exec"
_LARGEST_OUTPUT: Final = 1 << 20
_INTERACTIVE_SECONDS: Final = 300.0
"""A person may have to log in."""
_SECRET: Final = re.compile(r"[A-Za-z0-9_\-.+/=]{32,}")


class ExecCredential(NamedTuple):
    """The result of a plugin; absent fields are empty. ``expires`` is in seconds since the epoch, None for never."""

    token: str
    certificate: str
    key: str
    expires: float | None


def run_plugin(plugin: Mapping[str, Any], cluster: Mapping[str, Any], seconds: float | None) -> ExecCredential:
    """Run the plugin of a kubeconfig's user for at most ``seconds``; None sets no limit.

    Raises:
        ClusterError: the plugin cannot be started, fails, takes too long, or does not return a credential.
    """
    command, version = plugin.get("command"), plugin.get("apiVersion")
    if not isinstance(command, str) or not command:
        raise ClusterError("the kubeconfig's user has an exec without a command")
    if not isinstance(version, str) or not version.startswith(_GROUP):
        raise _failed(command, f"its apiVersion must be one of {_GROUP.rstrip('/')}")
    interactive = plugin.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.get("interactiveMode") == "Always" and not interactive:
        raise _failed(command, "it needs a terminal, but standard input is not one")
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _cluster_info(cluster)
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    for entry in _list(plugin, "env", command):
        if isinstance(entry, dict):
            environment[str(entry.get("name") or "")] = str(entry.get("value") or "")
    environment.pop("", None)
    words = [command, *map(str, _list(plugin, "args", command))]
    if interactive and seconds is not None:
        seconds = max(seconds, _INTERACTIVE_SECONDS)
    try:
        output = _output(words, environment, seconds, interactive=interactive)
    except (OSError, ValueError) as error:
        hint = " ".join(str(plugin.get("installHint") or "").split())
        reason = getattr(error, "strerror", None) or str(error)
        raise _failed(command, f"{reason}; {hint}" if hint else reason) from None
    return _read(output, command, version)


def _output(words: list[str], environment: Mapping[str, str], seconds: float | None, *, interactive: bool) -> bytes:
    """The program's standard output. Raises OSError, ClusterError."""
    process = subprocess.Popen(
        words,
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
    if code:
        said = texts.get("err", b"").decode(errors="replace")
        raise _failed(words[0], f"process returned {code}. {said}" if said.strip() else f"process returned {code}")
    return texts.get("out", b"")


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
    if not token and not (certificate and key):
        raise _failed(command, "malformed response: it has neither a token nor a certificate with its key")
    return ExecCredential(token, certificate, key, _moment(expires))


def _moment(text: str) -> float | None:
    if not text:
        return None
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority-data",
        "proxy-url",
        "disable-compression",
    )
    out = {name: cluster[name] for name in names if cluster.get(name)}
    for entry in cluster.get("extensions") or ():
        if isinstance(entry, dict) and entry.get("name") == _CLUSTER_EXTENSION:
            out["config"] = entry.get("extension")
    return out


def _list(plugin: Mapping[str, Any], name: str, command: str) -> list[Any]:
    found = plugin.get(name) or []
    if not isinstance(found, list):
        raise _failed(command, f"{name} of the kubeconfig's exec must be a list")
    return found


def _failed(command: str, reason: str) -> ClusterError:
    """The error in one line, without anything that may be a token."""
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in reason).split())
    line = _SECRET.sub("…", line)
    line = line if len(line) <= 300 else f"{line[:297]}..."
    return ClusterError(f"the credential plugin {command} of the kubeconfig failed: {line}")
