"""The files of a run: which are read, what is in them and said in their comments, and what they are after the changes
so far.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.data.drivers import vendor_files
from kubectl_dra.errors import FileError, InputError
from kubectl_dra.lint.locate import enclosing_lines
from kubectl_dra.manifests.changes import items_at
from kubectl_dra.manifests.documents import Covered, Document, NotAnObject, TemplateError, Unfilled, covered, parse
from kubectl_dra.manifests.edits import Edit
from kubectl_dra.manifests.inputs import LARGEST, Input, read
from kubectl_dra.manifests.kustomization import DEFAULTS, NAMES
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, is_object, objects
from kubectl_dra.manifests.source import Source, decode, scalar_spans
from kubectl_dra.manifests.workloads import GroupKind, key_of
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.codes import MIGRATE
from kubectl_dra.migrate.model import MigratedFile, Remark

if TYPE_CHECKING:
    from kubectl_dra.lint.accepted import Suppression
    from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue


# Reads the texts of a run, and distinguishes an empty result from unreadable input.

_WAY_OUT: Final = "let it be read, or leave it out with --exclude"


def check_readable(inputs: Sequence[Input], notes: list[str]) -> None:
    """For a run without objects: find one readable input, and add what is unreadable to ``notes``.

    A template that is not known to request devices counts as readable, and so does YAML that is not a
    manifest; if it was named, a note says what it is.

    Raises:
        InputError: there is none; says where the first input is broken.
    """
    problems: list[InputError] = []
    for file in inputs:
        try:
            documents = parse(decode(read(file), file.name))
            if not any(is_object(document.object) for document in documents):
                return
            # A List may hold what is no object.
            list(objects(document for document in documents if is_object(document.object)))
            return
        except TemplateError as error:
            _note(file, error, notes)
            return
        except NotAnObject as error:
            # A list is YAML that others want; an empty text is what a failed command leaves.
            if _text_of(file).strip():
                _note(file, error, notes)
                return
            problems.append(error)
        except InputError as error:
            problems.append(error)
    if problems:
        others = f" (and {len(problems) - 1} more that cannot be read)" if len(problems) > 1 else ""
        raise InputError(f"{problems[0]}{others}")


def _note(file: Input, error: InputError, notes: list[str]) -> None:
    if file.named and str(error) not in notes:
        notes.append(str(error))


def _text_of(file: Input) -> str:
    """The text of an input without its comments."""
    text = decode(read(file), file.name).text
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#") and line != "---")


def source_of(file: Input, notes: list[str], closed: list[MigratedFile]) -> Source | None:
    """The text of an input; None if it cannot be read.

    A note says why, if it is not text. What the system does not let us read goes to ``closed``; it may be a
    whole directory with much to migrate.

    Raises:
        InputError: it was named and cannot be read.
    """
    try:
        data = read(file)
    except FileError as error:
        if file.named:
            raise
        message = error.problem
        item = Remark("refusal", codes.UNREADABLE, file.name, 1, 1, "", "", message, _WAY_OUT)
        closed.append(MigratedFile(file.name, None, (item,)))
        return None
    try:
        if len(data) > LARGEST:
            raise InputError(f"{file.name}: larger than {LARGEST:,} bytes")
        return decode(data, file.name)
    except InputError as error:
        if file.named:
            raise
        notes.append(str(error))
        return None


# Tells from the text alone whether a file may have something to migrate; most files do not.

# Anything of DRA, any name of an extended resource, and what people set for accelerators beside it.
_WORDS: Final = re.compile(
    r"resource\.k8s\.io|resourceClaims|gpu|GPU|nvidia|NVIDIA|neuron|gaudi|tpu|TPU|sriov"
    r"|karpenter|ComputeClass|cluster-autoscaler"
)
_NAMES: Final = re.compile(
    r"(?<![\w./@:-])(?:requests\.|limits\.)?"
    r"(?!(?:[-a-z0-9]+\.)*(?:kubernetes|k8s)\.io/)((?:[-a-z0-9]+\.)*[-a-z0-9]+/[A-Za-z0-9][-\w.]*)(?![\w/@]|:\S)"
)
# An amount of anything: a name as a key, whose value does not begin with a letter as a label's or annotation's does;
# or the name that a queue or operator gives a resource.
_AMOUNTS: Final = re.compile(
    _NAMES.pattern + r"[\"']?\s*:\s*[\"']?(?![\"'])[^\sA-Za-z]|\bname[\"']?\s*:\s*[\"']?" + _NAMES.pattern
)
# As a JSON pointer writes it: the slash of the name is ~1. Labels ask for nothing.
_POINTED: Final = re.compile(
    r"(?<!nodeSelector/)(?<!labels/)(?<!annotations/)(?<=/)((?:[-a-z0-9]+\.)+[-a-z0-9]+)~1([A-Za-z0-9][-\w.]*)"
)
_OPERATION: Final = re.compile(r"^\s*(?:\[\s*\{|-\s+\{?)\s*[\"']?op[\"']?\s*:", re.MULTILINE)
_VERSION: Final = re.compile(r"/v\d+((alpha|beta)\d+)?\Z")
_COMMENT: Final = re.compile(r"(?:^|\s)#(?!\{)|\{\{-?\s*/\*")
_KEY: Final = re.compile(r"(?:.*[\s{,\[-])?[\"']?key[\"']?:\s*[\"']?")
# A value of a JSON patch, whose operation may write the key of a toleration or taint.
_VALUE: Final = re.compile(r"(?:.*[\s{,-])?[\"']?value[\"']?:\s*[\"']?")
_TOLERATED: Final = re.compile(r"/(?:tolerations|taints)/(?:\d+|-)/key\b")
_LONGEST_OPERATION: Final = 1_000
_EDGE: Final = re.compile(r"^[ \t]*-[ \t]|[{}]", re.MULTILINE)
# A label of a query of metrics: {resource="nvidia.com/gpu"}. A query of nodes: -l nvidia.com/gpu.count, or what jq
# takes from one: .status.allocatable["nvidia.com/gpu"].
_MATCHED: Final = re.compile(
    r"[{,]\s*\w+\s*=~?\s*\\*[\"']\Z"
    r"|(?:\s-l\s*|--selector[\s=]|\b(?:labels|annotations|allocatable|capacity)\[)\\*[\"']?\Z"
)
# A value that is no amount and no placeholder of one: a label such as nvidia.com/gpu.present has it.
_LABEL: Final = re.compile(r"[\"']?\s*(?::\s+|=)[\"']?[A-Za-z]")
# NVIDIA Dynamo counts devices by a key of its own (device_plugins/pods.py).
_DYNAMO: Final = re.compile(r"^\s*kind:\s*[\"']?Dynamo", re.MULTILINE)
_GPU_COUNT: Final = re.compile(r"^\s+(gpu):\s*[\"']?(?:[1-9]|\{\{)", re.MULTILINE)
_API: Final = re.compile(r"resource\.k8s\.io/v1(?:alpha\d+|beta\d+)")


def relevant(text: str) -> bool:
    """Whether the text may have something to migrate. Errs on the side of True."""
    if "/" not in text and "~1" not in text:
        return _WORDS.search(text) is not None
    return any(pattern.search(text) for pattern in (_WORDS, _AMOUNTS, _known_domains()))


@cache
def _known_domains() -> re.Pattern[str]:
    """The domains of resources that vendors' files of this package know, as they begin a name."""
    domains = {domain for file in vendor_files().values() for domain in file.domains if domain != "*"}
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(re.escape(domain) for domain in sorted(domains))})(?:/|~1)")


