"""The language server: requests of an editor, answered from lint, migrate, and what is known of devices."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Final, cast

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from kubectl_dra import __version__
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.fixes import Replacement
from kubectl_dra.lsp.checks import CheckedText, all_fixed, at, checked, ignoring, migrated, sources, span_of
from kubectl_dra.lsp.cursor import Span, cursor_at
from kubectl_dra.lsp.hovers import hover_at
from kubectl_dra.lsp.knowledge import Knowledge
from kubectl_dra.lsp.nearby import NamedPlace, OutlineEntry, outline, targets
from kubectl_dra.lsp.proposals import Proposal, Sort, proposals_at
from kubectl_dra.manifests.source import Source, SourcePosition
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.vendors.catalogue import load
from kubectl_dra.text import DOCS

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


NAME: Final = "kubectl-dra"
FIX_ALL: Final = "Make all safe fixes in this file (kubectl dra lint --fix)"
MIGRATE: Final = "Rewrite device plugins and older DRA versions in this file (kubectl dra migrate)"
_SEVERITY: Final = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_SORT: Final = {
    Sort.field: lsp.CompletionItemKind.Field,
    Sort.value: lsp.CompletionItemKind.Value,
    Sort.name: lsp.CompletionItemKind.Reference,
    Sort.function: lsp.CompletionItemKind.Function,
}
_SYMBOL: Final = {
    "request": lsp.SymbolKind.Field,
    "claim": lsp.SymbolKind.Field,
    "device": lsp.SymbolKind.Key,
}


def serve(job: Job) -> None:
    """Lint with a job for an editor at standard input and output, until it ends."""
    language_server = server(job)
    protocol = cast(Protocol, language_server.protocol)
    language_server.start_io(cast(BinaryIO, Requests(sys.stdin.buffer, protocol.refuse)), answers())


def server(job: Job) -> LanguageServer:
    """A server that lints with a job, which starts when its ``start_io`` is called."""
    server = LanguageServer(NAME, __version__, protocol_cls=Protocol)
    known = Knowledge(job.target)
    answers = _Answers(server, job, known)
    # pygls writes on what it registers, and methods cannot be written on.
    for written in (lsp.TEXT_DOCUMENT_DID_OPEN, lsp.TEXT_DOCUMENT_DID_CHANGE):
        server.feature(written)(partial(answers.written))
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(partial(answers.saved))
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(partial(answers.closed))
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(partial(answers.hover))
    triggers = lsp.CompletionOptions(trigger_characters=[".", '"', "'", "["])
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)(partial(answers.completion))
    server.feature(lsp.TEXT_DOCUMENT_DEFINITION)(partial(answers.definition))
    server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)(partial(answers.symbols))
    kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite, lsp.CodeActionKind.SourceFixAll]
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))(
        partial(answers.actions)
    )
    return server


class _Answers:
    """Answers an editor's requests. Findings are kept until the text changes."""

    def __init__(self, server: LanguageServer, job: Job, known: Knowledge) -> None:
        self._server = server
        self._job = job
        self._known = known
        self._checks: dict[str, CheckedText] = {}

    # --- findings ---------------------------------------------------------------------------------

    def written(self, params: lsp.DidOpenTextDocumentParams | lsp.DidChangeTextDocumentParams) -> None:
        """Check a file that was opened, and again after each change."""
        self._check(params.text_document.uri)

    def saved(self, saved_file: lsp.DidSaveTextDocumentParams) -> None:
        """Check all open files again: what one of them names may be in the file that was saved."""
        for uri in tuple(self._checks):
            self._check(uri)

    def closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Take back the findings of a file that is not open any more."""
        uri = params.text_document.uri
        self._checks.pop(uri, None)
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def _check(self, uri: str) -> None:
        document = self._document(uri)
        if document is None:
            return
        checks = self._checks[uri] = checked(_name(document), document.source, self._job, self._opened())
        shown = [_diagnostic(finding, document) for finding in checks.findings]
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown, document.version))

    def _opened(self) -> dict[str, str]:
        """The texts of the open files, by name."""
        return {_name(document): document.source for document in self._server.workspace.text_documents.values()}

    def _others(self, document: TextDocument) -> Iterator[Source]:
        return sources(_name(document), self._opened())

    def _document(self, uri: str) -> TextDocument | None:
        """A document that is open, or a file; None for what is neither, or cannot be read."""
        document = self._server.workspace.get_text_document(uri)
        try:
            return document if document.source is not None else None
        except (OSError, ValueError):
            return None

    # --- what stands there, and what may stand there ----------------------------------------------

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """What a word means."""
        document = self._document(params.text_document.uri)
        if document is None:
            return None
        offset = document.offset_at_position(params.position)
        findings = self._checks.get(document.uri, CheckedText()).findings
        hover = hover_at(document.source, offset, findings, self._known)
        if hover is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, hover.text), _range(document, hover.span))

    def completion(self, params: lsp.CompletionParams) -> lsp.CompletionList:
        """The words that may stand there."""
        document = self._document(params.text_document.uri)
        if document is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        offset = document.offset_at_position(params.position)
        proposals = proposals_at(document.source, offset, self._known, _name(document), self._others(document))
        items = [_item(document, number, proposal) for number, proposal in enumerate(proposals)]
        return lsp.CompletionList(is_incomplete=False, items=items)

    def definition(self, params: lsp.DefinitionParams) -> list[lsp.Location]:
        """Where the object, request or claim stands that a value names."""
        document = self._document(params.text_document.uri)
        if document is None:
            return []
        cursor = cursor_at(document.source, document.offset_at_position(params.position))
        if cursor.on_key:
            return []
        name = document.source[cursor.word.start : cursor.word.end].strip("'\"")
        own = Source(_name(document), document.source)
        places = targets(cursor, name, own, self._others(document))
        return [self._location(document, place) for place in places]

    def _location(self, document: TextDocument, place: NamedPlace) -> lsp.Location:
        if place.file != _name(document):
            opened = self._server.workspace.text_documents.values()
            same = (other for other in opened if _name(other) == place.file)
            document = next(same, None) or self._server.workspace.get_text_document(Path(place.file).as_uri())
        return lsp.Location(document.uri, _at(document, place.at))

    def symbols(self, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        """The objects of a file, with their requests, claims and devices."""
        document = self._document(params.text_document.uri)
        if document is None:
            return []
        return [_symbol(document, outline_entry) for outline_entry in outline(Source(_name(document), document.source))]

    # --- changes ----------------------------------------------------------------------------------

    def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """Fixes of the findings in a range, comments that silence them, all safe fixes, and the migration."""
        document = self._document(params.text_document.uri)
        if document is None:
            return []
        checks = self._checks.get(document.uri, CheckedText())
        start, end = (document.offset_at_position(place) for place in (params.range.start, params.range.end))
        touched = at(checks, start, end)
        fixes = [_fix(document, checks, index) for index in touched if index in checks.fixes]
        silenced = [_silenced(document, checks.findings[index]) for index in touched]
        whole = all_fixed(_name(document), document.source, checks, self._job)
        fixed = _rewritten(document, FIX_ALL, lsp.CodeActionKind.SourceFixAll, whole)
        after = migrated(_name(document), document.source, self._settings)
        rewritten = _rewritten(document, MIGRATE, lsp.CodeActionKind.RefactorRewrite, after)
        return [*fixes, *(action for action in (*silenced, fixed, rewritten) if action is not None)]

    @cached_property
    def _settings(self) -> MigrationSettings:
        return MigrationSettings(load(), self._job.target.release)


def _name(document: TextDocument) -> str:
    return document.path or document.uri


def _range(document: TextDocument, span: Span) -> lsp.Range:
    if not document.source:
        # pygls counts lines, of which there are none.
        return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    start, end = (document.client_position_at_offset(offset) for offset in (span.start, span.end))
    return lsp.Range(start, end)


def _at(document: TextDocument, place: SourcePosition) -> lsp.Range:
    return _range(document, Span(place.offset, place.end_offset))


def _symbol(document: TextDocument, outline_entry: OutlineEntry) -> lsp.DocumentSymbol:
    below = [_symbol(document, entry) for entry in outline_entry.below]
    kind = _SYMBOL.get(outline_entry.sort, lsp.SymbolKind.Object)
    whole = _at(document, outline_entry.whole)
    return lsp.DocumentSymbol(
        outline_entry.name, kind, whole, _at(document, outline_entry.at), outline_entry.sort, children=below
    )


def _diagnostic(finding: LocatedFinding, document: TextDocument) -> lsp.Diagnostic:
    place = span_of(finding, document.source)
    advice = f"\n{finding.advised}" if finding.advice else ""
    return lsp.Diagnostic(
        range=_at(document, place),
        message=f"{finding.told}{advice}",
        severity=_SEVERITY[finding.severity],
        code=finding.code,
        code_description=lsp.CodeDescription(f"{DOCS}/rules/{finding.code}.md"),
        source=NAME,
    )


def _item(document: TextDocument, number: int, proposal: Proposal) -> lsp.CompletionItem:
    documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, proposal.documentation)
    return lsp.CompletionItem(
        label=proposal.label,
        kind=_SORT[proposal.sort],
        detail=proposal.detail or None,
        documentation=documentation if proposal.documentation else None,
        sort_text=f"{number:05}",
        filter_text=proposal.label,
        text_edit=lsp.TextEdit(_range(document, proposal.span), proposal.text or proposal.label),
    )


def _edit(document: TextDocument, changes: tuple[Replacement, ...]) -> lsp.WorkspaceEdit:
    edits = [lsp.TextEdit(_at(document, change.at), change.text) for change in changes]
    return lsp.WorkspaceEdit(changes={document.uri: edits})


def _fix(document: TextDocument, checks: CheckedText, index: int) -> lsp.CodeAction:
    finding = checks.findings[index]
    return lsp.CodeAction(
        title=f"{finding.advice.rstrip('.')} ({finding.code})",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[_diagnostic(finding, document)],
        is_preferred=finding.promised == "safe",
        edit=_edit(document, checks.fixes[index]),
    )


def _silenced(document: TextDocument, finding: LocatedFinding) -> lsp.CodeAction | None:
    comment = ignoring(_name(document), document.source, finding)
    if comment is None:
        return None
    return lsp.CodeAction(
        title=f"Ignore {finding.code} here",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[_diagnostic(finding, document)],
        edit=_edit(document, (comment,)),
    )


def _rewritten(document: TextDocument, title: str, kind: lsp.CodeActionKind, after: str) -> lsp.CodeAction | None:
    if after == document.source:
        return None
    whole = _range(document, Span(0, len(document.source)))
    edit = lsp.WorkspaceEdit(changes={document.uri: [lsp.TextEdit(whole, after)]})
    return lsp.CodeAction(title=title, kind=kind, edit=edit)
