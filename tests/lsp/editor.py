"""An editor that talks to ``kubectl dra lsp`` over its standard input and output, by the protocol's own client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from kubectl_dra import __version__
from tools.event_loop import ran

T = TypeVar("T")
SECONDS = 60.0


class Editor:
    """An editor with one file open."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._told: dict[str, asyncio.Queue[lsp.PublishDiagnosticsParams]] = {}
        self._text = ""
        self.uri = ""
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._publish))

    def _publish(self, told: lsp.PublishDiagnosticsParams) -> None:
        self._told.setdefault(told.uri, asyncio.Queue()).put_nowait(told)

    async def begin(self) -> lsp.InitializeResult:
        """Say hello."""
        answer = await self._client.initialize_async(
            lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=self._folder.as_uri())
        )
        self._client.initialized(lsp.InitializedParams())
        return answer

    async def open(self, name: str, text: str) -> list[lsp.Diagnostic]:
        """Open a file with a text, and wait for what is found in it."""
        self._text, self.uri = text, (self._folder / name).as_uri()
        item = lsp.TextDocumentItem(self.uri, "yaml", 1, text)
        self._client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return await self.findings()

    async def type(self, text: str) -> list[lsp.Diagnostic]:
        """Replace the text, and wait for what is found in it."""
        self._text = text
        version = lsp.VersionedTextDocumentIdentifier(version=2, uri=self.uri)
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self._client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [change]))
        return await self.findings()

    async def findings(self) -> list[lsp.Diagnostic]:
        """The next findings that the server tells of."""
        queue = self._told.setdefault(self.uri, asyncio.Queue())
        return list((await asyncio.wait_for(queue.get(), SECONDS)).diagnostics)

    def place(self, words: str, behind: int = 0) -> lsp.Position:
        """The position of words in the text."""
        before = self._text[: self._text.index(words) + behind]
        line = before.count("\n")
        return lsp.Position(line, len(before) - before.rfind("\n") - 1)

    async def hover(self, words: str, behind: int = 0) -> str:
        """What is shown at words of the text; empty for nothing."""
        asked = lsp.HoverParams(lsp.TextDocumentIdentifier(self.uri), self.place(words, behind))
        found = await self._client.text_document_hover_async(asked)
        return found.contents.value if found is not None and isinstance(found.contents, lsp.MarkupContent) else ""

    async def complete(self, words: str, behind: int = 0) -> dict[str, lsp.CompletionItem]:
        """What is proposed at words of the text, by label."""
        asked = lsp.CompletionParams(lsp.TextDocumentIdentifier(self.uri), self.place(words, behind))
        found = await self._client.text_document_completion_async(asked)
        assert isinstance(found, lsp.CompletionList)
        return {item.label: item for item in found.items}

    async def definition(self, words: str, behind: int = 0) -> list[lsp.Location]:
        """Where the thing stands that words of the text name."""
        asked = lsp.DefinitionParams(lsp.TextDocumentIdentifier(self.uri), self.place(words, behind))
        found = await self._client.text_document_definition_async(asked)
        assert found is None or isinstance(found, list)
        return [place for place in found or () if isinstance(place, lsp.Location)]

    async def symbols(self) -> list[lsp.DocumentSymbol]:
        """The outline of the text."""
        asked = lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(self.uri))
        found = await self._client.text_document_document_symbol_async(asked)
        return [symbol for symbol in found or () if isinstance(symbol, lsp.DocumentSymbol)]

    async def actions(self, words: str) -> dict[str, lsp.CodeAction]:
        """The changes that are offered at words of the text, by title."""
        place = self.place(words)
        asked = lsp.CodeActionParams(
            lsp.TextDocumentIdentifier(self.uri), lsp.Range(place, place), lsp.CodeActionContext([])
        )
        found: Sequence[lsp.Command | lsp.CodeAction] = await self._client.text_document_code_action_async(asked) or []
        return {action.title: action for action in found if isinstance(action, lsp.CodeAction)}

    def applied(self, action: lsp.CodeAction) -> str:
        """The text with a change made."""
        assert action.edit is not None and action.edit.changes is not None
        text = self._text
        for edit in sorted(action.edit.changes[self.uri], key=lambda edit: edit.range.start, reverse=True):
            assert isinstance(edit, lsp.TextEdit)
            start, end = self._offset(edit.range.start), self._offset(edit.range.end)
            text = f"{text[:start]}{edit.new_text}{text[end:]}"
        return text

    def _offset(self, place: lsp.Position) -> int:
        lines = self._text.split("\n")
        return sum(len(line) + 1 for line in lines[: place.line]) + place.character


def edit(folder: Path, act: Callable[[Editor], Awaitable[T]], *words: str) -> T:
    """Start ``kubectl dra lsp`` with these words, act, and end it as editors do."""

    async def whole() -> T:
        client = LanguageClient("test", __version__)
        os.chdir(folder)
        await client.start_io(sys.executable, "-m", "kubectl_dra", "lsp", *words)
        editor = Editor(client, folder)
        await editor.begin()
        try:
            return await act(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()  # type: ignore[no-untyped-call]

    return ran(whole())
