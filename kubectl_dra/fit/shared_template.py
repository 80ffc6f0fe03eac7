"""The template from which pods make the claims that they are to share, and a manifest where nobody wrote one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.claims import ResourceClaimTemplate
from kubectl_dra.api.conversion import ConversionError, claim_spec_from_v1, reshaped
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cluster.kinds import is_namespaced
from kubectl_dra.cluster.merge import LAST_APPLIED
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.drivers.refused_claims import driver_of_whole_nodes
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Change, Delete, EditRefused, Set, fields_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.objects import ManifestObject, objects
from kubectl_dra.manifests.source import decode
from kubectl_dra.manifests.workloads import pod_specs


class SharedTemplate(Struct, frozen=True):
    """What pods of a manifest make their claims from: a document of it, or (None) an object of the cluster.

    ``spec`` is that of its claims in v1's shape; ``version`` is the one that the document has. ``namespace`` is the one
    that is written; empty where none is. ``path`` leads to it in the document, to an item of a List.
    """

    name: str
    spec: Mapping[str, Any]
    document: Document | None
    namespace: str = ""
    path: FieldPath = ()
    version: str = "v1"

    @property
    def device_class(self) -> str:
        """The class of its first request."""
        return str(exactly_of(self.spec).get("deviceClassName") or "")

    def as_written(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """A spec of claims in the shape of the document's version."""
        return claim_spec_from_v1(spec, self.version)


def read_manifest(text: str, name: str, namespace: str = "") -> tuple[Document, ...]:
    """The documents of a manifest, without what a server has set; with a ``namespace`` where they have none.

    Raises:
        InputError: they cannot be read, or written again.
    """
    documents = _applicable(parse(decode(text, name)))
    changes: dict[int, list[Change]] = {}
    for item in objects(documents) if namespace else ():
        metadata = fields_at(item.object, "metadata")
        if metadata and not metadata.get("namespace") and (is_namespaced(item.kind) or any(pod_specs(item.object))):
            change = Set((*item.path, "metadata", "namespace"), namespace)
            changes.setdefault(item.document.index, []).append(change)
    return parse(decode(with_changes(documents, changes), name)) if changes else documents


def shared_template(
    documents: Sequence[Document], name: str, namespace: str, templates: Mapping[Key, ResourceClaimTemplate]
) -> SharedTemplate:
    """What the first pods with a claim from a template make it from, in the manifest or among ``templates``.

    Raises:
        InputError: the manifest, called ``name``, has no such pods, the template is not there, or it has a choice.
    """
    first = next(
        ((item, named) for item, _, claim_entry in entries_of(documents) if (named := template_named(claim_entry))),
        None,
    )
    if first is None:
        raise InputError(
            f"{name}: no pod in it has a claim from a template (kubectl dra migrate makes claims of what device "
            "plugins offer)"
        )
    workload, called = first
    written = str((workload.object.get("metadata") or {}).get("namespace") or "")
    for item in objects(documents):
        raw = item.object
        if item.kind == "ResourceClaimTemplate" and (raw.get("metadata") or {}).get("name") == called:
            spec, version = _spec_in_v1(raw, f"{name}: ResourceClaimTemplate {called}")
            template = SharedTemplate(called, spec, item.document, written, item.path, version)
            return _shareable(template, f"{name}: ResourceClaimTemplate {called}")
    known = templates.get((written or namespace, called))
    if known is None:
        where = f"namespace {written or namespace}"
        raise InputError(f"ResourceClaimTemplate {called} is neither in {name} nor in {where} of the cluster")
    return _shareable(SharedTemplate(called, known.spec, None, written), f"ResourceClaimTemplate {called}")


def _spec_in_v1(raw: Mapping[str, Any], title: str) -> tuple[Mapping[str, Any], str]:
    """The spec of a template's claims in v1's shape, and the version in which it is written."""
    version = str(raw["apiVersion"]).rpartition("/")[2]
    try:
        template = reshaped(raw)
    except ConversionError:
        text = f"{title} is of {raw['apiVersion']}, which is not read (kubectl dra migrate says what becomes of it)"
        raise InputError(text) from None
    return (template.get("spec") or {}).get("spec") or {}, version


