"""The fixes of a run of ``lint``: made, and shown or written."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kubectl_dra.cli.file_commands import tell_links
from kubectl_dra.exit_codes import EXIT_NO
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import LocatedFinding, Report, Safety
from kubectl_dra.lint.fixes import Fixed, fix_text
from kubectl_dra.lint.rules import BY_CODE
from kubectl_dra.manifests.files import replace_files, unified_diff
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.source import decode
from kubectl_dra.report.color import tell
from kubectl_dra.safe_output import document


def fix(report: Report, inputs: Sequence[Input], job: Job, *, unsafe: bool) -> list[Fixed]:
    """The files with findings that can be fixed, with the fixes made."""
    allowed: tuple[Safety, ...] = ("safe", "unsafe") if unsafe else ("safe",)
    by_file: dict[str, list[LocatedFinding]] = {}
    for finding in report.findings:
        if finding.changes and finding.safety in allowed:
            by_file.setdefault(finding.file, []).append(finding)

    def check(name: str, data: bytes) -> Sequence[LocatedFinding]:
        changed = [file._replace(data=data) if file.name == name else file for file in inputs]
        if not any(BY_CODE[finding.code].scope == "set" for finding in by_file[name]):
            changed = [file for file in changed if file.name == name]
        return [finding for finding in lint(changed, job, 1).findings if finding.file == name]

    out = []
    for file in inputs:
        if file.name in by_file:
            source = decode(read(file), file.name)
            out.append(fix_text(source, by_file[file.name], allowed, check))
    return out


def show(fixed: Sequence[Fixed], report: Report, *, unsafe: bool) -> int:
    """Print the changes as a diff; returns the exit code."""
    differs = False
    for each in fixed:
        text = unified_diff(each.text)
        differs = differs or bool(text)
        document(text)
    sys.stdout.flush()
    count = sum(len(each.made) for each in fixed)
    more = 0 if unsafe else sum(finding.promised == "unsafe" for finding in report.findings)
    found = len(report.findings)
    hint = f"; {more}{' more' if count else ''} with --unsafe-fixes" if more else ""
    left = max(0, found - count - more)
    rest = f"; {left} left to you (shown without --diff)" if left else ""
    tell(
        f"the diff fixes {min(count, found)} of {_many(found, 'finding', 'findings')}{hint}{rest}"
        if found
        else "no findings"
    )
    _followed(fixed)
    for each in fixed:
        for finding in each.brought(report.findings):
            tell(f"after it {finding.file}:{finding.line}: {finding.code}: {finding.told}")
    _refusals(fixed)
    return EXIT_NO if differs else 0


def write(fixed: Sequence[Fixed], named: Sequence[str]) -> None:
    """Write the files that differ."""
    through = replace_files([each.text for each in fixed if each.text.after != each.text.before], named)
    count = sum(len(each.made) + len(each.followed) for each in fixed)
    files = sum(each.text.after != each.text.before for each in fixed)
    tell(f"{_many(count, 'fix', 'fixes')} made in {_many(files, 'file', 'files')}")
    tell_links(through)
    _refusals(fixed)


def filtered(fixed: Sequence[Fixed], inputs: Sequence[Input]) -> list[Input]:
    """Print the text of standard input with its fixes; returns the input as it is then."""
    (given,) = inputs
    text = fixed[0].text if fixed else None
    document(decode(read(given), given.name).text if text is None else text.after)
    sys.stdout.flush()
    count = sum(len(each.made) + len(each.followed) for each in fixed)
    tell(f"{_many(count, 'fix', 'fixes')} made")
    _refusals(fixed)
    return [given if text is None else given._replace(data=text.data)]


def _followed(fixed: Sequence[Fixed]) -> None:
    """Say what the diff changes beside the findings that are shown without it."""
    for each in fixed:
        for finding in each.followed:
            tell(
                f"it also fixes {finding.file}:{finding.line}: {finding.code}, which shows only after that: "
                f"{finding.told}"
            )


def _refusals(fixed: Sequence[Fixed]) -> None:
    for each in fixed:
        for finding, why in each.refused:
            tell(f"not fixed: {finding.file}:{finding.line}: {finding.code}: {why}")


def _many(number: int, singular: str, several: str) -> str:
    return f"{number} {singular if number == 1 else several}"
