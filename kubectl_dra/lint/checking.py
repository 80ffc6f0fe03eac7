"""One file: read, take apart into items, run the rules on each, locate what they find."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.versions import GROUP, LIFECYCLES
from kubectl_dra.errors import InputError
from kubectl_dra.lint.context import Context, Item, Place, Target, World
from kubectl_dra.lint.finding import Finding
from kubectl_dra.lint.positions import enclosing_lines, position_of, written_path
from kubectl_dra.lint.registry import BY_CODE, RULES
from kubectl_dra.lint.result import Located
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.lint.rules import files
from kubectl_dra.lint.select import Selection
from kubectl_dra.lint.suppress import Suppression, suppressions
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.documents import Document, NotAnObject, TemplateError, parse
from kubectl_dra.manifests.inputs import LARGEST, Input, read
from kubectl_dra.manifests.objects import is_object, objects
from kubectl_dra.manifests.source import Position, Source, decode
from kubectl_dra.manifests.workloads import TEMPLATES, pod_templates

LARGEST_YAML: Final = 10_000_000
# Every document of a text costs a search of the whole text.
_MOST_WORK: Final = 3_000_000_000
_OTHER_KINDS: Final = frozenset(
    (("", "Pod"), ("", "PodTemplate"), ("", "Namespace"), ("", "ResourceQuota"), *TEMPLATES)
)
# Kinds of other groups that some rule is about.
_ASKED_FOR: Final = frozenset(kind for rule in RULES for kind in rule.kinds) - {entry.kind for entry in LIFECYCLES}
_PLACE: Final = re.compile(r":(\d+)(?::(\d+))?: ")
_EXCERPT: Final = 400


class Job(NamedTuple):
    """What all files of a run have in common."""

    target: Target
    selection: Selection


class FileResult(NamedTuple):
    """What came of one file. ``digest`` tells whether it is still the same when it is read again."""

    name: str
    findings: tuple[Located, ...] = ()
    items: tuple[Item, ...] = ()
    comments: tuple[Suppression, ...] = ()
    manifests: int = 0
    note: str = ""
    defects: tuple[str, ...] = ()
    digest: int = 0


class Text(NamedTuple):
    """A text taken apart."""

    source: Source
    documents: tuple[Document, ...]
    duplicates: tuple[Located, ...]


def check_file(found: Input, job: Job) -> tuple[FileResult, tuple[Document, ...]]:
    """Runs every rule that needs only this file. The documents are for those that need more."""
    try:
        data = read(found)
    except InputError as error:
        return _failed(found, files.Unavailable, _without_name(str(error), found.name), job), ()
    if len(data) > LARGEST:
        message = f"it has more than {LARGEST // 1_000_000} MB; split it, or lint what it was made from"
        return _failed(found, files.TooLarge, message, job), ()
    digest = hash(data)
    try:
        text = taken_apart(data, found.name)
    except TemplateError as error:
        return FileResult(found.name, note=str(error), digest=digest), ()
    except NotAnObject:
        return FileResult(found.name, digest=digest), ()
    except _TooLarge as error:
        return _failed(found, files.TooLarge, str(error), job), ()
    except (InputError, RecursionError) as error:
        # What is found in a directory may be no manifest at all, but a tool's file in a dialect of YAML.
        if not found.named and b"apiVersion" not in data:
            return FileResult(found.name, note=f"left out: {error}", digest=digest), ()
        return _failed(found, files.Unreadable, str(error) or "nested too deeply", job, _start(data)), ()
    result = _check_text(found.name, text, job)
    return result._replace(digest=digest), text.documents


class _TooLarge(InputError):
    pass


def taken_apart(data: bytes, name: str) -> Text:
    """The documents of a text, and findings for the keys that are there twice.

    Raises:
        InputError: as ``parse``.
    """
    source = decode(data, name)
    if len(data) > LARGEST_YAML and not source.text.lstrip(" \t\r\n").startswith("{"):
        raise _TooLarge(f"it has more than {LARGEST_YAML // 1_000_000} MB of YAML; split it into several files")
    if len(data) * source.text.count("\n---") > _MOST_WORK:
        raise _TooLarge("it has too many documents for its size; split it into several files")
    try:
        return Text(source, parse(source, strict=True), ())
    except InputError as error:
        if "twice" not in str(error):
            raise
    documents = parse(source)
    return Text(source, documents, tuple(_duplicates(source, documents)))


def _check_text(name: str, text: Text, job: Job) -> FileResult:
    manifests = 0
    items: list[Item] = []
    findings = [found for found in text.duplicates if wanted(found, job.selection)]
    defects: list[str] = []
    comments = suppressions(text.source, text.documents)
    for document in text.documents:
        if not is_object(document.object):
            continue
        manifests += 1
        try:
            below = list(items_of(document))
        except InputError as error:
            line, column, message = _placed(str(error), name)
            findings.append(plain(files.Unreadable, name, message, (line, column)))
            continue
        items += below
        for item in below:
            contexts = Context(item, job.target)
            for found in run_rules(rules_for(item, job, "object"), contexts, defects):
                located = locate(found, item, document, bool(comments))
                if wanted(located, job.selection):
                    findings.append(located)
    return FileResult(name, tuple(findings), tuple(items), tuple(comments), manifests, "", tuple(defects))


def items_of(document: Document) -> Iterator[Item]:
    """The items of a document that rules look at: DRA objects, pods, quotas, namespaces, workloads and their pods.

    Raises:
        InputError: a List with items that are no objects.
    """
    for found in objects((document,)):
        group = found.api_version.rpartition("/")[0]
        if group != GROUP and (group, found.kind) not in _OTHER_KINDS and found.kind not in _ASKED_FOR:
            continue
        place = Place(document.name, document.index, found.path)
        item = Item(found.object, place)
        yield item
        for template in pod_templates(found.object):
            yield _pod(item, template.path, template.content)


def _pod(owner: Item, path: Path, content: Mapping[str, Any]) -> Item:
    metadata = content.get("metadata")
    inherited = {"namespace": owner.namespace} if owner.namespace else {}
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**(metadata if isinstance(metadata, Mapping) else {}), **inherited},
        "spec": content["spec"],
    }
    return Item(raw, Place(owner.place.file, owner.place.document, (*owner.place.path, *path)), owner)


_rules: dict[tuple[str, str, Selection, int], tuple[Rule, ...]] = {}


def rules_for(item: Item, job: Job, scope: str) -> tuple[Rule, ...]:
    """The rules of a scope for an item: its kind, the release, what is selected."""
    minor = job.target.release.minor
    key = (item.kind, scope, job.selection, minor)
    found = _rules.get(key)
    if found is None:
        found = _rules[key] = tuple(
            rule()
            for rule in RULES
            if rule.scope == scope
            and (rule.kinds == ANY_KIND or item.kind in rule.kinds)
            and rule.releases[0] <= minor <= (rule.releases[1] or minor)
            and job.selection.has(rule.code)
        )
    return found


def run_rules(rules: Iterable[Rule], context: Context, defects: list[str]) -> Iterator[Finding]:
    """What the rules find. A rule that fails becomes a defect: the others still run."""
    for rule in rules:
        try:
            yield from rule.check(context)
        except Exception as error:
            import os

            if os.environ.get("KUBECTL_DRA_DEBUG"):
                raise
            place = f"{context.item.place.file}: {context.item.title}"
            defects.append(f"{place}: rule {rule.code} failed: {type(error).__name__}: {error}")


def wanted(found: Located, selection: Selection) -> bool:
    """Whether the rule of a finding is asked for in its file."""
    return selection.has(found.code) and selection.in_file(found.code, found.file)


def locate(found: Finding, item: Item, document: Document, with_lines: bool) -> Located:
    """A finding in an item of a document, with its place."""
    below = written_path(item.raw, found.path)
    path = (*item.place.path, *below)
    at = position_of(document, path, found.cel, found.on_key)
    lines: tuple[int, ...] = ()
    if with_lines:
        lines = tuple(dict.fromkeys((at.line, *(line for line, _ in enclosing_lines(document, path)))))
    owner = item if item.owner is None else item.owner
    field = found.field or path_text(path[len(owner.place.path) :])
    if item.owner is not None and found.field:
        field = f"{path_text(item.place.path[len(owner.place.path) :])}.{found.field}"
    fix = found.fix
    return Located(
        found.code,
        found.severity,
        document.name,
        *_span(at),
        item.title,
        field,
        found.message,
        "" if fix is None else fix.title,
        "none" if fix is None or not fix.changes else fix.safety,
        found.detail,
        excerpt(document.source, at),
        document.index,
        path,
        item.place.path,
        () if fix is None else fix.changes,
        lines,
    )


def _span(at: Position) -> tuple[int, int, int, int, int, int]:
    return at.line, at.column, at.end_line, at.end_column, at.offset, at.end_offset


def excerpt(source: Source, at: Position) -> str:
    """The line of the text where the position begins; at most a few hundred characters."""
    start = at.offset - at.column + 1
    end = start
    text = source.text
    while end < len(text) and text[end] not in "\r\n" and end - start < _EXCERPT:
        end += 1
    return text[start:end]


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def path_text(path: Path) -> str:
    """A path as Kubernetes writes it: ``spec.devices.requests[0].name``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or not _PLAIN.match(part):
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else part)
    return "".join(out)


