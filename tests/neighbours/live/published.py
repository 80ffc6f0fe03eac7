"""Cases of other layers on a real API server that has the layers' own CustomResourceDefinitions."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.cluster.time_read import parse, stamp
from tools.cases import Case
from tools.controlplane.client import Api, ApiError
from tools.controlplane.cluster import wait
from tools.controlplane.plane import ControlPlane
from tools.controlplane.processes import children
from tools.recorder.definitions import definitions

Json = dict[str, Any]
_TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_DATED = ("Pod", "ResourceClaim", "Event")
_OF_THE_SERVER = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields")


def layer_kinds(case: Case) -> set[str]:
    """The kinds of other layers among the objects of a case; not those that Kubernetes has itself."""
    kinds = {kind_here(entry["kind"], entry["apiVersion"]) for entry in case.objects}
    return {kind for kind in kinds if kind in NEIGHBOUR_KINDS and "." in NEIGHBOUR_KINDS[kind].group}


def published() -> set[str]:
    """The kinds of which a definition is recorded."""
    specs = [definition["spec"] for definition in definitions()]
    return {f"{spec['names']['kind']}.{spec['group']}" for spec in specs}


@contextmanager
def only_served(plane: ControlPlane) -> Iterator[None]:
    """No scheduler and no controller acts: objects stay as a case has them."""
    halted = children(plane.pid)[2:]
    for pid in halted:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in halted:
            os.kill(pid, signal.SIGCONT)


def define(plane: ControlPlane, more: Iterable[Json] = ()) -> Api:
    """Has the server serve the recorded definitions, and more, and returns a connection that knows them."""
    api = plane.api()
    specs = []
    for definition in (*definitions(), *more):
        api.create(definition)
        specs.append(definition["spec"])

    def served() -> Api | None:
        fresh = plane.api()
        try:
            known = [
                spec["names"]["kind"] in fresh.kinds(f"{spec['group']}/{version['name']}")
                for spec in specs
                for version in spec["versions"]
                if version["served"]
            ]
        except ApiError:
            known = [False]
        return fresh if all(known) else None

    return wait(served, "the definitions to be served", 120)


def moved(case: Case) -> Case:
    """The case as of now: all its times as much later as the newest of those by which explain knows the time."""
    dated = json.dumps([entry for entry in case.objects if entry["kind"] in _DATED])
    newest = max(_TIME.findall(dated), default="")
    if not newest:
        return case
    then = parse(newest)
    assert then is not None
    later = datetime.now(UTC) - then

    def shifted(found: re.Match[str]) -> str:
        time = parse(found[0])
        assert time is not None
        return stamp(time + later)

    objects, raw = json.loads(_TIME.sub(shifted, json.dumps([case.objects, case.raw])))
    return Case(case.file, case.name, objects, raw)


@contextmanager
def applied(api: Api, case: Case) -> Iterator[Case]:
    """The case with its objects on the server, and the UIDs that it gave them; they are deleted after the block."""
    served = _Applied(api)
    try:
        waiting = list(case.objects)
        while waiting:
            # What others name by its UID goes first.
            pending = [uid for entry in waiting if (uid := entry["metadata"].get("uid"))]
            first = next((entry for entry in waiting if not _names(entry, pending)), waiting[0])
            waiting.remove(first)
            served.create(served.renamed(first))
        yield Case(case.file, case.name, served.renamed(case.objects), served.renamed(case.raw))
    finally:
        served.remove()


class _Applied:
    """Objects that were made on the server, and the UIDs that it gave them in the place of their own."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._uids: dict[str, str] = {}
        self._made: list[Json] = []

    def renamed(self, value: Any) -> Any:
        """A value with the UIDs that the server has given."""
        text = json.dumps(value)
        for old, new in self._uids.items():
            text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
        return json.loads(text)

    def remove(self) -> None:
        """Deletes them all."""
        for entry in reversed(self._made):
            metadata = entry["metadata"]
            path = self._api.path(entry["apiVersion"], entry["kind"], metadata.get("namespace", ""), metadata["name"])
            # No controller is there to orphan what a Job has made, and no kubelet to end a pod.
            self._api.request("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def create(self, entry: Json) -> None:
        """Makes an object, with its status."""
        uid = entry["metadata"].get("uid", "")
        metadata = {key: value for key, value in entry["metadata"].items() if key not in _OF_THE_SERVER}
        version, kind = entry["apiVersion"], entry["kind"]
        if self._api.kinds(version)[kind].namespaced:
            self._have_namespace(metadata.setdefault("namespace", "default"))
        if kind in ("Pod", "Job") and version in ("v1", "batch/v1"):
            _complete(entry)
        whole = {**entry, "metadata": metadata}
        if kind == "Namespace":
            self._have_namespace(metadata["name"])
            return
        created = self._api.create(whole)
        self._made.append(whole)
        if uid:
            self._uids[uid] = created["metadata"]["uid"]
        if entry.get("status") and created.get("status", {}) != entry["status"]:
            self._api.patch(whole, {"status": entry["status"]}, "status")

    def _have_namespace(self, name: str) -> None:
        """It stays: a namespace is deleted by a controller."""
        try:
            self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


def _names(entry: Json, uids: Sequence[str]) -> bool:
    own = entry["metadata"].get("uid")
    text = json.dumps(entry)
    return any(re.search(rf"(?<![\w-]){re.escape(uid)}(?![\w-])", text) for uid in uids if uid != own)


def _complete(entry: Json) -> None:
    """Adds what cases leave out of pods, and the server insists on."""
    spec = entry["spec"]
    if entry["kind"] == "Job":
        spec = spec["template"]["spec"]
        spec.setdefault("restartPolicy", "Never")
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container.setdefault("image", "example.com/none")
