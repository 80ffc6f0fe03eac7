"""``--from``: what is judged for an upgrade, with what the schedulers of both releases say about a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.behaviour import last_fix
from kubectl_dra.api.releases import (
    EXPLAINED,
    GROUP,
    LIFECYCLES,
    MODELLED,
    Release,
    default_features,
    gate_default,
    gate_locked,
)
from kubectl_dra.cli.lint import LintFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import named_gates, named_release, with_gates
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.errors import FileError, InputError, UsageError
from kubectl_dra.lint.check_file import items_of
from kubectl_dra.lint.context import Item
from kubectl_dra.lint.upgrade import DevicesGiven, DifferentAnswers, SchedulerAnswer, Upgrade, WrittenAt
from kubectl_dra.manifests.documents import Document, Skipped, each_document
from kubectl_dra.manifests.inputs import CLUSTER_NAME, LARGEST, STDIN, STDIN_NAME, Input, find_inputs, read
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import ObjectKey, is_object, objects
from kubectl_dra.manifests.source import decode
from kubectl_dra.manifests.workloads import pod_specs
from kubectl_dra.text import amount

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot
    from kubectl_dra.explain.diagnosis import Diagnosis
    from kubectl_dra.explain.settings import Settings
    from kubectl_dra.lint.context import AssumedCluster


def read_written(inputs: Iterable[Input], namespace: str) -> tuple[Snapshot, dict[ObjectKey, WrittenAt], Sequence[str]]:
    """The objects of inputs, where their pods, pod templates and claims are written, and what was left out.

    Objects without a namespace are put into this one. Each pod template becomes one pod.

    What lint itself reports as unreadable is passed over.
    """
    builder = SnapshotBuilder(namespace, workloads=True)
    places: dict[ObjectKey, WrittenAt] = {}
    notes: list[str] = []
    for file in inputs:
        try:
            source = decode(read(file), file.name)
            for document in each_document(source):
                if not isinstance(document, Skipped) and is_object(document.object) and not is_patch(document.name):
                    notes += _add(builder, document, namespace, places)
        except FileError:
            continue
    return builder.build(complete=True), places, [*dict.fromkeys(notes)]


def _add(
    builder: SnapshotBuilder, document: Document, namespace: str, places: dict[ObjectKey, WrittenAt]
) -> Iterator[str]:
    """Adds the objects of a document, and says which pods and objects of resource.k8s.io cannot be."""
    place = Place(document.name, document.line)
    for manifest in objects((document,)):
        if manifest.kind != "Pod" and not any(pod_specs(manifest.object)):
            try:
                builder.add(manifest.object, place)
            except InputError as error:
                if manifest.api_version.startswith(GROUP):
                    yield f"not put to the schedulers: {error}"
    for item in items_of(document):
        space = item.namespace or namespace
        if item.kind == "ResourceClaim":
            places.setdefault((item.kind, space, item.name), item.place[:3])
        elif item.kind == "Pod":
            name = _name(item, space, places)
            try:
                builder.add({**item.raw, "metadata": {**item.metadata, "name": name}}, place)
                places[item.kind, space, name] = item.place[:3]
            except InputError as error:
                yield f"not put to the schedulers: {error}"


def _name(item: Item, space: str, places: Mapping[ObjectKey, WrittenAt]) -> str:
    """A name for a pod that no other pod of the manifests has; examples often share one."""
    base = item.name.rstrip("*").rstrip("-") or "pod"
    number, name = 1, base
    while ("Pod", space, name) in places:
        number, name = number + 1, f"{base}-{number + 1}"
    return name


class ReleaseNamed(NamedTuple):
    """A release as somebody wrote it, and its patch release if that is part of it."""

    release: Release
    patch: int | None


def release_named(text: str, source: str) -> ReleaseNamed:
    """A release that lint knows, as ``source`` names it. Raises UsageError."""
    release = named_release(text, MODELLED, "lint knows", source)
    return ReleaseNamed(release.without_patch, release.patch if text.count(".") > 1 else None)


def check_usage(flags: LintFlags) -> None:
    """Raises UsageError for flags that make no sense with ``--from``."""
    if flags.old:
        raise UsageError("--from and --old exclude one another: one judges an upgrade, the other a change of objects")
    if flags.verify:
        raise UsageError("--verify is about selectors on one release; leave --from out")
    if flags.fix or flags.unsafe_fixes or flags.diff:
        raise UsageError("what an upgrade changes has no fixes: leave --fix and --diff out, or --from")
    if flags.namespace and not (flags.paths or flags.kustomize):
        raise UsageError("--from judges the whole cluster; leave --namespace out, or name manifests")


def upgrade_of(flags: LintFlags, configured: Iterable[str], source: str, to: Release) -> Upgrade:
    """The release before the upgrade with its gates: its defaults, changed by what is configured and asked for.

    Raises UsageError: it is no release before ``to``.
    """
    before = release_named(flags.upgraded_from, "--from").release
    if before >= to:
        raise UsageError(
            f"--from {before} is not older than {to}: lint judges upgrades; to check for one release leave --from out"
        )
    on = with_gates(with_gates(default_features(before), configured, source), flags.gates)
    return Upgrade(before, frozenset(gate for gate in on if gate_default(gate, before) is not None))


def read_cluster(flags: LintFlags, connection: ConnectionFlags) -> tuple[Snapshot, list[Input]]:
    """The live cluster, or the saved one, and the objects in it that lint judges, as texts. Raises DraError."""
    from kubectl_dra.cli.live import Progress, api_server, read_saved

    if flags.live:
        from kubectl_dra.cluster.save import Recorder

        cluster = api_server(connection, flags.namespace)
        recorder = Recorder(cluster.namespace)
        with Progress() as progress:
            cluster.read_into(recorder, progress=progress)
        inputs = [Input(CLUSTER_NAME, True, _text(recorder.items()))]
        return recorder.build(), inputs
    from kubectl_dra.cluster.contents import contents

    if any(path != STDIN and _is_large(path) for path in flags.snapshots):
        from kubectl_dra.cluster.save import record_files

        recorder = record_files(list(flags.snapshots))
        inputs = [Input(CLUSTER_NAME, True, _text(recorder.items()))]
        return recorder.build(complete=flags.complete), inputs
    standard = contents(STDIN) if STDIN in flags.snapshots else None
    with Progress() as progress:
        snapshot = read_saved(flags, stdin=standard, progress=progress)
    inputs = []
    for path in flags.snapshots:
        if path == STDIN:
            inputs.append(Input(STDIN_NAME, True, standard))
        elif Path(path).is_dir():
            inputs += find_inputs([path])
        else:
            inputs.append(Input(path, True, contents(path)))
    return snapshot, inputs


def _is_large(path: str) -> bool:
    """Whether lint does not read a file as it is."""
    try:
        return not Path(path).is_dir() and Path(path).stat().st_size > LARGEST
    except OSError:
        return False


def _text(items: Iterable[Mapping[str, Any]]) -> bytes:
    """The objects that rules are about, as one List."""
    from kubectl_dra.report.json_output import json_text

    kept = [
        item for item in items if item["apiVersion"].startswith(GROUP) or (item["spec"] or {}).get("resourceClaims")
    ]
    return json_text({"apiVersion": "v1", "kind": "List", "items": kept}).encode()


Compared = tuple[Mapping[ObjectKey, DifferentAnswers], Sequence[str]]
"""The objects about which both schedulers differ, and sentences about what was not compared."""
_OLDER: Final = f"the scheduler's answers are compared from {EXPLAINED.oldest} on"


def schedulers(snapshot: Snapshot, target: AssumedCluster, flags: LintFlags, to: ReleaseNamed) -> Compared:
    """What the schedulers of both releases say about what waits or runs in a cluster."""
    before = release_named(flags.upgraded_from, "--from")
    if before.release not in EXPLAINED:
        return {}, [_OLDER]
    from kubectl_dra.cli.live import Progress

    was, will = _settings(snapshot, target, flags, before, to)
    with Progress() as progress:
        found, notes = rescheduled(snapshot, was, will, progress)
    return found, [*notes, *_notes_about_patches(before, to)]


def _settings(
    snapshot: Snapshot, target: AssumedCluster, flags: LintFlags, before: ReleaseNamed, to: ReleaseNamed
) -> tuple[Settings, Settings]:
    """What is assumed of both schedulers, from what the cluster's objects show."""
    from kubectl_dra.explain.settings import Settings
    from kubectl_dra.scheduling.scheduler import RULES, Scheduler, proved

    assert target.upgrade is not None
    features = target.upgrade.features
    # What the later release knows alone is shown by nothing that the earlier one stored.
    shown = proved(snapshot.slices, features, before.release, snapshot.claims.values())
    if snapshot.taint_rules:
        # Nobody writes one where they do not count.
        shown |= frozenset(RULES)
    shown -= dict(named_gates(flags.gates)).keys()
    was = Scheduler(before.release, features | shown, before.patch)
    will = Scheduler(to.release, target.features | shown, to.patch)
    return Settings(was, proved_gates=shown), Settings(will, proved_gates=shown)


