"""What ``migrate`` does: find the inputs, plan, then show or write."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kubectl_dra.api.releases import TARGET, WRITTEN, Release, gate_default, versions_of
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.file_commands import (
    check_baseline,
    new_findings,
    tell_defects,
    tell_links,
    tell_notes,
    write_baseline,
)
from kubectl_dra.cli.migrate import MigrateFlags
from kubectl_dra.cli.migrate.charts import ChartFlags, of_charts
from kubectl_dra.cli.migrate.files import (
    about_cluster,
    next_commands,
    output_names,
    output_texts,
    write_all,
    write_below,
)
from kubectl_dra.cli.release import named_release
from kubectl_dra.cli.usage_errors import unknown_code
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.exit_codes import EXIT_ERROR, EXIT_NO, EXIT_UNDETERMINED, Verdict
from kubectl_dra.manifests.charts import ChartInputs, has_values_of, is_chart, rendered_charts
from kubectl_dra.manifests.files import unified_diff
from kubectl_dra.manifests.inputs import HELMED, STDIN, Input, find_inputs
from kubectl_dra.migrate.codes import MIGRATE, PAGES
from kubectl_dra.migrate.engine import MigrationJob
from kubectl_dra.migrate.kustomize.run import migrate_built
from kubectl_dra.migrate.model import MigratedFile, MigrationReport, MigrationSettings, Remark
from kubectl_dra.report.color import tell, write_page
from kubectl_dra.safe_output import document, put, typed_line
from kubectl_dra.text import amount

if TYPE_CHECKING:
    from kubectl_dra.cli.migrate.cluster import ClusterSeen
    from kubectl_dra.cli.options import ConnectionFlags

CI: Final = ("sarif", "github", "junit")
"""Formats for CI systems."""
_MOST_NOTES: Final = 3
"""So many notes stand beside a result on standard output."""
_NO_FILES: Final = (
    "--write changes files; for standard input, a chart, and a kustomization that takes files from elsewhere, use "
    "-o yaml or --output-dir"
)
PLAN: Final = "plan"
"""The first word that asks for the rollout plan; a directory of that name is ``./plan``."""


def run(flags: MigrateFlags, connection: ConnectionFlags) -> int:
    """Plans, shows and writes; returns the exit code."""
    if flags.code:
        return _explain(flags.code, flags.color)
    if flags.paths[:1] == (PLAN,):
        return _rollout(replace(flags, paths=flags.paths[1:]), connection)
    if flags.of_cluster and not flags.paths and not flags.kustomize:
        return _survey(flags, connection)
    _check_usage(flags)
    typed, seen = flags, _looked(flags, connection, whole=True)
    flags = _for_cluster(flags, seen)
    job = MigrationJob(_settings(flags), flags.unsafe, flags.claims_file)
    rendered = rendered_charts(flags.paths, _release(flags.release), flags.values, flags.sets)
    charts = [path for path in flags.paths if path != STDIN and is_chart(path)]
    if (flags.values or flags.sets) and not charts:
        raise UsageError("--values and --set are for charts, and no chart is named: name its folder, or leave them out")
    asked = _chart_flags(flags, rendered, charts)
    paths = tuple(path for path in rendered.paths if path not in asked.named)
    inputs = [*rendered.inputs, *_files_and_kustomizations(replace(flags, paths=paths))]
    _check_inputs(flags, inputs)
    if flags.reverse:
        from kubectl_dra.migrate.reverse.run import reverse

        report = reverse(inputs, job)
    else:
        report = migrate_built(inputs, job)
    if seen is not None:
        from kubectl_dra.cli.migrate.cluster import comparisons

        report = report._replace(comparisons=tuple(comparisons(report, seen, typed.release)))
    if charts:
        found = report.changed
        report = of_charts(report, charts, inputs, job, asked)
        if (flags.write or flags.interactive) and found and not report.changed:
            raise UsageError(_NO_FILES)
    if seen is not None:
        from kubectl_dra.migrate.landing import has_needed

        report = report._replace(has=has_needed(report, seen.snapshot))
    if flags.write_baseline:
        tell_notes(report.notes)
        return write_baseline(flags.baseline, report.items(), MIGRATE)
    if flags.baseline:
        report = _without_known(flags.baseline, report)
    tell_notes(report.notes)
    tell_defects(report.defects)
    following = next_commands(typed, report, cluster_flags(typed, connection))
    return _code(flags, report, left=_act(flags, inputs, report, following))


# --- the cluster ---------------------------------------------------------------------------------


def _looked(flags: MigrateFlags, connection: ConnectionFlags, *, whole: bool = False) -> ClusterSeen | None:
    """What was read of the cluster; None where none is asked about."""
    if not flags.of_cluster:
        return None
    from kubectl_dra.cli.migrate.cluster import look

    return look(flags, connection, whole=whole)


def _for_cluster(flags: MigrateFlags, seen: ClusterSeen | None) -> MigrateFlags:
    """The command line with the cluster's release, unless another one is asked for."""
    release = seen.snapshot.release if seen is not None else None
    return replace(flags, release=str(WRITTEN.closest(release))) if release and not flags.release else flags


