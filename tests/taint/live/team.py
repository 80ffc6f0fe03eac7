"""People who taint devices in tests, and the kubelet that ends their pods."""

from __future__ import annotations

import json
import threading
from itertools import count
from typing import Any

import jsonschema
import yaml

from kubectl_dra.api.releases import GROUP, versions_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.taint.device_taint_rules import rule_name
from tools.controlplane.client import ApiError
from tools.controlplane.cluster import Cluster, Scheduled, wait
from tools.controlplane.objects import device, request
from tools.controlplane.plane import ControlPlane, release_of
from tools.live.command import ROOT, Answer, Command

Json = dict[str, Any]
KEY = "example.com/maintenance"
RBAC = "rbac.authorization.k8s.io"


class Team:
    """A node with some devices, a class for them, and ``kubectl dra`` as an administrator."""

    def __init__(self, cluster: Cluster, command: Command, devices: int = 2) -> None:
        self.cluster = cluster
        self.command = command
        self.node = cluster.node("gpu-node")
        self.gpu = cluster.device_class()
        names = [f"gpu-{number}" for number in range(devices)]
        published = [device(name, {"uuid": f"GPU-{cluster.namespace}-{name}"}) for name in names]
        self.slices = cluster.publish(published, pool="pool", node=self.node)
        self.served = rule_version(cluster.plane)
        self.version = f"{GROUP}/{self.served}"

    def dra(self, *words: str, user: str = "") -> Answer:
        """Runs a command of kubectl dra."""
        connection = ["--kubeconfig", str(self.cluster.plane.kubeconfig), "--context", "admin"]
        return self.command(*words, *connection, *(["--as", user] if user else []))

    def json(self, *words: str, code: int = 0) -> Json:
        """Runs a command and returns its result, which is as the schema says."""
        answer = self.dra(*words, "-o", "json")
        assert answer.code == code, answer.text
        return checked(answer.out)

    def full(self, name: str) -> str:
        """``driver/pool/device``."""
        return f"{self.cluster.driver}/pool/{name}"

    def pod(self, name: str, **fields: Any) -> str:
        """Makes a pod with a claim of its own for one device."""
        claim = self.cluster.claim([request(self.gpu, **fields)], f"{name}-claim")
        return self.cluster.pod(name, claims={"gpu": claim})

    def running(self, name: str, **fields: Any) -> str:
        """Makes such a pod, waits until it is bound, and returns its device."""
        self.pod(name, **fields)
        scheduled: Scheduled = self.cluster.scheduled(name)
        return scheduled.devices("gpu")[0].removeprefix("pool/")

    def rule(self, name: str, key: str = KEY) -> Json | None:
        """The rule for a device; None where there is none."""
        try:
            return self.cluster.api.get(
                self.version, "DeviceTaintRule", rule_name(DeviceID(self.cluster.driver, "pool", name), key)
            )
        except ApiError as error:
            assert error.status == 404
            return None

    def rules(self) -> list[Json]:
        """Every rule for devices of this test."""
        listed = self.cluster.api.list(self.version, "DeviceTaintRule")
        return [r for r in listed if r["spec"].get("deviceSelector", {}).get("driver") == self.cluster.driver]

    def going(self) -> set[str]:
        """The pods that are being deleted."""
        pods = self.cluster.api.list("v1", "Pod", self.cluster.namespace)
        return {pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")}

    def pod_gone(self, name: str) -> None:
        """Waits until a pod does not exist any more."""
        wait(lambda: True if self._absent(name) else None, f"the end of pod {name}")

    def _absent(self, name: str) -> bool:
        try:
            self.cluster.get("Pod", name, "v1")
        except ApiError as error:
            return error.status == 404
        return False

    def remove_rules(self) -> None:
        """Deletes what the test left."""
        for rule in self.rules():
            self.cluster.api.delete({"apiVersion": self.version, "kind": "DeviceTaintRule", **rule})


class Kubelet:
    """Ends the deleted pods of a namespace in a thread of its own, until stopped."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = cluster.plane.api()
        self._namespace = cluster.namespace
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(10)
        self._api.close()

    def _play(self) -> None:
        while not self._stopped.wait(0.1):
            for pod in self._api.list("v1", "Pod", self._namespace):
                if pod["metadata"].get("deletionTimestamp"):
                    self._api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)


def checked(text: str) -> Json:
    """A result of taint or untaint, which is as the schema says."""
    report: Json = json.loads(text)
    schema = json.loads((ROOT / "schemas" / "taint.json").read_text())
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(report))
    assert error is None, f"{error.json_path}: {error.message}"
    return report


def bind(team: Team, file: str, *without: tuple[str, str], names: tuple[str, list[str]] | None = None) -> str:
    """Gives a new user the role of a file, except for some verbs of some resources; returns the user.

    ``names``: patching is allowed for rules of these names only.
    """
    (role,) = list(yaml.safe_load_all((ROOT / "examples" / "rbac" / f"{file}.yaml").read_text()))
    name = team.cluster.name(f"{file}-{next(_NUMBER)}")
    rules: list[Json] = []
    for rule in role["rules"]:
        for resource in rule["resources"]:
            verbs = [verb for verb in rule["verbs"] if (verb, resource) not in without]
            if names and resource == "devicetaintrules":
                verbs.remove(names[0])
                rules.append({**rule, "resources": [resource], "verbs": [names[0]], "resourceNames": names[1]})
            rules.append({**rule, "resources": [resource], "verbs": verbs})
    team.cluster.create({**role, "rules": [rule for rule in rules if rule["verbs"]], "metadata": {"name": name}})
    subject: dict[str, Any] = {"apiGroup": RBAC, "kind": "User", "name": name}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}}
    team.cluster.create({**binding, "roleRef": reference, "subjects": [subject]})
    return name


_NUMBER = count(1)


def rule_version(plane: ControlPlane) -> str:
    """The version of DeviceTaintRule that the plane's release prefers, such as `v1beta2`."""
    return versions_of("DeviceTaintRule", release_of(plane))[0]
