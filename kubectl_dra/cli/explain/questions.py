"""From arguments to questions: the objects that they are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.reading import (
    applied,
    asked_settings,
    completed,
    read_cluster,
    read_manifest,
    with_what_decides,
)
from kubectl_dra.cli.explain.target import (
    LABELS,
    Looked,
    NotMade,
    StandIn,
    TypedTarget,
    find,
    has_made,
    targets_of,
    through_claim,
)
from kubectl_dra.cli.live import with_neighbours
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.snapshot import Key, Snapshot, stand_in
from kubectl_dra.cluster.workload_pods import with_free_names
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.explain.assumptions import rules_notes
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.question.new_pod import about_new_pod, check_selectors, with_refused_objects
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod, about_template
from kubectl_dra.explain.question.what_if_flag import (
    WhatIfChange,
    asking,
    changes_for,
    suppose,
    supposed_to_end,
    users_of_freed,
    with_whole_name,
    without_effect,
)
from kubectl_dra.explain.settings import Settings

if TYPE_CHECKING:
    from kubectl_dra.explain.devices.inventory import Inventory
    from kubectl_dra.fit.result import WorkloadFit


class Posed(NamedTuple):
    """A question ready to be answered, with its hypothetical changes and the cluster under them, and the manifest.

    ``stand_in``: what was asked about instead, a workload or a template. ``before`` are question and cluster without
    the changes, where there are any. ``changes`` are those of all questions. ``new_pods`` are
    those of the manifest that the cluster does not have.
    """

    question: Question
    snapshot: Snapshot
    settings: Settings
    manifest: Snapshot | None = None
    stand_in: StandIn = None
    before: tuple[Question, Snapshot] | None = None
    changes: tuple[WhatIfChange, ...] = ()
    new_pods: tuple[Key, ...] = ()


class Answers(NamedTuple):
    """The diagnoses, the workloads whose pods are counted, and the exit code.

    ``missing`` are namespaces that do not exist; the workloads suppose them. ``refused`` are the pods that are not
    created for that, of which text says no more.
    """

    diagnoses: Sequence[Diagnosis]
    workloads: Sequence[WorkloadFit] = ()
    code: int = 0
    missing: Sequence[str] = ()
    refused: Sequence[Diagnosis] = ()

    @classmethod
    def of(cls, diagnoses: Sequence[Diagnosis]) -> Answers:
        """Diagnoses by themselves."""
        return cls(diagnoses, (), max((diagnosis.exit_code for diagnosis in diagnoses), default=0))


def questions_of(flags: ExplainFlags, connection: ConnectionFlags, changes: Sequence[WhatIfChange]) -> list[Posed]:
    """The questions, with the cluster that they are about."""
    targets = asked_targets(flags)
    given = read(flags, connection, targets)
    snapshot = given.snapshot
    if given.manifest is not None:
        snapshot = with_what_decides(snapshot, given.manifest, flags, connection)
    given = _with_makers(given._replace(snapshot=snapshot), targets, flags, connection)
    snapshot, questions = given.snapshot, _questions(flags, targets, given)
    snapshot = completed(
        snapshot, [question.pod for question, _ in questions if question.pod is not None], flags, connection
    )
    unchanged = snapshot
    changes = [with_whole_name(change, snapshot) for change in changes]
    settings = replace(asked_settings(flags, snapshot), supposed=tuple(changes))
    environment = settings.scheduler.environment
    if flags.with_nodes:
        changed = [asking(question, changes, environment) for question, _ in questions]
        snapshot, settings = _with_nodes(flags.with_nodes, changed, snapshot, settings)
    supposes = bool(settings.supposed)
    every = settings.supposed
    # One whose claims are missing has no requests, and one without a request of that name does not change: others do.
    meant = {change for question, _ in questions for change in changes_for(question, changes)}
    new_pods = tuple(key for key, pod in (given.manifest.pods if given.manifest else {}).items() if _is_new(pod, given))
    posed = []
    for question, picked in questions:
        concerning = changes_for(question, changes)
        own = tuple(change for change in changes if change in concerning or change not in meant)
        of_nodes = every[len(changes) :]
        posed.append(
            Posed(
                *suppose(question, snapshot, own, environment),
                replace(
                    settings,
                    supposed=(*own, *of_nodes),
                    idle=without_effect(question, own),
                    ended=tuple(supposed_to_end(own, unchanged, question.namespace)),
                    freed=users_of_freed(own, unchanged, question.namespace),
                ),
                given.manifest,
                picked,
                before=(question, unchanged) if supposes else None,
                changes=every,
                new_pods=new_pods,
            )
        )
    return posed


def _with_nodes(
    texts: Sequence[str], questions: Sequence[Question], snapshot: Snapshot, settings: Settings
) -> tuple[Snapshot, Settings]:
    """The cluster with the new nodes, and the settings that say so."""
    from kubectl_dra.explain.question.with_node_flag import new_additions, with_nodes

    added = tuple(new_additions(texts, questions, snapshot, settings.scheduler))
    supposed = (*settings.supposed, *(addition.new.change for addition in added))
    after = with_nodes(snapshot, added, settings.scheduler)
    names = frozenset(after.nodes.keys() - snapshot.nodes.keys())
    return after, replace(settings, supposed=supposed, new_nodes=added, added=names)


def asked_targets(flags: ExplainFlags) -> tuple[TypedTarget, ...]:
    """What the command line names. Raises UsageError where that is nothing that can be explained."""
    if not flags.labels:
        return targets_of(flags.target) if flags.target else ()
    if flags.target or flags.manifests or flags.all_claims or flags.all_namespaces:
        raise UsageError("-l chooses among the pods of a namespace; leave other names, -f, --all and -A out")
    return (TypedTarget(LABELS, flags.labels),)


class Given(NamedTuple):
    """What is asked about: the state of the cluster with the manifest applied, each by itself, and the namespace meant.

    Without a manifest the state is that of the cluster.
    """

    snapshot: Snapshot
    cluster: Snapshot
    manifest: Snapshot | None
    namespace: str


def read(flags: ExplainFlags, connection: ConnectionFlags, targets: Sequence[TypedTarget] = ()) -> Given:
    """The cluster and the manifest."""
    cluster, namespace = read_cluster(flags, connection, targets)
    if not flags.manifests:
        return Given(cluster, cluster, None, namespace)
    manifest = read_manifest(flags, namespace, target=bool(flags.target))
    manifest = with_free_names(manifest, cluster)
    return Given(applied(cluster, manifest, flags), cluster, manifest, namespace)


def _with_makers(
    given: Given, targets: Sequence[TypedTarget], flags: ExplainFlags, connection: ConnectionFlags
) -> Given:
    """The live cluster with the workloads that are asked about and have no pods, which may be suspended."""
    if flags.snapshots:
        return given
    from kubectl_dra.neighbours.no_pod import MAKERS, maker_pointers

    wanted = [
        pointer
        for target in targets
        if target.kind in MAKERS and not any(has_made(pod, target) for pod in given.snapshot.pods.values())
        for pointer in maker_pointers(target.kind, target.name, given.namespace, given.snapshot)
    ]
    if not wanted:
        return given
    return given._replace(snapshot=with_neighbours(given.snapshot, lambda _: wanted, connection, flags.namespace))


def _questions(flags: ExplainFlags, targets: Sequence[TypedTarget], given: Given) -> list[tuple[Question, StandIn]]:
    """The questions, each with what it stands in for."""
    if not targets:
        return _of_manifest(flags, given)
    everywhere = bool(flags.snapshots) and not flags.namespace
    return [
        _about(find(target, given.namespace, given.snapshot, anywhere=everywhere), flags, given) for target in targets
    ]


def _about(looked: Looked, flags: ExplainFlags, given: Given) -> tuple[Question, StandIn]:
    item = looked.item
    if isinstance(item, ResourceClaim):
        return about_claim(item), None
    if isinstance(item, ResourceClaimTemplate):
        return about_template(item), looked.stand_in
    check_selectors(item)
    of_manifest = given.manifest is not None and key_of(item) in given.manifest.pods
    if isinstance(looked.stand_in, NotMade) and not of_manifest:
        return about_new_pod(item, given.snapshot, asked_settings(flags, given.snapshot)), looked.stand_in
    return _about_pod(item, given, asked_settings(flags, given.snapshot)), looked.stand_in


def _of_manifest(flags: ExplainFlags, given: Given) -> list[tuple[Question, StandIn]]:
    snapshot, manifest = given.snapshot, given.manifest
    assert manifest is not None
    settings = asked_settings(flags, snapshot)
    if manifest.pods:
        return [(_about_pod(pod, given, settings), None) for pod in manifest.pods.values()]
    if manifest.claims:
        found = [_about(through_claim(snapshot.claims[key], snapshot), flags, given) for key in manifest.claims]
        return [(with_refused_objects(question, snapshot, settings), stand_in) for question, stand_in in found]
    if manifest.templates:
        templates = [about_template(snapshot.templates[key]) for key in manifest.templates]
        return [(with_refused_objects(question, snapshot, settings), None) for question in templates]
    raise InputError(
        f"{', '.join(flags.manifests)} holds no pod, workload, ResourceClaim or ResourceClaimTemplate: "
        "nothing to explain"
    )


def _about_pod(pod: Pod, given: Given, settings: Settings) -> Question:
    """The question about a pod of the cluster, or of the manifest: one that exists keeps what it has."""
    key = key_of(pod)
    if not _is_new(pod, given):
        return about_pod(given.snapshot.pods[key], given.snapshot, exists=True)
    assert given.manifest is not None
    return about_new_pod(pod, given.snapshot, settings, given.manifest.written.get(("Pod", *key)))


def _is_new(pod: Pod, given: Given) -> bool:
    """Whether the cluster lacks a pod of the manifest."""
    return stand_in(pod) is not None or key_of(pod) not in given.cluster.pods


# The devices in the picture of ``explain -o html``.


def fleet(question: Question | None, snapshot: Snapshot, settings: Settings) -> Inventory | None:
    """The devices of a cluster, of one node with ``--node``; None if they were not read.

    They are exact in what classes read, and the ``question`` if it is about one pod or claim.
    """
    from kubectl_dra.explain.devices.inventory import take_inventory
    from kubectl_dra.explain.devices.wanted import Wanted

    shown = complete(question, snapshot, settings).for_lists()
    wanted = Wanted(nodes=(settings.node,) if settings.node else ())
    try:
        return take_inventory(shown, settings.scheduler.cycle(shown), wanted, rules_notes(shown, settings))
    except InputError:
        return None