def evidence(text: str, catalogue: VendorCatalogue, version: str) -> list[tuple[int, str]]:
    """Which resources of the catalogue or other API versions an unreadable text names, and where."""
    known: dict[str, bool] = {}
    out = [
        (match.start(), match[0])
        for match in _API.finditer(text)
        if not (match[0].endswith(f"/{version}") or _is_mention(text, match.start()))
    ]
    for match in _NAMES.finditer(text):
        name = match[1]
        if _is_mention(text, match.start()) or _LABEL.match(text, match.end()):
            continue
        if name not in known:
            known[name] = _VERSION.search(name) is None and catalogue.moves(name) and not catalogue.is_label(name)
        if known[name]:
            out.append((match.start(), name))
    if _DYNAMO.search(text):
        out += [(match.start(1), match[1]) for match in _GPU_COUNT.finditer(text)]
    return sorted((*out, *pointed(text, catalogue)))


def asked_in(text: str, catalogue: VendorCatalogue) -> list[tuple[int, str]]:
    """The resources of the catalogue that a text asks for, and where: without labels, which have values of letters."""
    return [(at, name) for at, name in evidence(text, catalogue, "") if catalogue.moves(name)]


def _is_mention(text: str, at: int) -> bool:
    """Whether the name is in a comment the key of a toleration or taint, or of a query: these request nothing."""
    lead = text[text.rfind("\n", 0, at) + 1 : at]
    if _COMMENT.search(lead) or _KEY.fullmatch(lead) or _MATCHED.search(lead):
        return True
    return _VALUE.fullmatch(lead) is not None and _TOLERATED.search(_operation_around(text, at)) is not None


