"""Checks one file: reads it, splits it into items, runs the rules on each and locates their findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.api.releases import GROUP, LIFECYCLES, Release
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.lint.accepted import Suppression, may_have_comments, suppressions
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster, Context, Item, ObjectPlace
from kubectl_dra.lint.finding import LintFinding, LocatedFinding
from kubectl_dra.lint.locate import Texts, excerpt, locate, path_text, plain, pointed, spanned
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.lint.rules import RULES, files
from kubectl_dra.lint.rules.device_plugins import NamedElsewhere, named_devices
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.documents import Document, NotAnObject, Skipped, TemplateError, each_document
from kubectl_dra.manifests.inputs import LARGEST, Input, read
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import OWN, is_object, objects, right_group, shares_kind
from kubectl_dra.manifests.source import Source, decode, scalar_spans
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, WorkloadPodSpec, loses_claims, pod_specs
from kubectl_dra.text import edit_distance, some

LARGEST_YAML: Final = 32_000_000
"""Limit in bytes for a YAML file: reading more takes minutes."""
LARGEST_DOCUMENT: Final = 10_000_000
"""Limit in characters for one YAML document: its nodes take up to a hundred times as many bytes."""
_OTHER_KINDS: Final = frozenset((("", "Pod"), ("", "Namespace"), ("", "ResourceQuota"), *TEMPLATES, *SPECS))
# Kinds of other groups that some rule is about.
_ASKED_FOR: Final = frozenset(kind for rule in RULES for kind in rule.kinds) - {life.kind for life in LIFECYCLES}


class Job(Struct, frozen=True):
    """What all files of a run share."""

    target: AssumedCluster
    selection: Selection


class FileResult(Struct, frozen=True):
    """The result for one file. ``digest`` tells whether the file is unchanged when it is read again.

    ``left_out``: nothing in the file could be checked; a note says why. ``readable``: all of its documents are.
    """

    name: str
    findings: tuple[LocatedFinding, ...] = ()
    items: tuple[Item, ...] = ()
    comments: tuple[Suppression, ...] = ()
    manifests: int = 0
    unchecked: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()
    digest: int = 0
    left_out: bool = False
    readable: bool = True


def check_file(file: Input, job: Job, texts: Texts) -> FileResult:
    """Run every rule that needs only this file. ``texts`` keeps its documents for rules that need more."""
    try:
        data = read(file)
    except FileError as error:
        return _failed(file, files.Unavailable, error.problem, job)
    if len(data) > LARGEST:
        message = f"it has more than {LARGEST // 1_000_000} MB; split it, or lint what it was made from"
        return _failed(file, files.TooLarge, message, job)
    try:
        source = decode(data, file.name)
    except FileError as error:
        if not file.named and b"apiVersion" not in data:
            return FileResult(file.name, notes=(f"left out: {error}",), left_out=True)
        return _failed(file, files.Unreadable, error.problem, job)
    if too_large := _too_large(source.text):
        return _failed(file, files.TooLarge, too_large, job)
    return replace(_check_text(file, source, job, texts), digest=hash(data))


def _too_large(text: str) -> str:
    """What is too large to be read as YAML, if anything. JSON takes a tenth of the time and memory."""
    if len(text) <= LARGEST_DOCUMENT or text.lstrip(" \t\r\n").startswith("{"):
        return ""
    if len(text) > LARGEST_YAML:
        return f"it has more than {LARGEST_YAML // 1_000_000} MB of YAML; split it into several files"
    start = 0
    while start >= 0:
        end = text.find("\n---", start + 1)
        if (len(text) if end < 0 else end) - start > LARGEST_DOCUMENT:
            return f"a YAML document in it has more than {LARGEST_DOCUMENT // 1_000_000} MB; split it into several"
        start = end
    return ""


def _check_text(given: Input, source: Source, job: Job, texts: Texts) -> FileResult:
    items: list[Item] = []
    findings: list[LocatedFinding] = []
    defects: list[str] = []
    skipped: list[Skipped] = []
    lacking: list[LocatedFinding] = []
    scalars: list[tuple[int, int]] = []
    blanks: dict[str, int] = {}
    commented = may_have_comments(source)
    manifests = 0
    others: Counter[str] = Counter()
    for document in each_document(source):
        if isinstance(document, Skipped):
            skipped.append(document)
            continue
        if commented:
            scalars += scalar_spans(source.text, [document.root])
        if document.repeated:
            findings += _duplicates(document)
        if not is_object(document.object):
            lacks, lacks_both = _incomplete(document), _bare(document)
            findings += () if lacks is None else (lacks,)
            lacking += () if lacks_both is None else (lacks_both,)
            continue
        manifests += 1
        try:
            below = list(items_of(document, others))
        except FileError as error:
            findings.append(pointed(files.Unreadable, source, error.problem, *_start(error)))
            continue
        if below:
            texts.keep(document)
            items += below
        for item in below:
            for finding in run_rules(rules_for(item, job, "object"), Context(item, job.target), defects):
                blank = placeholder(item, finding)
                if blank:
                    blanks.setdefault(blank, document.line)
                    continue
                findings.append(locate(finding, item, document, commented))
    findings += lacking if manifests else ()
    about, notes = _about_skipped(given, source, skipped, manifests)
    left_out = bool(notes) and not manifests and not about
    if blanks:
        line, are = next(iter(blanks.values())), "is" if len(blanks) == 1 else "are"
        what = f"{some(list(blanks), 3)} {are} filled in later; values that hold such a name are not checked"
        notes = (*notes, f"{given.name}:{line}: {what}")
    comments = tuple(suppressions(source, scalars)) if commented else ()
    kept = tuple(finding for finding in (*findings, *about) if wanted(finding, job.selection))
    return FileResult(
        given.name,
        kept,
        tuple(items),
        comments,
        manifests,
        others,
        notes,
        tuple(defects),
        left_out=left_out,
        readable=not skipped,
    )


_PLACEHOLDER: Final = re.compile(
    # envsubst and shells, with defaults; make and Tekton; sed scripts; Concourse; Jinja and Go; angle brackets.
    r"\$(?:\{[A-Za-z_][^{}]*\}|\([A-Za-z_][\w.-]*\)|[A-Z_][A-Z0-9_]*)"
    r"|(?<![A-Za-z0-9_])(?:__[A-Z][A-Z0-9_]*__|@[A-Z][A-Z0-9_]*@|%[A-Z][A-Z0-9_]*%)(?![A-Za-z0-9_])"
    r"|\(\([A-Za-z_][\w./-]*\)\)|\{\{[^{}]*\}\}|<[A-Z][A-Z0-9_-]*>"
)


def placeholder(item: Item, finding: LintFinding) -> str:
    """A value that envsubst or a script fills in later, if the finding concerns one."""
    if finding.code == NamedElsewhere.code:
        return ""
    value = value_at(item.raw, finding.path)
    return blank_in(value) if isinstance(value, str) else ""


def blank_in(value: str) -> str:
    """What is filled in later in a text; empty if nothing is."""
    blank = _PLACEHOLDER.search(value)
    return "" if blank is None else blank[0]


def _about_skipped(
    given: Input, source: Source, skipped: Sequence[Skipped], others: int
) -> tuple[list[LocatedFinding], tuple[str, ...]]:
    """Findings for unreadable documents, and one note for templates and non-manifests among them."""
    findings: list[LocatedFinding] = []
    templates = [broken for broken in skipped if isinstance(broken.error, TemplateError)]
    notes: tuple[str, ...] = tuple(str(template.error) for template in templates[:1])
    if templates and others:
        lines = ", ".join(str(template.line) for template in templates[:5]) + (", …" if len(templates) > 5 else "")
        is_are = "document that begins in line" if len(templates) == 1 else "documents that begin in lines"
        notes = (f"{notes[0]} (left out: the {is_are} {lines})",)
    for broken in skipped:
        if isinstance(broken.error, TemplateError) or (isinstance(broken.error, NotAnObject) and not others):
            continue
        # What is found in a directory may be no manifest at all, but a tool's file in a dialect of YAML.
        if not given.named and "apiVersion" not in source.text:
            notes = (*notes, f"left out: {broken.error}")
            break
        message, start = broken.error.problem, _start(broken.error)
        if others or len(skipped) > 1:
            message += f"; the document that begins in line {broken.line} is left out, "
            message += "the others are checked" if others else "as are others"
        findings.append(pointed(files.Unreadable, source, message, *start))
    return findings, notes


def items_of(document: Document, others: Counter[str] | None = None) -> Iterator[Item]:
    """The items of a document that rules examine: DRA objects, pods, quotas, namespaces, workloads and their
    pods, and what else names devices. The kinds of all others are counted in ``others``.

    Raises:
        InputError: a List with items that are not objects.
    """
    for manifest in objects((document,)):
        group = manifest.api_version.rpartition("/")[0]
        known = group == GROUP or (group, manifest.kind) in _OTHER_KINDS or manifest.kind in _ASKED_FOR
        known = known or right_group(group, manifest.kind) is not None
        if not known and not loses_claims(manifest.object) and not named_devices(manifest.object):
            if others is not None:
                of_group = f" of {group}" if shares_kind(group, manifest.kind) else ""
                others[f"{manifest.kind}{of_group}"] += 1
            continue
        item = Item(
            manifest.object,
            ObjectPlace(document.name, document.index, manifest.path),
            complete=not is_patch(document.name),
        )
        yield item
        if group == GROUP or manifest.kind == "Pod":
            continue
        for spec in pod_specs(manifest.object):
            yield _pod(item, spec)


def _pod(owner: Item, spec: WorkloadPodSpec) -> Item:
    """The pod that a workload's pod spec makes, as an item located at the spec."""
    path = spec.path
    inherited = {"namespace": owner.namespace} if owner.namespace else {}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {**spec.metadata, **inherited}, "spec": spec.content}
    place = owner.place
    # Some kinds have a pod spec under another name; there its fields are directly below the path.
    bare = path[-1] != "spec" or len(path) == 1
    at = ObjectPlace(place.file, place.document, (*place.path, *(path if bare else path[:-1])), bare)
    return Item(raw, at, owner, spec.complete and owner.complete)


