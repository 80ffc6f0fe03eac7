"""``migrate plan``: the phases from device plugins to claims, as files to review. Nothing is applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.releases import GROUP
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Skipped, each_document
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.objects import objects
from kubectl_dra.manifests.source import decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, key_of
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.new_objects import documents_of, free
from kubectl_dra.migrate.quotas import quota_key
from kubectl_dra.migrate.rollout.page import CLASSES, POLICY, QUOTAS, README, Moving, Rollout, page, policy
from kubectl_dra.migrate.rollout.survey import Survey

if TYPE_CHECKING:
    from kubectl_dra.cluster.live import ApiServer
    from kubectl_dra.cluster.snapshot import Progress

QUOTA_NAME: Final = "device-claims"
_ORDER: Final = {"migrated": 0, "ready": 1, "decide": 2, "blocked": 3}


def rollout(survey: Survey, snapshot: Snapshot, settings: MigrationSettings, *, live: bool) -> Rollout:
    """Make the plan. ``live``: the snapshot is of a cluster, not of the manifests alone."""
    moving: list[Moving] = []
    staying: list[tuple[str, str]] = []
    rows = {(use.resource, use.becomes.device_class if use.becomes else ""): use.becomes for use in survey.uses}
    for (name, device_class), resource in sorted(rows.items(), key=lambda item: item[0]):
        if resource is None:
            staying.append((name, "of no vendor that is known; say with --vendors FILE what it becomes"))
        elif resource.outcome == "keep":
            staying.append((name, "as a file for --vendors says"))
        elif resource.outcome in ("ask", "refuse") or not resource.device_class:
            staying.append((name, f"{resource.message.rstrip('.')}. {resource.way_out}".strip()))
        elif resource.part_of:
            staying.append((name, f"it goes with {resource.part_of}, as capacity of its claim"))
        else:
            known = live and not snapshot.is_gap("DeviceClass")
            installed = True if resource.device_class in snapshot.classes else False if known else None
            users = (
                use
                for use in survey.uses
                if use.resource == name and use.becomes is not None and use.becomes.device_class == device_class
            )
            spaces = tuple(dict.fromkeys(use.namespace for use in users))
            moving.append(Moving(resource, installed, spaces))
    classes, missing = _classes(moving, settings)
    order = sorted(
        (progress for progress in survey.namespaces if progress.state != "migrated" or progress.label),
        key=lambda progress: (_ORDER[progress.state], progress.pods, progress.namespace),
    )
    return Rollout(
        tuple(moving),
        tuple(staying),
        tuple(order),
        survey,
        tuple(_quotas(moving, snapshot)),
        tuple(classes),
        tuple(missing),
        live,
        tuple(filter(None, map(settings.catalogue.driver, dict.fromkeys(move.resource.driver for move in moving)))),
    )


def files(plan: Rollout) -> Mapping[str, str]:
    """The files by name: manifests in the order in which to apply them, and the page that explains them."""
    out: dict[str, str] = {}
    if plan.classes:
        head = (
            "# The DeviceClasses of the drivers. A driver's chart brings its own: apply one of these only where the\n"
            "# driver was installed without it.\n"
        )
        out[CLASSES] = head + documents_of(plan.classes, Style())
    if plan.quotas:
        head = (
            "# What each namespace may claim: the number that its quota gives device plugins. The old quotas stay\n"
            "# until the last pod that they count is gone.\n"
        )
        out[QUOTAS] = head + documents_of(plan.quotas, Style())
    if plan.moving:
        head = (
            "# Pods that ask a device plugin for these resources, in namespaces with the label\n"
            "# kubectl-dra/device-plugins: with the value warn they are let through with a warning, with refuse they\n"
            "# are not. Without the label nothing changes. Running pods are not touched.\n"
        )
        out[POLICY] = head + documents_of(policy(plan.names), Style())
    out[README] = page(plan)
    return out


def _classes(moving: Sequence[Moving], settings: MigrationSettings) -> tuple[list[dict[str, Any]], list[str]]:
    """The classes that the cluster lacks or may lack, and the names of those that cannot be written here."""
    out: list[dict[str, Any]] = []
    missing: list[str] = []
    for name in dict.fromkeys(move.resource.device_class for move in moving if not move.installed):
        known = settings.catalogue.device_class(name)
        if known is None or not known.selector:
            missing.append(name)
            continue
        out.append(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "DeviceClass",
                "metadata": {"name": name},
                "spec": {"selectors": [{"cel": {"expression": known.selector}}]},
            }
        )
    return out, missing


def _quotas(moving: Sequence[Moving], snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """A quota for claims in each namespace whose quotas count what moves, but not its claims."""
    spaces = sorted({quota.metadata.namespace for quota in snapshot.quotas})
    for space in spaces:
        mine = [quota for quota in snapshot.quotas if quota.metadata.namespace == space]
        counted = {key for quota in mine for key in quota.hard}
        hard: dict[str, int] = {}
        used = {move.resource.name for move in moving if space in move.namespaces}
        for resource, _, spaces_of in moving:
            # Where nobody uses the resource yet, it may become any of its classes.
            if resource.name in used and space not in spaces_of:
                continue
            key = quota_key(resource.device_class)
            amounts = [amount for quota in mine if (amount := _amount(quota, resource.name)) is not None]
            if amounts and key not in counted:
                # All quotas of a namespace hold, so the smallest is the one that counts.
                hard[key] = hard.get(key, 0) + min(amounts)
        if hard:
            name = free(QUOTA_NAME, {quota.metadata.name for quota in mine})
            yield {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": name, "namespace": space},
                "spec": {"hard": {key: str(amount) for key, amount in hard.items()}},
            }


def _amount(quota: ResourceQuota, name: str) -> int | None:
    value = quota.hard.get(f"requests.{name}")
    try:
        quantity = None if value is None else Quantity.parse(value)
    except QuantityError:
        return None
    return quantity.value() if quantity is not None and quantity.is_integer() else None


# Reads a live cluster or files for the survey. Never writes.

WORKLOADS: Final = (
    ("apps/v1", "deployments"),
    ("apps/v1", "statefulsets"),
    ("apps/v1", "daemonsets"),
    ("apps/v1", "replicasets"),
    ("batch/v1", "jobs"),
    ("batch/v1", "cronjobs"),
)
"""Kinds read from a live cluster besides pods, because workloads without pods count as well."""


def live_workloads(
    cluster: ApiServer, namespace: str, progress: Progress | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The workloads of one namespace or all, and a note for each kind that may not be read.

    Raises:
        ClusterError: the cluster does not answer.
    """
    from kubectl_dra.cluster.client import Answered, segment

    workloads: list[dict[str, Any]] = []
    notes: list[str] = []
    scope = f"/namespaces/{segment(namespace)}" if namespace else ""
    for version, plural in WORKLOADS:
        try:
            workloads += cluster.client.list_items(f"/apis/{version}{scope}/{plural}", None, progress)
        except Answered as error:
            notes.append(f"{plural} could not be read, so those without pods are not seen: {error}")
    return workloads, notes


def file_workloads(inputs: Sequence[Input]) -> Iterator[Mapping[str, Any]]:
    """The workloads in files, without Pods. Unreadable files are skipped."""
    for raw in file_objects(inputs):
        key = key_of(raw)
        if key != ("", "Pod") and (key in TEMPLATES or key in SPECS):
            yield raw


def file_objects(inputs: Sequence[Input]) -> Iterator[Mapping[str, Any]]:
    """Every Kubernetes object in files. Unreadable files are skipped."""
    for file in inputs:
        try:
            documents = [
                document
                for document in each_document(decode(read(file), file.name))
                if not isinstance(document, Skipped)
            ]
        except InputError:
            continue
        for document in documents:
            try:
                for manifest in objects((document,)):
                    yield manifest.object
            except InputError:
                continue
