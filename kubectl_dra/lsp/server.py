"""The language server: requests of an editor, answered from lint, migrate, and what is known of devices."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Final, NamedTuple, cast

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from kubectl_dra import __version__
from kubectl_dra.errors import DraError
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.fixes import Replacement, replacements
from kubectl_dra.lsp.answers import Knowledge, Proposal, Sort, hover_at, proposals_at
from kubectl_dra.lsp.cursor import Span
from kubectl_dra.manifests.documents import Skipped, each
from kubectl_dra.manifests.inputs import SUFFIXES, Input
from kubectl_dra.manifests.source import Source, SourcePosition
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.inline_patches import GONE
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.vendors.catalogue import load
from kubectl_dra.text import DOCS

# What lint finds in a text that is being written, and what its fixes, a comment or migrate would change.

NEIGHBOURS: Final = 40
"""At most so many files of the same folder are looked at for the objects that a manifest names."""
_LARGEST_NEIGHBOUR: Final = 200_000


class CheckedText(NamedTuple):
    """The findings of a text, by place, and what the fix of each would change, by its index."""

    findings: tuple[LocatedFinding, ...] = ()
    fixes: dict[int, tuple[Replacement, ...]] = {}  # noqa: RUF012 - never changed


def checked(name: str, text: str, job: Job) -> CheckedText:
    """Lint a text as the file of that name, beside the other manifests of its folder."""
    given = Input(name, True, text.encode("utf-8", "surrogatepass"))
    findings = tuple(finding for finding in lint([given, *_neighbours(name)], job, 1).findings if finding.file == name)
    return CheckedText(findings, replacements(findings, [given]))


def _neighbours(name: str) -> Iterator[Input]:
    own = Path(name)
    try:
        names = sorted(path for path in own.parent.iterdir() if path.suffix in SUFFIXES and path != own)
        for path in names[:NEIGHBOURS]:
            if path.is_file() and path.stat().st_size <= _LARGEST_NEIGHBOUR:
                yield Input(str(path), False)
    except (OSError, ValueError):
        return


def ignoring(name: str, text: str, finding: LocatedFinding) -> Replacement | None:
    """The comment that silences a finding, on the line above what it is about; None where no comment can stand."""
    source = Source(name, text)
    for document in each(source):
        if isinstance(document, Skipped) or document.index != finding.document or text.lstrip().startswith("{"):
            continue
        line = document.key_position(finding.path).line
        start = source.line_start(line)
        if start is None:
            return None
        indent = text[start:][: len(text[start:]) - len(text[start:].lstrip(" "))]
        return Replacement(source.span(start, start), f"{indent}# kubectl-dra: ignore[{finding.code}] \n")
    return None


def migrated(name: str, text: str, settings: MigrationSettings) -> str:
    """The text as migrate would write it; the same text if there is nothing to migrate, or it cannot be read.

    A patch stays: what is to be patched instead only the builds of its kustomization show.
    """
    try:
        report = migrate([Input(name, True, text.encode("utf-8", "surrogatepass"))], MigrationJob(settings))
    except DraError:
        return text
    if report.defects or any(item.code == GONE for item in report.items()):
        return text
    return next((file.text.after for file in report.files if file.changed and file.text is not None), text)


def at(checks: CheckedText, start: int, end: int) -> Sequence[int]:
    """The indices of the findings that a span of the text touches."""
    return [index for index, found in enumerate(checks.findings) if found.offset <= end and start <= found.end_offset]


def span_of(finding: LocatedFinding, text: str) -> SourcePosition:
    """The span of a finding; a word or the first character where it has none."""
    source = Source(finding.file, text)
    if finding.end_offset > finding.offset:
        return source.span(finding.offset, finding.end_offset)
    start = source.line_start(finding.line)
    at = min(len(text), (start or 0) + finding.column - 1) if start is not None else len(text)
    return source.span(at, min(len(text), at + 1))


NAME: Final = "kubectl-dra"
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


def serve(job: Job) -> None:
    """Lint with a job for an editor at standard input and output, until it ends."""
    made = server(job)
    protocol = cast(Protocol, made.protocol)
    made.start_io(cast(BinaryIO, Requests(sys.stdin.buffer, protocol.refuse)), answers())


def server(job: Job) -> LanguageServer:
    """A server that lints with a job, which starts when its ``start_io`` is called."""
    made = LanguageServer(NAME, __version__, protocol_cls=Protocol)
    known = Knowledge(job.target)
    answers = _Answers(made, job, known)
    # pygls writes on what it registers, and methods cannot be written on.
    made.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(partial(answers.opened))
    made.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(partial(answers.changed))
    made.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(partial(answers.saved))
    made.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(partial(answers.closed))
    made.feature(lsp.TEXT_DOCUMENT_HOVER)(partial(answers.hover))
    triggers = lsp.CompletionOptions(trigger_characters=[".", '"', "'", "["])
    made.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)(partial(answers.completion))
    kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.RefactorRewrite]
    made.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))(
        partial(answers.actions)
    )
    return made


class _Answers:
    """Answers an editor's requests. Findings are kept until the text changes."""

    def __init__(self, server: LanguageServer, job: Job, known: Knowledge) -> None:
        self._server = server
        self._job = job
        self._known = known
        self._checks: dict[str, CheckedText] = {}

    # --- findings ---------------------------------------------------------------------------------

    def opened(self, asked: lsp.DidOpenTextDocumentParams) -> None:
        """Check a file that was opened."""
        self._check(asked.text_document.uri)

    def changed(self, asked: lsp.DidChangeTextDocumentParams) -> None:
        """Check a file again after each change."""
        self._check(asked.text_document.uri)

    def saved(self, asked: lsp.DidSaveTextDocumentParams) -> None:
        """Check all open files again: what one of them names may be in the file that was saved."""
        for uri in tuple(self._checks):
            self._check(uri)

    def closed(self, asked: lsp.DidCloseTextDocumentParams) -> None:
        """Take back the findings of a file that is not open any more."""
        uri = asked.text_document.uri
        self._checks.pop(uri, None)
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    def _check(self, uri: str) -> None:
        document = self._document(uri)
        if document is None:
            return
        checks = self._checks[uri] = checked(_name(document), document.source, self._job)
        shown = [_diagnostic(finding, document) for finding in checks.findings]
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown, document.version))

    def _document(self, uri: str) -> TextDocument | None:
        """A document that is open, or a file; None for what is neither, or cannot be read."""
        document = self._server.workspace.get_text_document(uri)
        try:
            return document if document.source is not None else None
        except (OSError, ValueError):
            return None

    # --- what stands there, and what may stand there ----------------------------------------------

    def hover(self, asked: lsp.HoverParams) -> lsp.Hover | None:
        """What a word means."""
        document = self._document(asked.text_document.uri)
        if document is None:
            return None
        offset = document.offset_at_position(asked.position)
        findings = self._checks.get(document.uri, CheckedText()).findings
        found = hover_at(document.source, offset, findings, self._known)
        if found is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, found.text), _range(document, found.span))

    def completion(self, asked: lsp.CompletionParams) -> lsp.CompletionList:
        """The words that may stand there."""
        document = self._document(asked.text_document.uri)
        if document is None:
            return lsp.CompletionList(is_incomplete=False, items=[])
        offset = document.offset_at_position(asked.position)
        proposals = proposals_at(document.source, offset, self._known)
        items = [_item(document, number, proposal) for number, proposal in enumerate(proposals)]
        return lsp.CompletionList(is_incomplete=False, items=items)

    # --- changes ----------------------------------------------------------------------------------

    def actions(self, asked: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """Fixes of the findings in a range, comments that silence them, and the migration of the file."""
        document = self._document(asked.text_document.uri)
        if document is None:
            return []
        checks = self._checks.get(document.uri, CheckedText())
        start, end = (document.offset_at_position(place) for place in (asked.range.start, asked.range.end))
        touched = at(checks, start, end)
        fixes = [_fix(document, checks, index) for index in touched if index in checks.fixes]
        silenced = [_silenced(document, checks.findings[index]) for index in touched]
        rewritten = _rewritten(document, self._settings)
        return [*fixes, *(action for action in (*silenced, rewritten) if action is not None)]

    @cached_property
    def _settings(self) -> MigrationSettings:
        return MigrationSettings(load(), self._job.target.release)


def _name(document: TextDocument) -> str:
    return document.path or document.uri


def _range(document: TextDocument, span: Span) -> lsp.Range:
    start, end = (document.client_position_at_offset(offset) for offset in (span.start, span.end))
    return lsp.Range(start, end)


def _diagnostic(finding: LocatedFinding, document: TextDocument) -> lsp.Diagnostic:
    place = span_of(finding, document.source)
    advice = f"\n{finding.advice}" if finding.advice else ""
    return lsp.Diagnostic(
        range=_range(document, Span(place.offset, place.end_offset)),
        message=f"{finding.message}{advice}",
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
    edits = [
        lsp.TextEdit(_range(document, Span(change.at.offset, change.at.end_offset)), change.text) for change in changes
    ]
    return lsp.WorkspaceEdit(changes={document.uri: edits})


def _fix(document: TextDocument, checks: CheckedText, index: int) -> lsp.CodeAction:
    found = checks.findings[index]
    return lsp.CodeAction(
        title=f"{found.advice.rstrip('.')} ({found.code})",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[_diagnostic(found, document)],
        is_preferred=found.safety == "safe",
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


def _rewritten(document: TextDocument, settings: MigrationSettings) -> lsp.CodeAction | None:
    after = migrated(_name(document), document.source, settings)
    if after == document.source:
        return None
    whole = _range(document, Span(0, len(document.source)))
    edit = lsp.WorkspaceEdit(changes={document.uri: [lsp.TextEdit(whole, after)]})
    return lsp.CodeAction(title=MIGRATE, kind=lsp.CodeActionKind.RefactorRewrite, edit=edit)


# The way in and out of the language server: what is malformed gets an error, and the next message is read.


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
