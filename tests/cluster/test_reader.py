"""The quick reader reads what the slow way reads, and refuses what it refuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import json

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.codec import Mismatch, decoded, mismatch, struct_mismatch
from kubectl_dra.api.conversion import from_v1, reshaped
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.shared_devices import NAMES, TIMES, PerDeviceColumn
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.device_lists import SAMPLE
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.reader import Reader
from kubectl_dra.errors import InputError

Json = dict[str, Any]
UUID, PARENT, BUS = (PerDeviceColumn("attribute", name) for name in ("uuid", "parent", "bus"))
MEMORY = PerDeviceColumn("capacity", "memory")


def raw_slice(node: int, *, devices: int = 4, version: str = "v1", **attributes: Any) -> Json:
    """A slice of a node: UUIDs differ everywhere, the parent from node to node, the bus within a node only."""
    own = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "model": {"string": f"M{node % 3}"},
                "uuid": {"string": f"u-{node}-{index}"},
                "parent": {"string": f"p-{node}-{index // 2}"},
                "bus": {"string": f"b-{index}"},
                **attributes,
            },
            "capacity": {"memory": {"value": "40Gi"}},
        }
        for index in range(devices)
    ]
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s{node}"},
        "spec": {
            "driver": "d.example",
            "nodeName": f"n{node}",
            "pool": {"name": f"n{node}", "generation": 1, "resourceSliceCount": 1},
            "devices": own,
        },
    }
    return raw if version == "v1" else from_v1(raw, version)


def slow_slice(raw: Json, version: str) -> ResourceSlice | Mismatch:
    return mismatch(raw, "ResourceSlice", version) or ResourceSlice.from_json(
        reshaped(decoded(raw, "ResourceSlice", version))
    )


def typed(reader: Reader, kind: str, raw: Json, version: str = "v1") -> Any:
    """What comes of an object: as the builder does it."""
    own = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, **raw} if kind != "Node" else raw
    found = reader.read(kind, json.encode(raw)) if version == "v1" else None
    if found is not None:
        return found.object
    wrong = mismatch(raw, kind, version)
    if wrong is not None:
        return wrong
    today = reshaped(decoded(own, kind, version)) if kind != "Node" else raw
    found = reader.read(kind, json.encode(today))
    kinds: dict[str, Any] = {"Node": Node, "ResourceClaim": ResourceClaim, "ResourceSlice": ResourceSlice}
    return kinds[kind].from_json(today) if found is None else found.object


def read(reader: Reader, raw: Json, version: str = "v1") -> ResourceSlice:
    found = typed(reader, "ResourceSlice", raw, version)
    assert isinstance(found, ResourceSlice)
    return found


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_devices_that_differ_in_individual_values_only_are_shared(version: str) -> None:
    reader = Reader(compact=True)
    raws = [raw_slice(node, version=version) for node in range(3 * SAMPLE)]
    found = [read(reader, raw, version) for raw in raws]
    for entry, raw in zip(found, raws, strict=True):
        expected = slow_slice(raw, version)
        assert entry.exact() == expected
        assert list(entry.exact().devices[0].attributes) == list(expected.devices[0].attributes)
    later = found[SAMPLE:]
    assert {entry.individual.columns for entry in later if entry.individual} == {(PARENT, UUID)}
    assert len({id(entry.devices) for entry in later}) == 3
    assert all(entry.individual is None for entry in found[:SAMPLE])


def test_only_the_attributes_asked_for_become_exact() -> None:
    reader = Reader(compact=True)
    raws = [raw_slice(node) for node in range(2 * SAMPLE)]
    last = [read(reader, raw) for raw in raws][-1]
    expected = slow_slice(raws[-1], "v1")
    assert isinstance(expected, ResourceSlice)
    some = last.exact({UUID, BUS})
    assert some.individual is not None and some.individual.columns == (PARENT,)
    for found, wanted in zip(some.devices, expected.devices, strict=True):
        assert found.attributes["uuid"] == wanted.attributes["uuid"]
        assert found.attributes["parent"] != wanted.attributes["parent"]
    assert some.exact() == expected
    assert last.exact({BUS}) is last


def test_a_slice_that_is_there_twice_is_one_before_and_after_devices_are_shared() -> None:
    builder = SnapshotBuilder(compact=True)
    for _ in range(2):
        for node in range(2 * SAMPLE):
            builder.add(raw_slice(node), Place("f"))
    snapshot = builder.build(complete=True)
    assert len(snapshot.slices) == 2 * SAMPLE and not snapshot.notes
    other = raw_slice(2 * SAMPLE - 1)
    other["spec"]["devices"][0]["attributes"]["uuid"] = {"string": "another"}
    with pytest.raises(InputError, match="two different objects are called ResourceSlice"):
        builder.add(other, Place("g"))


def test_nothing_is_taken_out_unless_asked_for() -> None:
    reader = Reader()
    for node in range(2 * SAMPLE):
        raw = raw_slice(node)
        assert read(reader, raw) == slow_slice(raw, "v1")


@pytest.mark.parametrize(
    "other",
    [
        raw_slice(0, extra={"int": 1}),
        raw_slice(0, extra={"bool": True}),
        raw_slice(0, devices=0),
        raw_slice(0, uuid={"version": "1.0.0"}),
        raw_slice(0, uuid={"strings": ["a"]}),
        raw_slice(0, uuid={"string": "x", "int": 1}),
        raw_slice(0, uuid={}),
    ],
)
def test_a_slice_of_another_kind_keeps_its_own_values(other: Json) -> None:
    reader = Reader(compact=True)
    for node in range(2 * SAMPLE):
        read(reader, raw_slice(node))
    for raw in (raw_slice(0, extra={"int": 1}), other):
        assert read(reader, raw).exact() == slow_slice(raw, "v1")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("devices", 0, "attributes", "uuid", "string"), 5),
        (("devices", 0, "attributes", "uuid"), "x"),
        (("devices", 0, "attributes", "bus"), "x"),
        (("devices", 0, "attributes", "bus", "string"), True),
        (("devices", 0, "attributes"), []),
        (("devices", 1, "capacity", "memory", "value"), "much"),
        (("devices", 1, "name"), 1),
        (("devices", 1), "gpu"),
        (("devices",), {}),
        (("pool", "generation"), True),
        (("pool", "name"), 1),
        (("nodeName",), 1),
        (("driver",), []),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_wrong_type_is_found_behind_slices_that_are_right(path: tuple[Any, ...], value: Any, version: str) -> None:
    reader = Reader(compact=True)
    for node in range(2 * SAMPLE):
        read(reader, raw_slice(node, version=version), version)
    raw = raw_slice(1, version=version)
    at = raw["spec"]
    for step in path[:-1]:
        at = at[step]
        at = at["basic"] if isinstance(at, dict) and "basic" in at and path[-1] != "name" else at
    at[path[-1]] = value
    expected = slow_slice(copy.deepcopy(raw), version)
    assert isinstance(expected, Mismatch)
    assert typed(reader, "ResourceSlice", raw, version) == expected


_WORDS = st.sampled_from(["", "a", "b", "True", "1"])
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | _WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=2),
    max_leaves=4,
)


def _mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(good, good, good, good, good, _ANY)


def _object(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional={name: _mostly(values) for name, values in fields.items()})


# Nobody reads these, so their types do not matter when text is read.
_UNREAD = st.fixed_dictionaries(
    {},
    optional={
        "generation": st.integers(0, 3),
        "managedFields": st.lists(_object(manager=_WORDS, fieldsV1=st.just({"f:x": {}})), max_size=1).filter(
            lambda found: not struct_mismatch({"managedFields": found}, "ObjectMeta")
        ),
    },
)
_META = st.builds(
    lambda read, unread: {**read, **unread} if isinstance(read, dict) else read,
    _mostly(
        _object(
            name=st.sampled_from(["x", "y"]),
            namespace=_WORDS,
            uid=_WORDS,
            labels=st.dictionaries(_WORDS, _mostly(_WORDS), max_size=2),
            annotations=st.dictionaries(_WORDS, _WORDS, max_size=2),
            finalizers=st.lists(_WORDS, max_size=1),
            ownerReferences=st.lists(_object(kind=_WORDS, controller=st.booleans()), max_size=1),
        )
    ),
    _UNREAD,
)
_NODE = _object(
    metadata=_META,
    spec=_object(unschedulable=st.booleans(), taints=st.lists(_object(key=_WORDS, effect=_WORDS), max_size=2)),
    status=_object(
        allocatable=st.dictionaries(_WORDS, st.sampled_from(["1", "2Gi", "x"]) | st.integers(0, 2), max_size=2),
        conditions=st.lists(_object(type=st.just("Ready"), status=st.sampled_from(["True", "False"])), max_size=2),
        nodeInfo=_object(kubeletVersion=_WORDS),
    ),
)
_RESULT = _object(
    request=_WORDS,
    driver=_WORDS,
    pool=_WORDS,
    device=_WORDS,
    shareID=_WORDS,
    adminAccess=st.booleans(),
    consumedCapacity=st.dictionaries(_WORDS, st.sampled_from(["1", "2Gi", "x"]), max_size=1),
)
_WHOLE_RESULT = st.fixed_dictionaries({"request": _WORDS, "driver": _WORDS, "pool": _WORDS, "device": _WORDS})
_WHOLE_SHARE = st.builds(
    lambda result, share, amounts: {**result, "shareID": share, "consumedCapacity": amounts},
    _WHOLE_RESULT,
    _WORDS,
    st.dictionaries(_WORDS, st.sampled_from(["1", "2Gi", "x"]) | st.integers(0, 2), max_size=2),
)
_TERM = _object(matchFields=st.lists(_object(key=_WORDS, operator=_WORDS, values=st.lists(_WORDS)), max_size=1))
_CLAIM = _object(
    metadata=_META,
    spec=_object(
        devices=_object(
            requests=st.lists(_object(name=_WORDS, exactly=_object(count=st.integers(0, 2))), max_size=2),
            constraints=st.lists(_object(matchAttribute=_WORDS), max_size=1),
        )
    ),
    status=_object(
        allocation=_object(
            devices=_object(
                results=st.lists(_WHOLE_RESULT | _WHOLE_SHARE | _RESULT, max_size=2),
                config=st.lists(_object(source=_WORDS), max_size=1),
            ),
            nodeSelector=_object(nodeSelectorTerms=st.lists(_TERM, max_size=1)),
            allocationTimestamp=_WORDS,
        ),
        reservedFor=st.lists(_object(resource=_WORDS, name=_WORDS, uid=_WORDS), max_size=2),
    ),
)

EASY = settings(suppress_health_check=[HealthCheck.too_slow])


def test_single_devices_are_shared_where_their_lists_differ() -> None:
    reader = Reader(compact=True)
    for node in range(SAMPLE):
        read(reader, raw_slice(node))
    slices: list[ResourceSlice] = []
    for node in (36, 39, 42):
        raw = raw_slice(node)
        raw["spec"]["devices"][1]["taints"] = [{"key": "k", "value": f"v{node}", "effect": "NoSchedule"}]
        slices.append(read(reader, raw))
        assert slices[-1].exact() == slow_slice(raw, "v1")
    assert [entry.devices[1].taints[0].value for entry in slices] == ["v36", "v39", "v42"]
    assert len({id(entry.devices[2]) for entry in slices}) == 1


def test_devices_of_different_taints_share_what_they_have() -> None:
    reader = Reader(compact=True)
    found: list[ResourceSlice] = []
    for node in range(0, 9 * SAMPLE, 3):
        raw = raw_slice(node)
        for device in raw["spec"]["devices"]:
            device["taints"] = [{"key": "example.com/hot", "value": f"at-{node}", "effect": "NoSchedule"}]
            device["capacity"]["memory"]["requestPolicy"] = {"default": "1Gi"}
        found.append(read(reader, raw))
        assert found[-1].exact() == slow_slice(raw, "v1")
    devices = [entry.devices[0] for entry in found[SAMPLE:]]
    assert len({id(device) for device in devices}) == len(devices)
    assert len({id(device.attributes) for device in devices}) == 1
    assert len({id(device.capacity) for device in devices}) == 1


def own_everything(node: int) -> Json:
    """A slice whose devices have names, amounts and times of taints of their own."""
    raw = raw_slice(node)
    for index, device in enumerate(raw["spec"]["devices"]):
        device["name"] = f"gpu-{node}-{index}"
        device["capacity"]["memory"]["value"] = f"{1000 + node * 4 + index}Mi"
        if index % 2:
            added = f"2026-01-02T00:{node % 60:02}:{index:02}Z"
            device["taints"] = [
                {"key": "a", "effect": "NoSchedule", "timeAdded": added},
                {"key": "b", "effect": "NoExecute"},
                {"key": "c", "effect": "NoSchedule", "timeAdded": added.replace("2026", "2027")},
            ]
    return raw


def test_names_amounts_and_times_are_kept_apart() -> None:
    reader = Reader(compact=True)
    raws = [own_everything(node) for node in range(0, 6 * SAMPLE, 3)]
    found = [read(reader, raw) for raw in raws]
    assert [entry.exact() for entry in found] == [slow_slice(raw, "v1") for raw in raws]
    later = found[SAMPLE:]
    assert len({id(entry.devices) for entry in later}) == 1
    assert all(entry.individual and {NAMES, TIMES, MEMORY} < set(entry.individual.columns) for entry in later)
    assert later[0].names == [device["name"] for device in raws[SAMPLE]["spec"]["devices"]]
    assert later[0].exact({NAMES}).names == later[0].names and not later[0].devices[0].name
    assert later[0].exact_device(3) == later[0].exact().devices[3]


def unlike(change: str, device: Json) -> None:
    """Something that keeps the texts of a device from being kept apart."""
    match change:
        case "a name twice":
            device["name"] = "gpu-again"
        case "no name":
            del device["name"]
        case "no amount":
            del device["capacity"]
        case "an amount with a policy":
            device["capacity"]["memory"]["requestPolicy"] = {"default": "1Gi"}
        case "a negative amount":
            device["capacity"]["memory"]["value"] = "-1Gi"
        case "a shared device":
            device["allowMultipleAllocations"] = True
        case "a name with an escape":
            device["name"] = 'gpu-\u00e9"'
        case "an attribute that is called like a field":
            device["attributes"]["timeAdded"] = {"string": "2026"}
            device["attributes"]["name"] = {"string": "name"}
        case "a counter of the capacity's name":
            consumed = {"counterSet": "s", "counters": {"memory": {"value": "5Gi"}}}
            device["consumesCounters"] = [consumed]
        case "a text that looks like a field":
            device["attributes"]["model"] = {"string": '"name":"x","timeAdded":"y"'}


@pytest.mark.parametrize(
    "change",
    [
        *("a name twice", "no name", "no amount", "an amount with a policy", "a negative amount", "a shared device"),
        *("a name with an escape", "an attribute that is called like a field", "a text that looks like a field"),
        "a counter of the capacity's name",
    ],
)
def test_what_cannot_be_kept_apart_stays_with_the_devices(change: str) -> None:
    reader = Reader(compact=True)
    for node in range(0, 3 * SAMPLE, 3):
        read(reader, own_everything(node))
    for changed in ((0,), (1, 3), (0, 1, 2, 3)):
        raw = own_everything(999)
        for index in changed:
            unlike(change, raw["spec"]["devices"][index])
        expected = slow_slice(raw, "v1")
        if not isinstance(expected, Mismatch):
            assert read(reader, raw).exact() == expected
            assert list(read(reader, raw).names) == [device.name for device in expected.devices]


def test_what_is_shared_outlives_a_slice_that_cannot_be_read() -> None:
    reader = Reader(compact=True)
    raws = [raw_slice(node) for node in range(0, 6 * SAMPLE, 3)]
    found = [read(reader, raw) for raw in raws]
    for index in range(4):
        broken = raw_slice(0)
        for device in broken["spec"]["devices"]:
            device["name"] += "-new"
        broken["spec"]["devices"][index]["capacity"]["memory"]["value"] = "much"
        assert isinstance(typed(reader, "ResourceSlice", broken), Mismatch)
        odd = raw_slice(0)
        odd["spec"]["devices"][index]["attributes"]["versions"] = {"versions": ["1.0.0"]}
        assert read(reader, odd).exact() == slow_slice(odd, "v1")
    assert [entry.exact() for entry in found] == [slow_slice(raw, "v1") for raw in raws]


_AMOUNTS = st.sampled_from(["1", "2Gi", "x"])
_DEVICE = _object(
    name=_WORDS,
    attributes=st.dictionaries(_WORDS, _object(int=st.integers(0, 2), bool=st.booleans(), string=_WORDS), max_size=2),
    capacity=st.dictionaries(
        _WORDS,
        _object(
            value=_AMOUNTS,
            requestPolicy=_object(
                default=_AMOUNTS,
                validValues=st.lists(_AMOUNTS, max_size=2),
                validRange=_object(min=_AMOUNTS, max=_AMOUNTS, step=_AMOUNTS),
            ),
        ),
        max_size=2,
    ),
    allowMultipleAllocations=st.booleans(),
    bindsToNode=st.booleans(),
    consumesCounters=st.lists(_object(counterSet=_WORDS, counters=st.dictionaries(_WORDS, _object(value=_AMOUNTS)))),
    taints=st.lists(_object(key=_WORDS, effect=_WORDS), max_size=1),
)


@EASY
@given(st.lists(st.lists(_DEVICE, max_size=2), min_size=1, max_size=4), st.booleans())
def test_devices_as_the_slow_way_reads_them(lists: list[list[Json]], compact: bool) -> None:
    reader = Reader(compact=compact)
    if compact:
        for node in range(SAMPLE):
            read(reader, raw_slice(node, devices=1))
    for devices in lists:
        raw = raw_slice(0)
        raw["spec"]["devices"] = devices
        expected = _outcome(lambda raw=raw: slow_slice(copy.deepcopy(raw), "v1"))
        found = _outcome(lambda raw=raw: typed(reader, "ResourceSlice", raw))
        assert (found.exact() if isinstance(found, ResourceSlice) else found) == expected


@EASY
@given(st.lists(_NODE, min_size=1, max_size=4))
def test_nodes_as_the_slow_way_reads_them(raws: list[Json]) -> None:
    reader = Reader()
    for raw in raws:
        expected = _outcome(lambda raw=raw: mismatch(raw, "Node", "v1") or Node.from_json(copy.deepcopy(raw)))
        assert _outcome(lambda raw=raw: typed(reader, "Node", raw)) == expected


@EASY
@given(st.lists(_CLAIM, min_size=1, max_size=4))
def test_claims_as_the_slow_way_reads_them(raws: list[Json]) -> None:
    reader = Reader()
    for raw in raws:
        raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **raw}
        expected = _outcome(
            lambda raw=raw: mismatch(raw, "ResourceClaim") or ResourceClaim.from_json(decoded(raw, "ResourceClaim"))
        )
        assert _outcome(lambda raw=raw: typed(reader, "ResourceClaim", raw)) == expected


def _outcome(work: Any) -> object:
    """What comes out; the kind of error is the same to whoever reports it."""
    try:
        return work()
    except (AttributeError, KeyError, TypeError, ValueError):
        return "cannot be understood"
