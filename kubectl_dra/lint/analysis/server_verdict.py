"""The API server's verdict on an object, and the objects for which it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.conversion import gates_in_use
from kubectl_dra.api.dra_fields import KINDS, gated
from kubectl_dra.api.releases import lifecycle
from kubectl_dra.api.schema import Field, FieldPath
from kubectl_dra.lint.context import AssumedCluster, Context, Item, once, stored_key
from kubectl_dra.manifests.changes import fields_at, value_at
from kubectl_dra.manifests.workloads import pod_templates
from kubectl_dra.text import whole_number

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import ServerVerdict, Violation


@once
def verdict_of(context: Context) -> ServerVerdict | None:
    """The server's verdict on the item, or None if it is not computed.

    It is computed for everything of resource.k8s.io, for pods and workloads with claims, and for quotas that
    count them. A pod template is judged with its workload, or as a pod if the workload is of a custom kind.
    An object that is stored already is judged as a change of it.
    """
    from kubectl_dra.admission.server.verdict import check, is_known

    item = context.item
    if item.owner is not None and is_known(item.owner.raw):
        return None
    if not item.is_dra and not is_about_claims(item.raw):
        return None
    old = _stored(context)
    if old is not None and item.complete:
        from kubectl_dra.admission.server.verdict import check_update

        changed = check_update(item.raw, old, release=context.release, features=context.features, namespaces={})
        if changed is not None:
            return changed
    return check(_named(item), release=context.release, features=context.features, namespaces={})


def _stored(context: Context) -> Mapping[str, Any] | None:
    """The stored object that the item changes, where one is given."""
    item = context.item
    return (context.target.stored or {}).get(stored_key(item.raw)) if item.is_dra else None


def _in_status(context: Context) -> tuple[Violation, ...]:
    """The server's violations in the status that is written here, as a driver or scheduler writes it."""
    item = context.item
    if not item.is_dra or not item.raw.get("status"):
        return ()
    from kubectl_dra.admission.server.verdict import check_written_status

    return check_written_status(
        item.raw, _stored(context), release=context.release, features=context.features, namespaces={}
    )


_OF_THE_WHOLE: Final = frozenset(
    {
        "workload-labels",
        "workload-selector",
        "container-claim-unknown",
        "constraint-request-unknown",
        "config-request-unknown",
        "pod-claim-source-none",
        "request-kind-missing",
    }
)
"""The server's violations that arise because a part of the object is missing."""
BAD_REQUEST: Final = 400


def is_accepted(context: Context) -> bool:
    """Whether the server finds nothing wrong with what is written here."""
    return context.item.v1 is not None and next(violations_of(context), None) is None


def _is_elsewhere(item: Item, violation: Violation) -> bool:
    """Whether a violation concerns something not written here: by a controller, or in the object under a patch."""
    if violation.rule == "unknown-field":
        # A controller has fields of its own; a patch only has directives such as $patch.
        return not item.is_patch or str(violation.path[-1]).startswith("$")
    return violation.reason == "Required" or (item.is_patch and violation.rule in _OF_THE_WHOLE)


def violations_of(context: Context) -> Iterator[Violation]:
    """The server's violations in what is written here."""
    verdict = verdict_of(context)
    if verdict is None:
        return
    # What cannot be decoded hides the rest.
    status = () if verdict.code == BAD_REQUEST else _in_status(context)
    for violation in (*verdict.violations, *status):
        elsewhere = not context.item.complete and _is_elsewhere(context.item, violation)
        if not elsewhere and not _is_of_limit(context.raw, violation):
            yield violation


def _is_of_limit(raw: Mapping[str, Any], violation: Violation) -> bool:
    """Whether a violation is about a request that the server takes from the limit, which has the violation, too."""
    *before, kind, name = violation.path if len(violation.path) > 2 else ("", "", "")
    if kind != "requests" or value_at(raw, violation.path) is not None:
        return False
    return value_at(raw, (*before, "limits", name)) is not None


def later_violations_of(context: Context) -> Iterator[Violation]:
    """What the server says of the rest once the fields that it cannot decode are gone.

    An unknown field is most likely another one misspelled: nothing is said of what it may stand for, which is what is
    missing beside it, and names that it may have given; nor of its neighbours.
    """
    from kubectl_dra.lint.analysis.undecoded import Undecoded

    verdict = verdict_of(context)
    if verdict is None or verdict.code != BAD_REQUEST:
        return
    item, raw = context.item, context.raw
    for path in (violation.path for violation in verdict.violations):
        raw = _without(raw, path)
    if raw == item.raw:
        return
    undecoded = Undecoded(raw, tuple(verdict.violations))
    rest = Context(Item(raw, item.place, item.owner, item.complete), context.target)
    for violation in (*violations_of(rest), *later_violations_of(rest)):
        if not undecoded.may_cause(violation):
            yield violation


