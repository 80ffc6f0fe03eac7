"""A case as kubectl, this program and the package ``kubernetes`` answer it: what each sends, or that it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct

from kubectl_dra.cluster.client import Client
from kubectl_dra.cluster.connection import ConnectionOptions, connect
from kubectl_dra.errors import ClusterError
from tools.kubeconfigs.cases import Case
from tools.kubeconfigs.lab import Lab, environment

_PATH: Final = "/probe"
_ACCOUNT: Final = "/run/secrets/kubernetes.io/serviceaccount"
_IN_A_POD: Final = f'mount -t tmpfs tmpfs /run && mkdir -p {_ACCOUNT} && cp pod/* {_ACCOUNT} && exec "$@"'
"""In a mount namespace of its own."""
_SECONDS: Final = 10.0


class Outcome(Struct, frozen=True):
    """``seen``: what servers, proxies and plugins saw, empty where the client ``refuses``; ``said`` is its message."""

    refuses: bool
    seen: tuple[dict[str, Any], ...] = ()
    said: str = ""


def lay_out(lab: Lab, case: Case) -> None:
    """Write the files of a case."""
    texts = {name: text if isinstance(text, str) else json.dumps(text) for name, text in case.files.items()}
    pod = {f"pod/{name}": text for name, text in case.pod.items()}
    lab.lay_out({**texts, **case.beside, **pod})


def _outcome(lab: Lab, said: str) -> Outcome:
    seen = tuple(lab.taken())
    answered = any(str(event.get("target", "")).lstrip("GET ").endswith(_PATH) for event in seen)
    return Outcome(not answered, seen if answered else (), " ".join(str(lab.marked(said)).split())[:300])


def _config(case: Case) -> str:
    return "@dir@/case/config" if "config" in case.files and "KUBECONFIG" not in case.variables else ""


def kubectl(lab: Lab, case: Case, program: str) -> Outcome:
    """What kubectl does."""
    words = [program, "get", "--raw", _PATH]
    named = {"kubeconfig": _config(case), **case.flags}
    for flag, value in named.items():
        words += [f"--{flag}={lab.filled(part)}" for part in (value if isinstance(value, list) else [value]) if part]
    if case.pod:
        words = ["unshare", "--mount", "sh", "-c", _IN_A_POD, "sh", *words]
    with environment(lab, case.variables):
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return _outcome(lab, ran.stderr)


def ours(lab: Lab, case: Case) -> Outcome:
    """What this program does, in this process."""
    flags: dict[str, Any] = {"kubeconfig": _config(case), **case.flags}
    given = {_OPTIONS.get(name, name.replace("-", "_")): lab.filled(value) for name, value in flags.items()}
    for name, read in (("as_groups", tuple), ("insecure_skip_tls_verify", bool), ("request_timeout", _seconds)):
        if name in given:
            given[name] = read(given[name])
    given.setdefault("request_timeout", _SECONDS)
    said = ""
    with environment(lab, case.variables), patch("kubectl_dra.cluster.connection._SERVICE_ACCOUNT", lab.folder / "pod"):
        try:
            connection = connect(ConnectionOptions(**given))
            Client(connection, given["request_timeout"], sleep=lambda _: None).get(_PATH)
        except ClusterError as error:
            said = str(error)
    return _outcome(lab, said)


_OPTIONS: Final = {"as": "as_user", "as-group": "as_groups"}


def _seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def package(lab: Lab, case: Case) -> Outcome | None:
    """What the package ``kubernetes`` does, in a process of its own; None where it cannot be told the flags."""
    if set(case.flags) - {"kubeconfig", "context", "request-timeout"}:
        return None
    given = {"config_file": lab.filled(case.flags.get("kubeconfig") or _config(case)) or None}
    given["context"] = case.flags.get("context")
    words = [sys.executable, "-c", _PACKAGE, json.dumps(given), str(lab.folder / "pod")]
    with environment(lab, case.variables):
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return _outcome(lab, ran.stderr[-300:])


_PACKAGE: Final = f"""
import json, sys
from kubernetes import client, config
from kubernetes.config import incluster_config as pod
for name, file in (("SERVICE_TOKEN_FILENAME", "token"), ("SERVICE_CERT_FILENAME", "ca.crt")):
    setattr(pod, name, sys.argv[2] + "/" + file)
config.load_config(**{{key: value for key, value in json.loads(sys.argv[1]).items() if value}})
client.ApiClient().call_api("{_PATH}", "GET", auth_settings=["BearerToken"], _request_timeout=2)
"""


def version(program: str) -> str:
    """Of kubectl."""
    words = [program, "version", "--client", "-o", "json"]
    ran = subprocess.run(
        words, capture_output=True, text=True, check=True, env={**os.environ, "KUBECONFIG": os.devnull}
    )
    found: str = json.loads(ran.stdout)["clientVersion"]["gitVersion"]
    return found