_rules: dict[tuple[str, bool, str, Selection, Release], tuple[Rule, ...]] = {}


def rules_for(item: Item, job: Job, scope: str) -> tuple[Rule, ...]:
    """The rules of a scope for an item, given its kind, the release and the selection."""
    release = job.target.release.without_patch
    key = (item.kind, item.only_shares_kind, scope, job.selection, release)
    rules = _rules.get(key)
    if rules is None:
        rules = _rules[key] = tuple(
            rule()
            for rule in RULES
            if rule.scope == scope
            and (rule.kinds == ANY_KIND or (item.kind in rule.kinds and not item.only_shares_kind))
            and release in rule.releases
            and job.selection.has(rule.code)
        )
    return rules


def run_rules(rules: Iterable[Rule], context: Context, defects: list[str]) -> Iterator[LintFinding]:
    """The findings of the rules. A failing rule becomes a defect and does not stop the others."""
    for rule in rules:
        try:
            yield from rule.check(context)
        except Exception as error:
            import os

            if os.environ.get("KUBECTL_DRA_DEBUG"):
                raise
            place = f"{context.item.place.file}: {context.item.title}"
            defects.append(f"{place}: rule {rule.code} failed: {type(error).__name__}: {error}")


def wanted(finding: LocatedFinding, selection: Selection) -> bool:
    """Whether the rule of a finding is selected in its file."""
    return selection.has(finding.code) and selection.in_file(finding.code, finding.file)


