"""Every command that reads a cluster, before every kind of bad server.

A new command is tried by itself, with no words but its name; ``WORDS`` has those that need some.
"""

from __future__ import annotations

import gzip
import json
import re
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_dra import safe_output
from kubectl_dra.cli.main import COMMANDS, run
from kubectl_dra.cluster import client, transport
from tools.api_server import kubeconfig
from tools.command_runs import POD, RUNS, WITHOUT_CLUSTER, codes
from tools.hostile_server import HostileServer, Misbehave, answer

TIME_OUT: Final = "400ms"
SECONDS: Final = 6.0
"""For a whole command: several requests, each with the time-out."""
MEGABYTES: Final = 300
"""How much more memory than before a command may take."""
STATUS: Final = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "No"}
RAW: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def sends(*parts: bytes, endless: bytes = b"", pause: float = 0.0, silent: float = 0.0) -> Misbehave:
    """Sends the parts, then the last one again and again or nothing for a while."""

    def misbehave(sock: socket.socket, _: str) -> None:
        for part in parts:
            sock.sendall(part)
        while endless:
            sock.sendall(endless)
            time.sleep(pause)
        time.sleep(silent)

    return misbehave


def refuses(code: int, *headers: str) -> Misbehave:
    return sends(answer({**STATUS, "code": code}, f"{code} No", "Connection: close", *headers))


def is_(body: Any) -> Misbehave:
    return sends(answer(body, "200 OK", "Connection: close"))