def schedulers_about_manifests(
    inputs: Iterable[Input], target: AssumedCluster, flags: LintFlags, connection: ConnectionFlags, to: ReleaseNamed
) -> tuple[Mapping[WrittenAt, DifferentAnswers], Sequence[str]]:
    """What the schedulers of both releases say about what manifests would make in a cluster."""
    before = release_named(flags.upgraded_from, "--from")
    cluster, upgrade = target.snapshot, target.upgrade
    assert cluster is not None and upgrade is not None
    if before.release not in EXPLAINED:
        return {}, [_OLDER]
    from msgspec.structs import replace

    from kubectl_dra.cli.explain.reading import completed, with_admission
    from kubectl_dra.cli.live import Progress
    from kubectl_dra.cluster.apply import Server, overlay

    manifest, places, left_out = read_written(inputs, _namespace(flags, connection))
    existing = {key: pod for key, pod in manifest.pods.items() if key in cluster.pods}
    around = overlay(cluster, replace(manifest, pods=existing), Server(before.release, upgrade.features))
    reading = replace(flags, release=str(before.release))
    around = with_admission(around, manifest, reading, connection)
    around = completed(around, manifest.pods.values(), reading, connection)
    was, will = _settings(cluster, target, flags, before, to)
    with Progress() as progress:
        found, notes = rescheduled(around, was, will, progress, manifest)
    by_place = {places[key]: answers for key, answers in found.items() if key in places}
    return by_place, [*left_out, *notes, *_notes_about_patches(before, to)]


