"""Small clusters for tests: slices, classes and claims in their API shape, few words each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import json

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.result import AllocationResult
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import DeviceClass, DeviceResult, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.api.taints import DeviceToleration
from kubectl_dra.cel import Environment

JSON = dict[str, Any]
CLASS = 'device.driver == "d"'


def device(
    name: str,
    *,
    a: object = None,
    attributes: Mapping[str, JSON] | None = None,
    m: object = None,
    capacity: Mapping[str, JSON] | None = None,
    multi: bool = False,
    consumes: Mapping[str, object] | None = None,
    taint: str = "",
    **fields: Any,
) -> JSON:
    """A device: ``a`` a string attribute, ``m`` a capacity, ``consumes`` {"set.counter": amount}."""
    out: JSON = {"name": name, **fields}
    table = dict(attributes or {})
    if a is not None:
        table["a"] = {"string": a}
    if table:
        out["attributes"] = table
    caps = dict(capacity or {})
    if m is not None:
        caps["m"] = {"value": str(m)}
    if caps:
        out["capacity"] = caps
    if multi:
        out["allowMultipleAllocations"] = True
    if consumes:
        out["consumesCounters"] = [{"counterSet": name, "counters": own} for name, own in _sets(consumes).items()]
    if taint:
        key, effect = taint.split(":")
        name_part, _, value = key.partition("=")
        out["taints"] = [{"key": name_part, "value": value, "effect": effect}]
    return out


def _sets(amounts: Mapping[str, object]) -> dict[str, JSON]:
    """Counters by their sets."""
    sets: dict[str, JSON] = {}
    for key, amount in amounts.items():
        counter_set, counter = key.split(".")
        sets.setdefault(counter_set, {})[counter] = {"value": str(amount)}
    return sets


def slice_of(
    *devices: JSON,
    pool: str = "p",
    driver: str = "d",
    node: str = "n1",
    name: str = "",
    generation: int = 1,
    count: int = 1,
    counters: Mapping[str, object] | None = None,
    **spec: Any,
) -> ResourceSlice:
    """A slice of devices, or of shared counters ({"set.counter": amount})."""
    body: JSON = {"driver": driver, "pool": {"name": pool, "generation": generation, "resourceSliceCount": count}}
    if not {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys():
        body["nodeName"] = node
    body.update(spec)
    if counters is not None:
        body["sharedCounters"] = [{"name": key, "counters": value} for key, value in _sets(counters).items()]
    else:
        body["devices"] = list(devices)
    return ResourceSlice.from_json({"metadata": {"name": name or f"{driver}-{pool}-{node}"}, "spec": body})


def request(name: str = "r", **fields: Any) -> JSON:
    """An exact request of class ``c``; ``selector`` is CEL, ``m`` a capacity request."""
    return {"name": name, "exactly": _fields(fields)}


def first_available(name: str, *subrequests: JSON) -> JSON:
    """A prioritized list."""
    return {"name": name, "firstAvailable": list(subrequests)}


def sub(name: str, **fields: Any) -> JSON:
    """A subrequest."""
    return {"name": name, **_fields(fields)}


def _fields(fields: dict[str, Any]) -> JSON:
    out: JSON = {"deviceClassName": fields.pop("class_name", "c")}
    if (selector := fields.pop("selector", None)) is not None:
        out["selectors"] = [{"cel": {"expression": selector}}]
    if (m := fields.pop("m", None)) is not None:
        out["capacity"] = {"requests": {"m": str(m)}}
    if fields.pop("all", False):
        out["allocationMode"] = "All"
    if fields.pop("admin", False):
        out["adminAccess"] = True
    out.update(fields)
    return out


def claim(
    *requests: JSON, name: str = "claim", constraints: Sequence[JSON] = (), config: Sequence[JSON] = ()
) -> ResourceClaim:
    """An unallocated claim in namespace ``default``."""
    spec: JSON = {"devices": {"requests": list(requests), "constraints": list(constraints), "config": list(config)}}
    return ResourceClaim.from_json({"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def held(*devices: str, name: str = "holder", driver: str = "d", pool: str = "p", **result: Any) -> ResourceClaim:
    """A claim that holds devices of pool ``p``; ``shareID`` and ``consumedCapacity`` go to each result."""
    results = [{"request": "r", "driver": driver, "pool": pool, "device": entry, **result} for entry in devices]
    return ResourceClaim.from_json(
        {
            "metadata": {"name": name, "namespace": "default"},
            "status": {"allocation": {"devices": {"results": results}}},
        }
    )


def cycle(
    slices: Sequence[ResourceSlice],
    *,
    allocated: Sequence[ResourceClaim] = (),
    classes: Mapping[str, Sequence[str]] | None = None,
    features: Features | None = None,
    defects: KnownDefects | None = None,
    class_config: Sequence[JSON] = (),
) -> Cycle:
    """A scheduling cycle; classes are name to selectors, by default ``c`` for driver ``d``."""
    features = features or Features()
    table = {"c": (CLASS,)} if classes is None else classes
    return Cycle(
        index=SliceIndex(slices),
        classes={name: _class(name, selectors, class_config) for name, selectors in table.items()},
        state=allocated_state(allocated, features),
        selectors=Selectors(
            Environment.for_release("1.36", features=default_features(parse_release("1.36")), stored=True)
        ),
        features=features,
        defects=defects or KnownDefects(),
    )


def _class(name: str, selectors: Sequence[str], config: Sequence[JSON]) -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": text}} for text in selectors], "config": list(config)}
    return DeviceClass.from_json({"metadata": {"name": name}, "spec": spec})


def written(allocation: AllocationResult) -> JSON:
    """``status.allocation`` as the API server gets it, without empty parts."""
    parts = {"results": [*map(_result, allocation.results)], "config": [*allocation.config]}
    out: JSON = {"devices": {name: part for name, part in parts.items() if part}}
    if allocation.node_selector is not None:
        out["nodeSelector"] = json.decode(json.encode(allocation.node_selector))
    return out


def _result(result: DeviceResult) -> JSON:
    driver, pool, device = result.device
    out: JSON = {"request": result.request, "driver": driver, "pool": pool, "device": device}
    parts = {
        "adminAccess": result.admin_access,
        "tolerations": [*map(_toleration, result.tolerations)],
        "bindingConditions": [*result.binding_conditions],
        "bindingFailureConditions": [*result.binding_failure_conditions],
        "skipNodeOperations": [*result.skip_node_operations],
        "shareID": result.share_id,
        "consumedCapacity": {name: str(amount) for name, amount in result.consumed_capacity.items()},
    }
    return {**out, **{name: part for name, part in parts.items() if part}}


def _toleration(toleration: DeviceToleration) -> JSON:
    out = {name: value for name in ("key", "operator", "value", "effect") if (value := getattr(toleration, name))}
    return out if toleration.seconds is None else {**out, "tolerationSeconds": toleration.seconds}


def picked(attempt: Attempt) -> list[str] | None:
    """The device names of all results in order, None where nothing was found; raises on an error."""
    if attempt.verdict is AttemptVerdict.ALLOCATED:
        return [device.device for device in attempt.devices]
    assert attempt.verdict is AttemptVerdict.REJECTED, attempt.message
    return None


def allocate(
    slices: Sequence[ResourceSlice],
    *claims: ResourceClaim,
    node: str = "n1",
    labels: Mapping[str, str] | None = None,
    **options: Any,
) -> Attempt:
    """One attempt on one node."""
    return cycle(slices, **options).attempt(Node.named(node, labels), list(claims))