def _survey(flags: MigrateFlags, connection: ConnectionFlags) -> int:
    """What of the cluster still uses device plugins; with --check anything is exit code 1."""
    from kubectl_dra.cli.migrate import cluster as migrate_cluster

    if flags.reverse or flags.diff or flags.write or flags.interactive or flags.output_dir:
        raise UsageError("say which manifests: files, directories, - or -k DIR; --live alone only looks")
    seen = _looked(flags, connection)
    assert seen is not None
    survey = migrate_cluster.survey(seen, _settings(_for_cluster(flags, seen)))
    code = EXIT_NO if flags.check and (survey.uses or any(clash.same for clash in survey.clashes)) else 0
    asked = about_cluster(flags, cluster_flags(flags, connection))
    plan = CommandLine(("kubectl", "dra", "migrate", "plan", *asked, "--output-dir", "plan"))
    migrate_cluster.show_survey(survey, flags.output, flags.color, code, plan)
    return code


def _rollout(flags: MigrateFlags, connection: ConnectionFlags) -> int:
    """Writes the rollout plan for a cluster, or for what manifests say."""
    from kubectl_dra.cli.migrate import cluster as migrate_cluster

    if not flags.output_dir:
        raise UsageError("plan writes files: say where with --output-dir DIR (a directory called plan is ./plan)")
    if flags.reverse or flags.diff or flags.write or flags.interactive or flags.check or flags.kustomize:
        raise UsageError("plan goes with --live, --snapshot, -A, -n, PATH and --output-dir only")
    seen = _looked(flags, connection)
    if seen is None and not flags.paths:
        raise UsageError("say for what: --live, --snapshot FILE, or the manifests")
    if seen is not None and flags.paths:
        raise UsageError("the plan is for a cluster or for manifests: leave one of the two out")
    live = seen is not None
    seen = seen or migrate_cluster.in_manifests(flags.paths, flags.exclude)
    where = cluster_flags(flags, connection)
    settings = _settings(_for_cluster(flags, seen))
    written, plan = migrate_cluster.write_plan(seen, settings, flags.output_dir, live=live, where=where)
    from kubectl_dra.report.migrate_live import write_rollout

    write_rollout(plan, written, flags.color)
    return 0


def _without_known(path: str, report: MigrationReport) -> MigrationReport:
    """The report without what is in the baseline; a file of which all changes are known counts as unchanged."""
    new = {id(item) for item in new_findings(path, report.items(), MIGRATE)}
    files = []
    for file in report.files:
        kept = tuple(item for item in file.items if id(item) in new)
        changes = any(item.sort in ("change", "object") for item in kept)
        if kept or not file.items:
            files.append(file._replace(items=kept, text=file.text if changes or not file.changed else None))
    return report._replace(files=tuple(files))


def _code(flags: MigrateFlags, report: MigrationReport, *, left: bool) -> int:
    if report.defects:
        return EXIT_ERROR
    asked = not (flags.check or flags.write or flags.interactive or flags.output_dir)
    if asked and any(
        comparison.verdict is Verdict.UNDETERMINED or comparison.unread for comparison in report.comparisons or ()
    ):
        return EXIT_UNDETERMINED
    return EXIT_NO if left else 0