def _shareable(template: SharedTemplate, title: str) -> SharedTemplate:
    """The template, whose first request has to be a single choice of a class."""
    if not template.device_class:
        requests = (template.spec.get("devices") or {}).get("requests")
        lacks = f"request {requests[0].get('name')} names no deviceClassName in exactly" if requests else "no request"
        raise InputError(f"{title} asks for nothing: {lacks} (kubectl dra lint says how to write it)")
    return template


def entries_of(documents: Sequence[Document]) -> Iterator[tuple[ManifestObject, FieldPath, Mapping[str, Any]]]:
    """The entries of ``resourceClaims`` of all pods of a manifest, with their places in its documents."""
    for item in objects(documents):
        for spec in pod_specs(item.object):
            for number, claim_entry in enumerate(spec.content.get("resourceClaims") or ()):
                if isinstance(claim_entry, dict):
                    yield item, (*item.path, *spec.path, "resourceClaims", number), claim_entry


def template_named(claim_entry: Mapping[str, Any]) -> str:
    """The template that an entry of ``resourceClaims`` names; empty if none."""
    return str(claim_entry.get("resourceClaimTemplateName") or "")


def exactly_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the first request asks for."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    first = requests[0] if requests else {}
    if first.get("firstAvailable"):
        raise InputError("the first request is a prioritized list: give it a single choice (exactly) to share by")
    exactly: dict[str, Any] = first.get("exactly") or {}
    return exactly


def manifest_of(
    device_class: str, pods: int, containers: int = 1, tolerations: Sequence[Mapping[str, str]] = ()
) -> str:
    """A Deployment of so many pods whose containers use one request of a claim for each pod.

    It asks for a device, or for all of a node where the driver gives a claim no fewer.
    """
    mode = "          allocationMode: All\n" if driver_of_whole_nodes(device_class) else ""
    names = ["app"] if containers == 1 else [f"app-{number}" for number in range(containers)]
    listed = "\n".join(
        f"      - name: {name}\n"
        "        image: registry.example/app:1\n"
        "        resources:\n"
        "          claims:\n"
        "          - {name: device, request: device}"
        for name in names
    )
    entries = "".join(f"      - {json.dumps(toleration)}\n" for toleration in tolerations)
    tolerated = f"      tolerations:\n{entries}" if entries else ""
    return f"""apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: shared
spec:
  spec:
    devices:
      requests:
      - name: device
        exactly:
          deviceClassName: {json.dumps(device_class)}
{mode}---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shared
spec:
  replicas: {pods}
  selector:
    matchLabels: {{app: shared}}
  template:
    metadata:
      labels: {{app: shared}}
    spec:
{tolerated}      containers:
{listed}
      resourceClaims:
      - name: device
        resourceClaimTemplateName: shared
"""


# What a server and its controllers set in objects, as ``kubectl get -o yaml`` prints them: nothing to apply again.

_METADATA: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("managedFields", "selfLink"),
)
_ANNOTATIONS: Final = (LAST_APPLIED, "deployment.kubernetes.io/revision")


def _applicable(documents: Sequence[Document]) -> tuple[Document, ...]:
    """The documents of a file without these fields; as they are where their text does not allow it."""
    changes: dict[int, list[Delete]] = {}
    for item in objects(documents):
        changes.setdefault(item.document.index, []).extend(Delete((*item.path, *path)) for path in _set_in(item.object))
        if item.path and {*fields_at(item.document.object, "metadata")} == {"resourceVersion"}:
            # A List of kubectl has an empty one.
            changes[item.document.index].append(Delete(("metadata",)))
    changes = {index: list(dict.fromkeys(deletes)) for index, deletes in changes.items()}
    try:
        return parse(documents[0].source.with_text(with_changes(documents, changes))) if documents else ()
    except EditRefused:
        return tuple(documents)


def _set_in(raw: Mapping[str, Any]) -> Iterator[FieldPath]:
    """The paths of these fields in an object."""
    if "status" in raw:
        yield ("status",)
    metadata = fields_at(raw, "metadata")
    yield from (("metadata", name) for name in _METADATA if name in metadata)
    annotations = fields_at(metadata, "annotations")
    if annotations and all(name in _ANNOTATIONS for name in annotations):
        yield ("metadata", "annotations")
    else:
        yield from (("metadata", "annotations", name) for name in _ANNOTATIONS if name in annotations)