def _duplicates(source: Source, documents: Sequence[Document]) -> Iterator[Located]:
    from kubectl_dra.manifests.values import is_merge, key_text, scalar

    for document in documents:
        stack: list[tuple[Any, Path]] = [(document.root, ())]
        seen: set[int] = set()
        while stack:
            node, path = stack.pop()
            if id(node) in seen or node.id == "scalar":
                continue
            seen.add(id(node))
            if node.id == "sequence":
                stack += [(below, (*path, index)) for index, below in enumerate(node.value)]
                continue
            first: dict[str, int] = {}
            for key, value in node.value:
                if is_merge(key):
                    continue
                name = key_text(scalar(key.value), key) if key.tag == "?" else str(key.value)
                at = source.span(key.start_mark.index, key.end_mark.index)
                if name in first:
                    message = f'the key "{name}" is there already, in line {first[name]}'
                    found = plain(files.DuplicateKey, source.name, message, (at.line, at.column))
                    yield found._replace(
                        end_line=at.end_line,
                        end_column=at.end_column,
                        offset=at.offset,
                        end_offset=at.end_offset,
                        excerpt=excerpt(source, at),
                        field=path_text((*path, name)),
                        lines=(at.line,),
                        document=document.index,
                    )
                first.setdefault(name, at.line)
                stack.append((value, (*path, name)))


