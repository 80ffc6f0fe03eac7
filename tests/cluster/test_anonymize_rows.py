"""What a snapshot and an anonymized copy have of each field, by the row of the field alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_dra.api.dra_fields import KINDS, fields
from kubectl_dra.api.schema import Field, change_items
from kubectl_dra.cluster.anonymize import CATEGORIES, Anonymizer, Fields
from kubectl_dra.cluster.identities import Identities
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.reader import READ
from kubectl_dra.cluster.save import reduced

FIELDS = Fields(Identities((), "seed"))
VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
EVERY = [
    *((kind, f"resource.k8s.io/{version}") for kind in KINDS for version in VERSIONS),
    *((kind, f"{known.group}/{known.versions[0]}".lstrip("/")) for kind, known in SCHEDULING_KINDS.items()),
    *((kind, "v1") for kind in ("Pod", "Node", "Namespace", "ResourceQuota", "Event")),
]


def filled(struct: str, version: str) -> dict[str, Any]:
    """A struct with something in each of its fields: in texts and keys, words that only the owner knows."""
    if struct in ("DeviceAttribute", "ObjectMeta", "ClaimMetadata"):
        # Decided by the attribute's name, and apart.
        return {}
    return {name: something(name, field, version) for name, field in fields(struct, version).items()}


def something(name: str, field: Field, version: str) -> Any:
    """The value of a field of ``filled``."""
    secret = "All" if field.anonymize == "keep" else f"Xerxes{name.title()}"
    scalars: dict[str, Any] = {"int": 7, "bool": True, "quantity": "40Gi", "time": "2026-11-20T10:00:00Z"}
    one = scalars.get(field.type, secret) if field.scalar else filled(field.type, version)
    if field.type in ("any", "object"):
        one = {secret: secret}
    if field.container == "map":
        return {f"{secret}.org/{secret}": one}
    return [one, one] if field.container else one


@pytest.mark.parametrize(("kind", "api_version"), EVERY)
def test_no_field_keeps_what_only_its_owner_knows(kind: str, api_version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the last look at every text, too: a text whose row says nothing leaves only its presence."""
    monkeypatch.setattr(Identities, "checked", lambda self, value: value)
    content = filled(kind, api_version.rpartition("/")[2])
    raw = {**content, "apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}
    for struct in (raw, *(part for part in content.values() if isinstance(part, dict))):
        struct["xerxesField"] = {"xerxes": "xerxes"}
    before = json.dumps(raw)
    written = json.dumps(Anonymizer([raw], "seed").item(raw))
    assert json.dumps(raw) == before
    assert "xerxes" not in written.lower() and len(written) > len(before) / 4
    # Of these nobody reads more, of "parameters" no content, and of images and unsaved fields there is nothing in it.
    emptied = {"resourceID", "handler", "controller", "parameters", "reference", "names", *unsaved_names()}
    assert {*re.findall(r'"(\w+)": [\[{]?"left-out"', written)} <= emptied


def unsaved_names() -> set[str]:
    return {name for _, name, field in reached() if not field.saved}


def test_every_kind_that_is_read_is_anonymized() -> None:
    assert {kind for kind, _ in EVERY} == {*CATEGORIES}


def reached() -> Iterator[tuple[str, str, Field]]:
    """The rows of all structs below the kinds."""
    ahead = [(kind, api_version.rpartition("/")[2]) for kind, api_version in EVERY]
    seen = set(ahead)
    while ahead:
        struct, version = ahead.pop()
        for name, field in fields(struct, version).items():
            yield struct, name, field
            below = (field.type, version)
            if not field.scalar and below not in seen:
                seen.add(below)
                ahead.append(below)


def test_every_instruction_is_carried_out() -> None:
    asked = {field.anonymize for _, _, field in reached()}
    assert asked - {"", "drop"} == {*FIELDS.texts, *FIELDS.whole, *FIELDS.beside}


def test_texts_of_which_only_the_presence_stays_are_listed() -> None:
    """So that a row without an instruction is a decision: nobody reads them in a copy, or ``Anonymizer`` does."""
    apart = ("ObjectMeta", "ManagedFieldsEntry", "OwnerReference", "ClaimMetadata", "DeviceAttribute")
    dropped_above = ("NetworkDeviceData", "ContainerImage", "ImageSource")
    silent = {
        f"{struct}.{name}"
        for struct, name, field in reached()
        if field.saved
        and field.type in ("string", "any")
        and not field.anonymize
        and struct not in (*apart, *dropped_above)
    }
    assert silent == {
        "AllocationResult.controller",
        "EnvVar.name",
        "EnvVar.value",
        "HostPath.path",
        "PluginContainer.args",
        "PluginContainer.command",
        "PluginContainer.image",
        "ResourceClaimSpec.controller",
        "ResourceHealth.resourceID",
        "RuntimeClass.handler",
    }


def test_an_item_that_is_null_stays_null() -> None:
    """As the API server allows it everywhere."""
    spec = {"config": [None], "selectors": [None, {"cel": None}], "extendedResourceName": None}
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}, "spec": spec}
    assert Anonymizer([raw], "seed").item(raw)["spec"] == spec


def without_unsaved(raw: Any, struct: str) -> Any:
    """A struct without the fields that no snapshot keeps."""
    return {
        name: value if row.scalar or value is None else change_items(value, row, without_unsaved, row.type)
        for name, value in raw.items()
        if (row := fields(struct)[name]).saved
    }


@pytest.mark.parametrize("kind", ["Node", "Pod", "ResourceQuota", *SCHEDULING_KINDS])
def test_a_snapshot_keeps_whatever_is_read(kind: str) -> None:
    """But for the fields whose rows say otherwise, and the conditions of nodes that nobody asks for."""
    content = filled(kind, "v1")
    head = {"apiVersion": dict(EVERY)[kind], "kind": kind, "metadata": {"name": "a"}}
    if kind == "Node":
        content["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if kind == "DaemonSet":
        # Of what runs there only that of drivers is kept, and of that what tells them (``plugin_copies``).
        template = content["spec"]["template"]["spec"]
        content["spec"]["template"]["spec"] = {
            name: template[name] for name in ("nodeSelector", "affinity", "tolerations")
        }
    if kind in ("Service", "ReplicationController", "ReplicaSet", "StatefulSet"):
        content["spec"]["selector"] = {"app": "a"}
    decode = SCHEDULING_KINDS[kind].decode if kind in SCHEDULING_KINDS else READ[kind]
    assert decode(reduced({**head, **content})) == decode({**head, **without_unsaved(content, kind)})
