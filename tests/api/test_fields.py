from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.admission import server as admission
from kubectl_dra.api.dra_fields import _STRUCTS, KINDS, depends_on_gates, fields, limit
from kubectl_dra.api.releases import Release, gate_default
from kubectl_dra.api.schema import Field, FieldPath, path_text
from kubectl_dra.cluster.reader import READ


def test_every_struct_that_a_field_names_exists() -> None:
    for version in ("v1", "v1beta2", "v1beta1", "v1alpha3"):
        todo, seen = list(KINDS), set()
        while todo:
            struct = todo.pop()
            if struct in seen:
                continue
            seen.add(struct)
            todo += [field.type for field in fields(struct, version).values() if not field.scalar]
        assert ("BasicDevice" in seen) == (version in ("v1beta1", "v1alpha3"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec", "devices", 0, "name"), "spec.devices[0].name"),
        (("spec", "capacity", "example.com/memory", "value"), "spec.capacity[example.com/memory].value"),
        (("a-b", "c_d", ""), "a-b.c_d[]"),
    ],
)
def test_path_text(path: FieldPath, text: str) -> None:
    assert path_text(path) == text


def test_gates_exist_in_the_releases_of_their_fields() -> None:
    for version in ("v1", "v1beta1"):
        for struct in ("DeviceClassSpec", "ResourceClaimSpec", "ResourceSliceSpec", "DeviceRequest", "Device"):
            for name, field in fields(struct, version).items():
                for gate in field.gates:
                    release = Release(1, max(field.since, 33))
                    assert gate_default(gate, release) is not None, (struct, name, gate)


def test_depends_on_gates() -> None:
    assert depends_on_gates("ResourceClaimSpec") and depends_on_gates("DeviceCapacity")
    assert not depends_on_gates("NodeSelector") and not depends_on_gates("DeviceTaintRuleSpec")


def test_limits_are_of_lists_and_texts_and_ascend_by_release() -> None:
    for version in ("v1", "v1beta1", "v1alpha3"):
        for struct in ("ResourceClaimSpec", "DeviceClaim", "DeviceRequest", "Device", "DeviceAttribute", "CounterSet"):
            for name, field in fields(struct, version).items():
                releases = [since for since, _ in field.most]
                assert releases == sorted(set(releases)), (struct, name)
                assert not releases or field.container or field.type == "string", (struct, name)


def test_limits_are_those_of_the_release() -> None:
    assert limit("Device", "taints", Release(1, 34)) == 4
    assert limit("Device", "taints", Release(1, 35)) == 16
    assert limit("Device", "consumesCounters", Release(1, 34)) is None
    assert limit("DeviceRequest", "firstAvailable") == 8
    assert limit("DeviceRequest", "name") is None


SPECS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "ExactDeviceRequest": (
        "ResourceClaim",
        lambda raw: {"spec": {"devices": {"requests": [{"name": "a", "exactly": raw}]}}},
    ),
    "DeviceSubRequest": (
        "ResourceClaim",
        lambda raw: {"spec": {"devices": {"requests": [{"name": "a", "firstAvailable": [raw]}]}}},
    ),
    "DeviceClaim": ("ResourceClaim", lambda raw: {"spec": {"devices": raw}}),
    "Device": ("ResourceSlice", lambda raw: {"spec": {"driver": "a", "devices": [{"name": "a", **raw}]}}),
    "DeviceCounterConsumption": (
        "ResourceSlice",
        lambda raw: {"spec": {"driver": "a", "devices": [{"name": "a", "consumesCounters": [raw]}]}},
    ),
    "ResourceSliceSpec": ("ResourceSlice", lambda raw: {"spec": {"driver": "a", **raw}}),
    "DeviceTaintSelector": ("DeviceTaintRule", lambda raw: {"spec": {"deviceSelector": raw}}),
}
READ_BY_NOBODY = {
    # Only says how the state of a pool is reported; no scheduler reads it.
    "ResourceSliceSpec.partitionTypeAttribute",
}


def sample(field: Field) -> Any:
    """A value that is not the default of the field."""
    scalars: dict[str, Any] = {"int": 7, "bool": True, "quantity": "40Gi", "time": "2026-11-20T10:00:00Z"}
    keys = [(name, below) for name, below in fields(field.type).items()] if not field.scalar else []
    one = {name: sample(below) for name, below in keys} if keys else scalars.get(field.type, "All")
    return [one] if field.container == "list" else {"example.com/a": one} if field.container else one


@pytest.mark.parametrize("struct", SPECS)
def test_each_field_is_decoded_or_said_to_be_not_modelled(struct: str) -> None:
    """A row without ``read=False`` needs an attribute: otherwise answers would pass over the field silently."""
    kind, around = SPECS[struct]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "a"}}
    without = READ[kind]({**head, **around({})})
    same = {
        f"{struct}.{name}"
        for name, field in fields(struct).items()
        if READ[kind]({**head, **around({name: sample(field)})}) == without
    }
    assert same <= READ_BY_NOBODY


def test_rows_with_a_check_are_in_structs_that_are_checked() -> None:
    """``check_rows`` is called where a struct is validated; ``exactly`` and subrequests are validated as one."""
    server = Path(admission.__file__).parent.glob("*.py")
    called = {*re.findall(r'check_(?:rows|skipped)\(.*?"([A-Z]\w+)"', "".join(path.read_text() for path in server))}
    checked = {struct for struct in _STRUCTS for field in fields(struct).values() if field.check}
    assert checked <= called | {"DeviceSubRequest"}
    assert called <= _STRUCTS.keys()