def _duplicates(document: Document) -> Iterator[LocatedFinding]:
    from kubectl_dra.manifests.nodes import written_key
    from kubectl_dra.manifests.values import is_merge

    source = document.source
    stack: list[tuple[Any, FieldPath]] = [(document.root, ())]
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
            name = written_key(key)
            at = source.span(key.start_mark.index, key.end_mark.index)
            if name in first:
                message = f'the key "{name}" is there already, in line {first[name]}'
                finding = spanned(files.DuplicateKey, source.name, message, at, excerpt(source, at))
                yield replace(finding, field=path_text((*path, name)), document=document.index)
            first.setdefault(name, at.line)
            stack.append((value, (*path, name)))


def comment_findings(name: str, comments: Iterable[Suppression], rule: type[Rule]) -> Iterator[LocatedFinding]:
    """Findings about comments that are not understood or silence nothing."""
    for comment in comments:
        message = comment.problem or f"nothing to ignore here for {', '.join(comment.codes)}"
        yield spanned(rule, name, message, comment.at, comment.line)


def _failed(file: Input, rule: type[Rule], message: str, job: Job) -> FileResult:
    located = plain(rule, file.name, message)
    return FileResult(file.name, (located,) if wanted(located, job.selection) else ())


def _start(error: FileError) -> tuple[int, int]:
    """Where to place a finding about an error: on the first line if its position is unknown."""
    return error.line or 1, error.column or 1


