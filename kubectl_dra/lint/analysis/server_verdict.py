"""The API server's verdict on an object, and the objects for which it is computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.api.dra_fields import gated
from kubectl_dra.api.releases import GROUP, default_version, versions_of
from kubectl_dra.api.schema import Field, FieldPath
from kubectl_dra.lint.context import Context, Item, once, stored_key
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Set, fields_at, value_at
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
    resources of the whole pod, which only containers can have (KEP-2837).
    """
    if not isinstance(spec, dict):
        return spec is not None
    if "resourceClaims" in spec or any(_devices(spec.get("resources"))):
        return True
    return any(_asks_oddly(spec.get(field)) for field in ("containers", "initContainers"))


def _asks_oddly(containers: Any) -> bool:
    """Whether containers name claims, or it is not clear what they ask for."""
    if not isinstance(containers, list | None):
        return True
    for container in containers or ():
        resources = container.get("resources") if isinstance(container, dict) else ()
        if not isinstance(resources, dict | None):
            return True
        limits, requests = fields_at(resources, "limits"), fields_at(resources, "requests")
        if "claims" in (resources or ()) or not all(_is_count(amount) for _, amount in _devices(resources)):
            return True
        if any("/" in str(name) and str(limits.get(name)) != str(amount) for name, amount in requests.items()):
            return True
    return False


def _devices(resources: Any) -> Iterator[tuple[str, Any]]:
    """The extended resources that are asked for, with their amounts."""
    for kind in ("limits", "requests"):
        yield from ((str(name), amount) for name, amount in fields_at(resources, kind).items() if "/" in str(name))


def _is_count(value: Any) -> bool:
    """Whether it is a whole number as nearly everybody writes it."""
    return (type(value) is int and value >= 0) or (isinstance(value, str) and whole_number(value) is not None)


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


# Which violations in the rest of an object may come from the fields that were taken out, as nobody can decode them.

_OF_NAMES: Final[Mapping[str, str]] = {
    "constraint-request-unknown": "requests",
    "config-request-unknown": "requests",
    "container-claim-unknown": "resourceClaims",
}
"""Rules about names that a list gives, with the list."""
_WITHOUT_NAMES: Final = ("constraints", "config", "containers", "initContainers")
"""Lists beside these in which nothing gives such a name."""
_OF_LABELS: Final = ("workload-labels", "workload-selector")


class Undecoded:
    """The fields that were taken out of an object, and what is left."""

    def __init__(self, rest: Mapping[str, Any], violations: Sequence[Violation]) -> None:
        self._rest = rest
        self._paths = tuple(violation.path for violation in violations)
        self._holders = {path[:-1] for path in self._paths}
        self._misspelled = {violation.path[:-1] for violation in violations if violation.rule == "unknown-field"}

    def may_cause(self, violation: Violation) -> bool:
        """Whether a violation in the rest may end when a field that was taken out is corrected."""
        if violation.rule in _OF_LABELS or violation.path in self._paths:
            return True
        if violation.rule in _OF_NAMES:
            given_in = _OF_NAMES[violation.rule]
            return any(self._may_name(path, given_in) for path in self._paths)
        if violation.reason == "Required":
            return self._may_be_required(violation.path)
        if violation.reason == "Duplicate" and value_at(self._rest, (*violation.path, "name")):
            # Its name is there, whatever is wrong beside it.
            return False
        return violation.path in self._holders or violation.path[:-1] in self._misspelled

    def _may_be_required(self, path: FieldPath) -> bool:
        """Whether one of the fields may be what is missing at a path, or a part of it."""
        if any(path[: len(prefix)] == prefix for prefix in self._paths):
            return True
        there = path
        while there and value_at(self._rest, there) is None:
            there = there[:-1]
        # A known field with a wrong type is not another one misspelled.
        return there in (self._holders if there == path else self._misspelled)

    def _may_name(self, path: FieldPath, given_in: str) -> bool:
        """Whether a field may give a name in a list: anything but what stands beside a name that is there."""
        lists = ("devices", given_in) if given_in == "requests" else (given_in,)
        start = next((at for at in range(len(path)) if path[at : at + len(lists)] == lists), None)
        if start is None:
            return not any(part in _WITHOUT_NAMES for part in path)
        below = path[start + len(lists) + 1 :]
        entry = path[: len(path) - len(below)]
        if below[:1] == ("firstAvailable",) and len(below) > 1:
            entry, below = (*entry, *below[:2]), below[2:]
        elif given_in == "requests" and len(below) == 1:
            # It may be the list of alternatives, which have names, too.
            has = value_at(self._rest, entry)
            if not isinstance(has, dict) or not has.keys() & {"exactly", "firstAvailable", "deviceClassName"}:
                return True
        named = isinstance(value_at(self._rest, (*entry, "name")), str)
        return not below or not named or below == ("name",)


# Objects that are written in the shape of another version than the one that they name.


@once
def real_version(context: Context) -> str:
    """The version that the release serves and in which each field can be decoded, unlike in the one that is named;
    empty if there is none.
    """
    from kubectl_dra.admission.server.decoding import decoding_errors

    item, release = context.item, context.release
    if not item.is_dra or item.is_patch:
        return ""
    better = default_version(item.kind, release) or next(iter(versions_of(item.kind, release)), "")
    if not better or better == item.version:
        return ""
    try:
        wrong_in = [any(decoding_errors(item.raw, GROUP, version, release)) for version in (item.version, better)]
    except KeyError:
        # No schema says what such an object has.
        return ""
    return better if wrong_in == [True, False] else ""


def version_fix(version: str) -> Fix:
    """Only apiVersion is wrong."""
    api_version = f"{GROUP}/{version}"
    title = f"Write apiVersion: {api_version}: the fields are in the shape of {version}, and only apiVersion is wrong"
    return Fix.guess(title, Set(("apiVersion",), api_version))
