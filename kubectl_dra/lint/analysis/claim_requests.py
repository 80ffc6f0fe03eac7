"""What claims, templates and containers request, in the form that all rules about them use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.command import kubectl
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.lint.analysis.selector_targets import drivers_of
from kubectl_dra.lint.context import Context, Item, items, once
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Rename, fields_at, items_at, value_at
from kubectl_dra.manifests.inputs import STDIN_NAME, arguments
from kubectl_dra.manifests.workloads import CONTAINER_LISTS, SINGLE_CONTAINERS
from kubectl_dra.text import edit_distance, is_slip, slip_of

CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")


class RequestAlternative(Struct, frozen=True):
    """The content of ``exactly``, or one subrequest. ``name`` is as constraints write it."""

    request: str
    name: str
    path: FieldPath
    content: Mapping[str, Any]

    @property
    def device_class(self) -> str:
        """The class that it names; empty if it names none."""
        return str(self.content.get("deviceClassName") or "")

    @property
    def class_path(self) -> FieldPath:
        """Where it names the class."""
        return (*self.path, "deviceClassName")

    def is_named(self, names: Collection[str]) -> bool:
        """Whether a list of requests has it: by its own name, by that of its request, or by having no names."""
        return not names or self.request in names or self.name in names

    @property
    def all_devices(self) -> bool:
        """Whether it requests all matching devices."""
        return self.content.get("allocationMode") == "All"

    @property
    def number(self) -> int:
        """Number of devices that it requests; for all devices, the minimum."""
        count = self.content.get("count")
        given = isinstance(count, int | float) and not isinstance(count, bool)
        return 1 if self.all_devices or not given else max(int(count or 1), 1)


@once
def alternatives(context: Context) -> tuple[RequestAlternative, ...]:
    """Every ``exactly`` and subrequest of a claim or template, in v1's shape."""
    return tuple(_alternatives(context))


def _alternatives(context: Context) -> Iterator[RequestAlternative]:
    for index, request in enumerate(items(context.spec, "devices", "requests")):
        path = (*context.spec_path, "devices", "requests", index)
        name = str(request.get("name") or "")
        exactly = request.get("exactly")
        if isinstance(exactly, dict):
            yield RequestAlternative(name, name, (*path, "exactly"), exactly)
        for position, sub in enumerate(items(request, "firstAvailable")):
            yield RequestAlternative(name, f"{name}/{sub.get('name') or ''}", (*path, "firstAvailable", position), sub)


def constraints(context: Context) -> Iterator[tuple[FieldPath, Mapping[str, Any], tuple[str, ...]]]:
    """The constraints of a claim or template: path, content, and the requests that it names."""
    for index, constraint in enumerate(items(context.spec, "devices", "constraints")):
        path = (*context.spec_path, "devices", "constraints", index)
        yield path, constraint, tuple(str(name) for name in items_at(constraint, "requests"))


# The command that carries out a finding's recommendation, if ``migrate`` can.


def migrate(item: Item, told: str) -> Fix:
    """What to do, ending in an aim, and ``kubectl dra migrate FILE`` for that; inputs are given as they were here.

    Standard input cannot be read again, and a command pasted alone would wait for it: that is said in words.
    """
    if item.place.file == STDIN_NAME:
        return Fix(f"{told}, pipe the same input into kubectl dra migrate -.")
    return Fix(f"{told}:", command=str(kubectl("dra", "migrate", more=arguments(item.place.file))))


# Claims from before structured parameters (v1alpha2), and what each field becomes.


def classic_advice(spec: Mapping[str, Any], better: str) -> str:
    """Advice to write a claim's ``spec`` in a current version, for each of its fields."""
    return " ".join((f"Write it anew for {GROUP}/{better}: {_request(spec)}.", *_rest(spec)))


def _request(spec: Mapping[str, Any]) -> str:
    name = spec.get("resourceClassName")
    fields = [f"deviceClassName: {name if isinstance(name, str) and name else 'CLASS'}"]
    count = value_at(spec, ("parameters", "count"))
    if isinstance(count, int) and not isinstance(count, bool):
        fields.append(f"count: {count}")
    return f"devices: {{requests: [{{name: device, exactly: {{{', '.join(fields)}}}}}]}}"


def _rest(spec: Mapping[str, Any]) -> Iterator[str]:
    """What the fields beside the class's name become."""
    for key, value in spec.items():
        if key == "allocationMode":
            yield "allocationMode goes: a claim is allocated when a pod needs it."
        elif key == "parametersRef":
            named = f"{value.get('kind')} {value.get('name')}" if isinstance(value, dict) else "the object"
            yield f"What {named} says becomes selectors and count of the request, or opaque in devices.config."
        elif key == "parameters" and isinstance(value, dict):
            yield from _parameters(value)
        elif key == "constraints":
            yield from _constraints(value)
        elif key != "resourceClassName":
            yield f"{key} goes."


