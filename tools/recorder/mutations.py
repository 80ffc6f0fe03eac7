"""Changes to made-up objects, which know the OpenAPI of the server that is asked, and values at the edges."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

Json = dict[str, Any]
Path = tuple[str | int, ...]

PREFIX = "#/components/schemas/"
LONG = (32, 33, 63, 64, 128, 129, 253, 254)
TEXTS = (
    *(
        "",
        "a",
        "A",
        "a.b",
        "a/b",
        "/a",
        "a/",
        "a/b/c",
        "-a",
        "a-",
        "a_b",
        "é",
        " ",
        "0",
        "9a",
        "a b",
        "*",
        "{}",
        "a..b",
    ),
    *("example.com/a", "EXAMPLE.com/a", "example.com/a-b", "kubernetes.io/a", "true", "1.2.3", "v1.2.3", "1.2"),
)
EDGES: Mapping[str, tuple[str, ...]] = {
    "allocationMode": ("All", "ExactCount", "all", "Some"),
    "effect": ("NoSchedule", "NoExecute", "None", "PreferNoSchedule", "none", ""),
    "operator": ("Exists", "Equal", "In", "NotIn", "DoesNotExist", "Gt", "Lt", "exists"),
    "expression": (
        *("", "true", "1", "device", "device.driver", "device.nope", "true &&", "size(device.driver) > 0", "'a'"),
        *("device.attributes['x'].y", "device.allowMultipleAllocations", "has(device.attributes)", "dyn(1) == 1.0"),
        "device.attributes.all(k, device.attributes[k].all(n, n != ''))",
    ),
    "extendedResourceName": ("example.com/gpu", "requests.example.com/a", "gpu", "kubernetes.io/a", "example.com/"),
    "request": ("gpu", "gpu/alt-0", "gpu/none", "none", "nic"),
    "requests": ("gpu", "gpu/alt-0", "gpu/none", "none", "gpu/alt-0/x"),
    "restartPolicy": ("Always", "Never", "OnFailure", "never"),
    "dnsPolicy": ("None", "Default", "ClusterFirst", "ClusterFirstWithHostNet", "default"),
    "shareID": ("0a8b1c2d-3e4f-4a5b-8c6d-7e8f9a0b1c2d", "0A8B1C2D-3E4F-4A5B-8C6D-7E8F9A0B1C2D", "x"),
    "source": ("FromClass", "FromClaim", "fromClass"),
    "ips": ("10.0.0.1/24", "10.0.0.1", "10.0.0.1/33", "2001:DB8::1/64", "10.0.00.1/24", "::ffff:10.0.0.1/100"),
    "type": ("Ready", "example.com/ready", "-", ""),
    "status": ("True", "False", "Unknown", "true"),
    "reason": ("Up", "", "9", "A:b,c", "a b"),
    "skipNodeOperations": ("NodePrepareResources", "NodeUnprepareResources", "*", "prepare"),
    "timeAdded": ("2026-01-01T00:00:00Z", "2026-01-01", "yesterday"),
    "lastTransitionTime": ("2026-01-01T00:00:00Z", ""),
    "claimName": ("data", "", "Bad"),
    "uid": ("u", "", "u-1", "u-2"),
    "mountPropagation": ("Bidirectional", "HostToContainer", "None", ""),
    "recursiveReadOnly": ("Disabled", "IfPossible", "Enabled", ""),
    "path": ("a", "/a", "../a", "..a", "a/../b", "a/..", ""),
    "finalizers": ("example.com/hold", "orphan", "foregroundDeletion", "hold", "a b"),
}
NUMBERS = (0, 1, 2, -1, 8, 100, 1000, 1001, 2**31 - 1, 2**31, 2**63 - 1, -(2**63))
QUANTITIES = (
    *("0", "-1", "1", "10Gi", "1.5", "100m", "1Ei", "9223372036854775807", "9223372036854775808"),
    3,
    1.5,
    "x",
    "1Gb",
    "",
)
MAP_KEYS = ("a", "memory", "cpu", "example.com/x", "", "A-b", "x" * 64, "a/b/c", "/a", "gpu.example.com/model", "a b")
SIZES = (2, 4, 5, 8, 9, 10, 11, 16, 17, 32, 33, 64, 65, 128, 129)


GIVEN = (("metadata", "namespace"), ("metadata", "resourceVersion"))
"""What clients take from the request's URL, or from the object that they read."""