def _without(value: Any, path: FieldPath) -> Any:
    """The value without the field at a path; the same if that is not there."""
    if not path:
        return value
    head, *rest = path
    if isinstance(value, dict) and head in value:
        kept = {key: below for key, below in value.items() if key != head}
        return {**value, head: _without(value[head], tuple(rest))} if rest else kept
    if isinstance(value, list) and isinstance(head, int) and head < len(value) and rest:
        return [*value[:head], _without(value[head], tuple(rest)), *value[head + 1 :]]
    return value


def _named(item: Item) -> Mapping[str, Any]:
    """A pod template as the pod that its controller makes: with a name."""
    if item.owner is None:
        return item.raw
    return {**item.raw, "metadata": {"name": "pod", **item.metadata}}


def is_about_claims(raw: Mapping[str, Any]) -> bool:
    """Whether a pod, workload or quota concerns resource claims or device classes, or asks for a device as a whole.

    Also true for a pod or workload with a wrong type on the way, which hides the answer.
    """
    spec = raw.get("spec")
    if not all(part is None or isinstance(part, dict) for part in (spec, raw.get("metadata"))):
        return True
    if raw.get("kind") == "ResourceQuota":
        hard = value_at(spec, ("hard",))
        words = ("resource.k8s.io", "resource.kubernetes.io", "resourceclaim")
        return isinstance(hard, dict) and any(word in str(key) for key in hard for word in words)
    if raw.get("kind") == "Pod":
        return _concerns(spec)
    return any(_concerns(template.content.get("spec")) for template in pod_templates(raw))


def _concerns(spec: Any) -> bool:
    """Whether a pod spec has claims, or asks for devices in a way that the API server may refuse.

    That is a wrong type on the way to them, a number that is none, a request that is not the limit, or devices in the
    resources of the whole pod.
    """
    return uses_claims(spec) or not _is_plain(spec) or _has_pod_level_devices(spec)


def _has_pod_level_devices(spec: Any) -> bool:
    """Whether the resources of the whole pod have an extended resource, which only containers can (KEP-2837)."""
    resources = spec.get("resources") if isinstance(spec, dict) else None
    return any("/" in str(name) for kind in ("limits", "requests") for name in fields_at(resources, kind))


def _is_plain(spec: Any) -> bool:
    """Whether a pod spec's containers, and their resources, have the right types, and how many devices is clear."""
    if not isinstance(spec, dict):
        return spec is None
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if not isinstance(containers, list | None):
            return False
        for container in containers or ():
            if not isinstance(container, dict) or not isinstance(container.get("resources"), dict | None):
                return False
            resources = container.get("resources")
            if not all(map(_is_count, _devices(resources))) or _is_overcommitted(resources):
                return False
    return True


def _devices(resources: Any) -> Iterator[Any]:
    """Amounts of extended resources that a container asks for."""
    for kind in ("limits", "requests"):
        yield from (value for name, value in fields_at(resources, kind).items() if "/" in str(name))


def _is_overcommitted(resources: Any) -> bool:
    """Whether a container requests devices without a limit, or with another one."""
    limits = fields_at(resources, "limits")
    requests = fields_at(resources, "requests").items()
    return any("/" in str(name) and str(limits.get(name)) != str(amount) for name, amount in requests)


def _is_count(value: Any) -> bool:
    """Whether it is a whole number as nearly everybody writes it."""
    return (type(value) is int and value >= 0) or (isinstance(value, str) and whole_number(value) is not None)


def uses_claims(spec: Any) -> bool:
    """Whether a pod spec has resource claims, or a container that names one."""
    if not isinstance(spec, dict):
        return False
    if "resourceClaims" in spec:
        return True
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        for container in containers if isinstance(containers, Sequence) else ():
            resources = value_at(container, ("resources",))
            if isinstance(resources, dict) and "claims" in resources:
                return True
    return False


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


# Finds the fields of an object that need a feature gate.

_SPECS: Final[Mapping[str, str]] = {
    "DeviceClass": "DeviceClassSpec",
    "ResourceClaim": "ResourceClaimSpec",
    "ResourceClaimTemplate": "ResourceClaimSpec",
    "ResourceSlice": "ResourceSliceSpec",
}


@once
def gated_fields(context: Context) -> tuple[tuple[FieldPath, Field], ...]:
    """The fields of the object's spec (in v1's shape) that need a gate, with their paths."""
    struct = _SPECS.get(context.item.kind)
    fields = gated(context.spec, struct, context.spec_path) if struct else ()
    return tuple((path, field) for path, field, value in fields if value != {})


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