def _operation_around(text: str, at: int) -> str:
    """The item of a list, or the mapping in braces, in which a position is."""
    begin = max(0, at - _LONGEST_OPERATION)
    start = max((match.start() for match in _EDGE.finditer(text, begin, at)), default=begin)
    end = _EDGE.search(text, at)
    return text[start : len(text) if end is None else end.start()]


def pointed(text: str, catalogue: VendorCatalogue) -> list[tuple[int, str]]:
    """Which resources of the catalogue the JSON patches (RFC 6902) of a text name, and where."""
    places = [(match.start(), f"{match[1]}/{match[2]}") for match in _POINTED.finditer(text)] if "~1" in text else []
    return [(at, name) for at, name in places if catalogue.moves(name)]


def is_json_patch(text: str) -> bool:
    """Whether a list has operations of a JSON patch (RFC 6902) in it."""
    return _OPERATION.search(text) is not None


def named_in(text: str, catalogue: VendorCatalogue) -> list[str]:
    """The resources of the catalogue that a text names, plainly or in JSON pointer form."""
    names = [
        match[1]
        for match in _NAMES.finditer(text)
        if not _VERSION.search(match[1]) and not _is_mention(text, match.start())
    ]
    names = [name for name in dict.fromkeys(names) if catalogue.moves(name)]
    return list(dict.fromkeys((*names, *(name for _, name in pointed(text, catalogue)))))


# OpenShift Templates, whose objects are handled like others, except that a parameter is neither a number nor
# a name.
#
# A quantity or name such as ``${GPUS}`` is refused where it matters; elsewhere in an object it stays.

TEMPLATE: Final[GroupKind] = ("template.openshift.io", "Template")
TEMPLATE_OBJECTS: Final = "objects"


def in_template(document: Document) -> Iterator[ManifestObject]:
    """The objects of such a template; none for any other document."""
    if not is_object(document.object) or key_of(document.object) != TEMPLATE:
        return
    for index, item in enumerate(items_at(document.object, TEMPLATE_OBJECTS)):
        if is_object(item):
            yield ManifestObject(item, document, (TEMPLATE_OBJECTS, index))


