"""What an upgrade of the cluster changes for an object (``--from``): verdicts, fields, and the scheduler's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.behaviour import RULES_WITHOUT_GATE
from kubectl_dra.api.conversion import gates_in_use
from kubectl_dra.api.dra_fields import KINDS
from kubectl_dra.api.releases import lifecycle, versions_of
from kubectl_dra.api.schema import Field, FieldPath
from kubectl_dra.lint.analysis.server_verdict import gated_fields, violations_of
from kubectl_dra.lint.context import AssumedCluster, Context, once
from kubectl_dra.lint.finding import LintFinding, Severity
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.lint.upgrade import DevicesGiven, SchedulerAnswer
from kubectl_dra.text import amount, some

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation
    from kubectl_dra.scheduling.scheduler import Deciding, SchedulerChange


_RULES_GATE: Final = "DRADeviceTaintRules"
_BINDING: Final = "pods then wait until the driver has prepared the device"
_COUNTERS: Final = "devices with common counters then exclude one another"
_PLACE: Final = "devices of one slice can then be on different nodes"
_SHARED: Final = "the device can then be shared"
_EFFECTS: Final[Mapping[str, str]] = {
    "adminAccess": "the request then takes no device away from others",
    "allowMultipleAllocations": _SHARED,
    "bindingConditions": _BINDING,
    "bindingFailureConditions": _BINDING,
    "bindsToNode": "the claim then stays on the node that it was allocated for",
    "capacity": "the request then takes a part of a shared device, or only devices that have so much",
    "consumesCounters": _COUNTERS,
    "distinctAttribute": "devices with equal values then do not go together",
    "extendedResourceName": "the scheduler then makes claims for pods that request the resource",
    "firstAvailable": "the alternatives then count",
    "perDeviceNodeSelection": _PLACE,
    "requestPolicy": _SHARED,
    "sharedCounters": _COUNTERS,
    "taints": "claims that do not tolerate them then get other devices, and NoExecute evicts pods",
    "tolerations": "the request then takes devices with these taints as well",
}
"""What begins with a field, by its name."""


# What API servers of both releases of an upgrade make of an object.


class BothReleases(Struct, frozen=True):
    """The cluster before and after the upgrade, as the API server sees it that gets the object."""

    before: AssumedCluster
    after: AssumedCluster
    is_stored: bool


@once
def both_releases(context: Context) -> BothReleases | None:
    """The two clusters; None if no upgrade is judged.

    A field in a stored object shows that its gate is on; who switched it on goes on doing so.
    """
    upgrade = context.target.upgrade
    if upgrade is None:
        return None
    after = replace(context.target, upgrade=None)
    before = replace(after, release=upgrade.release, features=upgrade.features)
    if upgrade.is_stored and context.v1 and context.item.kind in KINDS:
        shown = gates_in_use(context.v1)
        before = replace(before, features=before.features | shown)
        after = replace(after, features=after.features | shown)
    return BothReleases(before, after, upgrade.is_stored)


class ServersRefuse(Struct, frozen=True):
    """What the API servers refuse in an object, of a version that both can serve.

    ``is_frozen``: the later one also refuses every change of the stored object.
    """

    before: tuple[Violation, ...]
    after: tuple[Violation, ...]
    is_frozen: bool = False


@once
def refusals(context: Context) -> ServersRefuse | None:
    """What both refuse; None if no upgrade is judged, or one of them does not have the object's version."""
    both = both_releases(context)
    if both is None:
        return None
    # A cluster shows what it stores in the version that it is asked for.
    if not both.is_stored and not (_is_in(both.before, context) and _is_in(both.after, context)):
        return None
    before, after = (tuple(violations_of(Context(context.item, cluster))) for cluster in (both.before, both.after))
    if both.is_stored:
        # What is stored is decoded leniently: the field is lost instead.
        after = tuple(violation for violation in after if violation.rule != "unknown-field")
    return ServersRefuse(
        before, after, both.is_stored and bool(after) and not before and _refuses_changes(context, both)
    )


def _is_in(cluster: AssumedCluster, context: Context) -> bool:
    life = lifecycle(context.item.version, context.item.kind) if context.item.is_dra else None
    return not context.item.is_dra or (life is not None and life.exists(cluster.release))


def _refuses_changes(context: Context, both: BothReleases) -> bool:
    from kubectl_dra.admission.server.verdict import check_update

    raw, after = context.raw, both.after
    verdict = check_update(raw, raw, release=after.release, features=after.features, namespaces={})
    return verdict is not None and not verdict.accepted


