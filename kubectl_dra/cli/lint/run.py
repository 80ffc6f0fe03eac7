"""What ``lint`` does: configure, find the inputs, check or fix them, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kubectl_dra.api.releases import MODELLED, TARGET, Release, default_features
from kubectl_dra.cli.baseline import check_usage as check_baseline
from kubectl_dra.cli.baseline import new_findings, write_baseline
from kubectl_dra.cli.lint import LintFlags
from kubectl_dra.cli.notes import tell_defects, tell_notes
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import named_release, with_gates
from kubectl_dra.cli.unknown_code import unknown_code
from kubectl_dra.console import document
from kubectl_dra.errors import FileError, InputError, UsageError
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Config, Selection, codes, find, load
from kubectl_dra.lint.context import AssumedCluster, Stored, stored_key
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import SEVERITIES, LocatedFinding, Report, Safety
from kubectl_dra.lint.rules import BY_CODE, RULES
from kubectl_dra.manifests.charts import rendered_charts
from kubectl_dra.manifests.inputs import STDIN, Input, find_inputs
from kubectl_dra.report.paint import Painter, tell

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot
    from kubectl_dra.lint.fixes import Fixed

EXIT_FINDINGS: Final = 1
EXIT_UNDETERMINED: Final = 3
UPGRADE_RULES: Final = ("DRA51", "DRA901", "DRA905", "DRA906")
"""What runs for an upgrade if no rules are selected: those about it, and about what cannot be read."""
EXIT_ERROR: Final = 2
FAMILY: Final = "DRA"
"""How the codes of rules begin."""


def run(asked: LintFlags, connection: ConnectionFlags) -> int:
    """Checks and prints; returns the exit code.

    Raises:
        DraError: wrong usage, a path that does not exist, a cluster that does not answer.
    """
    output, color = asked.output.value, asked.color.value
    if asked.rules or asked.rule:
        if output != "text":
            raise UsageError(f"--rules and --explain print text, not {output}")
        return _about_rules(asked)
    _check_usage(asked)
    of_cluster = is_of_cluster(asked)
    if not asked.paths and not asked.kustomize and not of_cluster:
        raise UsageError("say what to check: files, directories, - or -k DIR (see kubectl dra lint --help)")
    job, config = job_for(asked, connection)
    charts = rendered_charts(asked.paths, job.target.release)
    if charts.broken:
        raise FileError(charts.broken[0].problem, charts.broken[0].path)
    inputs = [*charts.inputs, *find_inputs(charts.paths, asked.kustomize, config.exclude)]
    if of_cluster:
        job, inputs = _cluster_upgraded(job, asked, config, connection)
    elif job.target.upgrade is not None and job.target.snapshot is not None:
        job = _manifests_upgraded(job, asked, config, connection, inputs)
    fixing = asked.fix or asked.unsafe_fixes or asked.diff
    if fixing and not asked.diff and any(found.data is not None for found in inputs):
        raise UsageError("--fix writes files; for standard input and -k use --diff")
    report = lint(inputs, job, second=asked.verify)
    _note(report)
    if asked.write_baseline:
        return write_baseline(asked.baseline, report.findings, FAMILY)
    if not report.manifests and not report.findings:
        return _nothing(asked, inputs, report, output, color)
    if asked.baseline:
        report = replace(report, findings=tuple(new_findings(asked.baseline, report.findings, FAMILY)))
    if charts.unrendered and not report.findings and not asked.allow_empty:
        raise InputError(
            f"{charts.unrendered[0]}: a chart, which was not rendered: helm template CHART | kubectl dra lint -"
        )
    fail_on = asked.fail_on or config.fail_on or "warning"
    if not fixing:
        _print(report, output, color, inputs)
        return _code(report, fail_on)
    fixed = _fix(asked, report, inputs, job)
    if asked.diff:
        return _show(fixed, report, unsafe=asked.unsafe_fixes)
    _write(fixed, asked.paths)
    report = lint(inputs, job)
    if asked.baseline:
        report = replace(report, findings=tuple(new_findings(asked.baseline, report.findings, FAMILY)))
    _print(report, output, color, inputs)
    return _code(report, fail_on)


# --- what is asked for ---------------------------------------------------------------------------


def job_for(asked: LintFlags, connection: ConnectionFlags) -> tuple[Job, Config]:
    """What all files of a run share, and the configuration that it comes from.

    Raises:
        DraError: wrong usage, a file that cannot be read, a cluster that does not answer.
    """
    config = _config(asked)
    return Job(_target(asked, config, connection), _selection(asked, config)), config


def _cluster_upgraded(
    job: Job, asked: LintFlags, config: Config, connection: ConnectionFlags
) -> tuple[Job, list[Input]]:
    """The job for the objects of a cluster that is upgraded, and these objects."""
    from kubectl_dra.cli.lint import upgrade

    target = job.target
    assert target.upgrade is not None
    cluster = upgrade.read_cluster(asked, connection)
    to = upgrade.release_named(*_wanted_release(asked, config))
    compared = upgrade.schedulers(cluster.snapshot, target.upgrade, target.features, asked, to)
    tell_notes((*compared.notes, *upgrade.notes_about_cluster(cluster.snapshot, target)))
    judged = replace(target.upgrade, is_stored=True, rescheduled=compared.found)
    return replace(job, target=replace(target, upgrade=judged)), cluster.inputs


def _manifests_upgraded(
    job: Job, asked: LintFlags, config: Config, connection: ConnectionFlags, inputs: Sequence[Input]
) -> Job:
    """The job for manifests that are put to the schedulers of both releases."""
    from kubectl_dra.cli.lint import upgrade

    target = job.target
    assert target.upgrade is not None
    to = upgrade.release_named(*_wanted_release(asked, config))
    compared = upgrade.schedulers_about_manifests(inputs, target, asked, connection, to)
    tell_notes(compared.notes)
    return replace(job, target=replace(target, upgrade=replace(target.upgrade, written=compared.found)))


def is_of_cluster(asked: LintFlags) -> bool:
    """Whether the objects of the cluster are judged, because it is upgraded and no manifest is named."""
    return bool(asked.upgraded_from and (asked.live or asked.snapshots)) and not (asked.paths or asked.kustomize)


def _check_usage(asked: LintFlags) -> None:
    check_baseline(asked.baseline, asked.write_baseline)
    if asked.upgraded_from:
        from kubectl_dra.cli.lint.upgrade import check_usage

        check_usage(asked)
    if asked.namespace and not (asked.live or asked.snapshots):
        raise UsageError("--namespace goes with --live or --snapshot: a manifest says its own namespace")
    if STDIN in asked.old:
        raise UsageError("--old reads files; standard input is for the manifests")
    if STDIN in asked.paths and STDIN in asked.snapshots:
        raise UsageError("standard input can be read once: give the manifests or the snapshot as a file")


def _config(asked: LintFlags) -> Config:
    if asked.no_config:
        return Config()
    if asked.config:
        return load(Path(asked.config))
    found = find(Path.cwd())
    return Config() if found is None else load(found)


def _selection(asked: LintFlags, config: Config) -> Selection:
    configured = UPGRADE_RULES if asked.upgraded_from else config.select
    select = codes(asked.select, "--select") or codes(configured, f"{config.source}: lint.select")
    ignore = (*codes(asked.ignore, "--ignore"), *codes(config.ignore, f"{config.source}: lint.ignore"))
    per_file = tuple(
        (pattern, codes(words, f"{config.source}: lint.perFileIgnores")) for pattern, words in config.per_file
    )
    return Selection(select or ("DRA",), ignore, per_file)


def _target(asked: LintFlags, config: Config, connection: ConnectionFlags) -> AssumedCluster:
    snapshot = _snapshot(asked, connection)
    release = _release(asked, config, snapshot)
    source = f"{config.source}: featureGates"
    features = with_gates(with_gates(default_features(release), config.gates, source), asked.gates)
    target = AssumedCluster(release, features, snapshot, _stored(asked))
    if not asked.upgraded_from:
        return target
    from kubectl_dra.cli.lint.upgrade import notes_about_flags, upgrade_of

    tell_notes(tuple(notes_about_flags(asked, release)))
    return replace(target, upgrade=upgrade_of(asked, config.gates, source, release))


def _stored(asked: LintFlags) -> Stored:
    """The objects of ``--old``."""
    if not asked.old:
        return {}
    from kubectl_dra.manifests.documents import parse
    from kubectl_dra.manifests.inputs import read
    from kubectl_dra.manifests.objects import objects
    from kubectl_dra.manifests.source import decode

    found = (each.object for file in find_inputs(asked.old) for each in objects(parse(decode(read(file), file.name))))
    return {stored_key(raw): raw for raw in found}


def _wanted_release(asked: LintFlags, config: Config) -> tuple[str, str]:
    """The release that is asked for, empty if none is, and where. After an upgrade it is not that of the cluster."""
    if asked.release or not config.release:
        return asked.release or (str(TARGET) if asked.upgraded_from else ""), "--kubernetes-version"
    return config.release, f"{config.source}: kubernetesVersion"


def _release(asked: LintFlags, config: Config, snapshot: Snapshot | None) -> Release:
    text, source = _wanted_release(asked, config)
    if text:
        return named_release(text, MODELLED, "lint knows", source).without_patch
    if snapshot is not None and snapshot.release is not None:
        return MODELLED.closest(snapshot.release)
    return TARGET


def _snapshot(asked: LintFlags, connection: ConnectionFlags) -> Snapshot | None:
    if asked.live and asked.snapshots:
        raise UsageError("--live and --snapshot exclude one another")
    if is_of_cluster(asked):
        return None
    if asked.live:
        from kubectl_dra.cli.live import read_live

        return read_live(connection, asked.namespace)[0]
    if asked.snapshots:
        from kubectl_dra.cli.live import read_saved

        return read_saved(asked, asked.namespace)
    return None


# --- results -------------------------------------------------------------------------------------


def _note(report: Report) -> None:
    tell_notes((*report.notes, *(f"not everything could be checked: {gap}{gap.help}" for gap in report.unread)))
    if report.second_opinion is not None:
        tell(f"note: {report.second_opinion.told}")
        for difference in report.second_opinion.differ:
            tell(f"error: the two engines differ, please report it: {difference}")
    tell_defects(report.defects)


def _nothing(asked: LintFlags, inputs: Sequence[Input], report: Report, output: str, color: str) -> int:
    if asked.allow_empty:
        _print(report, output, color, inputs)
        return 0
    names = ", ".join((*asked.paths, *asked.kustomize))
    read = f"{len(inputs)} file{'' if len(inputs) == 1 else 's'} read" if inputs else "no YAML or JSON file found"
    raise InputError(f"{names}: no Kubernetes object to check ({read})")


def _code(report: Report, fail_on: str) -> int:
    if report.defects or (report.second_opinion is not None and report.second_opinion.differ):
        return EXIT_ERROR
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if any(finding.severity in failing for finding in report.findings):
        return EXIT_FINDINGS
    return EXIT_UNDETERMINED if report.unread else 0


def _print(report: Report, output: str, color: str, inputs: Sequence[Input]) -> None:
    if output == "text":
        from kubectl_dra.report.lint_text import write_text

        write_text(report, color)
    elif output == "json":
        from kubectl_dra.report.lint_formats import to_json
        from kubectl_dra.report.table import write

        write(to_json(report), "json", sys.stdout)
    elif output == "sarif":
        from kubectl_dra.lint.fixes import replacements
        from kubectl_dra.report.lint_formats import write_sarif

        write_sarif(report, sys.stdout, replacements(report.findings, inputs))
    elif output == "github":
        from kubectl_dra.report.lint_formats import write_github

        write_github(report, sys.stdout)
    else:
        from kubectl_dra.report.lint_formats import write_junit

        write_junit(report, sys.stdout)


# --- fixes ---------------------------------------------------------------------------------------


def _fix(asked: LintFlags, report: Report, inputs: Sequence[Input], job: Job) -> list[Fixed]:
    from kubectl_dra.lint.fixes import fix_text
    from kubectl_dra.manifests.inputs import read
    from kubectl_dra.manifests.source import decode

    allowed: tuple[Safety, ...] = ("safe", "unsafe") if asked.unsafe_fixes else ("safe",)
    by_file: dict[str, list[LocatedFinding]] = {}
    for finding in report.findings:
        if finding.changes and finding.safety in allowed:
            by_file.setdefault(finding.file, []).append(finding)

    def check(name: str, data: bytes) -> Sequence[LocatedFinding]:
        changed = [found._replace(data=data) if found.name == name else found for found in inputs]
        if not any(BY_CODE[finding.code].scope == "set" for finding in by_file[name]):
            changed = [found for found in changed if found.name == name]
        return [finding for finding in lint(changed, job, 1).findings if finding.file == name]

    out = []
    for found in inputs:
        if found.name in by_file:
            source = decode(read(found), found.name)
            out.append(fix_text(source, by_file[found.name], allowed, check))
    return out


def _show(fixed: Sequence[Fixed], report: Report, *, unsafe: bool) -> int:
    from kubectl_dra.manifests.files import unified_diff

    differs = False
    for one in fixed:
        text = unified_diff(one.text)
        differs = differs or bool(text)
        document(text)
    sys.stdout.flush()
    made = sum(len(one.made) for one in fixed)
    more = 0 if unsafe else sum(finding.safety == "unsafe" for finding in report.findings)
    hint = f"; {more}{' more' if made else ''} with --unsafe-fixes" if more else ""
    tell(f"{_many(made, 'fix', 'fixes')} for {_many(len(report.findings), 'finding', 'findings')}{hint}")
    _refusals(fixed)
    return EXIT_FINDINGS if differs else 0


def _write(fixed: Sequence[Fixed], named: Sequence[str]) -> None:
    from kubectl_dra.manifests.files import replace_files

    through = replace_files([one.text for one in fixed if one.text.after != one.text.before], named)
    made = sum(len(one.made) for one in fixed)
    files = sum(one.text.after != one.text.before for one in fixed)
    tell(f"{_many(made, 'fix', 'fixes')} made in {_many(files, 'file', 'files')}")
    for link, file in through:
        tell(f"{link} is a link: {file} is written")
    _refusals(fixed)


def _refusals(fixed: Sequence[Fixed]) -> None:
    for one in fixed:
        for finding, why in one.refused:
            tell(f"not fixed: {finding.file}:{finding.line}: {finding.code}: {why}")


def _many(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


# --- rules ---------------------------------------------------------------------------------------


def _about_rules(asked: LintFlags) -> int:
    from kubectl_dra.report.page_text import write_page

    if asked.rule:
        wanted = {rule.name: rule for rule in RULES} | dict(BY_CODE)
        rule = wanted.get(asked.rule) or wanted.get(asked.rule.upper())
        if rule is None:
            raise unknown_code("rule", asked.rule, wanted, "kubectl dra lint --rules lists them")
        write_page(rule.page().text)
        return 0
    width = max(len(rule.name) for rule in RULES)
    out = Painter(color="never")
    for rule in RULES:
        fix = "" if rule.fixable == "none" else f" [{rule.fixable} fix]"
        first = f"{rule.code}  {rule.name.ljust(width)}  {rule.severity.ljust(7)}  "
        indent = len(first) if out.width - len(first) >= 24 else 4
        out.sentence(f"{rule.title()}{fix}", indent=" " * indent, first=first)
    return 0
