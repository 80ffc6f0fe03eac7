"""Asks explain and the real scheduler the same question, and compares what they say."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster, Scheduled, wait
from tools.controlplane.objects import RESOURCE_API
from tools.controlplane.plane import gates_asked
from tools.live.command import Answer, Command
from tools.live.proved import device_path
from tools.live.releases import RANDOM_ORDER, Changed, expected

# On a node that sees an invalid pool the scheduler names that one, whatever else is missing.
_REJECTED = re.compile(r"(\d+) (?:cannot allocate all claims|invalid resource pools were encountered)")

_BACKOFF_SECONDS = 3.0
"""Longer than kube-scheduler waits before it tries a pod a second time (1 s) and a third time (2 s)."""


_OTHERS = re.compile(r",? ?(\d+) node\(s\) didn't match Pod's node affinity/selector,?")
_ALL_NODES = re.compile(r"\b0/(\d+) nodes")
_NOT_HELPFUL = re.compile(r",? ?(\d+) Preemption is not helpful for scheduling")


def of_own_nodes(message: str) -> str:
    """A scheduler's message without nodes of other tests: they come and go on a shared plane.

    Those fail at the node affinity of the test's pods, before anything else is looked at, and preemption cannot help
    on them. All other numbers stay.
    """
    found = _OTHERS.search(message)
    others = int(found[1]) if found else 0
    message = _OTHERS.sub("", message)
    message = _ALL_NODES.sub(lambda all_nodes: f"0/{int(all_nodes[1]) - others} nodes", message)
    return _NOT_HELPFUL.sub(
        lambda beyond: beyond[0].replace(beyond[1], str(int(beyond[1]) - others)) if int(beyond[1]) > others else "",
        message,
    )


class Referee:
    """One test's cluster with the two who judge it."""

    def __init__(self, cluster: Cluster, command: Command, directory: Path) -> None:
        self.cluster = cluster
        self._command = command
        self._directory = directory

    def explain(self, *arguments: str, context: str = "admin") -> Answer:
        """What explain says in the test's namespace."""
        kubeconfig = str(self.cluster.plane.kubeconfig)
        connection = ["--kubeconfig", kubeconfig, "--context", context, "-n", self.cluster.namespace]
        return self._command("explain", *arguments, *connection, *gates_asked(), "-o", "json")

    def explain_manifest(self, *objects: Json, flags: Sequence[str] = (), context: str = "admin") -> Answer:
        """What explain says about objects that do not exist yet."""
        path = self._directory / "manifest.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return self.explain("-f", str(path), *flags, context=context)

    def fits(
        self,
        name: str = "pod",
        *,
        claims: Mapping[str, str] | None = None,
        templates: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Scheduled:
        """Both say that a pod fits, on the node that the scheduler takes with the same devices, and so it is after."""
        whole = {**self.cluster.pod_spec(claims=claims, templates=templates), **spec}
        before = self.explain_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole})
        assert (before.code, before.report["verdict"]) == (0, "can-be-scheduled"), before.text
        self.cluster.pod(name, claims=claims, templates=templates, **spec)
        scheduled = self.cluster.scheduled(name)
        self.same(before, scheduled)
        self.holds(self.explain(f"pod/{name}"), scheduled)
        return scheduled

    def same(self, before: Answer, scheduled: Scheduled) -> None:
        """The scheduler did what explain said it would; or had done it, where it was quicker."""
        if before.report["verdict"] == "allocated":
            self.holds(before, scheduled)
            return
        ours = before.placement(scheduled.node)
        assert ours is not None, f"scheduled to {scheduled.node}, but explain says: {before.report['answer']}"
        theirs = {entry: devices for entry, devices in given(scheduled).items() if devices}
        if self.any_order:
            ours, theirs = _requests(ours), _requests(theirs)
        assert ours == theirs, f"explain: {ours}, scheduler: {theirs}"

    @property
    def any_order(self) -> bool:
        """Whether the scheduler tries the slices of this test in random order, so that any of their devices will do."""
        driver = f"spec.driver={self.cluster.driver}"
        slices = self.cluster.api.list(RESOURCE_API, "ResourceSlice", fieldSelector=driver)
        return len(slices) > 1 and expected(RANDOM_ORDER, self.cluster.plane)

    def holds(self, after: Answer, scheduled: Scheduled) -> None:
        """Explain says that a pod has what it has."""
        assert (after.code, after.report["verdict"]) == (0, "allocated"), after.text
        held = {
            claim["entry"]: [
                f"{one['request']}: {one['driver']}/{one['pool']}/{one['device']}" for one in claim.get("devices", [])
            ]
            for claim in after.report["claims"]
        }
        assert held == given(scheduled)

    def fits_now(self, name: str = "pod") -> Answer:
        """Explain says that a pod fits which the scheduler has refused, after a deletion or an update.

        These leave no trace: once the second of the scheduler's message is over, explain cannot tell whether the
        scheduler knows of them, and says that as well.
        """
        answer = self.explain(f"pod/{name}")
        undetermined = (answer.code, answer.causes) == (3, ["waiting-for-retry"])
        assert answer.code == 0 or undetermined, answer.text
        return answer

    def proved(self, answer: Answer, scheduled: Scheduled) -> None:
        """What explain foretold of its remedy has come true: the same node and devices."""
        proof = answer.report["causes"][0]["fix"]["proof"]
        foretold = [f"{one['request']}: {device_path(one)}" for one in proof["devices"]]
        assert (proof["node"], foretold) == (
            scheduled.node,
            [one for held in given(scheduled).values() for one in held],
        )

    def rejected(self, cause: str, name: str = "pod", **pod: Any) -> Answer:
        """Both say that a pod fits nowhere, on the same number of nodes, and explain names one `cause`."""
        self.cluster.pod(name, **pod)
        message = self.cluster.unschedulable(name)
        try:
            return self.rejected_already(cause, message, name)
        except AssertionError:
            # On a busy machine a message can be from before the scheduler saw everything. Then it says another soon.
            time.sleep(_BACKOFF_SECONDS)
            later = self.cluster.unschedulable(name)
            if later == message:
                raise
            return self.rejected_already(cause, later, name)

    def rejected_already(self, cause: str, message: str, name: str = "pod") -> Answer:
        """As `rejected`, of a pod that the scheduler has judged with a message."""
        answer = self.explain(f"pod/{name}")
        assert (answer.code, answer.causes) == (1, [cause]), f"scheduler: {message}\n{answer.text}"
        counted = sum(int(count) for count in _REJECTED.findall(message))
        ours = answer.outcomes(self.cluster.name(""))
        assert ours == {"rejected": counted}, f"{ours}; scheduler: {message}"
        self._quoted(answer, message)
        return answer

    def fails(self, cause: str, text: str | Changed[str], name: str = "pod", **pod: Any) -> Answer:
        """Both end in an error with the same text, and explain names one `cause`."""
        text = expected(text, self.cluster.plane)
        self.cluster.pod(name, **pod)
        message = self.condition(name, "SchedulerError", text)
        answer = self.explain(f"pod/{name}")
        assert (answer.code, answer.causes) == (1, [cause]), f"scheduler: {message}\n{answer.text}"
        whole = {group["reason"] for group in answer.report["nodeGroups"] if group["outcome"] == "error"}
        assert any(message.endswith(f"filter plugin: {reason}") for reason in whole), f"{whole}; {message}"
        values = [evidence["value"] for evidence in answer.report["causes"][0]["evidence"]]
        assert any(text in value for value in values), f"{values} lack: {text}"
        self._quoted(answer, message)
        return answer

    def condition(self, name: str, reason: str, text: str, steady: float = 0.3) -> str:
        """Wait for a scheduling condition with a reason and a text, and return its message."""
        since = 0.0

        def settled() -> str | None:
            nonlocal since
            found = self.scheduling(name)
            if found.get("reason") != reason or text not in found.get("message", ""):
                since = 0.0
                return None
            since = since or time.monotonic()
            return str(found["message"]) if time.monotonic() - since >= steady else None

        return wait(settled, f"{reason} with: {text}", state=lambda: self.scheduling(name))

    def scheduling(self, name: str) -> Json:
        """The condition PodScheduled of a pod; empty while there is none."""
        status = self.cluster.get("Pod", name, "v1").get("status", {})
        return next((each for each in status.get("conditions", ()) if each["type"] == "PodScheduled"), {})

    def event(self, name: str, reason: str) -> str:
        """Wait for an event about a pod and return its message."""
        selector = f"involvedObject.name={name},reason={reason}"

        def seen() -> str | None:
            found = self.cluster.api.list("v1", "Event", self.cluster.namespace, fieldSelector=selector)
            return str(found[0]["message"]) if found else None

        return wait(seen, f"an event {reason}")

    def _quoted(self, answer: Answer, message: str) -> None:
        words = [word["message"] for word in answer.report["scheduler"]]
        assert of_own_nodes(message) in map(of_own_nodes, words), f"{words} lack: {message}"


def _requests(held: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Per entry the requests that got devices, once for each device, without the devices."""
    return {entry: [device.partition(":")[0] for device in devices] for entry, devices in held.items()}


def given(scheduled: Scheduled) -> dict[str, list[str]]:
    """What a pod got: per entry `request: driver/pool/device`, in the order of the results."""
    return {
        entry: [
            f"{result['request']}: {result['driver']}/{result['pool']}/{result['device']}"
            for result in scheduled.results(entry)
        ]
        for entry in scheduled.allocations
    }
