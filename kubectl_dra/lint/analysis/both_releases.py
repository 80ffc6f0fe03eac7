"""What API servers of both releases of an upgrade make of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.defaults import gates_in_use
from kubectl_dra.api.fields import KINDS, Field
from kubectl_dra.api.releases import lifecycle
from kubectl_dra.lint.analysis.gated_fields import gated_fields
from kubectl_dra.lint.analysis.server_verdict import violations_of
from kubectl_dra.lint.context import AssumedCluster, Context, once
from kubectl_dra.manifests.changes import Path

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation


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
    before, after = (tuple(violations_of(Context(context.item, each))) for each in (both.before, both.after))
    if both.is_stored:
        # What is stored is decoded leniently: the field is lost instead.
        after = tuple(found for found in after if found.rule != "unknown-field")
    return ServersRefuse(
        before, after, both.is_stored and bool(after) and not before and _refuses_changes(context, both)
    )


def _is_in(cluster: AssumedCluster, context: Context) -> bool:
    entry = lifecycle(context.item.version, context.item.kind) if context.item.is_dra else None
    return not context.item.is_dra or (entry is not None and entry.exists(cluster.release))


def _refuses_changes(context: Context, both: BothReleases) -> bool:
    from kubectl_dra.admission.server import check_update

    raw, after = context.raw, both.after
    verdict = check_update(raw, raw, release=after.release, features=after.features, namespaces={})
    return verdict is not None and not verdict.accepted


class FieldKept(Struct, frozen=True):
    """A field that needs a gate, whether each release keeps it, and in how many places the object has it.

    ``path`` leads to the first of them. ``gate`` is the first gate that is off where the field is not kept; empty
    where the release does not have the field.
    """

    path: Path
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
    found: dict[tuple[str, ...], FieldKept] = {}
    for path, field in gated_fields(context):
        before, after = _keeps(field, both.before), _keeps(field, both.after)
        known = field.exists(both.before.release) and (both.is_stored or field.exists(both.after.release))
        if before == after or not known:
            continue
        name = tuple(part for part in path if isinstance(part, str))
        without = both.after if before else both.before
        off = next((gate for gate in field.gates if not without.has(gate)), "")
        gate = off if field.exists(without.release) else ""
        kept = found.get(name)
        found[name] = FieldKept(path, before, after, gate, 1) if kept is None else replace(kept, places=kept.places + 1)
    return tuple(found.values())


def _keeps(field: Field, cluster: AssumedCluster) -> bool:
    release = cluster.release
    return field.exists(release) and not field.is_dropped(release, cluster.features)
