"""One session of an editor: a manifest is opened, typed in and asked about, by messages that may be malformed.

Each request gets one answer, none of which is an internal error; the server reads on to the end.
"""

from __future__ import annotations

import json
import logging
import random
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from pygls.protocol import default_converter

from kubectl_dra.cli.lint import LintFlags
from kubectl_dra.cli.lint.run import job_for
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lsp.server import Protocol, Requests, server
from tools.fuzz.examples import EXAMPLES, manifests
from tools.fuzz.judged import Outcome
from tools.fuzz.mutations import mutated, pool_of

INTERNAL_ERROR: Final = -32603
METHODS: Final = ("hover", "hover", "completion", "completion", "codeAction", "definition", "documentSymbol")
TYPED: Final = (
    "\n", " ", "device.", "device.attributes[\"gpu.nvidia.com\"].", "deviceClassName: ", "'", "{", "- name: x\n", "\t",
    "😀", "\u202e", "\r\n", "expression: |\n", "&a", "*a", "# kubectl-dra: ignore[",
)  # fmt: skip
_LENGTH: Final = re.compile(rb"Content-Length: ([0-9]{1,9})(\r|\Z)")
_HEADERS: Final = (b"Content-Length: abc", b"Content-Length: -5", b"Content-Length:", b"Content-Length: 99999999999999")


class _Written(BytesIO):
    """Keeps what was written when it is closed."""

    data = b""

    def close(self) -> None:
        self.data = self.getvalue()
        super().close()


@cache
def _job(with_snapshot: bool) -> Job:
    snapshots = (str(EXAMPLES / "mixed-fleet" / "cluster.yaml"),) if with_snapshot else ()
    return job_for(LintFlags(snapshots=snapshots), ConnectionFlags())[0]


@cache
def _converter() -> Any:
    return default_converter()  # type: ignore[no-untyped-call]


def run(seed: int, folder: Path) -> Outcome:
    """The session of this number; its input was accepted where most of its requests have a result."""
    chance = random.Random(seed)
    sent = [*_session(chance, (folder / "open.yaml").as_uri())]
    data = b"".join(sent)
    logging.disable(logging.CRITICAL)
    made = server(_job(chance.random() < 0.3))
    protocol, out = cast(Protocol, made.protocol), _Written()
    # What it compiles for each type of message is the same for every server.
    protocol._converter = _converter()
    # In a thread of its own, since a test before may have left an event loop running in this one.
    with ThreadPoolExecutor(1) as apart:
        apart.submit(made.start_io, cast(BinaryIO, Requests(BytesIO(data), protocol.refuse)), out).result()
    logging.disable(logging.NOTSET)
    failure, accepted = _judged(data, out.data or out.getvalue())
    if failure:
        (folder / f"{seed}.lsp").write_bytes(data)
    return Outcome(failure, accepted)


def _judged(sent: bytes, received: bytes) -> tuple[str, bool]:
    asked = Counter(
        json.dumps(message["id"])
        for message in _messages(sent)
        if isinstance(message, dict) and "id" in message and "method" in message
    )
    answers = [message for message in _messages(received) if isinstance(message, dict) and "method" not in message]
    for answer in answers:
        if answer.get("error", {}).get("code") == INTERNAL_ERROR:
            return f"an internal error: {json.dumps(answer['error'])[:600]}", False
    told = Counter(json.dumps(answer["id"]) for answer in answers if answer.get("id") is not None)
    if missing := asked - told:
        return f"without an answer: {[*missing]}", False
    results = sum("result" in answer for answer in answers)
    return "", 2 * results >= len(answers)


def _messages(data: bytes) -> Iterator[Any]:
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if length is None:
            continue
        text, data = data[: int(length[1])], data[int(length[1]) :]
        try:
            yield json.loads(text)
        except ValueError:
            continue


def _framed(message: Any) -> bytes:
    text = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def _session(chance: random.Random, uri: str) -> Iterator[bytes]:
    yield _request("initialize", 0, {"capabilities": {}, "processId": None, "rootUri": None})
    yield _notice("initialized", {})
    text = chance.choice(manifests())
    item = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
    yield _notice("textDocument/didOpen", {"textDocument": item})
    for number in range(1, chance.choice((3, 6, 12))):
        if chance.random() < 0.25:
            yield _typed(uri, text, number, chance)
        else:
            yield from _asked(uri, text, number, chance)
    yield _notice("textDocument/didClose", {"textDocument": {"uri": uri}})
    yield _request("shutdown", 1000, None)
    yield _notice("exit", None)


def _request(method: str, number: Any, params: Any) -> bytes:
    return _framed({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _notice(method: str, params: Any) -> bytes:
    return _framed({"jsonrpc": "2.0", "method": method, "params": params})


def _place(text: str, chance: random.Random) -> dict[str, int]:
    lines = text.split("\n")
    line = chance.randrange(len(lines))
    past = chance.choice((0, 0, 0, 0, 1, 1000))
    return {"line": line + past, "character": chance.randrange(len(lines[line]) + 1) + past}


def _typed(uri: str, text: str, number: int, chance: random.Random) -> bytes:
    start, end = _place(text, chance), _place(text, chance)
    change: dict[str, Any] = {"text": chance.choice(TYPED)}
    if chance.random() < 0.8:
        at = sorted((start, chance.choice((start, end))), key=lambda place: (place["line"], place["character"]))
        change["range"] = {"start": at[0], "end": at[1]}
    else:
        change["text"] = chance.choice(manifests())
    document = {"uri": uri, "version": number + 1}
    return _notice("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


def _asked(uri: str, text: str, number: int, chance: random.Random) -> Iterator[bytes]:
    method = chance.choice(METHODS)
    place = _place(text, chance)
    params: Any = {"textDocument": {"uri": uri}, "position": place}
    if method == "codeAction":
        params = {**params, "range": {"start": place, "end": _place(text, chance)}, "context": {"diagnostics": []}}
        del params["position"]
    elif method == "documentSymbol":
        del params["position"]
    message: Any = {"jsonrpc": "2.0", "id": number, "method": f"textDocument/{method}", "params": params}
    kind = chance.randrange(12)
    if kind == 0:
        # The frame stays a request: its parameters are not what they should be.
        changed = mutated([params], chance, pool_of([params]))
        message["params"] = changed[0] if changed else None
    elif kind == 1:
        message["method"] = chance.choice(("textDocument/none", "workspace/executeCommand", "$/x", "shutdown2", ""))
    elif kind == 2:
        message["id"] = f"text-{number}"
    if kind == 3:
        yield chance.choice(_HEADERS) + b"\r\n\r\n{}"
    yield _framed(message)
