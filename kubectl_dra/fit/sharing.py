"""Ways in which pods can share devices, what each needs, and the manifest written for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.releases import first_with
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.api.slices import Device
from kubectl_dra.command import CommandLine
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.drivers.refused_claims import for_one_pod
from kubectl_dra.explain.phrase import ObjectName, Words, say
from kubectl_dra.fit.shared_template import SharedTemplate, entries_of, exactly_of, template_named
from kubectl_dra.fit.sharing_parts import (
    UNITS,
    Amount,
    Profile,
    amounts_for,
    asked_amount,
    default_amount,
    exceeds,
    is_some,
    memory_of,
    most_of,
    partitioning,
    profile_of,
    shared_capacity,
    why_no_partition,
)
from kubectl_dra.manifests.changes import Change, Set, fields_at
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.yaml_output import yaml_text

MAX_CONSUMERS: Final = 256
"""Entries of a claim's ``status.reservedFor`` (resource/v1)."""
_DEVICES: Final = ("spec", "spec", "devices")


class SharingWay(StrEnum):
    """A way to share, as it is typed."""

    EACH = "each"
    """A claim for each pod: nothing is shared."""
    CLAIM = "claim"
    """One claim, which all pods name."""
    TIME_SLICES = "time-slices"
    """One claim with a configuration by which the driver lets the pods take turns."""
    MPS = "mps"
    """One claim with a configuration by which the driver runs NVIDIA's MPS."""
    PARTITIONS = "partitions"
    """A claim for each pod, for a part that the hardware keeps from others."""
    CAPACITY = "capacity"
    """A claim for each pod, for some of the capacity of a device that several claims may have."""
    ADMIN = "admin"
    """Access to devices that others hold, for monitoring."""


IN_ONE_POD: Final = (SharingWay.CLAIM, SharingWay.TIME_SLICES, SharingWay.MPS)
"""The ways in which the containers of one pod share."""


class SharingNeed(Struct, frozen=True):
    """A gate, a label or what has to be done first by its name, who has to set or do it, and commands for that.

    ``driver``: it is a feature gate of this driver, of which the scheduler knows nothing; ``refused`` is a pod that
    waits because the driver says that it is off, ``off_on`` are nodes of the pods where it is known to be off.
    """

    name: str
    how: Words
    commands: tuple[CommandLine, ...] = ()
    driver: str = ""
    refused: ObjectName | None = None
    off_on: tuple[str, ...] = ()


class WrittenWay(Struct, frozen=True):
    """A way as a manifest. ``impossible``: why it cannot be written. ``amount``: what each pod gets of a capacity.
    ``device_class``: the class of its claims, where that is another one because the template's admits no such device.
    """

    way: SharingWay
    text: str = ""
    needs: tuple[SharingNeed, ...] = ()
    impossible: Words = ""
    amount: Amount | None = None
    device_class: str = ""