def _act(flags: MigrateFlags, inputs: Sequence[Input], report: MigrationReport, following: Sequence[str]) -> bool:
    """Does what is asked for, and returns whether something is left to do. ``following``: the commands to run next."""
    if flags.output == "yaml":
        document(output_texts(inputs, report))
        sys.stdout.flush()
        _to_stderr(report, "-o yaml", "The result is on standard output.")
        return report.open
    if report.defects and (flags.write or flags.output_dir or flags.interactive):
        raise InputError("nothing is written, because some changes are uncertain (see above)")
    if flags.output_dir:
        names = output_names(flags.paths, inputs, flags.output_dir, report)
        written = write_below(inputs, report, names)
        _print(flags, report, (), f"{amount(written, 'file')} written below {flags.output_dir}.", left=report.open)
        return report.open
    if flags.interactive:
        return _interactive(report, flags.paths)
    if flags.write:
        # The claims first: a claim that nobody uses yet does no harm.
        through = write_all(sorted(report.changed, key=lambda file: file is not report.claims), flags.paths)
        _print(flags, report, (), f"{amount(len(report.changed), 'file')} written.", left=report.open)
        tell_links(through)
        return report.open
    left = bool(report.changed) or report.open
    if flags.diff:
        for file in report.changed:
            assert file.text is not None
            document(unified_diff(file.text))
        sys.stdout.flush()
        _to_stderr(report, "--diff", with_diff=True)
    elif flags.check and flags.output == "text":
        from kubectl_dra.report.migrate_text import write_check

        write_check(report)
    else:
        _print(flags, report, following, left=left)
    return left


def _print(
    flags: MigrateFlags, report: MigrationReport, following: Sequence[str], done: str = "", *, left: bool
) -> None:
    if flags.output == "json":
        from kubectl_dra.report.json_output import write
        from kubectl_dra.report.migrate_text import to_json

        write(to_json(report), "json", sys.stdout, _code(flags, report, left=left))
        return
    from kubectl_dra.report.lint_formats import as_findings
    from kubectl_dra.report.migrate_text import summary, write_text

    if flags.output not in CI:
        write_text(report, flags.color, done=done, next_commands=following)
        return
    from kubectl_dra.report.lint_formats import write_github, write_junit, write_sarif

    if flags.output == "sarif":
        write_sarif(as_findings(report), sys.stdout)
    elif flags.output == "github":
        write_github(as_findings(report), sys.stdout, summary(report))
    else:
        write_junit(as_findings(report), sys.stdout, "migrate")


def _to_stderr(report: MigrationReport, way: str, done: str = "", *, with_diff: bool = False) -> None:
    """What is left to people, beside a result on standard output; ``done`` says what that is.

    Without the flag ``way`` all notes are shown, not only the first.
    """
    from kubectl_dra.report.migrate_text import LEFT, conditions, in_part, summary

    for item in report.items():
        if item.sort in LEFT:
            tell(f"{item.file}:{item.line}:{item.column}: {item.code} {LEFT[item.sort]}: {item.message}")
            if item.way_out:
                tell(f"  do: {item.way_out}")
    notes = report.items("note")
    said: dict[tuple[str, str], Remark] = {}
    for item in notes:
        said.setdefault((item.code, item.message), item)
    first = tuple(said.values())[:_MOST_NOTES]
    for item in first:
        tell(f"{item.file}:{item.line}:{item.column}: {item.code} note: {item.message}")
    if more := len(notes) - len(first):
        tell(f"{amount(more, 'more note')}: the same command without {way} shows {'it' if more == 1 else 'them'}")
    for sentence in (*in_part(report), *conditions(report)):
        tell(sentence)
    tell(summary(report, done, with_diff=with_diff))


# --- what is asked for ---------------------------------------------------------------------------


def _check_usage(flags: MigrateFlags) -> None:
    if STDIN in flags.paths and STDIN in flags.snapshots:
        raise UsageError("standard input can be read once: give the manifests or the snapshot as a file")
    if not flags.paths and not flags.kustomize and flags.values:
        command = CommandLine(("kubectl", "dra", "migrate", *flags.values))
        raise UsageError(f"-f names the values of a chart, as helm takes them; to migrate manifests: {command}")
    if not flags.paths and not flags.kustomize:
        raise UsageError("say what to migrate: files, directories, - or -k DIR (see kubectl dra migrate --help)")
    ways = [
        flag
        for flag, given in (
            ("--diff", flags.diff),
            ("--check", flags.check),
            ("--write", flags.write),
            ("--interactive", flags.interactive),
            ("--output-dir", bool(flags.output_dir)),
            ("-o yaml", flags.output == "yaml"),
        )
        if given
    ]
    if len(ways) > 1 and ways != ["--diff", "--check"]:
        raise UsageError(f"{ways[0]} and {ways[1]} exclude one another")
    check_baseline(flags.baseline, flags.write_baseline)
    writes = flags.write or flags.output_dir or flags.interactive or flags.diff or flags.output == "yaml"
    if flags.baseline and (writes or flags.claims_file):
        raise UsageError("--baseline is for what is to be done: it does not go with what writes, or with --claims-file")
    if flags.output in ("json", *CI) and flags.diff:
        raise UsageError(f"--diff prints a diff, not {flags.output}")
    if flags.output in CI and (flags.write or flags.output_dir or flags.interactive):
        raise UsageError(f"-o {flags.output} is for what is to be done: leave out what writes")
    if flags.reverse and (flags.claims_file or flags.share != "template" or flags.strategy != "claims" or flags.to):
        raise UsageError("--reverse does not go with --claims-file, --share, --strategy and --to")
    if flags.interactive and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--interactive needs a terminal; use --diff to review and --write to write")