def _namespace(flags: LintFlags, connection: ConnectionFlags) -> str:
    """The namespace of objects that name none."""
    if not flags.live:
        return flags.namespace or "default"
    from kubectl_dra.cli.live import api_server

    return api_server(connection, flags.namespace).namespace


def _notes_about_patches(*releases: ReleaseNamed) -> Iterator[str]:
    """Releases of which nobody says the patch although that changes what the scheduler does."""
    for release, patch in releases:
        if patch is None and last_fix(release):
            yield (
                f"the scheduler of {release} is taken for that of its first patches; later ones differ: "
                f"name yours, such as {last_fix(release)}"
            )


def rescheduled(
    snapshot: Snapshot,
    before: Settings,
    after: Settings,
    progress: Callable[[str], None] | None = None,
    manifest: Snapshot | None = None,
) -> Compared:
    """The pods and claims about which the schedulers with these settings differ: of a cluster, where of those that are
    alike the first stands for all, or each of a manifest (see ``compare``).
    """
    from kubectl_dra.explain.two_releases import compare

    compared = compare(snapshot, before, after, progress, manifest)
    by_object: dict[ObjectKey, DifferentAnswers] = {}
    for differing in compared.differing:
        kind = "Pod" if differing.before.kind == "pod" else "ResourceClaim"
        names = differing.names[:1] if manifest is None else differing.names
        alike = len(differing.names) - len(names) if manifest is None else 0
        answers = DifferentAnswers(
            _answer(differing.before), _answer(differing.after), differing.runs, alike, differing.deciding
        )
        by_object.update({(kind, differing.before.namespace, name): answers for name in names})
    notes = []
    if untried := sum(differing.deciding is None for differing in compared.differing):
        notes.append(f"which change decides was not looked for to the end, because it took too long: {untried:,} times")
    if compared.left_out:
        notes.append(f"not compared, because it took too long: {amount(compared.left_out, 'pod or claim')}")
    if compared.open:
        notes.append(f"undetermined on both releases, and so not compared: {compared.open:,} of {compared.judged:,}")
    return by_object, notes


def _answer(diagnosis: Diagnosis) -> SchedulerAnswer:
    from kubectl_dra.exit_codes import Verdict
    from kubectl_dra.report.explain_words import reason

    if diagnosis.verdict in (Verdict.ALLOCATED, Verdict.SCHEDULABLE):
        return SchedulerAnswer(DevicesGiven.FITS, diagnosis.fitting)
    outcome = DevicesGiven.UNKNOWN if diagnosis.verdict is Verdict.UNDETERMINED else DevicesGiven.FAILS
    return SchedulerAnswer(outcome, (), reason(diagnosis))


def notes_about_flags(flags: LintFlags, after: Release) -> Iterator[str]:
    """Flags that do less than they seem to, and gates that the release after the upgrade does not let people set."""
    files = bool(flags.paths or flags.kustomize)
    if files and not flags.select:
        yield "only what the upgrade changes is looked for: lint without --from finds what is wrong in both releases"
    if files and not (flags.live or flags.snapshots):
        yield "the schedulers are not asked without a cluster: add --live or --snapshot for their answers"
    for gate, wanted in named_gates(flags.gates):
        default = gate_default(gate, after)
        if default is None:
            yield f"{after} has no gate {gate}: its components do not start while it is set"
        elif gate_locked(gate, after) and wanted != default:
            yield f"{after} locks the gate {gate}: its components do not start with {gate}={str(wanted).lower()}"


def notes_about_cluster(snapshot: Snapshot, target: AssumedCluster) -> Iterator[str]:
    """What else the upgrade of a cluster needs, and what of it was not seen."""

    assert target.upgrade is not None
    before, after = target.upgrade.release, target.release
    ended = {
        life.version: life.removed
        for life in LIFECYCLES
        if life.exists(before) and life.removed and life.was_removed(after)
    }
    for version, removed in ended.items():
        again = "write what may still be stored in it once more before, as it is"
        yield f"1.{removed} no longer reads {GROUP}/{version}: {again}"
    for gap in snapshot.gaps:
        if gap.reason != ABSENT:
            yield f"not seen: {gap}"
