"""The page of a rollout: its phases, the check after each, and the way back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra.api.releases import TARGET
from kubectl_dra.command import CURRENT, ClusterFlags, CommandEffect, CommandLine, kubectl
from kubectl_dra.data.drivers import parsed
from kubectl_dra.migrate.rollout.survey import LABEL, REFUSED, Standing, Survey, Use
from kubectl_dra.migrate.vendors.model import KnownDriver, Resource
from kubectl_dra.text import some

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
