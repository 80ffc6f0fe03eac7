"""One run on a live cluster: an example is served, and some of the answers are not as they should be."""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any, Final

from kubectl_dra.api.releases import PLURALS
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from tools.api_server import kubeconfig
from tools.command_runs import FORMATS, POD, RUNS, codes
from tools.fuzz.examples import Example, examples, object_pool
from tools.fuzz.judged import Outcome, judged
from tools.fuzz.mutations import mutated
from tools.hostile_server import DISCOVERY, HostileServer, answer

SECONDS: Final = 60.0
"""For a whole command: several requests, each with the time-out, on a machine that does much else."""
TIME_OUT: Final = "1s"
SECRET: Final = "a-very-secret-token-0123456789"
_PLURALS: Final = {**PLURALS, **{kind: known.plural for kind, known in SCHEDULING_KINDS.items()}}
_BY_PLURAL: Final = {plural: kind for kind, plural in _PLURALS.items()} | {
    f"{kind.lower()}s": kind
    for kind in ("Pod", "Node", "Namespace", "ResourceQuota", "Event", "Deployment", "DaemonSet", "Job")
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
    """Answers for an example as an API server has them, some of them changed; the same ones for the same seed.

    None of them is where the seed is negative.
    """

    def __init__(self, items: Sequence[Any], seed: int) -> None:
        self._items = items
        self._seed = seed
        self._often = random.Random(seed).choice((0.02, 0.05, 0.1, 1.0)) if seed >= 0 else 0.0
        self._times: dict[str, int] = {}
        self._lock = Lock()

    def misbehave(self, sock: socket.socket, path: str) -> None:
        with self._lock:
            self._times[path] = time = self._times.get(path, 0) + 1
        chance = random.Random(f"{self._seed} {path} {time}")
        code, body = self._good(path)
        sock.sendall(self._changed(code, body, chance) if chance.random() < self._often else sent(code, body))

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
        kind = chance.randrange(20)
        if kind == 0:
            whole = sent(code, body)
            return whole[: chance.randrange(len(whole))]
        if kind == 1:
            data = json.dumps(body).encode()
            return sent(code, data[: chance.randrange(len(data))])
        if kind == 2:
            spoiled = bytearray(json.dumps(body).encode())
            for _ in range(chance.choice((1, 3, 30))):
                spoiled[chance.randrange(len(spoiled))] = chance.choice((0, 10, 27, 34, 44, 92, 123, 127, 128, 255))
            return sent(code, bytes(spoiled))
        if kind == 3:
            return sent(chance.choice(_STATUSES), mutated([body], chance, object_pool()))
        if kind == 4:
            return sent(code, body, chance.choice(_HEADERS))
        if kind == 5:
            # The frame of a list rather than what is in it.
            frame = {key: value for key, value in body.items() if key != "items"}
            changed = mutated([{**frame, "items": []} if "items" in body else frame], chance, object_pool())
            return sent(code, changed[0] if changed else None)
        changed = mutated([body], chance, object_pool())
        return sent(code, changed[0] if changed else None)


def sent(status: str, body: Any, *headers: str) -> bytes:
    return answer(body, status, "Connection: close", *headers)


def run(seed: int, folder: Path) -> Outcome:
    """The run of this number. The kubeconfig of a failure is kept."""
    chance = random.Random(seed)
    example = chance.choice(examples())
    config = folder / f"{seed}.kubeconfig"
    words = words_of(example, folder, chance)
    if "--output-dir" in words:
        words[words.index("--output-dir") + 1] = str(folder / f"{seed}.out")
    with closing(HostileServer(Served(example.items, seed).misbehave, discovery=False)) as server:
        config.write_text(json.dumps(kubeconfig(server.url, {"token": SECRET})))
        outcome = live(words, config)
    if not outcome.failure:
        config.unlink()
        return outcome
    return outcome._replace(failure=f"{' '.join(words)}: {outcome.failure}")


def live(words: Sequence[str], config: Path) -> Outcome:
    """A command with a kubeconfig, which must end in time."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        os.environ.pop(name, None)
    began = time.monotonic()
    flags = ("--kubeconfig", str(config), "--request-timeout", TIME_OUT)
    outcome = judged([*words, *flags], codes(words[0]), SECRET).outcome
    took = time.monotonic() - began
    return outcome._replace(failure=outcome.failure or (f"{took:.1f} s" if took > SECONDS else ""))


def words_of(example: Example, folder: Path, chance: random.Random) -> list[str]:
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