def _parameters(value: Mapping[str, Any]) -> Iterator[str]:
    known = {"apiVersion", "kind", "count"}
    said = [key for key, below in value.items() if key not in known and below not in ({}, [], None, "")]
    if said:
        yield f"Of its parameters {', '.join(said)} become selectors of the request, or opaque in devices.config."
    else:
        yield "Nothing else of its parameters is needed."


def _constraints(value: Any) -> Iterator[str]:
    for constraint in items_at(value):
        labels = value_at(constraint, ("nodeSelector",))
        if isinstance(labels, dict) and labels:
            shown = ", ".join(f"{key}: {label}" for key, label in labels.items())
            yield f"A claim never chose nodes by label: put nodeSelector {{{shown}}} into the pod's spec."


# The claims that a pod names, what is known about them, and which containers use them.

REFERENCES: Final = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}
_NETWORK: Final = re.compile(
    r"(^|[-.])((multi)?nics?|(e|nccl-)?rdma|net(work|works)?|dranet|efa|roce|ib|vfs?|sriov|imex|channel|interfaces?|whereabouts)"
    r"($|[-.])|compute-?domain"
)


class Reference(Struct, frozen=True):
    """An entry of a pod's ``spec.resourceClaims`` that names an object through one of the two fields."""

    path: FieldPath
    name: str
    field: str
    target: str

    @property
    def kind(self) -> str:
        """The kind it names."""
        return REFERENCES[self.field]


@once
def references(context: Context) -> tuple[Reference, ...]:
    """What ``references_of`` finds in the pod that is examined."""
    return tuple(references_of(context.raw))


def references_of(pod: Mapping[str, Any]) -> Iterator[Reference]:
    """The claims and templates that a pod names, without entries that name both or neither (the API server
    reports those).
    """
    for index, pod_claim in enumerate(items(pod, "spec", "resourceClaims")):
        named = [field for field in REFERENCES if isinstance(pod_claim.get(field), str) and pod_claim[field]]
        if len(named) == 1:
            path = ("spec", "resourceClaims", index)
            yield Reference(path, str(pod_claim.get("name") or ""), named[0], pod_claim[named[0]])


_OF_RESOURCES: Final = ("limits", "requests", "claims")


def misread_uses(pod: Mapping[str, Any]) -> bool:
    """Whether a container may use claims in a field that does not exist, or has another type than it must have."""
    holders = [container for place in CONTAINER_LISTS for container in items(pod, "spec", *place)]
    return any(map(_may_use, holders))


def _may_use(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources")
    if any(key != "resources" and edit_distance(str(key), "resources", 2) is not None for key in container):
        return True
    if not isinstance(resources, dict):
        return resources is not None
    claims = resources.get("claims")
    named = claims is None or (isinstance(claims, list) and all(isinstance(claim, dict) for claim in claims))
    return not named or any(key not in _OF_RESOURCES for key in resources)


def uses(pod: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str, str]]:
    """What containers use: path, the claim entry's name, and the request if given."""
    for place in CONTAINER_LISTS:
        for index, container in enumerate(items(pod, "spec", *place)):
            for position, use in enumerate(items(container, "resources", "claims")):
                path: FieldPath = ("spec", *place, index, "resources", "claims", position)
                yield path, str(use.get("name") or ""), str(use.get("request") or "")
    for field, server in fields_at(pod, "spec").items():
        # A pod spec has no such field; KServe's and Argo's have one container in it.
        for position, use in enumerate(items(server, "resources", "claims")):
            yield (
                ("spec", str(field), "resources", "claims", position),
                str(use.get("name") or ""),
                str(use.get("request") or ""),
            )


def drivers_of_claim(context: Context, reference: Reference) -> tuple[Driver, ...] | None:
    """The known drivers of a claim or template; None if it is not given, or its class is unknown."""
    given = context.nearest(reference.kind, reference.target)
    if not given and made_by_compute_domain(context, reference):
        driver = catalogue().driver("compute-domain.nvidia.com")
        return () if driver is None else (driver,)
    if not given:
        return None
    of_classes: list[Driver] = []
    for name in claim_classes(given[0]):
        drivers = drivers_of(context, name)
        if not drivers:
            return None
        of_classes.extend(drivers)
    return tuple(of_classes)


def not_given(context: Context) -> Iterator[Reference]:
    """The pod's references to claims and templates that are not among the files, and that none of them makes."""
    for reference in references(context):
        # A template named as a claim is there, and so is the reverse: DRA403.
        kinds = REFERENCES.values()
        given = any(context.given.find(kind, reference.target, context.item.namespace) for kind in kinds)
        if not given and not made_by_compute_domain(context, reference):
            yield reference


def classes_not_given(context: Context) -> Iterator[str]:
    """The classes of a claim, template or pod that are not among the files, and that no known driver brings."""
    of_pod = extended_requests(context.raw.get("spec")) if context.item.kind == "Pod" else ()
    for name in (*claim_classes(context.item), *filter(None, (each.device_class for each in of_pod))):
        if not context.given.classes(name) and catalogue().of_class(name) is None:
            yield name


