"""What an API server serves of resource.k8s.io and of the layers around the scheduler, and what it lets its user do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, ValidationError, convert, field

from kubectl_dra.api.conversion import VERSIONS
from kubectl_dra.api.meta import kind_plural
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.api.releases import GROUP, PLURALS
from kubectl_dra.cluster.client import Answered, Client
from kubectl_dra.cluster.snapshot import DRA_KINDS, Permission
from kubectl_dra.cluster.transport import side_by_side
from kubectl_dra.errors import ClusterError
from kubectl_dra.manifests.changes import fields_at

T = TypeVar("T")

_AGGREGATED: Final = (
    ",".join(
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
    )
    + ",application/json"
)


class ServedKinds(NamedTuple):
    """What a server has: kinds with the version to request.

    ``others`` are versions of resource.k8s.io that are not known here; ``neighbours`` the kinds of other layers, None
    if the server does not list all resources at once.
    """

    versions: Mapping[str, str]
    others: Sequence[str]
    neighbours: Mapping[str, str] | None


class _Named(Struct, frozen=True):
    name: str = ""


class _Resource(Struct, frozen=True):
    name: str = field(default="", name="resource")


class _Version(Struct, frozen=True):
    version: str = ""
    resources: tuple[_Resource, ...] = ()


class _Group(Struct, frozen=True):
    """A group from aggregated discovery (``metadata``) or from the older form (``name``)."""

    name: str = ""
    metadata: _Named = _Named()
    versions: tuple[_Version, ...] = ()


class _Groups(Struct, frozen=True):
    items: tuple[_Group, ...] = ()
    groups: tuple[_Group, ...] = ()


class _ResourceList(Struct, frozen=True):
    resources: tuple[_Named, ...] = ()


def discover(client: Client) -> ServedKinds:
    """Asks a server what it serves. Raises ClusterError: it cannot be reached, or does not allow discovery."""
    groups = _groups(client)
    group = next((known for known in groups or () if GROUP in (known.name, known.metadata.name)), None)
    versions = _versions(client) if groups is None else group.versions if group is not None else ()
    names = {version.version: {resource.name for resource in version.resources} for version in versions}
    others = tuple(version for version in names if version not in VERSIONS)
    aggregated = [known for known in groups or () if known.metadata.name]
    return ServedKinds(dict(_dra_kinds(client, names)), others, dict(_neighbours(aggregated)) if aggregated else None)


def _groups(client: Client) -> Sequence[_Group] | None:
    """All groups, with their resources if the server lists all at once (since 1.27); None if it lists no groups."""
    try:
        everything = _convert(client.get("/apis", accept=_AGGREGATED), _Groups)
    except Answered as error:
        if error.status not in (403, 404, 406):
            raise
        return None
    return (*everything.items, *everything.groups)


def _versions(client: Client) -> Sequence[_Version]:
    """The served versions of resource.k8s.io, from a server that does not list its groups."""
    try:
        return _convert(client.get(f"/apis/{GROUP}"), _Group).versions
    except Answered as error:
        if error.status == 404:
            return ()
        raise


def _dra_kinds(client: Client, names: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str]]:
    """The kinds of resource.k8s.io, each with the newest version that has it."""
    kinds: set[str] = set()
    for version in VERSIONS:
        if version not in names:
            continue
        plurals = names[version] or _plurals(client, version)
        for kind in DRA_KINDS:
            if kind not in kinds and PLURALS[kind] in plurals:
                kinds.add(kind)
                yield kind, version


def _plurals(client: Client, version: str) -> Collection[str]:
    """The resources of a version, from a server that lists them per version."""
    try:
        listed = _convert(client.get(f"/apis/{GROUP}/{version}"), _ResourceList)
    except Answered as error:
        if error.status == 404:
            return ()
        raise
    return {named.name for named in listed.resources}


def _neighbours(groups: Iterable[_Group]) -> Iterator[tuple[str, str]]:
    """The kinds of other layers that these groups serve, each with its newest version that is known here."""
    known = {
        group.metadata.name: {version.version: version.resources for version in group.versions} for group in groups
    }
    for kind, row in NEIGHBOUR_KINDS.items():
        for version in row.versions:
            if not row.group or any(
                resource.name == row.plural for resource in known.get(row.group, {}).get(version, ())
            ):
                yield kind, version
                break


def _convert(answer: dict[str, Any], kind: type[T]) -> T:
    try:
        return convert(answer, kind)
    except ValidationError as error:
        raise ClusterError(f"the server's discovery cannot be understood: {error}") from None


# What the user may do: reviews, which the server answers and stores nowhere.

_JSON: Final = "application/json"


def allowed(client: Client, permissions: Sequence[Permission], namespace: str = "") -> list[bool]:
    """Whether the user has each permission, in all namespaces or only in one. Raises ClusterError."""
    jobs: list[Callable[[], Iterator[bool]]] = [
        partial(_asked, client, permission, namespace) for permission in permissions
    ]
    answers = [False] * len(permissions)
    for index, answer in side_by_side(jobs):
        answers[index] = answer
    return answers


def _asked(client: Client, permission: Permission, namespace: str) -> Iterator[bool]:
    wanted = {"verb": permission.verb, "resource": permission.resource, "group": permission.group}
    # Few ConfigMaps are listed, each by its name: a role names them.
    names = NEIGHBOUR_KINDS["ConfigMap"].only if permission.resource == "configmaps" else ("",)
    for name in names:
        about = {**wanted, **({"name": name} if name else {}), **({"namespace": namespace} if namespace else {})}
        spec = {"resourceAttributes": about}
        status = _review(client, "authorization.k8s.io", "SelfSubjectAccessReview", spec)
        if status.get("allowed") is not True:
            yield False
            return
    yield True


def user(client: Client) -> str:
    """The user's name as the server knows it; empty where it does not say."""
    try:
        status = _review(client, "authentication.k8s.io", "SelfSubjectReview", {})
    except Answered:
        return ""
    return str(fields_at(status, "userInfo").get("username") or "")


def _review(client: Client, group: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    path = f"/apis/{group}/v1/{kind_plural(kind).lower()}"
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {}, "spec": spec}
    return fields_at(client.received(client.send("POST", path, {}, body, _JSON), path), "status")
