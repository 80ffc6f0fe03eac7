"""A run of lint: all files by themselves, in several processes if there are many, then all of them together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.lint.checking import (
    FileResult,
    Job,
    check_file,
    comment_findings,
    locate,
    plain,
    rules_for,
    run_rules,
    taken_apart,
    wanted,
    world_of,
)
from kubectl_dra.lint.context import Context, World
from kubectl_dra.lint.result import Located, Report
from kubectl_dra.lint.rules import files
from kubectl_dra.lint.suppress import apply
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.inputs import Input, read

MANY: Final = 64
"""Files from which on a second process pays."""
_MOST_PROCESSES: Final = 4


def lint(inputs: Sequence[Input], job: Job, processes: int | None = None) -> Report:
    """Checks every input and returns what was found, in the order of the inputs and of places in them."""
    results, documents = _all_files(inputs, job, processes)
    texts = _Texts(inputs, results, documents)
    defects = [defect for result in results for defect in result.defects]
    count = _processes(len(inputs)) if processes is None else processes
    later = _together(results, job, texts, defects, count)
    findings: list[Located] = []
    suppressed = 0
    for result in results:
        mine = [*result.findings, *later.get(result.name, ())]
        kept, silenced, unused = apply(mine, result.comments)
        suppressed += silenced
        if result.comments:
            wrong = [comment for comment in result.comments if comment.problem]
            kept += texts.about_comments(result.name, wrong, files.BadSuppression, job)
            kept += texts.about_comments(result.name, unused, files.UnusedSuppression, job)
        findings += sorted(kept, key=lambda found: found.order)
    return Report(
        tuple(_distinct(findings)),
        tuple(result.name for result in results),
        tuple((result.name, item.title) for result in results for item in result.items if item.owner is None),
        sum(result.manifests for result in results),
        suppressed,
        tuple(result.note for result in results if result.note),
        tuple(defects),
        job.target.release,
        job.target.features,
    )


def _all_files(
    inputs: Sequence[Input], job: Job, processes: int | None
) -> tuple[list[FileResult], dict[str, tuple[Document, ...]]]:
    """Results of all files in their order; the documents of those that this process read."""
    count = _processes(len(inputs)) if processes is None else processes
    if count > 1:
        return list(_in_pool(inputs, job, count)), {}
    results: list[FileResult] = []
    documents: dict[str, tuple[Document, ...]] = {}
    for found in inputs:
        result, read_now = check_file(found, job)
        # Only what may be asked again is kept: node graphs are many times larger than their texts.
        if result.items or result.comments:
            documents[found.name] = read_now
        results.append(result)
    return results, documents


def _processes(files: int) -> int:
    if files < MANY or not hasattr(os, "fork"):
        return 1
    return min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST_PROCESSES
    )


def _distinct(findings: Iterable[Located]) -> Iterator[Located]:
    """Each finding once: an anchor that is used twice has its mistakes in one place."""
    seen: set[tuple[Any, ...]] = set()
    for found in findings:
        key = (found.file, found.code, found.offset, found.end_offset, found.message)
        if key not in seen:
            seen.add(key)
            yield found


_job: Job | None = None


def _begin(job: Job) -> None:
    global _job
    _job = job


def _one(found: Input) -> FileResult:
    assert _job is not None
    return check_file(found, _job)[0]


def _in_pool(inputs: Sequence[Input], job: Job, processes: int) -> Iterator[FileResult]:
    from multiprocessing import get_context

    # Forked, the children have the modules and the job already.
    _begin(job)
    chunk = max(1, min(64, len(inputs) // (processes * 4)))
    with get_context("fork").Pool(processes) as pool:
        yield from pool.imap(_one, inputs, chunk)


class _Texts:
    """The documents of files, read again where another process had them."""

    def __init__(
        self, inputs: Sequence[Input], results: Iterable[FileResult], documents: dict[str, tuple[Document, ...]]
    ) -> None:
        self._inputs = {found.name: found for found in inputs}
        self._digests = {result.name: result.digest for result in results}
        self._documents = documents

    def documents(self, name: str) -> tuple[Document, ...] | None:
        """The documents of a file; None if it is not any more what it was."""
        found = self._documents.get(name)
        if found is None:
            try:
                data = read(self._inputs[name])
                found = taken_apart(data, name).documents if hash(data) == self._digests[name] else ()
            except InputError:
                found = ()
            self._documents[name] = found
        return found or None

    def about_comments(self, name: str, comments: Any, rule: Any, job: Job) -> list[Located]:
        """Findings about suppressions of a file."""
        documents = self.documents(name) if comments else None
        if not documents:
            return []
        found = comment_findings(documents[0].source, comments, rule)
        return [one for one in found if wanted(one, job.selection)]


def _together(
    results: Sequence[FileResult], job: Job, texts: _Texts, defects: list[str], processes: int
) -> dict[str, list[Located]]:
    """What the rules about several objects find, by file."""
    global _all
    world = world_of(results)
    commented = frozenset(result.name for result in results if result.comments)
    _all = _Together(world, job, texts, commented)
    parts: Iterable[tuple[list[Located], list[str]]]
    if processes > 1:
        from multiprocessing import get_context

        with get_context("fork").Pool(processes) as pool:
            parts = pool.map(_some, _slices(len(world.items), processes * 4), 1)
    else:
        parts = [_some((0, len(world.items)))]
    out: dict[str, list[Located]] = {}
    for found, failed in parts:
        defects += failed
        for located in found:
            out.setdefault(located.file, []).append(located)
    return out


class _Together(NamedTuple):
    """What the processes share that look at all objects: they are forked when it is there."""

    world: World
    job: Job
    texts: _Texts
    commented: frozenset[str]


_all: _Together | None = None


def _slices(total: int, parts: int) -> list[tuple[int, int]]:
    size = max(1, -(-total // parts))
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def _some(span: tuple[int, int]) -> tuple[list[Located], list[str]]:
    """Findings and defects of the rules about several objects, for some of the items."""
    assert _all is not None
    world, job, texts, commented = _all
    out: list[Located] = []
    defects: list[str] = []
    for item in world.items[span[0] : span[1]]:
        rules = rules_for(item, job, "set")
        for found in run_rules(rules, Context(item, job.target, world), defects) if rules else ():
            about = found.item or item
            name = about.place.file
            documents = texts.documents(name)
            if documents is None:
                out.append(plain(files.Unavailable, name, "it changed while it was read"))
                continue
            document = next(one for one in documents if one.index == about.place.document)
            located = locate(found, about, document, name in commented)
            if wanted(located, job.selection):
                out.append(located)
    return out, defects
