"""What an editor may send that is no good message, byte by byte, and how the server ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def message(method: str, number: int | None = None, **params: Any) -> bytes:
    said = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    text = json.dumps(said).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


HELLO = message("initialize", 1, capabilities={}, processId=None, rootUri=None)
BYE = message("shutdown", 99) + message("exit")


def talk(folder: Path, *messages: bytes) -> tuple[int, str, dict[int | None, Any]]:
    """The exit code, what is written to stderr, and the answers by id."""
    command = [sys.executable, "-m", "kubectl_dra", "lsp"]
    done = subprocess.run(command, input=b"".join(messages), capture_output=True, cwd=folder, timeout=60)
    answers, rest = {}, done.stdout
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
        answer, rest = json.loads(rest[:size]), rest[size:]
        if "method" not in answer:
            answers[answer["id"]] = answer
    return done.returncode, done.stderr.decode(), answers


def test_a_normal_end(tmp_path: Path) -> None:
    code, err, answers = talk(tmp_path, HELLO, BYE)
    assert code == 0 and answers.keys() == {1, 99}
    assert "Traceback" not in err and "defect" not in err


@pytest.mark.parametrize("place", [{"line": -5, "character": -5}, {"line": "x", "character": 0}, {}, 5])
def test_a_position_that_is_none_is_answered(tmp_path: Path, place: Any) -> None:
    uri = (tmp_path / "a.yaml").as_uri()
    asked = message("textDocument/hover", 2, textDocument={"uri": uri}, position=place)
    code, _, answers = talk(tmp_path, HELLO, asked, BYE)
    assert code == 0 and answers[2]["error"]["code"] == -32602
    assert answers.keys() == {1, 2, 99}


@pytest.mark.parametrize(
    ("method", "nothing"),
    [("hover", None), ("completion", {"isIncomplete": False, "items": []}), ("codeAction", [])],
)
def test_a_file_that_is_not_there_has_nothing_to_show(tmp_path: Path, method: str, nothing: Any) -> None:
    place = {"line": 0, "character": 0}
    fields: dict[str, Any] = {"textDocument": {"uri": (tmp_path / "none.yaml").as_uri()}, "position": place}
    if method == "codeAction":
        fields |= {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    code, err, answers = talk(tmp_path, HELLO, message(f"textDocument/{method}", 2, **fields), BYE)
    assert code == 0 and "Traceback" not in err
    assert answers[2]["result"] == nothing


@pytest.mark.parametrize(
    "header", [b"Content-Length: abc", b"Content-Length: -5", b"Content-Length:", b"Content-Length: 99999999999999"]
)
def test_a_header_that_is_none_is_answered(tmp_path: Path, header: bytes) -> None:
    code, _, answers = talk(tmp_path, HELLO, header + b"\r\n\r\n{}", BYE)
    assert code == 0 and answers[None]["error"]["code"] == -32700
    assert answers.keys() == {None, 1, 99}