def comment_findings(source: Source, comments: Iterable[Suppression], rule: type[Rule]) -> Iterator[Located]:
    """Findings about comments: those that are not understood, or that silence nothing."""
    for comment in comments:
        at = source.span(comment.offset, comment.end_offset)
        message = comment.problem or f"nothing to ignore here for {', '.join(comment.codes)}"
        found = plain(rule, source.name, message, (at.line, at.column))
        yield found._replace(
            end_line=at.end_line,
            end_column=at.end_column,
            offset=at.offset,
            end_offset=at.end_offset,
            excerpt=excerpt(source, at),
        )


def plain(rule: type[Rule], file: str, message: str, at: tuple[int, int] = (1, 1), line: str = "") -> Located:
    """A finding about a file, with a place that has no extent."""
    return Located(rule.code, rule.severity, file, *at, *at, 0, 0, "", "", message, excerpt=line)


def _failed(found: Input, rule: type[Rule], message: str, job: Job, text: str = "") -> FileResult:
    line, column, words = _placed(message, found.name)
    lines = text.splitlines()
    shown = lines[line - 1][:_EXCERPT] if 0 < line <= len(lines) else ""
    located = plain(rule, found.name, words, (line, column), shown)
    return FileResult(found.name, (located,) if wanted(located, job.selection) else ())


def _placed(message: str, name: str) -> tuple[int, int, str]:
    """Line, column and the rest of a message that begins ``NAME:LINE:COLUMN: ``."""
    if message.startswith(name):
        place = _PLACE.match(message, len(name))
        if place is not None:
            return int(place[1]), int(place[2] or 1), message[place.end() :]
    return 1, 1, _without_name(message, name)


def _without_name(message: str, name: str) -> str:
    return message.removeprefix(f"{name}: ")


def _start(data: bytes) -> str:
    """The beginning of a text that cannot be read, to show a line of it."""
    return "" if b"\x00" in data[:4096] else data[:1_000_000].decode("utf-8", "replace")


def rule_of(code: str) -> type[Rule]:
    """The rule of a finding."""
    return BY_CODE[code]


def world_of(results: Iterable[FileResult]) -> World:
    """Everything that was read, together."""
    return World(item for result in results for item in result.items)
