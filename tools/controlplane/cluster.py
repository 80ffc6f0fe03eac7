"""What a test does to a control plane: objects that administrators, drivers and users make, and waiting.

The control plane is shared, so everything a test makes is its own: a namespace, a driver name, names of nodes
and classes. Pods are kept to the test's own nodes by a node selector.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tools.controlplane.client import Api, Json
from tools.controlplane.objects import RESOURCE_API, cel_selectors, claims_of, resource_object
from tools.controlplane.plane import ControlPlane

OWNER_LABEL = "kubectl-dra.test/owner"
POLL_SECONDS = 0.05

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A pod that the scheduler has bound."""

    node: str
    allocations: dict[str, Json]
    """`status.allocation` of each claim, by the claim's name in the pod."""

    def devices(self, claim: str) -> list[str]:
        """The devices of a claim as `pool/device`, in the order of its results."""
        return [f"{result['pool']}/{result['device']}" for result in self.results(claim)]

    def results(self, claim: str) -> list[Json]:
        """`status.allocation.devices.results` of a claim."""
        results: list[Json] = self.allocations[claim]["devices"]["results"]
        return results


class Cluster:
    """One test's share of a control plane. `remove` takes back everything it made."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane = plane
        self.api: Api = plane.api()
        self.namespace = name
        self.driver = f"{name}.example.com"
        self._cluster_scoped: list[Json] = []
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    # Names and plain objects

    def name(self, part: str) -> str:
        """A name for a cluster-scoped object that no other test uses."""
        return f"{self.namespace}-{part}"

    def create(self, obj: Json) -> Json:
        """Create any object; it is in the test's namespace if its kind is namespaced and names none."""
        _, namespaced = self.api.kinds(obj["apiVersion"])[obj["kind"]]
        if namespaced:
            metadata = {"namespace": self.namespace, **obj["metadata"]}
            return self.api.create({**obj, "metadata": metadata})
        created = self.api.create(obj)
        self._cluster_scoped.append(obj)
        return created

    def get(self, kind: str, name: str, api_version: str = RESOURCE_API) -> Json:
        """Read an object of the test's namespace, or a cluster-scoped one."""
        return self.api.get(api_version, kind, name, self.namespace)

    def remove(self) -> None:
        """Delete all that was made. The namespace goes last, in the background."""
        for obj in reversed(self._cluster_scoped):
            self.api.delete(obj)
        # Now nothing can make new pods; those bound to a node have no kubelet to confirm their end.
        for pod in self.api.list("v1", "Pod", self.namespace):
            self.api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)
        self.api.close()

    def grant(self, verbs: Sequence[str], resources: Sequence[str], *, everywhere: bool = False) -> None:
        """Allow the restricted user something; resources are written `plural.group`, `pods` for the core group.

        Subresources are not covered. `everywhere` means all namespaces and cluster-scoped objects.
        """
        rules = []
        for resource in resources:
            plural, _, group = resource.partition(".")
            rules.append({"apiGroups": [group], "resources": [plural], "verbs": list(verbs)})
        prefix = "Cluster" if everywhere else ""
        metadata = {"name": self.name(f"grant-{time.monotonic_ns()}")}
        rbac = "rbac.authorization.k8s.io"
        self.create({"apiVersion": f"{rbac}/v1", "kind": f"{prefix}Role", "metadata": metadata, "rules": rules})
        self.create(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": f"{prefix}RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": rbac, "kind": f"{prefix}Role", "name": metadata["name"]},
                "subjects": [{"apiGroup": rbac, "kind": "User", "name": "restricted"}],
            }
        )

    def allow_admin_access(self) -> None:
        """Label the namespace so that claims in it may ask for admin access."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        labels = {"resource.kubernetes.io/admin-access": "true"}
        self.api.patch(namespace, {"metadata": {"labels": labels}})

    # What an administrator makes

    def node(
        self,
        part: str = "node",
        *,
        labels: Mapping[str, str] | None = None,
        allocatable: Mapping[str, str] | None = None,
    ) -> str:
        """Make a Ready node and return its name. `allocatable` adds to 8 cpu, 32Gi memory and 110 pods."""
        name = self.name(part)
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110", **(allocatable or {})}
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, OWNER_LABEL: self.namespace, **(labels or {})},
                },
                "status": {
                    "capacity": resources,
                    "allocatable": resources,
                    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                },
            }
        )
        return name

    def device_class(self, part: str = "gpu", *, selectors: Sequence[str] | None = None, **spec: object) -> str:
        """Make a DeviceClass and return its name; without CEL `selectors` it takes the test driver's devices."""
        chosen = [f'device.driver == "{self.driver}"'] if selectors is None else selectors
        name = self.name(part)
        spec = {"selectors": cel_selectors(chosen), **spec}
        self.create(resource_object("DeviceClass", name, spec))
        return name

    def quota(self, hard: Mapping[str, str], name: str = "quota") -> None:
        """Make a ResourceQuota and wait until the controller has counted what there is."""
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}}
        self.create({**quota, "spec": {"hard": dict(hard)}})
        wait(
            lambda: self.get("ResourceQuota", name, "v1").get("status", {}).get("hard") == dict(hard) or None,
            f"status of the quota {name}",
        )

    # What a driver publishes

    def publish(
        self,
        devices: Sequence[Json],
        *,
        pool: str,
        node: str | None = None,
        generation: int = 1,
        slices: int = 1,
        slice_count: int | None = None,
        shared_counters: Sequence[Json] = (),
        **spec: object,
    ) -> list[str]:
        """Publish a generation of a pool and return the names of its ResourceSlices.

        Devices go to `slices` slices in order; shared counters go to one more slice. The pool is for `node`;
        without one `spec` says where it is (`nodeSelector`, `perDeviceNodeSelection`), or else it is for all
        nodes. `slice_count` is what the slices claim their number is, to publish an incomplete pool. Slices
        of earlier generations are left where they are: see `withdraw`.
        """
        total = slices + bool(shared_counters)
        if node is not None:
            spec["nodeName"] = node
        elif not spec.keys() & {"nodeSelector", "perDeviceNodeSelection", "allNodes"}:
            spec["allNodes"] = True
        common = {
            **spec,
            "driver": self.driver,
            "pool": {
                "name": pool,
                "generation": generation,
                "resourceSliceCount": total if slice_count is None else slice_count,
            },
        }
        contents: list[Json] = [{"devices": part} for part in _split(devices, slices)]
        if shared_counters:
            contents.append({"sharedCounters": list(shared_counters)})
        names = []
        for index, content in enumerate(contents):
            names.append(self.name(f"{pool}-g{generation}-{index}"))
            self.create(resource_object("ResourceSlice", names[-1], {**common, **content}))
        return names

    def withdraw(self, slices: Iterable[str]) -> None:
        """Delete ResourceSlices by name, as a driver does with an old generation."""
        for name in slices:
            self.api.delete(resource_object("ResourceSlice", name))

    # What a user makes

    def claim(self, requests: Sequence[Json], name: str = "claim", **devices: object) -> str:
        """Make a ResourceClaim and return its name; `devices` holds `constraints` and `config`."""
        self.create(resource_object("ResourceClaim", name, {"devices": {"requests": list(requests), **devices}}))
        return name

    def template(self, requests: Sequence[Json], name: str = "template", **devices: object) -> str:
        """Make a ResourceClaimTemplate and return its name; `devices` holds `constraints` and `config`."""
        spec = {"devices": {"requests": list(requests), **devices}}
        self.create(resource_object("ResourceClaimTemplate", name, {"spec": spec}))
        return name

    def pod(
        self,
        name: str = "pod",
        *,
        claims: Mapping[str, str] | None = None,
        templates: Mapping[str, str] | None = None,
        own_nodes: bool = True,
        **spec: object,
    ) -> str:
        """Make a pod and return its name.

        `claims` and `templates` map a claim's name in the pod to a ResourceClaim or ResourceClaimTemplate.
        Without `own_nodes` the pod may go to nodes of other tests. `spec` replaces fields of the pod's spec.
        """
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {**self.pod_spec(claims=claims, templates=templates, own_nodes=own_nodes), **spec},
            }
        )
        return name

    def pod_spec(
        self,
        *,
        claims: Mapping[str, str] | None = None,
        templates: Mapping[str, str] | None = None,
        own_nodes: bool = True,
    ) -> Json:
        """The spec of a pod with one container that uses all its claims; also for templates of workloads."""
        references = [{"name": key, "resourceClaimName": name} for key, name in (claims or {}).items()]
        references += [{"name": key, "resourceClaimTemplateName": name} for key, name in (templates or {}).items()]
        uses = [{"name": reference["name"]} for reference in references]
        spec: Json = {
            "containers": [{"name": "main", "image": "example.com/none", "resources": {"claims": uses}}],
            "resourceClaims": references,
        }
        if own_nodes:
            spec["nodeSelector"] = {OWNER_LABEL: self.namespace}
        return spec

    # What the scheduler says

    def scheduled(self, pod: str, seconds: float = 60) -> Scheduled:
        """Wait until a pod is bound, and return where, with what its claims were allocated."""

        def bound() -> Json | None:
            found = self.get("Pod", pod, "v1")
            return found if found["spec"].get("nodeName") else None

        found = wait(bound, f"pod {pod} to be scheduled", seconds, lambda: self._condition(pod))
        allocations = {
            key: self.get("ResourceClaim", claim)["status"]["allocation"]
            for key, claim in claims_of(found).items()
            if claim is not None
        }
        return Scheduled(found["spec"]["nodeName"], allocations)

    def unschedulable(self, pod: str, seconds: float = 60, steady: float = 0.5) -> str:
        """Wait until the scheduler says that a pod fits nowhere, and return its message.

        The message must know of all nodes of the test and stay the same for `steady` seconds: the first one can
        be from before the scheduler saw everything that was made. Raises AssertionError when the pod is scheduled.
        """
        nodes = len(self.api.list("v1", "Node", labelSelector=f"{OWNER_LABEL}={self.namespace}"))
        last = ""
        since = time.monotonic()

        def settled() -> str | None:
            nonlocal last, since
            found = self.get("Pod", pod, "v1")
            assert not found["spec"].get("nodeName"), f"pod {pod} was scheduled"
            condition = _scheduling_condition(found)
            text = condition.get("message", "") if condition.get("reason") == "Unschedulable" else ""
            if None in claims_of(found).values() or _nodes_counted(text) < nodes:
                text = ""
            if text != last:
                last, since = text, time.monotonic()
            return last if last and time.monotonic() - since >= steady else None

        return wait(settled, f"pod {pod} to be unschedulable", seconds, lambda: self._condition(pod))

    def failed_scheduling(self, pod: str) -> list[str]:
        """The messages of a pod's FailedScheduling events."""
        selector = f"involvedObject.name={pod},reason=FailedScheduling"
        events = self.api.list("v1", "Event", self.namespace, fieldSelector=selector)
        return [event["message"] for event in events]

    def _condition(self, pod: str) -> object:
        return _scheduling_condition(self.get("Pod", pod, "v1"))


def wait(
    check: Callable[[], T | None],
    what: str,
    seconds: float = 60,
    state: Callable[[], object] = lambda: "",
) -> T:
    """Return the first answer of `check` that is not None.

    Raises AssertionError after `seconds`, naming `what` was waited for and the `state` things are in.
    """
    deadline = time.monotonic() + seconds
    while (answer := check()) is None:
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}: {state()}"
        time.sleep(POLL_SECONDS)
    return answer


def _split(devices: Sequence[Json], parts: int) -> list[Sequence[Json]]:
    size = -(-len(devices) // parts)
    return [devices[start * size : (start + 1) * size] for start in range(parts)]


def _nodes_counted(message: str) -> int:
    """The nodes that the scheduler knew when it said `0/N nodes are available`; 0 where it knew none."""
    found = re.match(r"0/(\d+) nodes are available", message)
    return int(found[1]) if found else 0


def _scheduling_condition(pod: Json) -> Json:
    conditions: list[Json] = pod.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})
