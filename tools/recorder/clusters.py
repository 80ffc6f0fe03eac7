"""Clusters made up for the allocator: pools, partitions, shares, taints, and a pod's claims, all small and awkward."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from kubectl_dra.api.releases import Release

Json = dict[str, Any]
DRIVERS = ("gpu.example.com", "nic.example.com")
MODELS = ("A100", "H100", "T4")
AMOUNTS = ("16Gi", "40Gi", "80Gi", "10", "2500m")
ASKED = ("1", "50", "3500m", "1Gi", "9Gi", "16Gi", "41Gi", "9223372036854775807", "1e19")
FRACTIONS = ("0.3", "700m", "1250m", "2", "2.5", "100u", "9223372036854775", "9223372036854775807", "1e19")
OPERATIONS = (["NodePrepareResources", "NodeUnprepareResources"], ["NodeUnprepareResources"], ["*"])
GROUPS = ("mig", "vfio", "whole")
DERIVED = (
    "device.driver",
    'device.attributes["gpu.example.com"].model',
    'device.attributes["gpu.example.com"].?model.orValue("none")',
    'device.attributes["gpu.example.com"].?numa.orValue(7) % 2',
    'device.attributes["shared.example.com"].?root.orValue("r1") == "r1"',
    'device.attributes["gpu.example.com"].?version.orValue(semver("0.1.0"))',
    '["a", "b", "c"].filter(x, x != device.attributes["gpu.example.com"].?numa.orValue(0).string())',
    '"model" in device.attributes["gpu.example.com"] ? [1, 2] : [2, 3]',
    'device.capacity["gpu.example.com"].?memory.orValue(quantity("1")).compareTo(quantity("20Gi"))',
    "[].map(x, string(x))",
    'dyn(device.attributes["gpu.example.com"].?numa.orValue(0)) == 0 ? dyn(1.5) : dyn("x")',
    '[dyn(1), dyn("x")]',
    'device.attributes["gpu.example.com"].model + 1',
    "1.5",
    "device.capacity",
    "nosuch.field",
)
CLAIMS = ((1, 1, 1, 2, 3), (1, 1, 1, 2))
"""How many claims a pod has; where only some gates matter, fewer."""
ALPHA = ("DerivedAttributes", "DeviceCompatibilityGroups", "FractionalCapacityRange", "OptionalNodeOperations")
"""Gates of which cases show little else: other features rarely make a claim fail before these can."""
NAMES = ("derived/key", "gpu.example.com/model", "gpu.example.com/numa", "shared.example.com/root")
ATTRIBUTES = ("gpu.example.com/model", "gpu.example.com/numa", "gpu.example.com/version", "shared.example.com/root")
SELECTORS = (
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "A100"',
    'device.attributes["gpu.example.com"].?model.orValue("") != "T4"',
    '"gpu.example.com" in device.attributes && has(device.attributes["gpu.example.com"].numa)',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0',
    'device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.0"))',
    'device.allowMultipleAllocations || device.attributes["shared.example.com"].root == "r1"',
)
TAINTS = (("maintenance", "ml", "NoSchedule"), ("maintenance", "", "NoExecute"), ("health", "bad", "NoSchedule"))


def clusters(seed: int, count: int, release: Release, features: list[str]) -> Iterator[Json]:
    """As many cases as asked for. ``features`` are changes of gates, the same for all of them."""
    for number in range(count):
        yield Maker(random.Random(f"{seed}-{number}"), release, features).made(f"s{seed}-{number:05}")


class Maker:
    """Makes one case with dice. ``features`` are changes of gates, whose fields then appear."""

    def __init__(self, dice: random.Random, release: Release, features: list[str]) -> None:
        self.dice = dice
        self.release = release
        self.features = features
        self.calm = any(map(self.uses, ALPHA))

    def made(self, name: str) -> Json:
        nodes: list[Json] = [
            self.node() | {"metadata": {"name": f"n{index}", "labels": {"zone": self.dice.choice("ab")}}}
            for index in range(self.dice.choice((1, 1, 2, 3)))
        ]
        slices = [entry for node in nodes for entry in self.of_node(node["metadata"]["name"])]
        if self.chance(0.3):
            slices += self.everywhere()
        self.dice.shuffle(slices)
        return {
            "id": name,
            "features": self.features,
            "nodes": nodes,
            "slices": slices,
            "classes": self.classes(),
            "claims": [self.claim(f"c{index}") for index in range(self.dice.choice(CLAIMS[self.calm]))],
            "allocatedClaims": self.holders(slices),
        }

    def uses(self, gate: str) -> bool:
        """Whether the gate was changed in either direction: then its fields appear."""
        return any(change[1:].removeprefix("DRA") == gate for change in self.features)

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def node(self) -> Json:
        if self.uses("OptionalNodeOperations") and self.chance(0.5):
            return {"status": {"declaredFeatures": ["DRAOptionalNodeOperations", "Other"][: self.dice.choice((1, 2))]}}
        return {}

    def of_node(self, node: str) -> Iterator[Json]:
        for driver in DRIVERS[: 1 if self.chance(0.5) else 2]:
            pool = node if self.chance(0.5) else f"{node}-{driver[:3]}"
            if driver == DRIVERS[0] and self.chance(0.8 if self.uses("DeviceCompatibilityGroups") else 0.3):
                yield from self.partitioned(node, pool)
                continue
            parts = 2 if self.chance(0.2) else 1
            for part in range(parts):
                yield self.slice(f"{pool}-{driver[:3]}-{part}", driver, pool, parts, {"nodeName": node}, part)

    def everywhere(self) -> Iterator[Json]:
        scope: Json = self.dice.choice(
            (
                {"allNodes": True},
                {"nodeSelector": self.selects_zone()},
                {"perDeviceNodeSelection": True},
            )
        )
        entry = self.slice("fabric-0", DRIVERS[1], "fabric", 1, scope, 0)
        if "perDeviceNodeSelection" in scope:
            for device in entry["spec"]["devices"]:
                where = ({"nodeName": "n0"}, {"allNodes": True}, {"nodeSelector": self.selects_zone()})
                device.update(self.dice.choice(where))
        yield entry

    def selects_zone(self) -> Json:
        wanted = {"key": "zone", "operator": self.dice.choice(("In", "NotIn")), "values": [self.dice.choice("ab")]}
        return {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}

    def slice(self, name: str, driver: str, pool: str, parts: int, scope: Json, part: int) -> Json:
        if self.chance(0.05):
            parts += 1
        devices = [self.device(f"d{part}-{index}") for index in range(self.dice.randrange(1, 5))]
        if self.chance(0.04):
            devices.append({**devices[0]})
        generation = 2 if self.chance(0.05) else 1
        identity = {"name": pool, "generation": generation, "resourceSliceCount": parts}
        spec: Json = {"driver": driver, "pool": identity, "devices": devices, **scope, **self.operations()}
        return {"metadata": {"name": name}, "spec": spec}

    def operations(self) -> Json:
        if self.uses("OptionalNodeOperations") and self.chance(0.5):
            return {"skipNodeOperations": self.dice.choice(OPERATIONS)}
        return {}

    def device(self, name: str) -> Json:
        attributes: Json = {}
        if self.chance(0.9):
            attributes["model"] = {"string": self.dice.choice(MODELS)}
        if self.chance(0.7):
            attributes["numa"] = {"int": self.dice.randrange(2)}
        if self.chance(0.7):
            attributes["version"] = {"version": self.dice.choice(("1.0.0", "1.3.0"))}
        if self.chance(0.6):
            attributes["shared.example.com/root"] = self.root()
        out: Json = {"name": name, "attributes": attributes}
        if self.chance(0.7):
            out["capacity"] = {"memory": {"value": self.dice.choice(AMOUNTS)}}
            if self.chance(0.3):
                out["capacity"]["lanes"] = {"value": "16"}
        if self.chance(0.8 if self.uses("FractionalCapacityRange") else 0.3):
            out["allowMultipleAllocations"] = True
            for capacity in out.get("capacity", {}).values():
                if self.chance(0.6):
                    capacity["requestPolicy"] = self.policy()
        if self.chance(0.15):
            out["taints"] = [self.taint() for _ in range(self.dice.choice((1, 1, 2)))]
        if self.chance(0.1):
            out["bindingConditions"] = ["ready"]
            out["bindingFailureConditions"] = ["failed"]
        if self.chance(0.1):
            out["bindsToNode"] = True
        return out

    def root(self) -> Json:
        if "+ListTypeAttributes" in self.features and self.chance(0.5):
            return {"strings": sorted(self.dice.sample(("r1", "r2", "r3"), self.dice.randrange(1, 3)))}
        return {"string": self.dice.choice(("r1", "r2"))}

    def taint(self) -> Json:
        key, value, effect = self.dice.choice(TAINTS)
        return {"key": key, "effect": effect} | ({"value": value} if value else {})

    def policy(self) -> Json:
        if self.uses("FractionalCapacityRange") and self.chance(0.7):
            return self.fractions()
        kind = self.dice.randrange(4)
        if kind == 0:
            return {"default": "1Gi"}
        if kind == 1:
            return {"default": "2Gi", "validValues": ["2Gi", "4Gi", "16Gi"]}
        valid: Json = {"min": self.dice.choice(("1", "1Gi", "500m"))}
        if self.chance(0.7):
            valid["step"] = self.dice.choice(("1", "512Mi", "3"))
        if self.chance(0.5):
            valid["max"] = self.dice.choice(("8Gi", "64Gi"))
        return {"default": valid["min"], "validRange": valid}

    def fractions(self) -> Json:
        valid: Json = {"min": self.dice.choice(("500m", "250m", "1", "0", "100u"))}
        if self.chance(0.9):
            valid["step"] = self.dice.choice(("250m", "100m", "1", "0.5", "1500u", "9000000000000000"))
        if self.chance(0.4):
            valid["max"] = self.dice.choice(("2", "2500m", "8"))
        return {"default": valid["min"] if self.chance(0.7) else "750m", "validRange": valid}

    def partitioned(self, node: str, pool: str) -> Iterator[Json]:
        identity: Json = {"name": pool, "generation": 1, "resourceSliceCount": 2}
        counters = {"memory": {"value": "40Gi"}, "slices": {"value": "7"}}
        sets = [{"name": f"card-{index}", "counters": counters} for index in range(self.dice.choice((1, 2)))]
        devices = []
        for index in range(self.dice.randrange(2, 6)):
            device = self.device(f"p{index}")
            used = {"memory": {"value": self.dice.choice(("10Gi", "20Gi", "40Gi"))}}
            if self.chance(0.6):
                used["slices"] = {"value": self.dice.choice(("1", "3", "7"))}
            device["consumesCounters"] = [{"counterSet": self.dice.choice(sets)["name"], "counters": used}]
            if self.uses("DeviceCompatibilityGroups"):
                self.group(device["consumesCounters"], sets, used)
            devices.append(device)
        base: Json = {"driver": DRIVERS[0], "pool": identity, "nodeName": node}
        if self.release.minor >= 35:
            yield {"metadata": {"name": f"{pool}-counters"}, "spec": {**base, "sharedCounters": sets}}
            yield {"metadata": {"name": f"{pool}-parts"}, "spec": {**base, "devices": devices}}
        else:
            whole: Json = {
                **base,
                "pool": {**identity, "resourceSliceCount": 1},
                "sharedCounters": sets,
                "devices": devices,
            }
            yield {"metadata": {"name": f"{pool}-parts"}, "spec": whole}

    def group(self, consumed: list[Json], sets: list[Json], used: Json) -> None:
        """Adds groups to what a device consumes, and sometimes a second set."""
        if len(sets) > 1 and self.chance(0.3):
            other = next(entry for entry in sets if entry["name"] != consumed[0]["counterSet"])
            consumed.append({"counterSet": other["name"], "counters": used})
        for entry in consumed:
            used = dict(used)
            entry["counters"] = {name: {"value": "1"} for name in used} if self.chance(0.7) else used
            if self.chance(0.7):
                entry["compatibilityGroups"] = self.dice.sample(GROUPS, self.dice.choice((1, 1, 2)))

    def classes(self) -> list[Json]:
        config = [{"opaque": {"driver": DRIVERS[0], "parameters": {"kind": "Default"}}}]
        gpu = {"selectors": [{"cel": {"expression": SELECTORS[0]}}], "config": config}
        nic = {"selectors": [{"cel": {"expression": 'device.driver == "nic.example.com"'}}]}
        return [
            {"metadata": {"name": "any"}, "spec": {}},
            {"metadata": {"name": "gpu"}, "spec": gpu},
            {"metadata": {"name": "nic"}, "spec": nic},
        ]

    def claim(self, name: str) -> Json:
        requests = [self.request(f"r{index}") for index in range(self.dice.choice((1, 1, 2, 3)))]
        names = [request["name"] for request in requests]
        names += [f"{one['name']}/{sub['name']}" for one in requests for sub in one.get("firstAvailable", ())]
        devices: Json = {"requests": requests}
        if self.chance(0.8 if self.uses("DerivedAttributes") else 0.1 if self.calm else 0.35):
            devices["constraints"] = [self.constraint(names) for _ in range(self.dice.choice((1, 1, 2)))]
        if self.chance(0.2):
            some = self.dice.sample(names, self.dice.randrange(len(names) + 1))
            devices["config"] = [
                {"requests": some, "opaque": {"driver": DRIVERS[0], "parameters": {"kind": "X"}}},
            ]
        return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": {"devices": devices}}

    def request(self, name: str) -> Json:
        if self.chance(0.25):
            subs = [self.asked() | {"name": f"s{index}"} for index in range(self.dice.randrange(1, 4))]
            return {"name": name, "firstAvailable": subs}
        exactly = self.asked()
        if self.chance(0.08):
            exactly["adminAccess"] = True
        return {"name": name, "exactly": exactly}

    def asked(self) -> Json:
        if self.calm and self.chance(0.8):
            return self.one_thing()
        out: Json = {"deviceClassName": self.dice.choice(("any", "gpu", "gpu", "nic"))}
        if self.chance(0.2):
            out["allocationMode"] = "All"
        else:
            out["allocationMode"], out["count"] = "ExactCount", self.dice.choice((1, 1, 1, 2, 3, 20))
        if self.chance(0.5):
            out["selectors"] = [{"cel": {"expression": self.dice.choice(SELECTORS)}}]
        if self.chance(0.25):
            amounts = FRACTIONS if self.uses("FractionalCapacityRange") else ASKED
            out["capacity"] = {"requests": {self.dice.choice(("memory", "memory", "lanes")): self.dice.choice(amounts)}}
        if self.chance(0.3):
            out["tolerations"] = [self.toleration()]
        return out | self.derived()

    def one_thing(self) -> Json:
        """A request that asks for little but what the gates are about."""
        out: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": self.dice.choice((1, 1, 2, 3))}
        if self.chance(0.1):
            out = {"deviceClassName": "gpu", "allocationMode": "All"}
        if self.uses("FractionalCapacityRange") and self.chance(0.8):
            out["capacity"] = {"requests": {"memory": self.dice.choice(FRACTIONS[:5])}}
        if self.chance(0.7):
            out["tolerations"] = [{"operator": "Exists"}]
        return out | self.derived()

    def derived(self) -> Json:
        if self.uses("DerivedAttributes") and self.chance(0.6):
            names = self.dice.sample(NAMES, self.dice.choice((1, 1, 2)))
            # The last ones end every attempt, so they are rare.
            most = len(DERIVED) if self.chance(0.15) else len(DERIVED) - 6
            some = [{"name": name, "expression": self.dice.choice(DERIVED[:most])} for name in names]
            return {"derivedAttributes": some}
        return {}

    def toleration(self) -> Json:
        key, value, effect = self.dice.choice(TAINTS)
        return self.dice.choice(
            (
                {"operator": "Exists"},
                {"key": key, "operator": "Exists", "effect": effect},
                {"key": key, "operator": "Equal", "value": value or "ml"},
            )
        )

    def constraint(self, names: list[str]) -> Json:
        kind = "matchAttribute" if self.chance(0.65) else "distinctAttribute"
        derived = self.uses("DerivedAttributes") and self.chance(0.8)
        out: Json = {kind: self.dice.choice(NAMES if derived else ATTRIBUTES)}
        if self.chance(0.5):
            out["requests"] = self.dice.sample(names, self.dice.randrange(1, len(names) + 1))
        return out

    def holders(self, slices: list[Json]) -> list[Json]:
        results = []
        for entry in slices:
            spec = entry["spec"]
            for device in spec.get("devices", ()):
                if self.chance(0.15):
                    results.append(self.held(spec, device))
        self.dice.shuffle(results)
        return [
            {
                "metadata": {"name": f"held-{index}", "namespace": "default", "uid": f"held-{index}"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
                "status": {"allocation": {"devices": {"results": [result]}}},
            }
            for index, result in enumerate(results)
        ]

    def held(self, spec: Json, device: Json) -> Json:
        out: Json = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
        if self.chance(0.1):
            out["adminAccess"] = True
        elif device.get("allowMultipleAllocations") and self.chance(0.8):
            out["shareID"] = f"{self.dice.randrange(16**8):08x}-0000-4000-8000-000000000000"
            taken = {name: self.dice.choice(("1", "1Gi", "8Gi")) for name in device.get("capacity", ())}
            if taken and self.chance(0.8):
                out["consumedCapacity"] = taken
        return out
