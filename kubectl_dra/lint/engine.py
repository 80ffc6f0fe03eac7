"""A run of lint: each file by itself, in several processes if there are many, then all files together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.lint.check_file import FileResult, Job, comment_findings, rules_for, run_rules, wanted
from kubectl_dra.lint.context import Context, GivenObjects
from kubectl_dra.lint.result import LocatedFinding, Report
from kubectl_dra.lint.rules import files
from kubectl_dra.lint.suppress import apply
from kubectl_dra.lint.workers import FileAsked, Workers
from kubectl_dra.manifests.inputs import Input

if TYPE_CHECKING:
    from kubectl_dra.lint.verify import SelectorOpinion

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
        world = GivenObjects(item for result in results for item in result.items)
        later = workers.locate(_together(world, results, job, defects))
    findings: list[LocatedFinding] = []
    suppressed = 0
    for result in results:
        kept, silenced = _remaining(result, [*result.findings, *later.get(result.name, ())], job)
        suppressed += silenced
        findings += sorted(kept, key=lambda found: found.order)
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
        _second_opinion(results, job) if second else None,
        sum(result.left_out for result in results),
        job.target.upgrade,
        tuple(world.unread),
    )


def _second_opinion(results: Sequence[FileResult], job: Job) -> SelectorOpinion:
    from kubectl_dra.lint.verify import verify

    return verify((item for result in results for item in result.items), job.target)


def _processes(files: int) -> int:
    if files < MANY or not hasattr(os, "fork"):
        return 1
    return min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST_PROCESSES
    )


def _together(
    world: GivenObjects, results: Sequence[FileResult], job: Job, defects: list[str]
) -> dict[str, list[FileAsked]]:
    """The findings of the rules about several objects, by file."""
    numbers = {id(item): number for result in results for number, item in enumerate(result.items)}
    out: dict[str, list[FileAsked]] = {}
    for item in world.items:
        rules = rules_for(item, job, "set")
        for found in run_rules(rules, Context(item, job.target, world), defects) if rules else ():
            about = found.item or item
            out.setdefault(about.place.file, []).append(FileAsked(numbers[id(about)], found.at_home()))
    return out


def _remaining(result: FileResult, found: list[LocatedFinding], job: Job) -> tuple[list[LocatedFinding], int]:
    """The findings of a file that its comments do not silence, those about the comments, and how many are silenced."""
    found = [one for one in found if wanted(one, job.selection)]
    if not result.comments:
        return found, 0
    kept, silenced, unused = apply(found, result.comments)
    wrong = [comment for comment in result.comments if comment.problem]
    about = (
        *comment_findings(result.name, wrong, files.BadSuppression),
        *comment_findings(result.name, unused, files.UnusedSuppression),
    )
    return [*kept, *(one for one in about if wanted(one, job.selection))], silenced


def _distinct(findings: Iterable[LocatedFinding]) -> Iterator[LocatedFinding]:
    """Each finding once: an anchor used twice has its mistakes in one place."""
    seen: set[tuple[Any, ...]] = set()
    for found in findings:
        key = (found.file, found.code, found.offset, found.end_offset, found.message)
        if key not in seen:
            seen.add(key)
            yield found