def pages(tokens: Callable[[], str]) -> Misbehave:
    def misbehave(sock: socket.socket, _: str) -> None:
        meta = {"resourceVersion": "1", "continue": tokens()}
        sock.sendall(answer({"kind": "List", "metadata": meta, "items": []}, "200 OK", "Connection: close"))

    return misbehave


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
COUNT = iter(range(10**9))
SLOW: Final[dict[str, Misbehave]] = {
    "silent": sends(silent=15),
    "slow headers": sends(b"HTTP/1.1 200 OK\r\n", endless=b"X: y\r\n", pause=0.1),
    "slow body": sends(HEAD + b"Content-Length: 100000\r\n\r\n{", endless=b" ", pause=0.05),
    "slow chunks": sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", endless=b"1\r\n \r\n", pause=0.05),
    "429, later": refuses(429, "Retry-After: 1"),
    "503, in a thousand million seconds": refuses(503, "Retry-After: 1e9"),
    "429, never": refuses(429, "Retry-After: inf"),
    "endless continue": pages(lambda: str(next(COUNT))),
    "endless body": sends(HEAD + b"Content-Length: 99999999999\r\n\r\n", endless=b" " * 65536),
    "endless chunks": sends(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n", endless=b"10000\r\n" + b" " * 65536 + b"\r\n"
    ),
}
SHAPES: Final[tuple[Any, ...]] = (
    None, 5, "x", True, [], {}, [None], [[]], {"items": None}, {"items": {}}, {"items": 5}, {"items": "x"},
    {"items": [None]}, {"items": [5]}, {"items": [[]]}, {"items": [{}]}, {"items": [{"metadata": 5}]},
    {"items": [{"metadata": {"name": 5}}]}, {"items": [{"metadata": {"name": "n"}, "spec": []}]},
    {"items": [{"metadata": {"name": "n"}, "spec": {"devices": {}}, "status": "x"}]},
    {"metadata": [], "items": []}, {"metadata": {"continue": 5}, "items": []},
    {"metadata": {"remainingItemCount": "x"}, "items": []}, {"kind": "Pod", "metadata": {"name": "a"}},
    {"kind": 5, "apiVersion": [], "items": [], "metadata": {}, "versions": {}, "resources": 5, "groups": "x"},
)  # fmt: skip
FAST: Final[dict[str, Misbehave]] = {
    "closed": sends(),
    "half a header": sends(b"HTTP/1.1 20"),
    "half a body": sends(HEAD + b"Content-Length: 99\r\n\r\n{"),
    "not HTTP": sends(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "endless header": sends(HEAD, endless=b"A" * 4096),
    "endless headers": sends(HEAD, endless=b"A: b\r\n" * 100),
    "negative length": sends(HEAD + b"Content-Length: -5\r\n\r\n{}"),
    "a bomb": sends(
        answer(gzip.compress(b'{"items":[' + b" " * (40 << 20) + b"]}", 9), "200 OK", "Content-Encoding: gzip")
    ),
    "broken gzip": sends(answer(b"abc", "200 OK", "Content-Encoding: gzip")),
    "another encoding": sends(answer(b"{}", "200 OK", "Content-Encoding: br")),
    "the same page": pages(lambda: "again"),
    "not JSON": is_(b"<html>hello</html>"),
    "nothing": is_(b""),
    "deep": is_(b"[" * 100_000),
    **{f"JSON {json.dumps(body)}"[:60]: is_(body) for body in SHAPES},
    **{f"{code}": refuses(code) for code in (301, 307, 400, 401, 403, 404, 405, 409, 410, 415, 422, 500, 501)},
    "redirect elsewhere": refuses(302, "Location: http://127.0.0.1:1/"),
    "410 now": refuses(410, "Retry-After: 0"),
    "503 at once": refuses(503, "Retry-After: -1"),
    "429 nan": refuses(429, "Retry-After: nan"),
    "a status as list": sends(answer([1], "409 Conflict", "Connection: close")),
    "a message that is none": sends(answer({"message": {"a": [1]}}, "403 Forbidden", "Connection: close")),
    "1xx": sends(b"HTTP/1.1 100 Continue\r\n\r\n" * 3),
    "204": sends(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status 999": sends(b"HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 8 << 20)
    monkeypatch.setattr(client, "_MANY_PAGES", 100)
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)


def tried(words: list[str], config: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with a run; empty if nothing is."""
    began = time.monotonic()
    code = run([*words, "--kubeconfig", config, "--request-timeout", TIME_OUT])
    took = time.monotonic() - began
    captured = capsys.readouterr()
    text = captured.out + captured.err
    errors = [line for line in captured.err.splitlines() if line.startswith("error:")]
    if "Traceback" in text or "a defect of" in text:
        return text[-500:]
    if code not in codes(words[0]):
        return f"exit code {code}: {text[-300:]}"
    # 3 may have one too: what decides could not be read.
    if len(errors) > 1 or ((len(errors) == 1) != (code == 2) and code != 3):
        return f"exit code {code} with {errors}"
    if took > SECONDS:
        return f"{took:.1f} s: {text[-300:]}"
    if found := RAW.search(text):
        return f"raw {found[0]!r}: {text[-300:]}"
    return ""


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
@pytest.mark.parametrize("discovery", [False, True], ids=["everywhere", "after discovery"])
def test_a_bad_answer(
    words: list[str],
    discovery: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failures = list(_failures(words, discovery, FAST, tmp_path, monkeypatch, capsys))
    assert not failures, "\n".join(failures)


@pytest.mark.slow
@pytest.mark.parametrize("words", RUNS, ids=" ".join)
@pytest.mark.parametrize("discovery", [False, True], ids=["everywhere", "after discovery"])
def test_a_slow_answer(
    words: list[str],
    discovery: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = SLOW if discovery or words == RUNS[0] else {"slow body": SLOW["slow body"]}
    failures = list(_failures(words, discovery, chosen, tmp_path, monkeypatch, capsys))
    assert not failures, "\n".join(failures)


def _failures(
    words: list[str],
    discovery: bool,
    tries: dict[str, Misbehave],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[str]:
    monkeypatch.chdir(folder)
    (folder / "pod.yaml").write_text(POD)
    config = folder / "config"
    asked = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, misbehave in tries.items():
        server = HostileServer(misbehave, discovery=discovery)
        config.write_text(json.dumps(kubeconfig(server.url, {"token": "a-secret-token"})))
        try:
            if wrong := tried(words, str(config), capsys):
                yield f"{name}: {wrong}"
        finally:
            server.close()
        asked += server.asked
    assert asked, "the command read no cluster"
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    if more > MEGABYTES:
        yield f"{more} MB more"


def test_all_commands_are_tried() -> None:
    assert {words[0] for words in RUNS} | {*WITHOUT_CLUSTER} == {*COMMANDS}
    assert safe_output.visible("\x1b") == "\\u001b"
