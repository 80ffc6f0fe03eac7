"""The way in and out of the language server: what is malformed gets an error, and the next message is read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, BinaryIO, Final

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol

_HEADER: Final = re.compile(rb"Content-Length: *([0-9]{1,9})\r?\n\Z", re.IGNORECASE)
_ANY_LENGTH: Final = re.compile(rb"Content-Length:[^\n]*\n\Z", re.IGNORECASE)
_UNREADABLE: Final = (
    b'{"jsonrpc": "2.0", "id": null, '
    b'"error": {"code": -32700, "message": "no Content-Length that is a number of bytes"}}'
)
_LARGEST: Final = 64_000_000


class Protocol(LanguageServerProtocol):
    """The protocol of pygls, which does not answer a request whose parameters have the wrong type."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """The message of a decoded object."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" not in data or "method" not in data:
                raise
            self._send_response(data["id"], error=error.to_response_error())
            # A message of no protocol, which is left.
            return SimpleNamespace(jsonrpc="")

    def refuse(self) -> None:
        """Answer what could not be read as a message at all."""
        # pygls leaves out an id that is null, which JSON-RPC wants here.
        self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(_UNREADABLE), _UNREADABLE))  # type: ignore[union-attr]


class Requests:
    """Standard input as pygls reads it. After a broken header the next one is looked for, wherever it stands."""

    def __init__(self, stream: BinaryIO, refuse: Callable[[], None]) -> None:
        self._stream = stream
        self._refuse = refuse

    def readline(self) -> bytes:
        """The next line of a header; empty at the end."""
        line = self._stream.readline()
        header = _HEADER.search(line)
        if header is not None and int(header[1]) <= _LARGEST:
            # The text of a message without a length may stand before it.
            return b"Content-Length: " + header[1] + b"\r\n"
        if _ANY_LENGTH.search(line):
            self._refuse()
            return b"\r\n"
        return line

    def read(self, size: int) -> bytes:
        """The text of a message."""
        return self._stream.read(size)


def answers() -> BinaryIO:
    """Standard output as pygls writes it: it closes its stream at the end, and the program's own stays open."""
    return os.fdopen(os.dup(sys.stdout.fileno()), "wb")