# Documents that are meant to be Kubernetes objects and lack apiVersion or kind.

_PARTS: Final = frozenset(("apiVersion", "kind", "metadata", "spec", "status", "data"))
"""What an object has at its top. Other YAML has other fields."""


def _incomplete(document: Document) -> LocatedFinding | None:
    """What a document lacks to be an object; None if it is one, or is not meant to be one, as a file of values is not.

    A patch of a kustomization says by its target what it is about.
    """
    raw = document.object
    missing = [field for field in ("apiVersion", "kind") if not (isinstance(raw.get(field), str) and raw[field])]
    if len(missing) != 1 or not _is_meant(raw, missing[0]) or is_patch(document.name):
        return None
    field = missing[0]
    written = next((key for key in raw if _means(key, field)), None)
    message = f"{field} is not set"
    if field in raw and raw[field] not in (None, ""):
        message = f"{field} is not a text"
    elif written is not None:
        message += f"; '{written}' is a misspelling of it"
    shown = next(key for key in (written, field, "kind", "apiVersion", "metadata") if key in raw)
    return _lacking(document, shown, field, message, _advice(raw, field))


def _bare(document: Document) -> LocatedFinding | None:
    """The same of a document without both, which is meant to be an object where others of its file are."""
    raw = document.object
    shown = next((part for part in ("metadata", "spec") if isinstance(raw.get(part), dict)), None)
    if shown is None or "kind" in raw or "apiVersion" in raw or is_patch(document.name):
        return None
    advice = "Write apiVersion: GROUP/VERSION and kind: KIND, or join it with the document that it belongs to."
    return _lacking(document, shown, "kind", "apiVersion and kind are not set", advice)


def _lacking(document: Document, shown: str, field: str, message: str, advice: str) -> LocatedFinding:
    at = document.key_position((shown,))
    finding = spanned(files.Unreadable, document.name, message, at, excerpt(document.source, at))
    return replace(finding, advice=advice, field=field, document=document.index)


def _is_meant(raw: dict[str, Any], missing: str) -> bool:
    """Whether a mapping that lacks one of the two is meant to be an object."""
    metadata, spec = raw.get("metadata"), raw.get("spec")
    named = isinstance(metadata, dict) and any(isinstance(metadata.get(key), str) for key in ("name", "generateName"))
    if missing == "apiVersion" and OWN.get(str(raw.get("kind"))) == GROUP:
        return isinstance(metadata, dict) or isinstance(spec, dict)
    misspelt = [key for key in raw if _means(key, missing)]
    if not named or not all(key in _PARTS or key in misspelt for key in raw):
        return False
    return missing == "kind" or bool(misspelt) or (raw.get("kind") in OWN and isinstance(spec, dict))


def _means(key: Any, field: str) -> bool:
    """Whether a key is a misspelling of a field."""
    return key not in _PARTS and edit_distance(str(key).lower(), field.lower(), max(1, len(field) // 4)) is not None


def _advice(raw: dict[str, Any], field: str) -> str:
    kind = str(raw.get("kind"))
    if field == "kind":
        return "Write kind: KIND, such as ResourceClaim."
    group = OWN.get(kind)
    if group is None:
        return "Write apiVersion: GROUP/VERSION."
    version = next((life.version for life in LIFECYCLES if life.kind == kind), "v1")
    return f"Write apiVersion: {group}/{version}." if group else f"Write apiVersion: {version}."