class Schemas(NamedTuple):
    """The definitions of a group version, as a server publishes them."""

    definitions: Mapping[str, Json]
    expressions: tuple[str, ...] = ()
    """Device selectors that a field for one may get, besides those at the edges. With some, changes are wilder."""

    def of(self, api_version: str, kind: str) -> Json:
        """The schema of a kind."""
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        return next(
            schema
            for schema in self.definitions.values()
            if any(
                {name: each[name] for name in wanted} == wanted
                for each in schema.get("x-kubernetes-group-version-kind", ())
            )
        )

    def resolved(self, schema: Json) -> Json:
        """The schema behind a reference."""
        for _ in range(5):
            if "allOf" in schema:
                schema = schema["allOf"][0]
            if "$ref" not in schema:
                break
            schema = self.definitions[schema["$ref"].removeprefix(PREFIX)]
        return schema

    def below(self, schema: Json, key: str | int) -> Json | None:
        """The schema of a field, of a list's items or of a map's values; None for an unknown field."""
        schema = self.resolved(schema)
        if isinstance(key, int):
            return schema.get("items")
        if "properties" in schema:
            found: Json | None = schema["properties"].get(key)
            return found
        values = schema.get("additionalProperties")
        return values if isinstance(values, dict) else None


class Place(NamedTuple):
    """A value in an object, with its schema."""

    path: Path
    value: Any
    schema: Json

    @property
    def field(self) -> str:
        """The name of the field, also for its items."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), "")


def known(value: Any, schema: Json | None, schemas: Schemas) -> Any:
    """A copy without the fields that the schema does not have."""
    if schema is None:
        return value
    resolved = schemas.resolved(schema)
    if isinstance(value, dict):
        if "properties" not in resolved and "additionalProperties" not in resolved:
            return value
        return {
            key: known(item, below, schemas)
            for key, item in value.items()
            if (below := schemas.below(resolved, key)) is not None
        }
    if isinstance(value, list):
        return [known(item, resolved.get("items"), schemas) for item in value]
    return value


def places(value: Any, schema: Json, schemas: Schemas, path: Path = ()) -> Iterator[Place]:
    """Every value below an object that the schema describes."""
    if path:
        yield Place(path, value, schema)
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        below = schemas.below(schema, key)
        if below is not None and key not in ("apiVersion", "kind", "managedFields"):
            yield from places(item, below, schemas, (*path, key))


def mutated(rng: random.Random, made: Json, schemas: Schemas, within: tuple[str, ...]) -> tuple[Json, str]:
    """A copy with one change below one of the fields ``within``, and a word for the change."""
    out = deepcopy(made)
    schema = schemas.of(made["apiVersion"], made["kind"])
    found = [place for place in places(out, schema, schemas) if place.path[0] in within and place.path not in GIVEN]
    # Metadata is the same for all kinds: it would be the place of most changes.
    weights = [0.15 if place.path[0] == "metadata" else 1.0 for place in found]
    place = rng.choices(found, weights)[0]
    ways = ["edge"] * 6 + ["remove", "remove", "null", "retype"]
    if isinstance(place.value, dict):
        ways = ["add"] * 6 + ["remove", "empty", "null", "retype"]
    elif isinstance(place.value, list):
        ways = ["repeat", "repeat", "widen", "widen", "remove", "empty", "append", "append", "retype", "null"]
    if schemas.expressions and rng.random() < 0.3:
        others = [other for other in found if _interchangeable(place, other, schemas)]
        if others:
            other = rng.choice(others)
            _set(out, place.path, deepcopy(other.value))
            _set(out, other.path, deepcopy(place.value))
            return out, f"swap {'.'.join(map(str, place.path))}"
    way = rng.choice(ways)
    if schemas.expressions and way in ("null", "retype"):
        # What cannot be decoded hides all else.
        way = rng.choice(ways)
    _CHANGES[way](rng, out, place, schemas)
    return out, f"{way} {'.'.join(map(str, place.path))}"


def _interchangeable(one: Place, other: Place, schemas: Schemas) -> bool:
    """Whether two places apart have values of the same type that differ."""
    shared = min(len(one.path), len(other.path))
    if one.path[:shared] == other.path[:shared] or one.value == other.value:
        return False
    first, second = schemas.resolved(one.schema), schemas.resolved(other.schema)
    return first == second or (first.get("type") == second.get("type") and not isinstance(one.value, dict))


def _set(out: Any, path: Path, value: Any) -> None:
    for part in path[:-1]:
        out = out[part]
    out[path[-1]] = value


def _remove(_: random.Random, out: Any, place: Place, __: Schemas) -> None:
    for part in place.path[:-1]:
        out = out[part]
    del out[place.path[-1]]


def _null(_: random.Random, out: Any, place: Place, __: Schemas) -> None:
    _set(out, place.path, None)


def _empty(_: random.Random, out: Any, place: Place, __: Schemas) -> None:
    _set(out, place.path, type(place.value)())


def _retype(rng: random.Random, out: Any, place: Place, _: Schemas) -> None:
    _set(out, place.path, rng.choice(("text", 7, True, [], {}, 1.5, ["a"])))


def _edge(rng: random.Random, out: Any, place: Place, schemas: Schemas) -> None:
    _set(out, place.path, scalar(rng, place.schema, place.field, schemas))


def _repeat(rng: random.Random, out: Any, place: Place, _: Schemas) -> None:
    if place.value:
        _set(out, place.path, [*place.value, deepcopy(rng.choice(place.value))])


def _widen(rng: random.Random, out: Any, place: Place, _: Schemas) -> None:
    """Many items, with names of their own where items have names."""
    if not place.value:
        return
    items = []
    for index in range(rng.choice(SIZES)):
        item = deepcopy(place.value[index % len(place.value)])
        if isinstance(item, dict) and "name" in item:
            item["name"] = f"{str(item['name'])[:50]}-{index}"
        elif isinstance(item, str) and rng.random() < 0.9:
            item = f"{item[:50]}{index}"
        items.append(item)
    _set(out, place.path, items)


def _append(rng: random.Random, out: Any, place: Place, schemas: Schemas) -> None:
    items = schemas.resolved(place.schema).get("items", {})
    _set(out, place.path, [*place.value, made_up(rng, items, place.field, schemas)])


def _add(rng: random.Random, out: Any, place: Place, schemas: Schemas) -> None:
    """A field that the object does not have yet, or an entry of a map; sometimes one that no object has."""
    schema = schemas.resolved(place.schema)
    properties = schema.get("properties")
    if properties is None:
        values = schema.get("additionalProperties")
        key = rng.choice(MAP_KEYS)
        value = made_up(rng, values, key, schemas) if isinstance(values, dict) else {"any": 1}
    else:
        free = sorted(name for name in properties if name not in place.value and name not in UNTOUCHED)
        if rng.random() < 0.05 or not free:
            key, value = "nonsense", 1
        else:
            key = rng.choice(free)
            value = made_up(rng, properties[key], key, schemas)
    _set(out, (*place.path, key), value)


OF_PODS = frozenset(
    (
        *("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker"),
        *("gcePersistentDisk", "gitRepo", "glusterfs", "iscsi", "photonPersistentDisk", "portworxVolume", "projected"),
        *("quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume", "volumeClaimTemplates", "volumeDevices"),
        *("envFrom", "fieldRef", "fileKeyRef", "resourceFieldRef", "lifecycle", "livenessProbe", "readinessProbe"),
        *("resizePolicy", "restartPolicyRules", "startupProbe", "ephemeralContainers", "appArmorProfile"),
        *("dnsConfig", "hostAliases", "hostname", "hostnameOverride", "os", "readinessGates", "subdomain"),
        *("seLinuxChangePolicy", "supplementalGroups", "supplementalGroupsPolicy", "sysctls", "windowsOptions"),
        *("completionMode", "maxFailedIndexes", "podFailurePolicy", "podReplacementPolicy", "successPolicy"),
        *("ordinals", "persistentVolumeClaimRetentionPolicy", "strategy", "updateStrategy", "scheduling"),
        *("evictionResponders", "schedulingGroup", "workloadRef", "timeZone", "bindMountOptions", "managedBy"),
        *("procMount", "localhostProfile", "csi", "image", "ephemeral", "backoffLimitPerIndex"),
        *("podManagementPolicy", "overhead"),
    )
)
"""Parts of pods and workloads that lint does not judge: their rules have nothing to do with devices."""
UNTOUCHED = OF_PODS | {
    "managedFields",
    "resourceVersion",
    "selfLink",
    "creationTimestamp",
    "deletionTimestamp",
    "privileged",
}
"""Besides, metadata that the server sets anyway; and what its flag --allow-privileged decides, which clusters have on
and the control plane of tests has not."""

_CHANGES = {
    "add": _add,
    "append": _append,
    "edge": _edge,
    "empty": _empty,
    "null": _null,
    "remove": _remove,
    "repeat": _repeat,
    "retype": _retype,
    "widen": _widen,
}


def scalar(rng: random.Random, schema: Json, field: str, schemas: Schemas) -> Any:
    """A value of a scalar's type, often at an edge."""
    resolved = schemas.resolved(schema)
    kind = resolved.get("type")
    if _is_quantity(schema) or "oneOf" in resolved:
        return rng.choice(QUANTITIES)
    if kind == "integer":
        return rng.choice(NUMBERS[:6] if rng.random() < 0.6 else NUMBERS)
    if kind == "boolean":
        return rng.random() < 0.6
    if kind == "number":
        return 1.5
    if field == "expression" and schemas.expressions and rng.random() < 0.7:
        return rng.choice(schemas.expressions)
    if rng.random() < 0.1:
        return "x" * rng.choice(LONG)
    return rng.choice(EDGES.get(field, TEXTS) if rng.random() < 0.8 else TEXTS)


def _is_quantity(schema: Json) -> bool:
    wrapped: list[Json] = schema.get("allOf") or [{}]
    reference = schema.get("$ref") or wrapped[0].get("$ref", "")
    return str(reference).endswith(".Quantity")


def made_up(rng: random.Random, schema: Json, field: str, schemas: Schemas, depth: int = 0) -> Any:
    """A value for a schema: required fields always, others at random."""
    resolved = schemas.resolved(schema)
    kind = resolved.get("type")
    if kind == "array":
        return [made_up(rng, resolved["items"], field, schemas, depth + 1) for _ in range(rng.randint(1, 2))]
    if kind == "object" and ("properties" in resolved or "additionalProperties" in resolved):
        if "properties" not in resolved:
            values = resolved["additionalProperties"]
            return {rng.choice(MAP_KEYS[:5]): made_up(rng, values, field, schemas, depth + 1)}
        required = set(resolved.get("required", ()))
        chance = 0.6 / (depth + 1)
        return {
            name: made_up(rng, below, name, schemas, depth + 1)
            for name, below in sorted(resolved["properties"].items())
            if name not in UNTOUCHED and (name in required or rng.random() < chance)
        }
    if kind == "object":
        return {"any": 1}
    return scalar(rng, schema, field, schemas)