def _files_and_kustomizations(flags: MigrateFlags) -> list[Input]:
    if not flags.kustomize or flags.reverse or flags.output == "yaml" or flags.output_dir:
        return find_inputs(flags.paths, flags.kustomize, flags.exclude)
    from kubectl_dra.migrate.kustomize.layout import sources

    here, built = list(flags.paths), []
    for directory in flags.kustomize:
        names = sources(directory)
        here += names or ()
        built += [] if names else [directory]
    return find_inputs(here, built, flags.exclude)


def _chart_flags(asked: MigrateFlags, rendered: ChartInputs, charts: Sequence[str]) -> ChartFlags:
    edits = not (asked.reverse or asked.output == "yaml" or asked.output_dir)
    named: tuple[str, ...] = ()
    if edits and rendered.inputs and not (asked.values or asked.sets):
        named = tuple(path for path in rendered.paths if any(has_values_of(path, chart) for chart in charts))
    return ChartFlags(asked.values, asked.sets, edits, asked.write or asked.interactive, rendered.broken, named)


def _check_inputs(flags: MigrateFlags, inputs: Sequence[Input]) -> None:
    if not inputs:
        raise InputError(f"{', '.join((*flags.paths, *flags.kustomize))}: no YAML or JSON file found")
    elsewhere = [file for file in inputs if file.data is not None]
    if (flags.write or flags.interactive) and any(
        flags.reverse or not file.name.endswith(HELMED) for file in elsewhere
    ):
        raise UsageError(_NO_FILES)


def _settings(flags: MigrateFlags) -> MigrationSettings:
    from kubectl_dra.migrate.vendors.catalogue import load

    release = _release(flags.release)
    known = versions_of("ResourceClaim", release)
    version = flags.to or next(candidate for candidate in known if candidate != "v1alpha3")
    if version not in known:
        raise UsageError(f"--to {version}: Kubernetes {release} does not have it; it has {', '.join(known)}")
    if flags.strategy == "extended-resource" and not gate_default("DRAExtendedResource", release):
        raise UsageError(f"--strategy extended-resource: on by default since Kubernetes 1.36, not in {release}")
    return MigrationSettings(load(flags.vendors), release, flags.strategy.value, flags.share.value, version)


def _release(text: str) -> Release:
    if not text:
        return TARGET
    return named_release(text, WRITTEN, "migrate writes for", "--kubernetes-version").without_patch


def _explain(code: str, color: str) -> int:

    wanted = {page.name: page for page in PAGES.values()} | dict(PAGES)
    page = wanted.get(code) or wanted.get(code.upper())
    if page is None:
        raise unknown_code("code", code, wanted, "migrate prints it beside each change, note and refusal")
    write_page(page.page.text, color)
    return 0


# --- file by file --------------------------------------------------------------------------------


def _interactive(report: MigrationReport, named: Sequence[str]) -> bool:
    """Shows each file's diff and asks; claims of --claims-file are written with the first that needs them.

    Returns whether something is left to do.
    """
    written: list[MigratedFile] = []
    skipped = 0
    rest = ""
    waiting = [file for file in report.changed if file is not report.claims]
    for number, file in enumerate(waiting, 1):
        assert file.text is not None
        if not rest:
            for item in file.items:
                tell(f"{item.code} {item.object}: {item.message}", sys.stdout)
            document(unified_diff(file.text))
            rest = _ask(f"write {file.name} ({number} of {len(waiting)})? [y]es, [n]o, [a]ll, [q]uit: ")
        if rest in ("y", "a"):
            # Whoever stops in the middle must not be left with a file whose claims are nowhere.
            these = [file] if report.claims is None or written else [report.claims, file]
            tell_links(write_all(these, named))
            written += these
        else:
            skipped += 1
        rest = rest if rest in ("a", "q") else ""
    put(f"{amount(len(written), 'file')} written, {skipped} left as they are.\n")
    return bool(skipped) or report.open


def _ask(question: str) -> str:
    while True:
        put(question)
        sys.stdout.flush()
        line = typed_line()
        if not line:
            put("\n")
            return "q"
        answer = line.strip().lower()[:1]
        if answer in ("y", "n", "a", "q"):
            return answer
