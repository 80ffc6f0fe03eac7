"""A run of lint: each file by itself, in several processes if there are many, then all files together."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.accepted import apply
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS, classes_not_given, not_given
from kubectl_dra.lint.check_file import (
    FileResult,
    Job,
    blank_in,
    check_file,
    comment_findings,
    placeholder,
    rules_for,
    run_rules,
    wanted,
)
from kubectl_dra.lint.context import AssumedCluster, Context, GivenObjects, Item, compile_selector, selector_texts
from kubectl_dra.lint.finding import SEVERITIES, LintFinding, LocatedFinding, Report, SelectorOpinion
from kubectl_dra.lint.fixes import UNREADABLE
from kubectl_dra.lint.locate import Texts, locate, plain
from kubectl_dra.lint.rules import BY_CODE, files
from kubectl_dra.lint.rules.server_rejections import UNDECODED
from kubectl_dra.manifests.inputs import Input

if TYPE_CHECKING:
    from kubectl_dra.cel.device import DeviceInput


# The processes that check files: this one, and forks of it, taking files from one queue.
#
# A fork already has all modules and the job. It keeps the documents of its files, so it can later also locate
# findings of rules about several objects in them.

_MOST_CHUNKS: Final = 1_000
_NUMBER: Final = 4


class FileAsked(Struct, frozen=True):
    """A finding to be located, and the number of its item within the file."""

    item: int
    finding: LintFinding


class _Checker:
    """Checks files and remembers what is needed to locate findings in them."""

    def __init__(self, inputs: Sequence[Input], job: Job) -> None:
        self._inputs = inputs
        self._job = job
        self._texts = Texts()
        self.results: dict[int, FileResult] = {}

    def check(self, queue: int, size: int) -> None:
        """Takes chunks of files from the queue until it is empty."""
        while number := os.read(queue, _NUMBER):
            start = int.from_bytes(number, "big") * size
            for index in range(start, min(start + size, len(self._inputs))):
                self.results[index] = check_file(self._inputs[index], self._job, self._texts)

    def locate(self, unlocated: Mapping[int, Sequence[FileAsked]]) -> dict[int, list[LocatedFinding]]:
        """Locate findings in the files with these numbers."""
        return {index: self._located(index, part) for index, part in unlocated.items()}

    def _located(self, index: int, unlocated: Sequence[FileAsked]) -> list[LocatedFinding]:
        result = self.results[index]
        needed = {result.items[file.item].place.document for file in unlocated}
        documents = self._texts.documents(self._inputs[index], result.digest, needed)
        out = []
        for file in unlocated:
            item = result.items[file.item]
            document = documents.get(item.place.document)
            if document is None:
                return [plain(files.Unavailable, result.name, "it changed while it was read")]
            out.append(locate(file.finding, item, document, bool(result.comments)))
        return out


class _Fork(Struct, frozen=True):
    """A process that waits for requests, and what it has checked."""

    process: int
    questions: BinaryIO
    answers: BinaryIO


class Workers:
    """``processes`` that check the inputs, including this one. Use it in a ``with`` statement."""

    def __init__(self, inputs: Sequence[Input], job: Job, processes: int) -> None:
        self._inputs = inputs
        self._size = max(1, min(16, len(inputs) // (processes * 4)), -(-len(inputs) // _MOST_CHUNKS))
        self._own = _Checker(inputs, job)
        self._queue, end = os.pipe()
        # It is all in the pipe before anyone reads: that many numbers fit in.
        chunks = -(-len(inputs) // self._size)
        os.write(end, b"".join(number.to_bytes(_NUMBER, "big") for number in range(chunks)))
        os.close(end)
        self._forks: list[_Fork] = []
        if processes > 1:
            _warm_up()
        self._owner: dict[int, int] = {}
        for _ in range(processes - 1):
            self._forks.append(self._fork())

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._queue)
        for fork in self._forks:
            # Without anyone to answer to, it ends.
            with suppress(OSError):
                fork.questions.close()
            fork.answers.close()
            os.waitpid(fork.process, 0)

    def check(self) -> list[FileResult]:
        """Results of all inputs, in order."""
        self._own.check(self._queue, self._size)
        results = self._own.results
        for number, fork in enumerate(self._forks):
            theirs = _answer(fork) or {}
            results.update(theirs)
            self._owner.update(dict.fromkeys(theirs, number))
        return [
            results.get(index) or FileResult(given.name, defects=(f"{given.name}: the process that checked it ended",))
            for index, given in enumerate(self._inputs)
        ]

    def locate(self, unlocated: Mapping[str, Sequence[FileAsked]]) -> dict[str, list[LocatedFinding]]:
        """Locate findings, given by the name of their file."""
        parts: list[dict[int, Sequence[FileAsked]]] = [{} for _ in range(len(self._forks) + 1)]
        names = {file.name: index for index, file in enumerate(self._inputs)}
        for name, findings in unlocated.items():
            parts[self._owner.get(names[name], -1)][names[name]] = findings
        for fork, part in zip(self._forks, parts, strict=False):
            with suppress(OSError):
                _send(fork.questions, part)
        located = self._own.locate(parts[-1])
        for fork, part in zip(self._forks, parts, strict=False):
            answer = _answer(fork)
            located.update(self._own.locate(part) if answer is None else answer)
        return {self._inputs[index].name: findings for index, findings in located.items()}

    def _fork(self) -> _Fork:
        questions, ask = os.pipe()
        answer, answers = os.pipe()
        process = os.fork()
        if process:
            os.close(questions)
            os.close(answers)
            return _Fork(process, os.fdopen(ask, "wb"), os.fdopen(answer, "rb"))
        # Whatever happens here, nothing of the parent's may run twice: its output, its exit handlers.
        code = 1
        try:
            os.close(ask)
            os.close(answer)
            for other in self._forks:
                other.questions.close()
                other.answers.close()
            self._work(os.fdopen(questions, "rb"), os.fdopen(answers, "wb"))
            code = 0
        except (EOFError, BrokenPipeError, KeyboardInterrupt):
            pass
        except BaseException:
            if os.environ.get("KUBECTL_DRA_DEBUG"):
                sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _work(self, questions: BinaryIO, answers: BinaryIO) -> None:
        import pickle

        self._own.check(self._queue, self._size)
        _send(answers, self._own.results)
        _send(answers, self._own.locate(pickle.load(questions)))


def _warm_up() -> None:
    """Import everything that the processes need before forking."""
    from importlib import import_module

    for name in (
        "yaml",
        "kubectl_dra.cel.program",
        "kubectl_dra.admission.server.verdict",
        "kubectl_dra.lint.analysis.rejection_fixes",
    ):
        import_module(name)


def _send(to: BinaryIO, what: Any) -> None:
    import pickle

    pickle.dump(what, to, protocol=pickle.HIGHEST_PROTOCOL)
    to.flush()


def _answer(fork: _Fork) -> Any:
    import pickle

    try:
        return pickle.load(fork.answers)
    except (EOFError, pickle.UnpicklingError):
        return None


MANY: Final = 64
"""The number of files from which a second process pays off."""
_MOST_PROCESSES: Final = 4


def lint(inputs: Sequence[Input], job: Job, processes: int | None = None, second: bool = False) -> Report:
    """Check every input and return the findings, in input order and then by place.

    ``second`` also evaluates the selectors with cel-python.
    """
    with Workers(inputs, job, _processes(len(inputs)) if processes is None else processes) as workers:
        results = workers.check()
        defects = [defect for result in results for defect in result.defects]
        given = GivenObjects(item for result in results for item in result.items)
        later = workers.locate(_together(given, results, job, defects))
    findings: list[LocatedFinding] = []
    suppressed = 0
    for result in results:
        kept, silenced = _remaining(result, [*result.findings, *later.get(result.name, ())], job)
        suppressed += silenced
        findings += sorted(_told_once(kept), key=lambda finding: finding.order)
    opinion = None
    if second:
        opinion = verify((item for result in results for item in result.items), job.target)
    unchecked: Counter[str] = Counter()
    for result in results:
        unchecked.update(result.unchecked)
    return Report(
        tuple(_distinct(findings)),
        tuple(result.name for result in results),
        tuple((result.name, item.title) for result in results for item in result.items if item.owner is None),
        sum(result.manifests for result in results),
        suppressed,
        tuple(note for result in results for note in result.notes),
        tuple(defects),
        job.target.release,
        job.target.features,
        opinion,
        sum(result.left_out for result in results),
        job.target.upgrade,
        tuple(given.unread),
        unchecked,
        tuple(dict.fromkeys(name for name in _not_given(given, job.target) if not blank_in(name))),
        tuple(dict.fromkeys((result.name, title) for result in results for title in _checked_partly(result))),
    )


def _processes(files: int) -> int:
    if files < MANY or not hasattr(os, "fork"):
        return 1
    return min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST_PROCESSES
    )


def _not_given(given: GivenObjects, target: AssumedCluster) -> Iterator[str]:
    """The claims, templates and classes that are used and no file has. Where a cluster is read, rules look there."""
    if target.snapshot is not None:
        return
    for item in given.of_kind("Pod"):
        for used in not_given(Context(item, target, given)):
            yield f"{used.kind} {f'{item.namespace}/' if item.namespace else ''}{used.target}"
    for kind in (*CLAIM_KINDS, "Pod"):
        for item in given.of_kind(kind):
            for name in classes_not_given(Context(item, target, given)):
                yield f"DeviceClass {name}"


def _checked_partly(result: FileResult) -> Iterator[str]:
    """The objects that the API server cannot decode: it validates nothing of them before that is mended."""
    for finding in result.findings:
        if finding.code in UNDECODED:
            yield finding.object


def _together(
    given: GivenObjects, results: Sequence[FileResult], job: Job, defects: list[str]
) -> dict[str, list[FileAsked]]:
    """The findings of the rules about several objects, by file."""
    numbers = {id(item): number for result in results for number, item in enumerate(result.items)}
    out: dict[str, list[FileAsked]] = {}
    for item in given.items:
        rules = rules_for(item, job, "set")
        for finding in run_rules(rules, Context(item, job.target, given), defects) if rules else ():
            about = finding.item or item
            if placeholder(about, finding):
                continue
            out.setdefault(about.place.file, []).append(FileAsked(numbers[id(about)], finding.at_home()))
    return out


def _remaining(result: FileResult, findings: list[LocatedFinding], job: Job) -> tuple[list[LocatedFinding], int]:
    """The findings of a file that its comments do not silence, those about the comments, and how many are silenced."""
    findings = [finding for finding in findings if wanted(finding, job.selection)]
    if not result.readable:
        findings = [replace(finding, obstacle=UNREADABLE) if finding.changes else finding for finding in findings]
    if not result.comments:
        return findings, 0
    kept, silenced, unused = apply(findings, result.comments)
    wrong = [comment for comment in result.comments if comment.problem]
    about = (
        *comment_findings(result.name, wrong, files.BadSuppression),
        *comment_findings(result.name, unused, files.UnusedSuppression),
    )
    return [*kept, *(finding for finding in about if wanted(finding, job.selection))], silenced


def _told_once(findings: Sequence[LocatedFinding]) -> Iterator[LocatedFinding]:
    """The findings of a file without those of which another one, that is not milder, tells the cause."""
    causes: dict[tuple[int, FieldPath, str], int] = {}
    for finding in findings:
        place = (finding.document, finding.path, finding.code)
        severity = SEVERITIES.index(finding.severity)
        causes[place] = min(severity, causes.get(place, severity))
    for finding in findings:
        rule = BY_CODE.get(finding.code)
        severity = SEVERITIES.index(finding.severity)
        keys = ((finding.document, finding.path, code) for code in rule.told_by) if rule is not None else ()
        if not any(causes.get(key, severity + 1) <= severity for key in keys):
            yield finding


def _distinct(findings: Iterable[LocatedFinding]) -> Iterator[LocatedFinding]:
    """Each finding once: an anchor used twice has its mistakes in one place."""
    seen: set[tuple[Any, ...]] = set()
    for finding in findings:
        key = (finding.file, finding.code, finding.offset, finding.end_offset, finding.message)
        if key not in seen:
            seen.add(key)
            yield finding


# ``--verify``: cel-python evaluates every selector on every known device, too.


def verify(items: Iterable[Item], target: AssumedCluster) -> SelectorOpinion:
    """Compare both engines on each distinct expression, for the devices given and those of the snapshot."""
    from kubectl_dra.cel.cel_python import Opinions

    items = tuple(items)
    devices = tuple(_devices(items, target))
    expressions = dict.fromkeys(
        text for item in items if item.is_dra and item.v1 is not None for _, text in selector_texts(item.v1, ("spec",))
    )
    programs = [compile_selector(expression, target) for expression in expressions]
    compiled = [program for program in programs if not isinstance(program, Exception)]
    comparison = Opinions(devices).compare_all(compiled)
    differ = tuple(
        f"{' '.join(difference.expression.split())} on {len(difference.devices)} devices such as one of "
        f"{devices[difference.devices[0]].driver}: here {difference.ours}, cel-python {difference.theirs}"
        for difference in comparison.differ
    )
    reasons = tuple(comparison.reasons.items())
    return SelectorOpinion(len(compiled), len(devices), comparison.agree, differ, comparison.not_comparable, reasons)


def _devices(items: Sequence[Item], target: AssumedCluster) -> Iterable[DeviceInput]:
    from kubectl_dra.api.slices import Device

    for item in items:
        spec = (item.v1 or {}).get("spec")
        if item.kind != "ResourceSlice" or not isinstance(spec, dict):
            continue
        for raw in spec.get("devices") or ():
            try:
                yield Device.from_json(str(spec.get("driver") or ""), raw)
            except (ValueError, KeyError, TypeError, AttributeError):
                # What is wrong with it is said by other rules.
                continue
    if target.snapshot is not None:
        for slice_ in target.snapshot.exact().slices:
            yield from slice_.devices