class FieldKept(Struct, frozen=True):
    """A field that needs a gate, whether each release keeps it, and in how many places the object has it.

    ``path`` leads to the first of them. ``gate`` is the first gate that is off where the field is not kept; empty
    where the release does not have the field.
    """

    path: FieldPath
    before: bool
    after: bool
    gate: str
    places: int


@once
def fields_switched(context: Context) -> tuple[FieldKept, ...]:
    """The fields that one release keeps and the other drops, each once, however often the object has it.

    A release that does not know a field at all refuses it: only in stored objects such a field is lost.
    """
    both = both_releases(context)
    if both is None:
        return ()
    by_name: dict[tuple[str, ...], FieldKept] = {}
    for path, field in gated_fields(context):
        before, after = _keeps(field, both.before), _keeps(field, both.after)
        known = field.exists(both.before.release) and (both.is_stored or field.exists(both.after.release))
        if before == after or not known:
            continue
        name = tuple(part for part in path if isinstance(part, str))
        without = both.after if before else both.before
        off = next((gate for gate in field.gates if not without.has(gate)), "")
        gate = off if field.exists(without.release) else ""
        kept = by_name.get(name)
        by_name[name] = (
            FieldKept(path, before, after, gate, 1) if kept is None else replace(kept, places=kept.places + 1)
        )
    return tuple(by_name.values())


def _keeps(field: Field, cluster: AssumedCluster) -> bool:
    release = cluster.release
    return field.exists(release) and not field.is_dropped(release, cluster.features)


class VersionEnds(
    Rule,
    code="DRA511",
    name="version-ends-with-upgrade",
    severity="error",
    kinds=ANY_KIND,
    otherwise={"info": "the version is only deprecated from then on"},
):
    """A version that ends with the upgrade (--from)."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        both, item = both_releases(context), context.item
        life = lifecycle(item.version, item.kind) if item.is_dra else None
        # A cluster converts what it has stored.
        if both is None or life is None or both.is_stored or not life.exists(both.before.release):
            return
        before, after = both.before.release, both.after.release
        versions = versions_of(item.kind, after)
        advice = f"Write {item.group}/{versions[0]}." if versions and versions[0] != item.version else None
        what = f"{item.api_version} {item.kind}"
        if not life.exists(after):
            gone = f"it was removed in 1.{life.removed}" if after > before else f"it came in 1.{life.introduced}"
            yield self.finding(("apiVersion",), f"{before} has {what}, {after} does not: {gone}", fix=advice)
        elif life.is_deprecated(after) and not life.is_deprecated(before):
            until = f" and gone in 1.{life.removed}" if life.removed else ""
            message = f"{what} is deprecated from 1.{life.deprecated} on{until}"
            yield self.finding(("apiVersion",), message, fix=advice, severity="info")


class RejectedAfter(
    Rule,
    code="DRA512",
    name="rejected-after-upgrade",
    severity="error",
    kinds=ANY_KIND,
    otherwise={"warning": "the object is stored and can still be changed"},
):
    """An object that only the release before the upgrade accepts (--from)."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        both, refusal = both_releases(context), refusals(context)
        if both is None or refusal is None or refusal.before:
            return
        before, after = both.before.release, both.after.release
        what = f"{before} accepts it, {after} rejects it"
        if both.is_stored:
            what = f"{after} rejects it when it is made again"
            if refusal.is_frozen:
                what = f"{after} rejects every change of it"
        for violation in refusal.after:
            yield self.finding(
                violation.path,
                f"{what}: {violation.message}",
                field=violation.field,
                detail=violation.rule,
                on_key=violation.rule == "unknown-field",
                severity="warning" if both.is_stored and not refusal.is_frozen else None,
            )


class CountsAfter(
    Rule,
    code="DRA513",
    name="field-counts-after-upgrade",
    severity="warning",
    kinds=("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceTaintRule"),
):
    """A field that counts only after the upgrade (--from)."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        both, refusal = both_releases(context), refusals(context)
        if both is None or refusal is None or refusal.before or refusal.after:
            return
        for field in fields_switched(context):
            if field.after:
                effect = _EFFECTS.get(str(field.path[-1]), "it then counts")
                message = f"{both.before.release} drops it, {both.after.release} keeps it ({field.gate}): {effect}"
                yield self.finding(field.path, message + _elsewhere(field), on_key=True)
        begins = both.after.has(_RULES_GATE) and not both.before.has(_RULES_GATE)
        if context.item.kind == "DeviceTaintRule" and begins and both.before.release not in RULES_WITHOUT_GATE:
            message = (
                f"where the gate {_RULES_GATE} is off, as by default, {both.before.release} stores the rule and "
                f"ignores it; {both.after.release} goes by it: it taints what it selects, and NoExecute evicts pods"
            )
            yield self.finding(("spec",), message, on_key=True)


class LostAfter(
    Rule,
    code="DRA514",
    name="field-lost-after-upgrade",
    severity="warning",
    kinds=("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
):
    """A field that is lost with the upgrade (--from)."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        both = both_releases(context)
        for field in () if both is None else fields_switched(context):
            if both is not None and field.before:
                after = both.after.release
                why = f"drops it: the gate {field.gate} is off" if field.gate else "does not have it"
                message = f"{both.before.release} keeps it, {after} {why}"
                yield self.finding(field.path, message + _elsewhere(field), on_key=True)


