"""What ``lint`` does: configure, find the inputs, check or fix them, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec.structs import replace

from kubectl_dra.api.releases import MODELLED, TARGET, Release, default_features
from kubectl_dra.cli.file_commands import check_baseline, new_findings, tell_defects, tell_notes, write_baseline
from kubectl_dra.cli.lint import LintFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import named_release, with_gates
from kubectl_dra.cli.usage_errors import unknown_code
from kubectl_dra.errors import FileError, InputError, UsageError
from kubectl_dra.exit_codes import EXIT_ERROR, EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Config, Selection, codes, find, load
from kubectl_dra.lint.context import AssumedCluster, Stored, stored_key
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import SEVERITIES, Report
from kubectl_dra.lint.rules import BY_CODE, RULES
from kubectl_dra.manifests.charts import rendered_charts
from kubectl_dra.manifests.inputs import KUSTOMIZED, STDIN, Input, arguments, find_inputs, read
from kubectl_dra.report.color import Painter, tell, write_page

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot

UPGRADE_RULES: Final = ("DRA51", "DRA901", "DRA905", "DRA906")
"""What runs for an upgrade if no rules are selected: those about it, and about what cannot be read."""
_WHOLE: Final = ("json", "sarif", "junit")
"""Outputs that are one document, whatever is in it."""
FAMILY: Final = "DRA"
"""Prefix of the codes of rules."""


def run(flags: LintFlags, connection: ConnectionFlags) -> int:
    """Checks and prints; returns the exit code."""
    flags = replace(flags, paths=(*flags.paths, *flags.manifests), manifests=())
    output, color = flags.output.value, flags.color.value
    if flags.rules or flags.rule:
        if output != "text":
            raise UsageError(f"--rules and --explain print text, not {output}")
        return _about_rules(flags)
    _check_usage(flags)
    of_cluster = is_of_cluster(flags)
    if not flags.paths and not flags.kustomize and not of_cluster:
        of_its_own = flags.live or flags.snapshots
        alone = "; without any, a cluster is checked for an upgrade: --from RELEASE" if of_its_own else ""
        raise UsageError(f"say what to check: files, directories, - or -k DIR (see kubectl dra lint --help){alone}")
    job, config = job_for(flags, connection)
    charts = rendered_charts(flags.paths, job.target.release)
    if charts.broken:
        raise FileError(charts.broken[0].problem, charts.broken[0].path)
    inputs = [*charts.inputs, *find_inputs(charts.paths, flags.kustomize, config.exclude)]
    if of_cluster or (job.target.upgrade is not None and job.target.snapshot is not None):
        job, inputs = _upgraded(job, flags, config, connection, inputs)
    fixing = flags.fix or flags.diff
    filtering = flags.fix and not flags.diff and flags.paths == (STDIN,) and not flags.kustomize
    if flags.fix and not (flags.diff or filtering) and any(file.data is not None for file in inputs):
        raise UsageError("--fix writes files, or of standard input alone the result; for -k use --diff")
    if filtering and output != "text":
        raise UsageError(f"--fix writes the text of standard input, not {output}: leave one of the two out")
    report = _with_kustomizations(lint(inputs, job, second=flags.verify), flags, inputs)
    _note(report)
    if flags.unsafe_fixes and not fixing and any(finding.promised != "none" for finding in report.findings):
        tell("note: --unsafe-fixes changes nothing by itself: add --fix, or --diff to see the changes")
    if flags.write_baseline:
        return write_baseline(flags.baseline, report.findings, FAMILY)
    if not report.manifests and not report.findings:
        return _nothing(flags, inputs, report, output, color)
    if flags.baseline:
        report = replace(report, findings=tuple(new_findings(flags.baseline, report.findings, FAMILY)))
    if charts.unrendered and not report.findings and not flags.allow_empty:
        why = f"{charts.unrendered[0]}: a chart, which was not rendered: helm template CHART | kubectl dra lint -"
        _failed(why, report, output, color, inputs)
    fail_on = flags.fail_on or config.fail_on or "warning"
    if not fixing:
        code = _code(report, fail_on)
        _print(report, output, color, inputs, code)
        return code
    from kubectl_dra.cli.lint import fixing as fixes

    fixed = fixes.fix(report, inputs, job, unsafe=flags.unsafe_fixes)
    if flags.diff:
        return fixes.show(fixed, report, unsafe=flags.unsafe_fixes)
    if filtering:
        inputs = fixes.filtered(fixed, inputs)
    else:
        fixes.write(fixed, flags.paths)
    report = lint(inputs, job)
    if flags.baseline:
        report = replace(report, findings=tuple(new_findings(flags.baseline, report.findings, FAMILY)))
    code = _code(report, fail_on)
    _print(report, "left" if filtering else output, color, inputs, code)
    return code


# --- what is asked for ---------------------------------------------------------------------------


def job_for(flags: LintFlags, connection: ConnectionFlags) -> tuple[Job, Config]:
    """What all files of a run share, and the configuration that it comes from."""
    config = _config(flags)
    return Job(_target(flags, config, connection), _selection(flags, config)), config


def _upgraded(
    job: Job, flags: LintFlags, config: Config, connection: ConnectionFlags, inputs: list[Input]
) -> tuple[Job, list[Input]]:
    """The job for what the schedulers of both releases were asked about: a cluster, with its objects, or the inputs."""
    from kubectl_dra.cli.lint import upgrade

    target, judged = job.target, job.target.upgrade
    assert judged is not None
    to = upgrade.release_named(*_wanted_release(flags, config))
    if is_of_cluster(flags):
        snapshot, inputs = upgrade.read_cluster(flags, connection)
        rescheduled, notes = upgrade.schedulers(snapshot, target, flags, to)
        tell_notes((*notes, *upgrade.notes_about_cluster(snapshot, target)))
        judged = replace(judged, is_stored=True, rescheduled=rescheduled)
    else:
        written, notes = upgrade.schedulers_about_manifests(inputs, target, flags, connection, to)
        tell_notes(notes)
        judged = replace(judged, written=written)
    return replace(job, target=replace(target, upgrade=judged)), inputs


def is_of_cluster(flags: LintFlags) -> bool:
    """Whether the objects of the cluster are judged, because it is upgraded and no manifest is named."""
    return bool(flags.upgraded_from and (flags.live or flags.snapshots)) and not (flags.paths or flags.kustomize)


def _check_usage(flags: LintFlags) -> None:
    check_baseline(flags.baseline, flags.write_baseline)
    if flags.diff and flags.output.value != "text":
        raise UsageError(f"--diff prints a diff, not {flags.output.value}: leave one of the two out")
    if flags.upgraded_from:
        from kubectl_dra.cli.lint.upgrade import check_usage

        check_usage(flags)
    if flags.namespace and not (flags.live or flags.snapshots):
        raise UsageError("--namespace goes with --live or --snapshot: a manifest says its own namespace")
    if STDIN in flags.old:
        raise UsageError("--old reads files; standard input is for the manifests")
    if STDIN in flags.paths and STDIN in flags.snapshots:
        raise UsageError("standard input can be read once: give the manifests or the snapshot as a file")


def _config(flags: LintFlags) -> Config:
    if flags.no_config:
        return Config()
    if flags.config:
        return load(Path(flags.config))
    path = find(Path.cwd())
    return Config() if path is None else load(path)


def _selection(flags: LintFlags, config: Config) -> Selection:
    configured = UPGRADE_RULES if flags.upgraded_from else config.select
    select = codes(flags.select, "--select") or codes(configured, f"{config.source}: lint.select")
    ignore = (*codes(flags.ignore, "--ignore"), *codes(config.ignore, f"{config.source}: lint.ignore"))
    per_file = tuple(
        (pattern, codes(words, f"{config.source}: lint.perFileIgnores")) for pattern, words in config.per_file
    )
    return Selection(select or ("DRA",), ignore, per_file)


def _target(flags: LintFlags, config: Config, connection: ConnectionFlags) -> AssumedCluster:
    snapshot = _snapshot(flags, connection)
    release = _release(flags, config, snapshot)
    source = f"{config.source}: featureGates"
    features = with_gates(with_gates(default_features(release), config.gates, source), flags.gates)
    target = AssumedCluster(release, features, snapshot, _stored(flags))
    if not flags.upgraded_from:
        return target
    from kubectl_dra.cli.lint.upgrade import notes_about_flags, upgrade_of

    tell_notes(tuple(notes_about_flags(flags, release)))
    return replace(target, upgrade=upgrade_of(flags, config.gates, source, release))


def _stored(flags: LintFlags) -> Stored:
    """The objects of ``--old``."""
    if not flags.old:
        return {}
    from kubectl_dra.manifests.documents import parse
    from kubectl_dra.manifests.objects import objects
    from kubectl_dra.manifests.source import decode

    raws = (
        manifest.object for file in find_inputs(flags.old) for manifest in objects(parse(decode(read(file), file.name)))
    )
    return {stored_key(raw): raw for raw in raws}


def _wanted_release(flags: LintFlags, config: Config) -> tuple[str, str]:
    """The release that is asked for, empty if none is, and where. After an upgrade it is not that of the cluster."""
    if flags.release or not config.release:
        return flags.release or (str(TARGET) if flags.upgraded_from else ""), "--kubernetes-version"
    return config.release, f"{config.source}: kubernetesVersion"


def _release(flags: LintFlags, config: Config, snapshot: Snapshot | None) -> Release:
    text, source = _wanted_release(flags, config)
    if text:
        return named_release(text, MODELLED, "lint knows", source).without_patch
    if snapshot is not None and snapshot.release is not None:
        return MODELLED.closest(snapshot.release)
    return TARGET


def _snapshot(flags: LintFlags, connection: ConnectionFlags) -> Snapshot | None:
    if flags.live and flags.snapshots:
        raise UsageError("--live and --snapshot exclude one another")
    if is_of_cluster(flags):
        return None
    if not (flags.live or flags.snapshots):
        return None
    from kubectl_dra.cli.live import read_live, read_saved

    snapshot = read_live(connection, flags.namespace)[0] if flags.live else read_saved(flags, flags.namespace)
    snapshot.require_namespace(flags.namespace)
    return snapshot


# --- results -------------------------------------------------------------------------------------


def _with_kustomizations(report: Report, flags: LintFlags, inputs: Sequence[Input]) -> Report:
    """The report with a note about kustomizations whose files are checked as they are, without a build."""
    # Who names a single file wants to know about that.
    given, directories = {path.rstrip("/") for path in flags.paths}, dict[str, None]()
    for directory in dict.fromkeys(file.name.rpartition("/")[0] for file in inputs if not file.named):
        while directory not in directories:
            directories[directory] = None
            if directory not in given:
                directory = directory.rpartition("/")[0]
    if flags.kustomize or not directories:
        return report
    from kubectl_dra.command import kubectl
    from kubectl_dra.lint.analysis.kustomized import unbuilt

    names = unbuilt(directories, (file for file, _ in report.objects))
    if not names:
        return report
    first, _, _ = names[0].rpartition("/")
    command = kubectl("dra", "lint", more=arguments(f"{first}/{KUSTOMIZED}" if first else KUSTOMIZED))
    others = f"; likewise for {len(names) - 1} {'other' if len(names) == 2 else 'others'}" if names[1:] else ""
    return replace(report, notes=(*report.notes, f"{names[0]}: check what it builds as well: {command}{others}"))


def _note(report: Report) -> None:
    tell_notes((*report.notes, *(f"not everything could be checked: {gap}{gap.help}" for gap in report.unread)))
    if report.second_opinion is not None:
        tell(f"note: {report.second_opinion.told}")
        for difference in report.second_opinion.differ:
            tell(f"error: the two engines differ, please report it: {difference}")
    tell_defects(report.defects)


def _nothing(flags: LintFlags, inputs: Sequence[Input], report: Report, output: str, color: str) -> int:
    if flags.allow_empty:
        _print(report, output, color, inputs, 0)
        return 0
    names = ", ".join((*flags.paths, *flags.kustomize))
    read = f"{len(inputs)} file{'' if len(inputs) == 1 else 's'} read" if inputs else "no YAML or JSON file found"
    return _failed(f"{names}: no Kubernetes object to check ({read})", report, output, color, inputs)


def _failed(why: str, report: Report, output: str, color: str, inputs: Sequence[Input]) -> NoReturn:
    if output in _WHOLE:
        # Programs read a report, also an empty one.
        _print(replace(report, notes=(*report.notes, why)), output, color, inputs, EXIT_ERROR)
    raise InputError(why)


def _code(report: Report, fail_on: str) -> int:
    if report.defects or (report.second_opinion is not None and report.second_opinion.differ):
        return EXIT_ERROR
    failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
    if any(finding.severity in failing for finding in report.findings):
        return EXIT_NO
    return EXIT_UNDETERMINED if report.unread else 0


def _print(report: Report, output: str, color: str, inputs: Sequence[Input], code: int) -> None:
    if output in ("text", "concise", "left"):
        from kubectl_dra.report.lint_text import write_concise, write_text

        if output == "text":
            write_text(report, color)
        else:
            # What fixes left of standard input is told beside the text.
            write_concise(report, sys.stdout if output == "concise" else sys.stderr)
        return
    from kubectl_dra.report.lint_formats import to_json, write_github, write_junit, write_sarif

    if output == "json":
        from kubectl_dra.report.json_output import write

        write(to_json(report), "json", sys.stdout, code)
    elif output == "sarif":
        from kubectl_dra.lint.fixes import replacements

        write_sarif(report, sys.stdout, replacements(report.findings, inputs))
    elif output == "github":
        write_github(report, sys.stdout)
    else:
        write_junit(report, sys.stdout)


# --- rules ---------------------------------------------------------------------------------------

_TITLE: Final = 40
"""Columns that the title of a rule needs beside its name."""


def _about_rules(flags: LintFlags) -> int:

    if flags.rule:
        wanted = {rule.name: rule for rule in RULES} | dict(BY_CODE)
        rule = wanted.get(flags.rule) or wanted.get(flags.rule.upper())
        if rule is None:
            raise unknown_code("rule", flags.rule, wanted, "kubectl dra lint --rules lists them")
        write_page(rule.page().text, flags.color.value)
        return 0
    width = max(len(rule.name) for rule in RULES)
    widest = max(len("/".join(rule.severities())) for rule in RULES)
    out = Painter(color="never")
    for rule in RULES:
        fix = f" [{' or '.join(rule.safeties())} fix]" if rule.safeties() else ""
        first = f"{rule.code}  {rule.name.ljust(width)}  {'/'.join(rule.severities()).ljust(widest)}  "
        title = f"{rule.title()}{fix}"
        if out.width - len(first) >= _TITLE:
            out.sentence(title, indent=" " * len(first), first=first)
        else:
            out.write(first.rstrip())
            out.sentence(title, indent=" " * 8, first=" " * 8)
    return 0