def made_by_compute_domain(context: Context, reference: Reference) -> bool:
    """Whether NVIDIA's controller makes the template, because a ComputeDomain names it."""
    named = ("spec", "channel", "resourceClaimTemplate", "name")
    space = context.item.namespace or "default"
    return reference.kind == "ResourceClaimTemplate" and any(
        value_at(item.raw, named) == reference.target and (item.namespace or "default") == space
        for item in context.given.of_kind("ComputeDomain")
    )


def speaks_of_network(context: Context, reference: Reference) -> bool:
    """Whether an unknown claim sounds, by its names, like a network interface or an IMEX channel."""
    names = [reference.name, reference.target]
    for item in context.nearest(reference.kind, reference.target):
        names.extend(claim_classes(item))
    return any(_NETWORK.search(name) for name in names)


def claim_classes(item: Item) -> tuple[str, ...]:
    """The classes that a claim or template requests."""
    names = (each.get("deviceClassName") for request in item.requests for each in alternatives_of(request))
    return tuple(name for name in names if isinstance(name, str) and name)


def alternatives_of(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is in ``exactly``, and the subrequests."""
    exactly = request.get("exactly")
    return ([exactly] if isinstance(exactly, dict) else []) + items(request, "firstAvailable")


def is_given(context: Context, kind: str, name: str, namespace: str) -> bool:
    """Whether the manifests or the snapshot contain a claim or template."""
    if context.given.find(kind, name, namespace):
        return True
    snapshot = context.snapshot
    if snapshot is None:
        return False
    known = snapshot.claims if kind == "ResourceClaim" else snapshot.templates
    return (namespace or "default", name) in known


# The extended resources that a pod's containers ask for, and the classes that serve such resources.


class ExtendedRequest(Struct, frozen=True):
    """A resource that a container asks for: ``path`` leads to its limit, or to its request if there is no limit.

    ``paths`` are those of both; ``others`` are the container's other names.
    """

    path: FieldPath
    name: str
    amount: Any
    paths: tuple[FieldPath, ...]
    others: frozenset[str]

    @property
    def device_class(self) -> str:
        """The class that the resource names; empty if it is another kind of name."""
        return self.name.removeprefix(IMPLICIT_PREFIX) if self.name.startswith(IMPLICIT_PREFIX) else ""

    def renamed(self, title: str, name: str) -> Fix:
        """The change to another name, wherever the container has this one."""
        if name in self.others:
            return Fix(title)
        return Fix.guess(title, *tuple(Rename(path, name) for path in self.paths))


def extended_requests(spec: Any) -> Iterator[ExtendedRequest]:
    """What the containers of a pod spec ask for that is not nothing, each name once for each container."""
    for place, container in _containers(spec):
        found: dict[str, list[tuple[FieldPath, Any]]] = {}
        for kind in ("limits", "requests"):
            for name, amount in fields_at(container, "resources", kind).items():
                if str(amount) != "0" and "/" in str(name):
                    path: FieldPath = ("spec", *place, "resources", kind, name)
                    found.setdefault(str(name), []).append((path, amount))
        for name, places in found.items():
            others = frozenset(found) - {name}
            yield ExtendedRequest(places[0][0], name, places[0][1], tuple(path for path, _ in places), others)


def _containers(spec: Any) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(items(spec, list_name)):
            yield (list_name, index), container
    for key in SINGLE_CONTAINERS.keys() & spec.keys() if isinstance(spec, dict) else ():
        if isinstance(spec[key], dict):
            yield (key,), spec[key]


def offered(context: Context) -> Mapping[str, str]:
    """The extended resources that classes of the manifests and of the cluster offer, each with a class."""
    given = {item.spec_field("extendedResourceName"): item.name for item in context.given.of_kind("DeviceClass")}
    known = {name: owner for name, owner in given.items() if isinstance(name, str) and name}
    classes = context.snapshot.classes.values() if context.snapshot is not None else ()
    return {**{each.extended_resource_name: each.name for each in classes if each.extended_resource_name}, **known}


def meant_resource(context: Context, request: ExtendedRequest) -> str:
    """The name that a resource probably has that no class offers; empty if there is none, or a device plugin may."""
    prefix, _, name = request.name.partition("/")
    right = IMPLICIT_PREFIX.removesuffix("/")
    if prefix != right and (is_slip(prefix, right) or (prefix.startswith("deviceclass") and "resource" in prefix)):
        return f"{IMPLICIT_PREFIX}{name}"
    nodes = context.snapshot.nodes.values() if context.snapshot is not None else ()
    names = offered(context)
    if request.name in names or catalogue().of_resource(request.name) is not None:
        return ""
    return "" if any(request.name in node.allocatable for node in nodes) else slip_of(request.name, tuple(names))