class SharingWriter(Struct, frozen=True):
    """Writes a manifest for each way. The ways are chosen by the ``devices`` of the cluster and those ``matching`` the
    template's class. ``gates`` are those that are on. ``one_pod``: the containers of a pod share, and not pods.
    ``taken``: a claim has the name already that one for all would get, the template's. ``located``: those matching,
    each with its node if it has one. ``left`` is what is left of each capacity of those that several claims may have.
    ``classes_of``: the classes of the cluster that admit a device.
    """

    documents: tuple[Document, ...]
    template: SharedTemplate
    gates: frozenset[str]
    devices: Sequence[Device] = ()
    matching: Sequence[Device] = ()
    one_pod: bool = False
    taken: bool = False
    located: Sequence[tuple[Device, Node | None]] = ()
    left: Mapping[str, Sequence[Quantity]] = MappingProxyType({})
    classes_of: Callable[[Device], Sequence[str]] = lambda _: ()

    @property
    def asked(self) -> Amount | None:
        """What the template asks of a capacity that several claims may have."""
        return asked_amount(exactly_of(self.template.spec), self.matching)

    @property
    def _drivers(self) -> frozenset[str]:
        """The drivers that serve the class."""
        matching = frozenset(device.driver for device in self.matching)
        return matching or (frozenset((self.driver.name,)) if self.driver is not None else frozenset())

    @property
    def _of_driver(self) -> list[Device]:
        """The devices of the drivers that serve the class."""
        drivers = self._drivers
        return [device for device in self.devices if device.driver in drivers]

    @property
    def driver(self) -> Driver | None:
        """The driver of the class, where it is known."""
        known = catalogue().of_class(self.template.device_class)
        drivers = {device.driver for device in self.matching}
        return known or (catalogue().driver(drivers.pop()) if len(drivers) == 1 else None)

    def write(self, way: SharingWay, part: str = "", pods: int = 0) -> Iterator[WrittenWay]:
        """The manifests of a way, the best first; ``part``: how much capacity each pod gets, else what is asked for
        today, and then what there is room for, for so many ``pods``.
        """
        if way is SharingWay.EACH:
            yield WrittenWay(way, self.documents[0].source.text, amount=self.asked)
        elif way in IN_ONE_POD and not self.one_pod and (driver := for_one_pod(self._drivers)):
            yield WrittenWay(way, impossible=say("driver {driver} gives a claim's devices to one pod", driver=driver))
        elif way is SharingWay.CLAIM:
            yield WrittenWay(way, self._as_claim(self.template.spec), self._free_name())
        elif way in _STRATEGIES:
            yield self._configured(way)
        elif way is SharingWay.PARTITIONS:
            yield from self._partitions()
        elif way is SharingWay.CAPACITY:
            yield from self._of_capacity(part, pods)
        else:
            text = "label resource.kubernetes.io/admin-access=true on the namespace (gate DRAAdminAccess, on from 1.34)"
            need = SharingNeed("a namespace label", text)
            yield WrittenWay(way, self._edited(("adminAccess",), True), (need,))

    def _as_claim(self, spec: Mapping[str, Any]) -> str:
        """With one claim of this content that all pods name; the containers of one pod share its own claim."""
        if self.one_pod:
            return self._replaced(spec)
        return self._written(self._naming(), {"kind": "ResourceClaim", "spec": self.template.as_written(spec)})

    def _outer(self) -> Mapping[str, Any]:
        document = self.template.document
        outer: Mapping[str, Any] = (
            fields_at(document.object, *self.template.path, "spec") if document is not None else {}
        )
        return outer

    def _free_name(self) -> tuple[SharingNeed, ...]:
        """The need of another name for one claim for all, where a claim has the template's."""
        if not self.taken or self.one_pod:
            return ()
        text = (
            "another name: ResourceClaim {name} exists already. The server refuses another spec for it, and with the "
            "same one these pods share it with those that have it"
        )
        return (SharingNeed("another name for the claim", say(text, name=self.template.name)),)

    def _naming(self) -> dict[int, list[Change]]:
        changes: dict[int, list[Change]] = {}
        for item, path, claim_entry in entries_of(self.documents):
            if template_named(claim_entry) == self.template.name:
                named = {"name": claim_entry.get("name"), "resourceClaimName": self.template.name}
                changes.setdefault(item.document.index, []).append(Set(path, named))
        return changes

    def _replaced(self, spec: Mapping[str, Any]) -> str:
        """With another spec of the template's claims."""
        return self._written({}, {"spec": {**self._outer(), "spec": self.template.as_written(spec)}})

    def _written(self, changes: dict[int, list[Change]], fields: Mapping[str, Any]) -> str:
        """The manifest with changes, and these fields of the template; one of the cluster is written after it."""
        document = self.template.document
        if document is not None:
            changes.setdefault(document.index, []).extend(
                Set((*self.template.path, name), value) for name, value in fields.items()
            )
        text = with_changes(self.documents, changes)
        if document is not None:
            return text
        whole = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {
                "name": self.template.name,
                **({"namespace": space} if (space := self.template.namespace) else {}),
            },
            **fields,
        }
        return f"{text.rstrip()}\n---\n{yaml_text(whole)}"

    def _edited(self, field: FieldPath, value: Any, more: Mapping[FieldPath, Any] = {}) -> str:
        """With fields of the first request's ``exactly`` in the template."""
        spec = json.loads(json.dumps(self.template.spec))
        exactly = exactly_of(spec)
        for path, content in {field: value, **more}.items():
            below: Any = exactly
            for step in path[:-1]:
                below = below.setdefault(step, {})
            below[path[-1]] = content
        return self._replaced(spec)

    def _configured(self, way: SharingWay) -> WrittenWay:
        """One claim with the driver's configuration for sharing."""
        strategy, driver = _STRATEGIES[way], self.driver
        kinds = [
            config
            for config in (driver.configs if driver is not None else None) or ()
            if strategy in ((config.fields.get("sharing") or {}).get("strategy") or ())
        ]
        if driver is None or not kinds:
            title = driver.title if driver is not None else say("the driver of {name}", name=self.template.device_class)
            return WrittenWay(way, impossible=say("{title} has no such configuration", title=title))
        of_parts = any(kind.name == "mig" for kind in driver.kinds_of(self.template.device_class))
        config = next((kind for kind in kinds if kind.kind.startswith("Mig") == of_parts), kinds[0])
        sharing: dict[str, Any] = {"strategy": strategy}
        intervals = (config.fields["sharing"].get("timeSlicingConfig") or {}).get("interval")
        if intervals and way is SharingWay.TIME_SLICES:
            sharing["timeSlicingConfig"] = {"interval": intervals[0]}
        parameters = {"apiVersion": config.api_version, "kind": config.kind, "sharing": sharing}
        text = "driver gate {gate} (Helm: --set featureGates.{gate}=true), from driver release {since}"
        gates = tuple(
            SharingNeed(gate.name, say(text, gate=gate.name, since=gate.since), driver=driver.name)
            for gate, _ in driver.gates_needed(parameters)
            if not gate.on
        )
        spec = json.loads(json.dumps(self.template.spec))
        requests = [request.get("name") for request in (spec.get("devices") or {}).get("requests") or ()]
        configuration = {"requests": requests[:1], "opaque": {"driver": driver.name, "parameters": parameters}}
        spec["devices"].setdefault("config", []).append(configuration)
        return WrittenWay(way, self._as_claim(spec), (*gates, *self._free_name()))

    def _partitions(self) -> Iterator[WrittenWay]:
        """A claim for each pod for a partition, of each profile that is published, the largest first."""
        way = SharingWay.PARTITIONS
        driver, partitions = self.driver, dict[Profile, Device]()
        for device in self._of_driver:
            if profile := profile_of(device):
                partitions.setdefault(profile, device)
        if not partitions:
            yield WrittenWay(way, impossible=why_no_partition(driver, partitioning(driver, self.located)))
            return
        counted = any(device.consumes_counters for device in self._of_driver)
        needs = self._gate("DRAPartitionableDevices") if counted else ()
        for profile, device in sorted(
            partitions.items(), key=lambda partition: (-memory_of(partition[1]).nanos, partition[0])
        ):
            device_class = self._class_for(device)
            if not device_class:
                text = "class {name} admits no partition, and no other class does"
                yield WrittenWay(way, impossible=say(text, name=self.template.device_class))
                continue
            terms = [
                f'device.attributes["{device.driver}"].?{name}.orValue("") == "{value}"' for name, value in profile
            ]
            kept = exactly_of(self.template.spec).get("selectors") or []
            more: dict[FieldPath, Any] = {("selectors",): [*kept, {"cel": {"expression": " && ".join(terms)}}]}
            if UNITS in device.capacity:
                more["capacity", "requests", UNITS] = "1"
            other = device_class if self.template.device_class not in self.classes_of(device) else ""
            written = self._edited(("deviceClassName",), device_class, more)
            yield WrittenWay(way, written, needs, device_class=other)

    def _class_for(self, device: Device) -> str:
        """The class for a partition: one of the vendor for partitions alone, else the template's, else another one."""
        known = catalogue().driver(device.driver)
        classes = known.classes.values() if known is not None else ()
        admit = self.classes_of(device)
        own = [installed.name for installed in classes if len(installed.kinds) == 1 and installed.kinds[0] in _PARTS]
        wanted = (*reversed([name for name in own if name in admit]), self.template.device_class, *sorted(admit))
        return next((name for name in wanted if name in admit), "")

    def _of_capacity(self, part: str, pods: int) -> Iterator[WrittenWay]:
        """A claim for each pod for a part of a capacity that several claims may divide."""
        way, exactly = SharingWay.CAPACITY, exactly_of(self.template.spec)
        device = next((device for device in self.matching if device.allow_multiple_allocations), None)
        if device is None:
            driver = self.driver
            gate = next((gate for gate in (driver.gates if driver else ()) if gate.name == "ConsumableShares"), None)
            how: Words = ""
            if gate is not None:
                text = "; set the driver's gate {gate} and the Helm value consumableShares=memory (from {since})"
                how = say(text, gate=gate.name, since=gate.since)
            yield WrittenWay(way, impossible=say("no device allows several claims{how}", how=how))
            return
        needs, name = self._gate("DRAConsumableCapacity"), shared_capacity(exactly, device)
        if not name:
            yield WrittenWay(way, self.documents[0].source.text, needs)
            return
        if part and exceeds(part, most := most_of(name, self.matching)):
            text = "a pod gets {part} of {name}, and no device gives a claim more than {most}"
            yield WrittenWay(way, impossible=say(text, part=_counted(part, most), name=name, most=most))
            return
        policy, today = device.capacity[name].get("requestPolicy") or {}, self.asked
        usual = default_amount(device, name)
        first = part or (today.value if today is not None else usual if is_some(usual) else "")
        more = amounts_for(pods, self.left.get(name, ()), policy) if pods and not part else ()
        values = list(dict.fromkeys((*([first] if first else ()), *more)))
        if not values:
            text = "say with --part how much of {name} a pod gets (a device has {value})"
            value = str(device.capacity[name].get("value"))
            yield WrittenWay(way, impossible=say(text, name=name, value=value))
        for value in values:
            amount = Amount(name, value)
            path = "capacity", "requests", name
            text = self.documents[0].source.text if amount == today else self._edited(path, value)
            yield WrittenWay(way, text, needs, amount=amount)

    def _gate(self, gate: str) -> tuple[SharingNeed, ...]:
        """A gate of Kubernetes that is off."""
        if gate in self.gates:
            return ()
        text = "gate {gate} of the control plane and the kubelets (on by default from {first})"
        return (SharingNeed(gate, say(text, gate=gate, first=str(first_with(gate)))),)


def _counted(part: str, most: str) -> str:
    """An amount, with its number where it has a unit that the most has not: 10Gi CPUs are a mistake that shows then."""
    amount = Quantity.parse(part)
    return part if amount.format == Quantity.parse(most).format else f"{part} ({amount.value()})"


_STRATEGIES: Final = {SharingWay.TIME_SLICES: "TimeSlicing", SharingWay.MPS: "MPS"}
"""What drivers call it in ``sharing.strategy`` of their configuration."""
_PARTS: Final = ("mig", "partition")
"""Kinds of device that are partitions, as vendors' files call them."""
