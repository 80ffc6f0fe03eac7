"""One run on a live cluster: an example served with mutated answers, through a mutated kubeconfig."""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from kubectl_dra.api.releases import PLURALS
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from tools.api_server import kubeconfig
from tools.command_runs import FORMATS, POD, RUNS, codes
from tools.fuzz.examples import Example, examples
from tools.fuzz.judged import judged
from tools.fuzz.mutations import VALUES, mutated
from tools.hostile_server import DISCOVERY, HostileServer, answer

SECONDS: Final = 10.0
"""For a whole command: several requests, each with the time-out."""
TIME_OUT: Final = "1s"
SECRET: Final = "a-very-secret-token-0123456789"
_PLURALS: Final = {**PLURALS, **{kind: known.plural for kind, known in SCHEDULING_KINDS.items()}}
_BY_PLURAL: Final = {plural: kind for kind, plural in _PLURALS.items()} | {
    f"{kind.lower()}s": kind
    for kind in ("Pod", "Node", "Namespace", "ResourceQuota", "Event", "Deployment", "DaemonSet", "Job")
}
_PLUGIN: Final = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": SECRET, "expirationTimestamp": "2036-01-01T00:00:00Z"},
}
_STATUSES: Final = (
    "201 Created", "204 No Content", "301 Moved", "400 Bad", "401 Unauthorized", "403 Forbidden", "404 Not Found",
    "409 Conflict", "410 Gone", "422 Invalid", "429 Many", "500 Error", "503 Busy", "999 ?",
)  # fmt: skip
_HEADERS: Final = (
    "Retry-After: 1", "Retry-After: 1e400", "Retry-After: -5", "Content-Encoding: gzip", "Content-Type: text/html",
    "Transfer-Encoding: chunked", "Location: http://127.0.0.1:1/", "Warning: 299 - \"\x1b[2J\"", "Content-Length: 7",
    "Content-Encoding: identity", "Date: never", "X: " + "y" * 70_000,
)  # fmt: skip


