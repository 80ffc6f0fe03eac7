"""``migrate plan``: the phases from device plugins to claims, as files to review. Nothing is applied."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.releases import GROUP, TARGET
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CURRENT, ClusterFlags, CommandEffect, CommandLine, kubectl
from kubectl_dra.data.drivers import parsed
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.objects import objects, readable
from kubectl_dra.manifests.source import decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, key_of
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.new_objects import documents_of, free
from kubectl_dra.migrate.quotas import quota_key
from kubectl_dra.migrate.rollout.survey import LABEL, REFUSED, Standing, Survey, Use
from kubectl_dra.migrate.vendors.model import KnownDriver, Resource
from kubectl_dra.text import some

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
            documents = list(readable(decode(read(file), file.name)))
        except InputError:
            continue
        for document in documents:
            with suppress(InputError):
                yield from (manifest.object for manifest in objects((document,)))


# The page of a rollout: its phases, the check after each, and the way back.


# The data of a rollout plan, and the names of its files.

CLASSES: Final = "1-classes.yaml"
QUOTAS: Final = "2-quotas.yaml"
POLICY: Final = "3-policy.yaml"
README: Final = "README.md"


class Moving(NamedTuple):
    """A resource that moves: what it becomes, whether the cluster has the class, and where it is used."""

    resource: Resource
    installed: bool | None
    namespaces: tuple[str, ...]


class Rollout(NamedTuple):
    """The content of the plan. ``staying`` are resources that no claim replaces, with the reason; ``where`` is the
    cluster that its commands are for.
    """

    moving: tuple[Moving, ...]
    staying: tuple[tuple[str, str], ...]
    order: tuple[Standing, ...]
    survey: Survey
    quotas: tuple[dict[str, Any], ...]
    classes: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]
    live: bool
    drivers: tuple[KnownDriver, ...]
    where: ClusterFlags = CURRENT

    @property
    def names(self) -> list[str]:
        """The resources that pods should no longer request."""
        return list(dict.fromkeys(move.resource.name for move in self.moving))


# What the files say is in page.md and policy.yaml.


WARNED: Final = "warn"
_PAGE: Final = Path(__file__).with_name("page.md")
_POLICY: Final = Path(__file__).with_name("policy.yaml")


def policy(resources: Sequence[str]) -> list[dict[str, Any]]:
    """The policy about these resources, and its bindings."""
    objects: list[dict[str, Any]] = [parsed(text) for text in _POLICY.read_text("utf-8").split("\n---\n")]
    objects[0]["spec"]["variables"][0]["expression"] = json.dumps(list(resources))
    return objects


_MARK: Final = re.compile(r"<!-- (?:(if) (\w+)|(else|end)|.*) -->\n")
"""A line of page.md that shows what follows only where a field says something, or a comment."""
_COMMANDS: Final = re.compile(
    r"(?:(?<=`)|(?<=^    ))kubectl (?!kustomize|dra migrate plan|dra migrate (?!\S+ --live|--live))[^`#\n]*(?=[`#\n])",
    re.MULTILINE,
)
"""The commands of the page that ask a cluster, each in backticks or on a line of its own, up to its comment."""


def page(plan: Rollout) -> str:
    """The README of the plan, as Markdown."""
    fields = _fields(plan)
    text = "".join(_shown(_PAGE.read_text("utf-8"), fields)).format_map(fields)
    if plan.where.saved or not plan.where.flags:
        return text
    flags = shlex.join(plan.where.flags)
    return _COMMANDS.sub(lambda found: f"{found[0].rstrip()} {flags}{'  ' if found[0][-1].isspace() else ''}", text)


def _shown(template: str, fields: Mapping[str, str]) -> Iterator[str]:
    shown = True
    for line in template.splitlines(keepends=True):
        mark = _MARK.fullmatch(line)
        if mark is None:
            if shown:
                yield line
        elif mark[1]:
            shown = bool(fields[mark[2]])
        elif mark[3]:
            shown = mark[3] == "end" or not shown


def _fields(plan: Rollout) -> dict[str, str]:
    """What page.md is filled in with: words, or lines without the last line end."""
    survey = plan.survey
    # The newest release is what migrate writes for without being asked; a cluster may be older.
    flag = f" --kubernetes-version {survey.release}" if survey.release not in ("", str(TARGET)) else ""
    return {
        "source": "the cluster" if plan.live else "the manifests alone (no cluster was read)",
        "release": survey.release,
        "moving": ", ".join(plan.names),
        "rows": _lines(
            f"| {resource.name} | {resource.device_class} | {resource.driver or '?'} | {', '.join(namespaces)} |"
            for resource, _, namespaces in plan.moving
        ),
        "staying": _lines(f"- {name}: {reason}" for name, reason in plan.staying),
        "unseen": "\n\n".join(f"Not seen: {note}." for note in survey.notes),
        "drivers": _lines(f"- {driver.name}: {note}" for driver in plan.drivers for note in driver.notes),
        "twice": _lines(
            f"- node {clash.node}: {clash.amount} {clash.resource} of the device plugin, and {len(clash.same)} such "
            f"devices of {clash.driver}"
            for clash in survey.clashes
            if clash.same
        ),
        "classes": CLASSES if plan.classes else "",
        "installed": "yes" if plan.moving and not plan.classes else "",
        "missing": ", ".join(plan.missing),
        "quotas": _lines(
            f"- {quota['metadata']['namespace']}: "
            + ", ".join(f"{key}={value}" for key, value in quota["spec"]["hard"].items())
            for quota in plan.quotas
        ),
        "warn": _labels(plan, WARNED),
        "probe": _probe(plan) if plan.moving else "",
        "namespaces": _lines(_namespaces(plan)),
        "flag": flag,
        "gap": " " * len(flag),
        "refuse": _labels(plan, REFUSED),
        "keys": _lines(f"- `requests.{name}`" for name in plan.names),
    }


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _command(line: CommandLine) -> str:
    return f"    # not a name: {line.misnamed}" if line.misnamed else f"    {line}"


def _labels(plan: Rollout, value: str) -> str:
    """The commands that label the namespaces, where there is something to label them for."""
    label = (f"{LABEL}={value}", "--overwrite")
    return _lines(
        _command(kubectl("label", kind="namespace", name=progress.namespace, more=label, effect=CommandEffect.WRITES))
        for progress in plan.order
        if plan.moving
    )


def _probe(plan: Rollout) -> str:
    """The command that tries a pod, in a namespace of the plan if there is one, with a resource used there."""
    namespace, resource = next(
        (
            (use.namespace, use.resource)
            for progress in plan.order
            for use in plan.survey.uses
            if use.namespace == progress.namespace and use.resource in plan.names
        ),
        (plan.order[0].namespace if plan.order else "", plan.names[0]),
    )
    flags = ("--image=none", "--dry-run=server", f"--overrides={_overrides(resource)}")
    return _command(kubectl("run", "probe", namespace=namespace, more=flags, effect=CommandEffect.DRY_RUN))


def _overrides(resource: str) -> str:
    container = {"name": "probe", "image": "none", "resources": {"limits": {resource: "1"}}}
    return json.dumps({"spec": {"containers": [container]}}, separators=(",", ":"))


def _namespaces(plan: Rollout) -> Iterator[str]:
    for number, progress in enumerate(plan.order, 1):
        mine = [use for use in plan.survey.uses if use.namespace == progress.namespace]
        yield f"{number}. **{progress.namespace}** ({progress.state}): {_uses(mine)}"
        yield from (f"   - first: {reason}" for reason in progress.reasons)
        yield from (f"   - also: {todo}" for todo in progress.todo)


def _uses(mine: Sequence[Use]) -> str:
    parts = [
        f"{use.owner} ({use.each} {use.resource} each, pods: {use.pods}{f' of {use.wanted}' if use.wanted else ''})"
        for use in mine
    ]
    return some(parts, 8) or "nothing left"