class File:
    """A file: ``original`` as read, ``source`` as it is now with its ``documents`` and ``objects``.

    ``origins`` maps each document to its index in the original, None for added ones. ``non_objects`` are
    documents that are not Kubernetes objects. With ``patch``, kustomize lays its objects over others.
    ``rounds`` are the edits so far, each applied to the result of the one before it. ``partly`` has the whole text
    if some documents are templates, which ``source`` has as comments.
    """

    def __init__(
        self, source: Source, documents: tuple[Document, ...], patch: bool = False, partly: Covered | None = None
    ) -> None:
        self.name = source.name
        self.original = source if partly is None else partly.whole
        self._partly = partly
        self.before = documents
        self.patch = patch
        self.items: list[Remark] = []
        self.rounds: tuple[tuple[Edit, ...], ...] = ()
        self.ignored = Ignored(self.original, documents)
        self.left: set[ObjectKey] = set()
        self._set(source, documents, tuple(range(len(documents))))

    def _set(self, source: Source, documents: tuple[Document, ...], origins: tuple[int | None, ...]) -> None:
        self.source, self.documents, self.origins = source, documents, origins
        self.objects: list[ManifestObject] = []
        self.non_objects: list[Document] = []
        self._origins = ByIdentity[Document, int | None]()
        self._origins.put_all(documents, origins)
        for document in documents:
            try:
                if self.name.endswith(NAMES) and not is_object(document.object):
                    # kustomize takes its own file without apiVersion and kind.
                    self.objects.append(ManifestObject({**DEFAULTS, **document.object}, document))
                    continue
                self.objects += list(objects((document,)))
                self.objects += in_template(document)
            except InputError:
                self.non_objects.append(document)

    @property
    def unfilled(self) -> tuple[Unfilled, ...]:
        """The documents that are templates, and stay."""
        return () if self._partly is None else self._partly.unfilled

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self.source.text if self._partly is None else self._partly.uncovered(self.source.text)

    def take(self, changed_file: MadeFile) -> None:
        """Adopt a changed version."""
        self._set(changed_file.source, changed_file.documents, changed_file.origins)
        self.rounds = (*self.rounds, *changed_file.rounds)

    def place(self, manifest: ManifestObject, path: FieldPath) -> tuple[int, int, int]:
        """Line and column in the original for a path of an object, and the number of its document there."""
        origin = self._origins.get(manifest.document)
        if origin is None:
            return 1, 1, 0
        document = self.before[origin]
        position = document.key_position((*manifest.path, *path))
        return position.line, position.column, document.index

    def ignores(self, manifest: ManifestObject, code: str, path: FieldPath) -> bool:
        """Whether a comment says that nothing is to be said or changed at a path of an object."""
        origin = self._origins.get(manifest.document)
        return origin is not None and self.ignored.covers(code, self.before[origin], (*manifest.path, *path))


def opened(source: Source, patch: bool = False) -> File:
    """A file with its documents; those that are templates with bare placeholders are left out.

    Raises:
        FileError: it cannot be read.
    """
    try:
        return File(source, parse(source), patch)
    except FileError as error:
        partly = covered(source)
        if partly is None:
            raise
        try:
            return File(partly.source, parse(partly.source), patch, partly)
        except FileError:
            # Nothing but templates is in it.
            raise error from None


class MadeFile(NamedTuple):
    """A file after some changes, made by the edits in ``rounds``; ``origins`` are those of the documents."""

    source: Source
    documents: tuple[Document, ...]
    origins: tuple[int | None, ...]
    rounds: tuple[tuple[Edit, ...], ...]


# Comments such as ``# kubectl-dra: ignore[MIG101] reason``: what they cover stays, and nothing is said of it.


class Ignored:
    """The comments of one file, as it was read, and which of them were needed."""

    def __init__(self, source: Source, documents: Sequence[Document]) -> None:
        self._source = source
        self._documents = documents
        self._used: set[int] = set()
        self._inside = 0

    @cached_property
    def _comments(self) -> list[Suppression]:
        text = self._source.text
        if "kubectl-dra:" not in text or MIGRATE not in text:
            return []
        # It knows all rules of lint, which few runs need.
        from kubectl_dra.lint.accepted import suppressions

        scalars = scalar_spans(text, [document.root for document in self._documents])
        return [
            suppression
            for suppression in suppressions(self._source, sorted(scalars))
            if not suppression.problem and _codes(suppression)
        ]

    def covers(self, code: str, document: Document, path: FieldPath) -> bool:
        """Whether a comment silences a code at a path of a document: nothing is reported or changed there."""
        if not self._comments:
            return False
        return self.covers_lines(code, {line for line, _ in enclosing_lines(document, path)})

    def covers_lines(self, code: str, lines: Collection[int]) -> bool:
        """As ``covers``, by the numbers of the lines."""
        hits = [
            index
            for index, suppression in enumerate(self._comments)
            if suppression.covers in lines and any(code.startswith(prefix) for prefix in _codes(suppression))
        ]
        self._used.update(hits)
        return bool(hits)

    def note_inside(self, number: int) -> None:
        """Count comments inside a text of the file, such as a patch, that hid something."""
        self._inside += number

    @property
    def count(self) -> int:
        """Number of comments that hid something."""
        return len(self._used) + self._inside

    def unused(self) -> Iterator[Suppression]:
        """Comments that hid nothing."""
        yield from (suppression for index, suppression in enumerate(self._comments) if index not in self._used)


def _codes(comment: Suppression) -> list[str]:
    return [code for code in comment.codes if code.startswith(MIGRATE)]