class Served:
    """Answers for an example as an API server has them, some of them changed; the same ones for the same seed."""

    def __init__(self, items: Sequence[Any], seed: int) -> None:
        self._items = items
        self._seed = seed
        self._often = random.Random(seed).choice((0.0, 0.1, 0.3, 1.0))
        self._times: dict[str, int] = {}
        self._lock = Lock()

    def misbehave(self, sock: socket.socket, path: str) -> None:
        with self._lock:
            self._times[path] = time = self._times.get(path, 0) + 1
        chance = random.Random(f"{self._seed} {path} {time}")
        code, body = self._good(path)
        sock.sendall(self._changed(code, body, chance) if chance.random() < self._often else _sent(code, body))

    def _good(self, path: str) -> tuple[str, Any]:
        if path in DISCOVERY:
            return "200 OK", DISCOVERY[path]
        parts = path.strip("/").split("/")[2 if path.startswith("/api/") else 3 :]
        namespace = ""
        if len(parts) > 2 and parts[0] == "namespaces":
            namespace, parts = parts[1], parts[2:]
        kind = _BY_PLURAL.get(parts[0]) if parts else None
        found = [
            item
            for item in self._items
            if item["kind"] == kind and (not namespace or item["metadata"].get("namespace", "default") == namespace)
        ]
        if kind is not None and len(parts) == 1:
            meta = {"resourceVersion": "7"}
            return "200 OK", {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": found}
        for item in found:
            if parts[1:] == [item["metadata"]["name"]]:
                return "200 OK", item
        missing = {"kind": "Status", "status": "Failure", "message": "not found", "reason": "NotFound", "code": 404}
        return "404 Not Found", missing

    def _changed(self, code: str, body: Any, chance: random.Random) -> bytes:
        kind = chance.randrange(8)
        if kind == 0:
            whole = _sent(code, body)
            return whole[: chance.randrange(len(whole))]
        if kind == 1:
            data = json.dumps(body).encode()
            return _sent(code, data[: chance.randrange(len(data))])
        if kind == 2:
            spoiled = bytearray(json.dumps(body).encode())
            for _ in range(chance.choice((1, 3, 30))):
                spoiled[chance.randrange(len(spoiled))] = chance.choice((0, 10, 27, 34, 44, 92, 123, 127, 128, 255))
            return _sent(code, bytes(spoiled))
        if kind == 3:
            return _sent(chance.choice(_STATUSES), mutated([body], chance))
        if kind == 4:
            return _sent(code, body, chance.choice(_HEADERS))
        if kind == 5:
            # The frame of a list rather than what is in it.
            frame = {key: value for key, value in body.items() if key != "items"}
            changed = mutated([{**frame, "items": []} if "items" in body else frame], chance)
            return _sent(code, changed[0] if changed else None)
        changed = mutated([body], chance)
        return _sent(code, changed[0] if changed else None)


def _sent(status: str, body: Any, *headers: str) -> bytes:
    return answer(body, status, "Connection: close", *headers)


def served_once(seed: int, folder: Path) -> str:
    """What goes wrong in the run of this number; empty if nothing does. The kubeconfig of a failure is kept."""
    chance = random.Random(seed)
    example = chance.choice(examples())
    server = HostileServer(Served(example.items, seed).misbehave, discovery=False)
    config = folder / f"{seed}.kubeconfig"
    config.write_bytes(_config(server.url, folder, chance))
    words = _words(example, folder, chance)
    if "--output-dir" in words:
        words[words.index("--output-dir") + 1] = str(folder / f"{seed}.out")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        os.environ.pop(name, None)
    began = time.monotonic()
    try:
        failure = judged([*words, "--kubeconfig", str(config), "--request-timeout", TIME_OUT], codes(words[0]), SECRET)
    finally:
        server.close()
    took = time.monotonic() - began
    failure = failure or (f"{took:.1f} s" if took > SECONDS else "")
    if not failure:
        config.unlink()
        return ""
    return f"seed {seed}: {' '.join(words)}: {failure}"


def _words(example: Example, folder: Path, chance: random.Random) -> list[str]:
    words = list(chance.choice(RUNS))
    (folder / "pod.yaml").write_text(POD)
    devices = [
        f"{item['spec']['nodeName']}/{device['name']}"
        for item in example.items
        if item["kind"] == "ResourceSlice" and item["spec"].get("nodeName")
        for device in item["spec"].get("devices") or ()
    ]
    known = {"pod.yaml": str(folder / "pod.yaml"), "n/d": chance.choice(devices) if devices else "n/d"}
    out = [known.get(word, word) for word in words]
    if words[:2] == ["explain", "pod/a"]:
        out = ["explain", *example.target]
    forms = FORMATS.get(words[0], ())
    if forms and "plan" not in words and chance.random() < 0.6:
        out += ["-o", chance.choice(forms)]
    return out


def _config(url: str, folder: Path, chance: random.Random) -> bytes:
    token = folder / "token"
    token.write_text(f"{SECRET}\n")
    program = f"import sys; sys.stdout.write({json.dumps(_PLUGIN)!r})"
    plugin: dict[str, Any] = {
        "apiVersion": _PLUGIN["apiVersion"],
        "command": sys.executable,
        "args": ["-c", program],
        "env": [],
    }
    plugin |= {"interactiveMode": "IfAvailable", "provideClusterInfo": False, "installHint": "none"}
    users = (
        {"token": SECRET},
        {"token": SECRET},
        {"tokenFile": str(token)},
        {"username": "jane", "password": SECRET},
        {"exec": plugin},
        {"auth-provider": {"name": "oidc", "config": {"id-token": SECRET}}},
        {"token": SECRET, "as": "jane", "as-groups": ["a"], "as-user-extra": {"x": ["y"]}},
        {"client-certificate-data": "eA==", "client-key-data": "eA=="},
    )
    more: tuple[dict[str, Any], ...] = (
        {},
        {},
        {"insecure-skip-tls-verify": True},
        {"tls-server-name": "x"},
        {"proxy-url": "socks5://127.0.0.1:1"},
    )
    config: Any = kubeconfig(url, chance.choice(users), **chance.choice(more))
    kind = chance.randrange(6)
    if kind == 0:
        config = (mutated([config], chance) or [None])[0]
    elif kind == 1:
        # Where it matters most: all that a connection is made of.
        section = chance.choice(("clusters", "users", "contexts"))
        inner = config[section][0][section.removesuffix("s")]
        inner[chance.choice([*inner])] = chance.choice(VALUES)
    data = json.dumps(config).encode()
    if kind == 2:
        changed = bytearray(data)
        for _ in range(chance.choice((1, 2, 5))):
            changed[chance.randrange(len(changed))] = chance.choice(b"\x00\n\x1b:#&*{}[]\"'\\\x7f\xff\t -")
        return bytes(changed[: chance.choice((len(changed), chance.randrange(len(changed))))])
    return data