class AcceptedAfter(Rule, code="DRA515", name="accepted-after-upgrade", severity="info", kinds=ANY_KIND):
    """An object that only the release after the upgrade accepts (--from)."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        both, refusal, item = both_releases(context), refusals(context), context.item
        if both is None or both.is_stored:
            return
        before, after = both.before.release, both.after.release
        life = lifecycle(item.version, item.kind) if item.is_dra else None
        if life is not None and life.exists(after) and life.is_newer(before):
            message = f"{before} does not have {item.api_version} {item.kind}, which came in 1.{life.introduced}"
            yield self.finding(("apiVersion",), message)
        if refusal is None or refusal.after or not refusal.before:
            return
        first, more = refusal.before[0], len(refusal.before) - 1
        message = f"{after} accepts it, {before} rejects it: {first.message}"
        if more:
            message += f" (and {amount(more, 'reason')} more)"
        yield self.finding(first.path, message, field=first.field, detail=first.rule)


class Rescheduled(
    Rule,
    code="DRA516",
    name="scheduled-otherwise-after-upgrade",
    severity="warning",
    kinds=("Pod", "ResourceClaim"),
    otherwise={"error": "it gets its devices only before", "info": "it gets them only after"},
):
    """A pod or claim that the schedulers of both releases judge differently (--from)."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        upgrade, item = context.target.upgrade, context.item
        if upgrade is None:
            return
        difference = upgrade.written.get(item.place[:3])
        if difference is None and not item.is_template:
            difference = upgrade.rescheduled.get((item.kind, item.namespace or "default", item.name))
        if difference is None:
            return
        again = "made again: " if difference.runs else "a pod of it: " if item.is_template else ""
        message = (
            f"{again}on {upgrade.release} {_said(difference.before)}; on {context.release} {_said(difference.after)}"
        )
        if difference.deciding is not None:
            message += _because(difference.deciding, str(context.release))
        if difference.alike:
            message += f" (the same holds for {difference.alike:,} more like it)"
        before, after = difference.before.outcome, difference.after.outcome
        severity: Severity | None = None
        if before is DevicesGiven.FITS and after is DevicesGiven.FAILS:
            severity = "error"
        elif after is DevicesGiven.FITS and before is not DevicesGiven.FITS:
            severity = "info"
        if item.is_template:
            yield self.finding(("spec", "resourceClaims"), message, severity=severity, on_key=True)
        else:
            yield self.finding(("metadata", "name"), message, severity=severity)


def _said(answer: SchedulerAnswer) -> str:
    if answer.outcome is DevicesGiven.FITS:
        return f"it gets its devices on {some(answer.nodes)}" if answer.nodes else "it gets its devices"
    verb = "it gets none" if answer.outcome is DevicesGiven.FAILS else "it may or may not get them"
    return f"{verb} ({answer.reason})" if answer.reason else verb


def _because(deciding: Deciding, release: str) -> str:
    changes = [_change(change, release) for change in deciding.changes]
    if not changes:
        return ""
    if len(changes) == 1:
        return f"; because {changes[0]}"
    return (
        f"; because of {'several changes together' if deciding.together else 'change of these'}: {'; '.join(changes)}"
    )


def _change(change: SchedulerChange, release: str) -> str:
    from kubectl_dra.scheduling.scheduler import ChangeKind

    text = {
        ChangeKind.GATE_ON: f"the gate {change.name} turns on",
        ChangeKind.GATE_OFF: f"the gate {change.name} turns off",
        ChangeKind.DEFECT_GONE: f"{release} no longer has a defect: {change.what}",
        ChangeKind.DEFECT_NEW: f"{release} has a new defect: {change.what}",
        ChangeKind.OTHERWISE: f"in {release} {change.what}",
    }[change.kind]
    return f"{text} ({change.link})" if change.link else text


def _elsewhere(field: FieldKept) -> str:
    return f" (here and in {amount(field.places - 1, 'place')} more)" if field.places > 1 else ""


RULES = (VersionEnds, RejectedAfter, CountsAfter, LostAfter, AcceptedAfter, Rescheduled)
