"""What still uses device plugins in a cluster, for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from kubectl_dra.command import CommandLine
from kubectl_dra.migrate.rollout.plan import CLASSES, POLICY, QUOTAS, README, Rollout
from kubectl_dra.migrate.rollout.survey import Clash, Standing, Survey, Use, pods_of
from kubectl_dra.report.blocks import ShellCommand
from kubectl_dra.report.blocks_text import write_command
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_output import SCHEMA_VERSION
from kubectl_dra.report.table import aligned
from kubectl_dra.text import amount, join, some

_STYLES: Final[Mapping[str, str]] = {"migrated": "green", "ready": "green", "decide": "yellow", "blocked": "red"}
_MIGRATE: Final[Mapping[str, str]] = {"auto": "yes", "unsafe": "with --unsafe", "refused": "refused"}
_SHOWN: Final = 4


def write_survey(survey: Survey, color: str = "auto", stream: TextIO | None = None, *, plan: CommandLine) -> None:
    """Write who uses device plugins, which devices are handed out twice, and the progress of namespaces.

    ``plan`` writes what to do about them.
    """
    out = Painter(stream or sys.stdout, color)
    where = f"namespace {survey.namespace}" if survey.namespace else "any namespace"
    if survey.uses:
        title = (
            "Asks for what no node offers"
            if all(use.offered is False for use in survey.uses)
            else "Uses device plugins"
        )
        out.write((title, "bold"))
        _table(
            out, ("NAMESPACE", "OWNER", "RESOURCE", "PODS", "DEVICES", "MIGRATES"), [_use(use) for use in survey.uses]
        )
        if lacking := unoffered(survey.uses):
            out.paragraph(
                f"No node offers {some(lacking, _SHOWN)}: no device plugin has any of it, and no new pod gets it."
            )
    else:
        out.write(f"No pod uses a device plugin in {where}.")
    if survey.clashes:
        out.write("")
        out.write(("Nodes with a device plugin and a driver", "bold"))
        _table(
            out, ("NODE", "RESOURCE", "PLUGIN", "DRIVER", "SAME-DEVICES"), [_clash(clash) for clash in survey.clashes]
        )
    if survey.namespaces:
        out.write("")
        out.write(("Namespaces", "bold"))
        for progress in survey.namespaces:
            _standing(out, progress, [use for use in survey.uses if use.namespace == progress.namespace])
    out.write("")
    for note in survey.notes:
        out.paragraph(f"note: {note}", style="dim")
    out.paragraph(summary(survey))
    if survey.uses:
        write_command(out, ShellCommand((plan,), "Next"))


def write_rollout(plan: Rollout, written: Sequence[Path], color: str = "auto") -> None:
    """Write what moves, what it needs, and what each of the files does."""
    out, uses = Painter(sys.stdout, color), [use for use in plan.survey.uses if use.outcome != "refused"]
    owners = {(use.namespace, use.owner, use.twin): max(use.pods, use.wanted or 0) for use in uses}
    if owners:
        spaces = amount(len({use.namespace for use in uses}), "namespace")
        who = f"{amount(len(owners), 'workload')} with {amount(sum(owners.values()), 'pod')} in {spaces}"
        verb = "moves" if len(owners) == 1 else "move"
        out.paragraph(f"For Kubernetes {plan.survey.release}: {who} {verb} to claims. Nothing has been applied.")
    else:
        out.paragraph(f"For Kubernetes {plan.survey.release}: no workload moves to claims. Nothing has been applied.")
    ask = len({(use.namespace, use.owner, use.twin) for use in plan.survey.uses if use.outcome != "auto"})
    if ask:
        out.paragraph(f"Not by itself: {amount(ask, 'workload')} {'needs' if ask == 1 else 'need'} a decision first.")
    if plan.moving:
        drivers = join(dict.fromkeys(move.resource.driver or move.resource.device_class for move in plan.moving))
        out.paragraph(
            f"Needed: DRA driver {drivers} on nodes from which the device plugin of {join(plan.names)} is taken."
        )
    out.write("")
    classes = join(raw["metadata"]["name"] for raw in plan.classes)
    does = {
        CLASSES: f"adds DeviceClass {classes}, where the driver's chart does not",
        QUOTAS: f"adds a quota for claims to {amount(len(plan.quotas), 'namespace')}",
        POLICY: f"warns of {join(plan.names)}, and later refuses it, in namespaces with a label",
        README: "what to do in which order: each phase with its check and its way back",
    }
    for path in written:
        out.write((str(path), "bold"))
        out.paragraph(does[path.name], indent="  ", first="  ")
    out.write("")
    out.paragraph(f"Begin with {written[-1]}.")


def _table(out: Painter, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = aligned([header, *rows])
    out.write("  ", (lines[0], "dim"))
    for line in lines[1:]:
        out.write("  ", line)


def _use(use: Use) -> tuple[str, ...]:
    devices = str(use.devices) if use.pods else f"0 ({use.each} each)"
    pods = str(use.pods) if use.wanted is None or use.pods >= use.wanted else f"{use.pods} of {use.wanted}"
    return use.namespace, use.owner, use.resource, pods, devices, _MIGRATE[use.outcome]


def _clash(clash: Clash) -> tuple[str, ...]:
    same = (
        f"{len(clash.same)}: {some(clash.same, _SHOWN)}"
        if clash.same
        else f"none (of {clash.published} that it publishes)"
    )
    return clash.node, clash.resource, str(clash.amount), clash.driver, same


def unoffered(uses: Sequence[Use]) -> list[str]:
    """The resources that are asked for and that no node has."""
    return [*dict.fromkeys(use.resource for use in uses if use.offered is False)]


def _standing(out: Painter, progress: Standing, uses: Sequence[Use]) -> None:
    label = f", label {progress.label}" if progress.label else ""
    out.write(
        "  ",
        (progress.state.ljust(8), _STYLES[progress.state]),
        f"  {progress.namespace}",
        (f"  {_counts(progress, uses)}{label}", "dim"),
    )
    for reason in progress.reasons:
        out.paragraph(reason, indent="              ", first="            - ")
    for todo in progress.todo:
        out.paragraph(todo, indent="              ", first="            + ")


def _counts(progress: Standing, uses: Sequence[Use]) -> str:
    claims = f"{progress.claims:,} {'claim or template' if progress.claims == 1 else 'claims and templates'}"
    plugins = "for what no node offers" if uses and all(use.offered is False for use in uses) else "with device plugins"
    return f"{amount(progress.pods, 'pod')} {plugins}, {claims}"


def _who(uses: Sequence[Use]) -> str:
    return f"{amount(_owners(uses), 'owner')} with {amount(pods_of(uses), 'pod')}"


def _owners(uses: Sequence[Use]) -> int:
    return len({(use.namespace, use.owner, use.twin) for use in uses})


def summary(survey: Survey) -> str:
    """One or two sentences: how much there is, what to do next."""
    states = [progress.state for progress in survey.namespaces]
    counts = ", ".join(f"{states.count(state)} {state}" for state in _STYLES if state in states)
    waiting = [use for use in survey.uses if use.offered is False]
    using = [use for use in survey.uses if use.offered is not False]
    parts = [f"{_who(using)} {'uses' if _owners(using) == 1 else 'use'} device plugins"] if using or not waiting else []
    if waiting:
        asks = "asks" if _owners(waiting) == 1 else "ask"
        parts.append(f"{_who(waiting)} {asks} for {some(unoffered(waiting), _SHOWN)}, which no node offers")
    text = "; ".join(parts)
    text += f"; namespaces: {counts}" if counts else ""
    twice = sum(1 for clash in survey.clashes if clash.same)
    if twice:
        text += f"; on {amount(twice, 'node')} a device plugin and a driver hand out the same devices: switch one off"
    text += f". For Kubernetes {survey.release}. Nothing was written."
    return text


# What still uses device plugins in a cluster as JSON, in the shape of ``schemas/migrate-live.json``.


def to_json(survey: Survey) -> dict[str, Any]:
    """The survey: who uses what, which devices are handed out twice, and the progress of each namespace."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "MigrationSurvey",
        "assumed": {"kubernetesVersion": survey.release},
        "namespace": survey.namespace,
        "uses": [_use_json(use) for use in survey.uses],
        "clashes": [_clash_json(clash) for clash in survey.clashes],
        "namespaces": [_standing_json(standing) for standing in survey.namespaces],
        "notes": list(survey.notes),
    }


def _use_json(use: Use) -> dict[str, Any]:
    out = use._asdict()
    del out["twin"]
    becomes = out.pop("becomes")
    out["deviceClass"] = becomes.device_class if becomes is not None else ""
    named = {"ownedBy": out.pop("owner"), "podCount": out.pop("pods"), "deviceCount": out.pop("devices")}
    named["podsWanted"], named["offeredByNodes"] = out.pop("wanted"), out.pop("offered")
    return {**out, **named}


def _clash_json(clash: Clash) -> dict[str, Any]:
    out = {**clash._asdict(), "same": list(clash.same)}
    published = {"publishedCount": out.pop("published")}
    return {**out, **published}


def _standing_json(standing: Standing) -> dict[str, Any]:
    out = standing._asdict()
    named = {"podCount": out.pop("pods"), "claimCount": out.pop("claims"), "blockedBy": list(out.pop("reasons"))}
    return {**out, **named, "todo": list(standing.todo)}
